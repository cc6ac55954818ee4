//! The invoker.

use std::path::Path;

use lambda::Ends;
use serde_json::json;
use workflow::error_name;

use crate::conformance::{self, Subject};
use crate::events;
use crate::fake::Answer;

fn subject() -> Subject {
    let event = events::invocation();
    let without = |name: &str| {
        let mut event = event.clone();
        event.as_object_mut().unwrap().remove(name);
        event
    };
    let mut other_id = event.clone();
    other_id["session_id"] = json!("../other");
    Subject {
        program: Path::new(env!("CARGO_BIN_EXE_invoker")),
        malformed: vec![
            json!(null),
            json!([]),
            json!({}),
            without("session_id"),
            without("seen"),
            other_id,
        ],
        event,
        ends: Ends { malformed: error_name::INVALID_REQUEST, late: error_name::INVOCATION_UNKNOWN },
    }
}

conforms!();

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
