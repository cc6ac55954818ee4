//! What every execution here is started with.

use serde_json::Value;
use states::execution::Start;
use states::time::Timestamp;

/// 2026-11-21T10:30:00.123Z.
pub const BEGIN: Timestamp = Timestamp::from_millis(1_795_257_000_123);

/// A start with this input.
pub fn start(input: &Value) -> Start {
    Start {
        execution_arn: "arn:aws:states:us-east-1:000000000000:execution:daybook:one".to_owned(),
        execution_name: "one".to_owned(),
        role_arn: "arn:aws:iam::000000000000:role/daybook".to_owned(),
        state_machine_arn: "arn:aws:states:us-east-1:000000000000:stateMachine:daybook".to_owned(),
        state_machine_name: "daybook".to_owned(),
        input: input.to_string(),
        started_at: BEGIN,
        token_seed: "seed".to_owned(),
    }
}
