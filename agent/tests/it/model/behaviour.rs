//! Good and bad replies of models, and how their sessions end.

use graph::effect::Author;
use journal::step::Ending;
use serde_json::{Value, json};

use super::server::Server;
use super::server::{Heard, Say, TOKENS, Wire};
use super::world::{World, captured, detail, good_replies, models, went};

/// Visits are limited to twelve, three of which need no model. The last call follows.
const CHATS_MAX: usize = 12;

fn author(wire: Wire) -> Value {
    json!(wire.model())
}

#[tokio::test]
async fn each_attempt_of_a_model_has_its_tokens_time_and_cost() {
    let good = good_replies().await;
    for wire in Wire::ALL.iter().copied() {
        let says = good.clone();
        let (went, server) = went(wire, json!({}), move |turn, _| says[turn].clone()).await;
        let (ending, category, result) = went.end();
        assert_eq!((ending, category), (Ending::Completed, None), "{wire:?}");
        assert_eq!(result["fault_types"], json!(["permission_loss"]));
        assert_eq!(result["diagnosed_by"], author(wire));
        let attempts = went.attempts();
        assert_eq!(attempts.len(), good.len());
        assert_eq!(server.heard().len(), good.len());
        let (sent, cached, received) = TOKENS;
        for attempt in &attempts {
            let by = attempt.brought.as_ref().unwrap().by.clone();
            assert_eq!(by, Author::Model(wire.model().to_owned()));
            let usage = attempt.usage;
            assert_eq!((usage.input_tokens, usage.output_tokens), (sent, received));
            assert_eq!((usage.cache_read_tokens, usage.unsettled_tokens), (cached, 0));
            assert_eq!((usage.micro_usd, usage.unpriced_tokens), (600 * 3 + 120 + 750, 0));
            assert!(attempt.took > std::time::Duration::ZERO);
        }
        let heard = server.heard();
        assert_eq!(
            heard.iter().map(Heard::turn).collect::<Vec<_>>(),
            (0..good.len()).collect::<Vec<_>>()
        );
        assert!(tools_of(&heard[0]).contains(&"submit_diagnosis".to_owned()));
        assert!(
            results_of(heard.last().unwrap()).iter().any(|result| result.contains("role_name"))
        );
    }
}

/// The names of the offered tools.
fn tools_of(heard: &Heard) -> Vec<String> {
    let (list, name) = match heard.wire {
        Wire::Bedrock => ("/toolConfig/tools", "/toolSpec/name"),
        Wire::OpenAi => ("/tools", "/function/name"),
    };
    let tools = heard.body.pointer(list).unwrap().as_array().unwrap();
    tools.iter().map(|tool| tool.pointer(name).unwrap().as_str().unwrap().to_owned()).collect()
}

/// The texts of all results that the model gets.
fn results_of(heard: &Heard) -> Vec<String> {
    let messages = heard.body["messages"].as_array().unwrap();
    match heard.wire {
        Wire::Bedrock => {
            let blocks = messages.iter().flat_map(|message| message["content"].as_array().unwrap());
            blocks.filter_map(|block| Some(block.get("toolResult")?.to_string())).collect()
        }
        Wire::OpenAi => {
            let sent = messages.iter().filter(|message| message["role"] == "tool");
            sent.map(|message| message["content"].to_string()).collect()
        }
    }
}

/// Checks a model that starts with a bad reply and continues well: it gets this error, and the session
/// completes.
async fn checked_after(first: Say, expected: &str) {
    let good = good_replies().await;
    for wire in Wire::ALL.iter().copied() {
        let (first, says) = (first.clone(), good.clone());
        let script = move |turn: usize, _| {
            if turn == 0 { first.clone() } else { says[turn - 1].clone() }
        };
        let (went, server) = went(wire, json!({}), script).await;
        let (ending, _, result) = went.end();
        assert_eq!((ending, &result["diagnosed_by"]), (Ending::Completed, &author(wire)));
        let sent = server.heard()[1].body["messages"].to_string();
        assert!(sent.contains(expected), "{wire:?}: {sent}");
        assert_eq!(went.failures(), [], "{wire:?}");
    }
}

