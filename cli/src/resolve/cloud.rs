//! What the stack in an account is called, as far as the environment says.

use workflow::{env, rule};

use crate::config::Config;
use crate::failure::Failure;

/// The stage that is meant where none is named, as in `make deploy`.
const DEFAULT_STAGE: &str = "dev";

/// Longest name of a stage, in characters. What deploys it has the same limit.
const STAGE_CHARS_MAX: usize = 20;

/// What the stack in the cloud is called.
#[derive(Clone, Debug)]
pub struct Cloud {
    /// The stage that is looked up where the environment does not name its things.
    pub stage: String,
    /// The state machine's ARN, if it is known.
    pub state_machine_arn: Option<String>,
    /// The event bus.
    pub event_bus_name: Option<String>,
    /// The journal's table, if it is known.
    pub table: Option<String>,
    /// The agent runtime's ARN, if it is known.
    pub runtime_arn: Option<String>,
}

impl Cloud {
    /// What the environment says.
    ///
    /// # Errors
    /// When the stage cannot be called so.
    pub fn of(config: &Config) -> Result<Self, Failure> {
        Ok(Self {
            stage: stage(config)?,
            state_machine_arn: config.state_machine_arn.clone(),
            event_bus_name: config.event_bus_name.clone(),
            table: config.table.clone(),
            runtime_arn: config.runtime_arn.clone(),
        })
    }

    /// The stack's name.
    pub fn stack(&self) -> String {
        format!("{}{}", rule::STACK_PREFIX, self.stage)
    }

    /// Whether what every command needs is named already.
    pub fn is_named(&self) -> bool {
        self.table.is_some() && self.state_machine_arn.is_some()
    }
}

/// The stage of the environment, as it may be called where it is deployed.
fn stage(config: &Config) -> Result<String, Failure> {
    let Some(stage) = &config.stage else { return Ok(DEFAULT_STAGE.to_owned()) };
    let spelt_well = stage.starts_with(|c: char| c.is_ascii_lowercase())
        && stage.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && stage.len() <= STAGE_CHARS_MAX;
    if spelt_well {
        return Ok(stage.clone());
    }
    let expected = "1 to 20 of a-z, 0-9 and -, a letter first";
    let (name, value) = (env::DAYBOOK_STAGE, stage.clone());
    Err(Failure::usage(env::Invalid::Malformed { name, value, expected }))
}
