//! What the host answers.

use journal::clock::Hlc;
use journal::error_message::ErrorMessage;
use serde_json::json;
use workflow::contract::{AgentRefusal, AgentReply, InvokeOutcome};

use super::Response;

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
