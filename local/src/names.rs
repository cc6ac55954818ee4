//! What things are called on one machine: the account, the region, and every ARN.

/// The account.
pub const ACCOUNT: &str = "000000000000";
/// The region.
pub const REGION: &str = "us-east-1";
/// The event bus.
pub const EVENT_BUS: &str = "default";
/// The state machine's name.
pub const STATE_MACHINE: &str = "daybook";
/// The state machine.
pub const STATE_MACHINE_ARN: &str = "arn:aws:states:us-east-1:000000000000:stateMachine:daybook";
/// The role that executions run under; there are no permissions to check here.
pub const ROLE_ARN: &str = "arn:aws:iam::000000000000:role/daybook-local";
/// The agent runtime.
pub const RUNTIME_ARN: &str =
    "arn:aws:bedrock-agentcore:us-east-1:000000000000:runtime/daybook-local";
/// The function that invokes the agent.
pub const INVOKER_ARN: &str = "arn:aws:lambda:us-east-1:000000000000:function:daybook-invoker";
/// The function that judges.
pub const POLLER_ARN: &str = "arn:aws:lambda:us-east-1:000000000000:function:daybook-poller";

/// The ARN of an execution of the state machine `machine`.
pub fn execution_arn(machine: &str, name: &str) -> String {
    format!("arn:aws:states:{REGION}:{ACCOUNT}:execution:{machine}:{name}")
}
