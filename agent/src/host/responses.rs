//! What the host answers.

use graph::definition::Finish;
use graph::error::StartError;
use journal::clock::Hlc;
use journal::error_message::ErrorMessage;
use serde_json::json;
use workflow::contract::{AgentRefusal, AgentReply, InvokeOutcome};

use super::{Declined, Response};

pub(super) fn outcome(outcome: InvokeOutcome, hlc: &Hlc) -> Response {
    Response { status: 200, body: json!(AgentReply { outcome, seen: hlc.newest() }) }
}

pub(super) fn refusal(error: &ErrorMessage, hlc: &Hlc) -> Response {
    Response {
        status: 400,
        body: json!(AgentRefusal { error: error.as_str().to_owned(), seen: hlc.newest() }),
    }
}

/// Not a refusal: the caller must read the journal.
pub(super) fn unclear(error: &journal::store::Error) -> Response {
    tracing::error!(%error, "The journal did not answer during an invocation.");
    Response { status: 500, body: json!({ "message": "the journal did not answer" }) }
}

/// Not a refusal either: another host may take the session, or this one later.
pub(super) fn full() -> Response {
    Response { status: 503, body: json!({ "message": "the host has no capacity for now" }) }
}

/// Refuses to go on with a decision that an agent's role may have written.
pub(super) fn no_receipt(step: u32) -> Declined {
    let text = format!(
        "step {step} says what a person decided, and has no receipt of the poller: it is not followed"
    );
    Declined::Refused(ErrorMessage::new("JournalError", "NoReceipt", &text))
}

pub(super) fn declined(error: &StartError) -> Declined {
    match error.finish() {
        Finish::Failed { error, .. } => Declined::Refused(error),
        Finish::Completed(_) => unreachable!("an error is no result"),
    }
}
