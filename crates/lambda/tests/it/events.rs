//! An event for each function, and the replies of the AWS services that it calls.

use serde_json::{Value, json};

const SESSION: &str = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f";
const NOW: &str = "2026-11-22T10:00:00.000000000Z";

/// The variables that the stack sets, except for the endpoint of the services.
pub const ENVIRONMENT: &[(&str, &str)] = &[
    ("JOURNAL_TABLE_NAME", "journal"),
    ("AGENT_RUNTIME_ARN", "arn:aws:bedrock-agentcore:us-east-1:000000000000:runtime/agent-1"),
];

/// An empty journal that takes every record, and an agent that accepts every invocation.
pub fn answering(operation: &str) -> Option<Value> {
    Some(match operation {
        "Query" => json!({ "Items": [], "Count": 0, "ScannedCount": 0 }),
        "invocations" => json!({ "outcome": "accepted", "seen": NOW }),
        _ => json!({}),
    })
}

pub fn invocation() -> Value {
    json!({
        "session_id": SESSION, "execution_arn": "arn", "detail": { "agent": "checkup" },
        "expires_at": 1_900_000_000, "seen": NOW, "asked_at": NOW, "invocation": 1, "retry": 0,
        "supersedes": 0,
    })
}

pub fn check() -> Value {
    json!({
        "mode": "check", "session_id": SESSION, "execution_arn": "arn", "expires_at": 1_900_000_000,
        "seen": NOW, "now": NOW, "woken": "not", "callback": null,
        "watch": {
            "invocation": 1, "epoch": 0, "invoked_at": NOW, "seq": 0, "lost": 0, "lost_at_seq": 0,
            "running_ms": 0, "poll_ms": 0, "timeout_s": 5, "heartbeat_s": 4,
        },
    })
}

pub fn sweep() -> Value {
    json!({ "detail-type": "Scheduled Event" })
}
