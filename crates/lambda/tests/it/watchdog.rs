//! The watchdog.

use std::path::Path;

use lambda::Ends;
use serde_json::json;

use crate::conformance::{self, Subject};
use crate::events;
use crate::fake::Answer;

fn subject() -> Subject {
    Subject {
        program: Path::new(env!("CARGO_BIN_EXE_watchdog")),
        event: events::sweep(),
        // Any JSON may be an event that does not concern it.
        malformed: vec![],
        ends: Ends { malformed: "WatchdogError", late: "WatchdogError" },
    }
}

conforms!();

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
