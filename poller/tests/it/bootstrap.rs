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

const NOW: &str = "2026-11-22T10:00:00.000000000Z";

fn subject() -> Subject {
    let event = json!({
        "mode": "check", "session_id": "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f", "execution_arn": "arn",
        "expires_at": 1_900_000_000, "seen": NOW, "now": NOW, "woken": "not", "callback": null,
        "watch": {
            "invocation": 1, "epoch": 0, "invoked_at": NOW, "seq": 0, "lost": 0, "lost_at_seq": 0,
            "running_ms": 0, "poll_ms": 0, "timeout_s": 5, "heartbeat_s": 4,
        },
    });
    let with = |name: &str, value: Value| {
        let mut event = event.clone();
        event[name] = value;
        event
    };
    Subject {
        program: Path::new(env!("CARGO_BIN_EXE_poller")),
        environment: ENVIRONMENT,
        malformed: vec![
            json!(null),
            json!([]),
            json!({}),
            with("mode", json!("other")),
            with("watch", json!("none")),
            // Parking takes a token.
            with("mode", json!("park")),
        ],
        event,
        answering,
        ends: Ends {
            malformed: error_name::INVALID_REQUEST,
            late: error_name::JOURNAL_UNAVAILABLE,
        },
    }
}

/// A journal that holds nothing and takes everything.
fn answering(operation: &str) -> Option<Value> {
    Some(match operation {
        "Query" => json!({ "Items": [], "Count": 0, "ScannedCount": 0 }),
        _ => json!({}),
    })
}

#[tokio::test]
async fn the_function_reads_the_journal_twice_and_judges() {
    let (answer, heard) = conformance::events_are_answered(&subject()).await;
    let Answer::Response(answer) = answer else { panic!("{answer:?}") };
    assert_eq!(answer["status"], "BUSY");
    let operations: Vec<_> = heard.iter().map(|(operation, _)| operation.as_str()).collect();
    assert_eq!(operations, ["Query", "Query"]);
    for (_, request) in &heard {
        assert_eq!(
            (&request["TableName"], &request["ConsistentRead"]),
            (&json!("journal"), &json!(true))
        );
    }
}

#[tokio::test]
async fn the_function_refuses_malformed_events_by_name_and_goes_on() {
    conformance::malformed_events_are_refused(&subject()).await;
}

#[tokio::test]
async fn the_function_ends_before_a_deadline_so_that_it_is_called_again() {
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
