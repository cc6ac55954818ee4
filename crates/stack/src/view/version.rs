//! The version of its agent that a session waits for.

use journal::tally::{Reported, Tally};
use serde::Serialize;
use serde_json::Value;

/// A version that a session waits for, because its agent lacked it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NeedsVersion {
    pub version: String,
    /// The versions that the agent has.
    pub registered: Vec<String>,
}

impl NeedsVersion {
    /// In words, for a person.
    pub fn sentence(&self) -> String {
        let there = match self.registered.as_slice() {
            [] => "the agent is not registered".to_owned(),
            there => format!("registered: {}", there.join(", ")),
        };
        format!("waits for version {} of its agent; {there}", self.version)
    }

    /// The version that the session waits for, unless a step followed.
    pub(super) fn of(reported: &Reported, tally: &Tally<Value>) -> Option<Self> {
        let missing =
            reported.missing_version.clone().filter(|_| !reported.status.is_terminal())?;
        let is_newest = missing.step == tally.steps;
        let (version, registered) = (missing.needs, missing.registered);
        is_newest.then_some(Self { version, registered })
    }
}
