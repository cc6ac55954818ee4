//! Resource names of a stack in AWS, as far as the environment sets them.

use crate::config::Config;
use crate::failure::Failure;

/// The default stage, as in `make deploy`.
#[cfg(feature = "live")]
const DEFAULT_STAGE: &str = "dev";

/// Longest name of a stage, in characters; the same limit as in `infra`.
const STAGE_CHARS_MAX: usize = 20;

/// The format of a stage name, for errors.
const STAGE: &str = "1 to 20 characters of a-z, 0-9 and -, starting with a letter";

/// Resource names of the stack in AWS.
#[derive(Clone, Debug, Default)]
pub struct Cloud {
    /// The stage whose outputs supply the names that the environment leaves out.
    #[cfg(feature = "live")]
    pub stage: String,
    pub state_machine_arn: Option<String>,
    pub event_bus_name: Option<String>,
    pub table: Option<String>,
    /// The URL for a person's actions.
    pub actions_url: Option<String>,
    /// The bus for a person's actions.
    pub actions_bus: Option<String>,
    /// The key that signs the log of sessions.
    #[cfg(feature = "live")]
    pub log_key: Option<String>,
    #[cfg(feature = "live")]
    pub runtime_arn: Option<String>,
}

impl Cloud {
    /// Reads the names from the environment.
    ///
    /// # Errors
    /// When the stage's name is invalid.
    pub fn of(config: &Config) -> Result<Self, Failure> {
        Ok(Self {
            #[cfg(feature = "live")]
            stage: stage_of(config)?,
            state_machine_arn: config.state_machine_arn.clone(),
            event_bus_name: config.event_bus_name.clone(),
            table: config.table.clone(),
            actions_url: config.actions_url.clone(),
            actions_bus: config.actions_bus.clone(),
            #[cfg(feature = "live")]
            log_key: config.log_key.clone(),
            #[cfg(feature = "live")]
            runtime_arn: config.runtime_arn.clone(),
        })
    }

    /// The stack of `--stage`. Names from the environment are ignored: they may be of another stage.
    ///
    /// # Errors
    /// When the stage's name is invalid.
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
    pub fn stack(&self) -> String {
        format!("{}{}", workflow::rule::STACK_PREFIX, self.stage)
    }

    /// Whether the names that every command needs are known.
    pub fn is_named(&self) -> bool {
        self.table.is_some() && self.state_machine_arn.is_some()
    }
}

/// Reads and validates the stage from the environment.
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