#[tokio::test]
async fn malformed_arguments_go_back_to_the_model() {
    checked_after(Say::call("get_recent_logs", "{\"lambda_name\": "), "do not match the schema")
        .await;
}

#[tokio::test]
async fn an_invented_tool_goes_back_to_the_model_and_is_not_called() {
    checked_after(Say::call("drop all tables!", "{}"), "There is no tool of this name").await;
}

#[tokio::test]
async fn prose_instead_of_a_call_goes_back_to_the_model() {
    checked_after(Say::text("It is DNS. It is always DNS."), "That was not a tool call").await;
}

#[tokio::test]
async fn an_empty_reply_goes_back_to_the_model() {
    checked_after(Say::Reply(None, vec![]), "That was not a tool call").await;
}

#[tokio::test]
async fn invented_evidence_goes_back_to_the_model() {
    let good = good_replies().await;
    for wire in Wire::ALL.iter().copied() {
        let (says, last) = (good.clone(), good.len() - 1);
        let script = move |turn: usize, _| {
            if turn == last { invented(&says[last]) } else { says[turn.min(last)].clone() }
        };
        let (went, server) = went(wire, json!({}), script).await;
        assert_eq!(went.end().2["diagnosed_by"], author(wire));
        let sent = server.heard().last().unwrap().body["messages"].to_string();
        assert!(sent.contains("The diagnosis does not hold"), "{wire:?}: {sent}");
    }
}

/// The diagnosis with a value that no tool returned.
fn invented(good: &Say) -> Say {
    let Say::Reply(text, calls) = good else { panic!("{good:?}") };
    let (tool, arguments) = &calls[0];
    let mut diagnosis: Value = serde_json::from_str(arguments).unwrap();
    diagnosis["evidence"][0]["value"] = json!("the moon was full");
    Say::Reply(text.clone(), vec![(tool.clone(), diagnosis.to_string())])
}

/// Checks a model that never finishes. The policy writes the diagnosis from the evidence; without
/// evidence the session fails.
async fn ends_in_time(script: impl Fn(usize) -> Say + Clone + Send + Sync + 'static, sees: bool) {
    for wire in Wire::ALL.iter().copied() {
        let script = script.clone();
        let (went, _server) = went(wire, json!({}), move |turn, _| script(turn)).await;
        let (ending, category, result) = went.end();
        assert_eq!(result["limit_reached"], "visits", "{wire:?}: {result}");
        assert!(went.attempts().len() <= CHATS_MAX, "{wire:?}");
        assert_eq!(went.notes("budget").len(), 1);
        if sees {
            assert_eq!((ending, category), (Ending::Completed, None), "{wire:?}: {result}");
            assert_eq!(result["diagnosed_by"], "policy");
        } else {
            assert_eq!(category.as_deref(), Some("undiagnosed"), "{wire:?}: {result}");
            assert_eq!(ending, Ending::Failed);
        }
    }
}

#[tokio::test]
async fn a_model_that_never_stops_calling_tools_is_stopped() {
    let arguments = json!({"lambda_name": "data-processor"}).to_string();
    ends_in_time(move |_| Say::call("get_recent_logs", &arguments), true).await;
}

#[tokio::test]
async fn a_model_that_only_talks_is_stopped() {
    ends_in_time(|_| Say::text("Have you tried turning it off and on again?"), false).await;
}

#[tokio::test]
async fn a_model_that_only_invents_evidence_is_stopped() {
    let good = good_replies().await;
    let last = good.len() - 1;
    let script = move |turn: usize| {
        if turn < last { good[turn].clone() } else { invented(&good[last]) }
    };
    ends_in_time(script, true).await;
}

