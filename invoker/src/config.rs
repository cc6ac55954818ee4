//! The invoker's environment, read once.

use workflow::admission::Limits;
use workflow::env::{self, Invalid, Lookup};

/// What the stack sets for the invoker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The journal's table.
    pub table: String,
    /// The agent runtime.
    pub runtime_arn: String,
    /// Its endpoint, if not the default one.
    pub qualifier: Option<String>,
    /// How many sessions are admitted.
    pub limits: Limits,
}

impl Config {
    /// Reads the variables.
    ///
    /// # Errors
    /// When one is missing or malformed.
    pub fn read(lookup: &impl Lookup) -> Result<Self, Invalid> {
        Ok(Self {
            table: env::required(lookup, env::JOURNAL_TABLE_NAME, "the name of a table")?,
            runtime_arn: env::required(
                lookup,
                env::AGENT_RUNTIME_ARN,
                "the ARN of an agent runtime",
            )?,
            qualifier: env::text(lookup, env::AGENT_RUNTIME_QUALIFIER),
            limits: Limits::read(lookup)?,
        })
    }
}
