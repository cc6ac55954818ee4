//! The poller.

use std::path::Path;

use lambda::Ends;
use serde_json::{Value, json};
use workflow::error_name;

use crate::conformance::{self, Subject};
use crate::events;
use crate::fake::Answer;

fn subject() -> Subject {
    let event = events::check();
    let with = |name: &str, value: Value| {
        let mut event = event.clone();
        event[name] = value;
        event
    };
    Subject {
        program: Path::new(env!("CARGO_BIN_EXE_poller")),
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
        ends: Ends {
            malformed: error_name::INVALID_REQUEST,
            late: error_name::JOURNAL_UNAVAILABLE,
        },
    }
}

conforms!();

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
