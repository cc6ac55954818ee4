//! The finished function against Lambda's Runtime API.

use std::path::Path;

use bootstrap::Ends;
use bootstrap::conformance::{self, Subject};
use bootstrap::stand_in::Answer;
use serde_json::{Value, json};
use workflow::error_name;

const ENVIRONMENT: &[(&str, &str)] = &[
    ("JOURNAL_TABLE_NAME", "journal"),
    ("AGENT_RUNTIME_ARN", "arn:aws:bedrock-agentcore:us-east-1:000000000000:runtime/agent-1"),
];

fn subject() -> Subject {
    let event = serde_json::to_value(crate::request(json!({ "agent": "checkup" }))).unwrap();
    let without = |name: &str| {
        let mut event = event.clone();
        event.as_object_mut().unwrap().remove(name);
        event
    };
    let mut other_id = event.clone();
    other_id["session_id"] = json!("../other");
    Subject {
        program: Path::new(env!("CARGO_BIN_EXE_invoker")),
        environment: ENVIRONMENT,
        malformed: vec![
            json!(null),
            json!([]),
            json!({}),
            without("session_id"),
            without("seen"),
            other_id,
        ],
        event,
        answering,
        ends: Ends { malformed: error_name::INVALID_REQUEST, late: error_name::INVOCATION_UNKNOWN },
    }
}

/// A journal that holds nothing and takes everything, and an agent that begins.
fn answering(operation: &str) -> Option<Value> {
    Some(match operation {
        "Query" => json!({ "Items": [], "Count": 0, "ScannedCount": 0 }),
        "invocations" => json!({ "outcome": "accepted", "seen": crate::now() }),
        _ => json!({}),
    })
}

#[tokio::test]
async fn the_function_journals_invokes_the_agent_and_answers() {
    let (answer, heard) = conformance::events_are_answered(&subject()).await;
    let Answer::Response(answer) = answer else { panic!("{answer:?}") };
    assert_eq!(answer["outcome"], "accepted");
    let operations: Vec<_> = heard.iter().map(|(operation, _)| operation.as_str()).collect();
    assert_eq!(
        operations.iter().filter(|name| **name == "invocations").count(),
        1,
        "{operations:?}"
    );
    let written = heard.iter().filter_map(|(_, request)| request["Item"]["Status"]["S"].as_str());
    assert_eq!(
        written.collect::<Vec<_>>(),
        ["AGENT_INVOCATION_STARTED", "AGENT_INVOCATION_SUCCEEDED"]
    );
    assert!(
        heard.iter().all(|(_, request)| {
            request.get("TableName").is_none_or(|table| table == "journal")
        })
    );
}

#[tokio::test]
async fn the_function_refuses_malformed_events_by_name_and_goes_on() {
    conformance::malformed_events_are_refused(&subject()).await;
}

#[tokio::test]
async fn the_function_ends_before_a_deadline_and_leaves_open_whether_the_agent_was_invoked() {
    conformance::a_deadline_is_kept(&subject()).await;
}

#[tokio::test]
async fn the_function_stops_when_it_is_told_to() {
    conformance::a_stop_is_obeyed(&subject()).await;
}

#[tokio::test]
async fn the_function_names_a_variable_that_is_missing() {
    conformance::a_missing_variable_is_named(&subject()).await;
}
