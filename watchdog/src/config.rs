//! The watchdog's environment, read once.

use workflow::env::{self, Invalid, Lookup};

/// What the stack sets for the watchdog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The journal's table.
    pub table: String,
    /// The agent runtime.
    pub runtime_arn: String,
    /// Its endpoint, if not the default one.
    pub qualifier: Option<String>,
}

impl Config {
    /// Reads the variables.
    ///
    /// # Errors
    /// When one is missing.
    pub fn read(lookup: &impl Lookup) -> Result<Self, Invalid> {
        let expected = "the ARN of an agent runtime";
        Ok(Self {
            table: env::required(lookup, env::JOURNAL_TABLE_NAME, "the name of a table")?,
            runtime_arn: env::required(lookup, env::AGENT_RUNTIME_ARN, expected)?,
            qualifier: env::text(lookup, env::AGENT_RUNTIME_QUALIFIER),
        })
    }
}
