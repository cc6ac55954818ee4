//! JSON that crosses a process boundary: a trigger's detail, and the messages of the workflow. An
//! accepted value is unchanged after writing and reading.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use workflow::contract::{AgentReply, AgentRequest, CheckReply, CheckRequest};
use workflow::contract::{InvokeReply, InvokeRequest};
use workflow::limits::DETAIL_BYTES_MAX;
use workflow::trigger::{InvalidTrigger, Trigger};

/// Checks a JSON text as a trigger's detail and as every message.
///
/// # Panics
/// A promise is broken.
pub fn check(bytes: &[u8]) {
    let Ok(json) = serde_json::from_slice::<Value>(bytes) else { return };
    match Trigger::parse_or(&json, Some("own")) {
        Ok(trigger) => {
            let written = serde_json::to_value(&trigger).expect("a trigger is JSON");
            match Trigger::parse(&written) {
                Ok(again) => assert_eq!(again, trigger),
                // The written form includes defaults, which may exceed the limit.
                Err(error) => assert!(matches!(error, InvalidTrigger::TooLarge { .. })),
            }
        }
        Err(error) => {
            assert!(error.to_string().starts_with("detail"));
            assert!(!error.code().is_empty());
            if let InvalidTrigger::TooLarge { bytes } = error {
                assert!(bytes > DETAIL_BYTES_MAX);
            }
        }
    }
    message::<InvokeRequest>(&json);
    message::<InvokeReply>(&json);
    message::<AgentRequest>(&json);
    message::<AgentReply>(&json);
    message::<CheckRequest>(&json);
    message::<CheckReply>(&json);
}

/// Every field of the interface, and one of each message.
pub fn seeds() -> Vec<Vec<u8>> {
    let session = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f";
    let seen = "2026-11-21T10:30:00.000000000Z";
    let detail = json!({
        "agent": "incident", "input": {"lambda_name": "f"}, "model": "bedrock:eu.x:0",
        "on_model_failure": "fail", "dedupe_key": "k",
        "budget": {"tokens": 100_000, "calls": 40, "visits": 12, "seconds": 300, "usd": 1.0},
    });
    let watch = json!({
        "invocation": 1, "epoch": 1, "invoked_at": seen, "seq": 4, "lost": 0, "lost_at_seq": 0,
        "pulse": "1/agent:a/7", "pulse_at": seen, "silent": false, "checked_at": seen,
        "running_ms": 900, "running": true, "poll_ms": 5_000, "timeout_s": 60, "heartbeat_s": 60,
    });
    let seeds = [
        json!({}),
        json!([]),
        json!({"agnet": "x"}),
        json!({"budget": {"usd": -0.0, "tokens": 4_294_967_295_u32}}),
        detail.clone(),
        json!({"session_id": session, "execution_arn": "arn:aws:states:x", "detail": detail,
            "expires_at": 1_803_033_000, "seen": seen, "invocation": 1, "retry": 0,
            "supersedes": 0}),
        json!({"outcome": "already_running", "seen": seen}),
        json!({"session_id": session, "invocation_id": "i", "attempt": 1, "supersedes": 0,
            "trigger": detail, "expires_at": 1_803_033_000, "seen": seen}),
        json!({"mode": "park", "session_id": session, "execution_arn": "arn:aws:states:x",
            "expires_at": 1_803_033_000, "seen": seen, "now": seen, "watch": watch,
            "woken": "timeout", "callback": {"a": 1.5}, "token": "t",
            "failure": {"Error": "States.Timeout", "Cause": ""}}),
        json!({"status": "COMPLETED", "seen": seen, "watch": watch, "verdict":
            {"session_id": session, "status": "SUCCEEDED", "head": "0", "error": "e"}}),
    ];
    seeds.iter().map(|seed| seed.to_string().into_bytes()).collect()
}

fn message<T: Serialize + DeserializeOwned>(json: &Value) {
    let Ok(message) = serde_json::from_value::<T>(json.clone()) else { return };
    let written = serde_json::to_value(&message).expect("a message is JSON");
    let again: T = serde_json::from_value(written.clone()).expect("what was written can be read");
    assert_eq!(serde_json::to_value(&again).ok(), Some(written));
}
