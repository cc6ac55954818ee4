//! Structured output: native where the model supports it, requested in the prompt elsewhere.

use agent::model::turns::Turn;
use graph::effect::{Chat, Form, Message};
use graph::outcome::Failure;
use journal::clock::Clock;
use serde_json::{Value, json};

use super::server::{Heard, Say, Server, Wire};
use super::world::models;

const ANSWER: &str = r#"{"tool": "look"}"#;

fn schema() -> Value {
    json!({"type": "object", "properties": {"tool": {"type": "string"}}, "required": ["tool"]})
}

fn chat() -> Chat {
    Chat {
        system: "You plan.".to_owned(),
        messages: vec![Message::user(1, "What is next?")],
        max_output_tokens: 50,
        form: Some(Form { name: "plan".to_owned(), schema: schema() }),
        ..Chat::default()
    }
}

/// The schema in a request.
fn form_of(heard: &Heard) -> Option<Value> {
    match heard.wire {
        Wire::Bedrock => {
            let format = heard.body.pointer("/outputConfig/textFormat")?;
            assert_eq!(format["type"], "json_schema");
            let schema = format.pointer("/structure/jsonSchema/schema")?.as_str()?;
            Some(serde_json::from_str(schema).unwrap())
        }
        Wire::OpenAi => {
            let format = heard.body.get("response_format")?;
            assert_eq!(format["type"], "json_schema");
            format.pointer("/json_schema/schema").cloned()
        }
    }
}

async fn asked(server: &Server, wire: Wire, times: usize) -> Vec<Result<Value, Failure>> {
    let models = models(&server.url);
    let mut brought = Vec::new();
    for _ in 0..times {
        let attempt = models.ask(&Turn::unbounded(), wire.model(), &chat(), &Clock::system()).await;
        brought.push(attempt.brought.map(|reply| reply.json().unwrap()));
    }
    brought
}

#[tokio::test]
async fn a_model_with_structured_output_gets_the_schema() {
    for wire in Wire::ALL.iter().copied() {
        let server = Server::start(|_, _| Say::text(ANSWER)).await;
        assert_eq!(asked(&server, wire, 1).await, [Ok(json!({"tool": "look"}))]);
        let heard = server.heard();
        assert_eq!(heard.iter().map(form_of).collect::<Vec<_>>(), [Some(schema())]);
    }
}

#[tokio::test]
async fn a_model_without_structured_output_gets_the_schema_as_text() {
    for wire in Wire::ALL.iter().copied() {
        let server = Server::start(|heard, _| match form_of(heard) {
            Some(_) => Say::Refused,
            None => Say::text(ANSWER),
        })
        .await;
        let answer = Ok(json!({"tool": "look"}));
        assert_eq!(asked(&server, wire, 2).await, [answer.clone(), answer]);
        let heard = server.heard();
        let forms: Vec<bool> = heard.iter().map(|heard| form_of(heard).is_some()).collect();
        assert_eq!(forms, [true, false, false], "{wire:?}");
        let sent = heard[1].body.to_string();
        assert!(sent.contains("You plan.") && sent.contains("JSON schema"), "{sent}");
    }
}

#[tokio::test]
async fn a_request_refused_with_and_without_a_schema_is_refused() {
    for wire in Wire::ALL.iter().copied() {
        let server = Server::start(|_, _| Say::Refused).await;
        let failures = asked(&server, wire, 2).await;
        for failure in &failures {
            assert_eq!(failure.as_ref().unwrap_err().category, "unknown");
        }
        let forms: Vec<bool> = server.heard().iter().map(|one| form_of(one).is_some()).collect();
        assert_eq!(forms, [true, false, true, false], "it may have been something else");
    }
}
