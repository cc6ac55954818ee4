//! What a state machine's tasks reach beside the journal's table and the bus.

use aws_sdk_bedrockagentcore::Client;

use crate::functions::Functions;

/// The services of one machine that are not in its file.
#[derive(Clone, Debug)]
pub struct Services {
    /// The Lambda functions.
    pub functions: Functions,
    /// Bedrock `AgentCore`, if agents run here.
    pub agent_core: Option<Client>,
}

impl From<Functions> for Services {
    /// Functions alone.
    fn from(functions: Functions) -> Self {
        Self { functions, agent_core: None }
    }
}