#[tokio::test]
async fn the_log_has_both_summary_lines_and_no_secret() {
    let good = good_replies().await;
    for wire in Wire::ALL.iter().copied() {
        let (_guard, log) = captured();
        let says = good.clone();
        let denied = move |turn: usize, _| match says.get(turn) {
            Some(say) if turn + 1 < says.len() => say.clone(),
            _ => Say::Denied,
        };
        let more = json!({"on_model_failure": "policy"});
        let (went, _server) = went(wire, more, denied).await;
        let log = log();
        let line = |event: &str| {
            let line = log.lines().find(|line| line.contains(event)).unwrap();
            serde_json::from_str::<Value>(&line[line.find("{\"").unwrap()..]).unwrap()
        };
        let calls = good.len();
        let answered = u32::try_from(calls - 1).unwrap();
        let total = answered * (TOKENS.0 + TOKENS.2);
        let metrics = line("\"agent_metrics\"");
        assert_eq!(
            (&metrics["llm_calls"], &metrics["total_tokens"]),
            (&json!(calls), &json!(total))
        );
        assert_eq!(metrics["budget_remaining"], json!(100_000 - total));
        assert_eq!(metrics["total_prompt_tokens"], json!(answered * TOKENS.0));
        let summary = line("\"agent_reasoning_summary\"");
        assert_eq!(summary["fault_types"], json!(["permission_loss"]));
        assert_eq!(summary["incident_id"], metrics["incident_id"]);
        assert!(summary["tools_called"].as_array().unwrap().len() >= 2, "{summary}");
        for secret in secrets() {
            assert!(!log.contains(secret), "{wire:?}: {log}");
            let journal = format!("{:?}", went.items);
            assert!(!journal.contains(secret), "{wire:?}: {journal}");
        }
        assert_eq!(went.failures()[0].category, wire.category("auth"));
    }
}

fn secrets() -> Vec<&'static str> {
    vec![super::world::KEY, super::world::AWS_SECRET]
}

#[tokio::test]
async fn an_incident_that_its_model_fails_is_named_in_the_log() {
    let wire = Wire::OpenAi;
    let (_guard, log) = captured();
    let more = json!({"on_model_failure": "fail"});
    went(wire, more, |_, _| Say::Denied).await;
    let log = log();
    let line = log.lines().find(|line| line.contains("\"agent_metrics\"")).unwrap();
    let metrics: Value = serde_json::from_str(&line[line.find("{\"").unwrap()..]).unwrap();
    assert_eq!(metrics["incident_id"], "inc-20260914-0001");
    assert_eq!((&metrics["llm_calls"], &metrics["budget_remaining"]), (&json!(1), &json!(100_000)));
}

#[tokio::test]
async fn a_checkup_probes_the_named_model_and_counts_its_tokens() {
    for wire in Wire::ALL.iter().copied() {
        for (say, ok) in [(Say::text("ok"), true), (Say::Denied, false)] {
            let server = Server::start(move |_, _| say.clone()).await;
            let world = World::new(models(&server.url));
            let mut detail = detail(wire.model(), &json!({"agent": "checkup"}));
            detail["input"] = json!({});
            let went = world.work(&detail, 0).await;
            let (ending, _, result) = went.end();
            assert_eq!(ending == Ending::Completed, ok, "{result}");
            let checks = result["checks"].as_array().unwrap();
            let check = checks.iter().find(|check| check["name"] == "model_reachable").unwrap();
            assert_eq!(check["ok"], json!(ok), "{check}");
            let said = check["detail"].as_str().unwrap();
            assert!(ok || said.starts_with(&wire.category("auth")), "{said}");
            let spent = went.steps.iter().filter_map(|step| match &step.body {
                journal::step::StepBody::Outcome { usage, .. } => Some(usage),
                _ => None,
            });
            let (tokens, cost) = spent.fold((0, 0), |(tokens, cost), usage| {
                (tokens + usage.input_tokens + usage.output_tokens, cost + usage.micro_usd)
            });
            assert_eq!(tokens, if ok { TOKENS.0 + TOKENS.2 } else { 0 });
            assert_eq!(cost > 0, ok);
        }
    }
}
