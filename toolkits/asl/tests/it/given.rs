//! The start parameters of every test execution.

use asl::execution::Start;
use asl::time::Timestamp;
use serde_json::Value;

/// 2026-11-21T10:30:00.123Z.
pub const BEGIN: Timestamp = Timestamp::from_millis(1_795_257_000_123);

pub fn start(input: &Value) -> Start {
    Start {
        execution_arn: "arn:aws:states:us-east-1:000000000000:execution:orders:one".to_owned(),
        execution_name: "one".to_owned(),
        role_arn: "arn:aws:iam::000000000000:role/orders".to_owned(),
        state_machine_arn: "arn:aws:states:us-east-1:000000000000:stateMachine:orders".to_owned(),
        state_machine_name: "orders".to_owned(),
        input: input.to_string(),
        started_at: BEGIN,
        token_seed: "seed".to_owned(),
    }
}
