//! What the stack in an account is called, as far as the environment says.

use crate::config::Config;
use crate::failure::Failure;

/// The stage that is meant where none is named, as in `make deploy`.
#[cfg(feature = "live")]
const DEFAULT_STAGE: &str = "dev";

/// Longest name of a stage, in characters. What deploys it has the same limit.
const STAGE_CHARS_MAX: usize = 20;

/// How a stage is spelt.
const STAGE: &str = "1 to 20 of a-z, 0-9 and -, a letter first";

/// What the stack in the cloud is called.
#[derive(Clone, Debug, Default)]
pub struct Cloud {
    /// The stage that is looked up where the environment does not name its things.
    #[cfg(feature = "live")]
    pub stage: String,
    /// The state machine's ARN, if it is known.
    pub state_machine_arn: Option<String>,
    /// The event bus.
    pub event_bus_name: Option<String>,
    /// The journal's table, if it is known.
    pub table: Option<String>,
    /// The agent runtime's ARN, if it is known.
    #[cfg(feature = "live")]
    pub runtime_arn: Option<String>,
}

impl Cloud {
    /// What the environment says.
    ///
    /// # Errors
    /// When the stage cannot be called so.
    pub fn of(config: &Config) -> Result<Self, Failure> {
        Ok(Self {
            #[cfg(feature = "live")]
            stage: stage_of(config)?,
            state_machine_arn: config.state_machine_arn.clone(),
            event_bus_name: config.event_bus_name.clone(),
            table: config.table.clone(),
            #[cfg(feature = "live")]
            runtime_arn: config.runtime_arn.clone(),
        })
    }

    /// A stage that the command line names, of which nothing else is known: what the environment names may be
    /// another's.
    ///
    /// # Errors
    /// When it cannot be called so.
    pub fn of_stage(stage: &str) -> Result<Self, Failure> {
        if !is_stage(stage) {
            return Err(Failure::usage(format!("--stage is `{stage}`, expected {STAGE}")));
        }
        Ok(Self {
            #[cfg(feature = "live")]
            stage: stage.to_owned(),
            ..Self::default()
        })
    }
}

#[cfg(feature = "live")]
impl Cloud {
    /// The stack's name.
    pub fn stack(&self) -> String {
        format!("{}{}", workflow::rule::STACK_PREFIX, self.stage)
    }

    /// Whether what every command needs is named already.
    pub fn is_named(&self) -> bool {
        self.table.is_some() && self.state_machine_arn.is_some()
    }
}

/// The stage of the environment, as it may be called where it is deployed.
#[cfg(feature = "live")]
fn stage_of(config: &Config) -> Result<String, Failure> {
    use workflow::env::{DAYBOOK_STAGE, Invalid};
    match config.stage.as_deref().unwrap_or(DEFAULT_STAGE) {
        stage if is_stage(stage) => Ok(stage.to_owned()),
        stage => {
            let (name, value) = (DAYBOOK_STAGE, stage.to_owned());
            Err(Failure::usage(Invalid::Malformed { name, value, expected: STAGE }))
        }
    }
}

fn is_stage(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && text.len() <= STAGE_CHARS_MAX
}
