//! The finished function against Lambda's Runtime API.

use std::path::Path;

use bootstrap::Ends;
use bootstrap::conformance::{self, Subject};
use bootstrap::stand_in::Answer;
use serde_json::{Value, json};

const ENVIRONMENT: &[(&str, &str)] = &[
    ("JOURNAL_TABLE_NAME", "journal"),
    ("AGENT_RUNTIME_ARN", "arn:aws:bedrock-agentcore:us-east-1:000000000000:runtime/agent-1"),
];

fn subject() -> Subject {
    Subject {
        program: Path::new(env!("CARGO_BIN_EXE_watchdog")),
        environment: ENVIRONMENT,
        event: json!({ "detail-type": "Scheduled Event" }),
        // Any JSON may be an event that does not concern it.
        malformed: vec![],
        answering,
        ends: Ends { malformed: "WatchdogError", late: "WatchdogError" },
    }
}

/// A journal in which no lease is open.
fn answering(operation: &str) -> Option<Value> {
    (operation == "Query").then(|| json!({ "Items": [], "Count": 0, "ScannedCount": 0 }))
}

#[tokio::test]
async fn the_function_sweeps_the_open_leases() {
    let (answer, heard) = conformance::events_are_answered(&subject()).await;
    assert_eq!(answer, Answer::Response(json!({ "looked_at": 0, "closed": [], "failed": [] })));
    assert!(!heard.is_empty());
    assert!(
        heard
            .iter()
            .all(|(operation, request)| operation == "Query" && request["IndexName"].is_string())
    );
}

#[tokio::test]
async fn the_function_refuses_malformed_events_by_name_and_goes_on() {
    conformance::malformed_events_are_refused(&subject()).await;
}

#[tokio::test]
async fn the_function_ends_before_a_deadline_so_that_its_event_is_delivered_again() {
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
