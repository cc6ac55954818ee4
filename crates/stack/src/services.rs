//! The AWS services that a state machine's tasks call, besides the journal's table and the event bus.

use aws_sdk_bedrockagentcore::Client;

use crate::buckets::Buckets;
use crate::functions::Functions;
use crate::load::Load;

/// The services that do not live in the journal's file.
#[derive(Clone, Debug)]
pub struct Services {
    pub functions: Functions,
    /// `None` if no agents run on this stack.
    pub agent_core: Option<Client>,
    /// Which events the bus takes from tasks.
    pub load: Load,
    /// The objects that distributed maps read and write.
    pub buckets: Option<Buckets>,
}

impl From<Functions> for Services {
    fn from(functions: Functions) -> Self {
        Self { functions, agent_core: None, load: Load::default(), buckets: None }
    }
}
