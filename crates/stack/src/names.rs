//! Names on a local stack: the account, the region, and every ARN.

pub const ACCOUNT: &str = "000000000000";
pub const REGION: &str = "us-east-1";
pub const EVENT_BUS: &str = "default";
pub const STATE_MACHINE: &str = "daybook";
pub const STATE_MACHINE_ARN: &str = "arn:aws:states:us-east-1:000000000000:stateMachine:daybook";
/// The execution role. A local stack checks no permissions.
pub const ROLE_ARN: &str = "arn:aws:iam::000000000000:role/daybook-local";
pub const RUNTIME_ARN: &str =
    "arn:aws:bedrock-agentcore:us-east-1:000000000000:runtime/daybook-local";
/// The function that invokes the agent.
pub const INVOKER_ARN: &str = "arn:aws:lambda:us-east-1:000000000000:function:daybook-invoker";
/// The poller function, which writes verdicts.
pub const POLLER_ARN: &str = "arn:aws:lambda:us-east-1:000000000000:function:daybook-poller";

/// The ARN of an execution of the state machine `machine`.
pub fn execution_arn(machine: &str, name: &str) -> String {
    format!("arn:aws:states:{REGION}:{ACCOUNT}:execution:{machine}:{name}")
}
