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

/// The ARN of the state machine `name`.
pub fn machine_arn(name: &str) -> String {
    format!("arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:{name}")
}

/// The name in the ARN of a state machine, or of its version or alias.
pub fn machine_name(arn: &str) -> &str {
    let name = arn.split_once(":stateMachine:").map_or(arn, |(_, name)| name);
    name.split(':').next().unwrap_or(name)
}

/// The ARN of the state machine of an execution.
pub fn machine_of_execution(arn: &str) -> String {
    machine_arn(arn.rsplit(':').nth(1).unwrap_or_default())
}

/// The machine's name and the version or alias in an ARN; `None` if it has neither.
pub fn qualified(arn: &str) -> Option<(&str, &str)> {
    let of_this_stack = format!("arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:");
    arn.strip_prefix(&of_this_stack)?.split_once(':')
}

/// The ARN of a rule of the event bus.
pub fn rule_arn(name: &str) -> String {
    format!("arn:aws:events:{REGION}:{ACCOUNT}:rule/{name}")
}

/// The ARN of an execution of the state machine `machine`.
pub fn execution_arn(machine: &str, name: &str) -> String {
    format!("arn:aws:states:{REGION}:{ACCOUNT}:execution:{machine}:{name}")
}
