//! Environment variables that the stack sets for every function, read once.

use workflow::env::{self, Invalid};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) table: String,
    /// Whether the table has a log of sessions.
    pub(crate) is_logged: bool,
    pub(crate) runtime_arn: String,
    /// The runtime's endpoint; `None` for the default one.
    pub(crate) qualifier: Option<String>,
}

impl Config {
    /// Reads the variables; fails if one is missing.
    pub(crate) fn read(lookup: &impl env::Lookup) -> Result<Self, Invalid> {
        let arn = "the ARN of an agent runtime";
        Ok(Self {
            table: env::required(lookup, env::JOURNAL_TABLE_NAME, "the name of a table")?,
            is_logged: env::switch(lookup, env::JOURNAL_LOG)?,
            runtime_arn: env::required(lookup, env::AGENT_RUNTIME_ARN, arn)?,
            qualifier: env::text(lookup, env::AGENT_RUNTIME_QUALIFIER),
        })
    }
}
