//! The graph version that a session goes on with.
//!
//! The first claim records it, and each later claim repeats it. A person may move the session to another version
//! with a note of the subject [`NOTE_VERSION`]. An agent that lacks the version leaves the session as it is and
//! announces [`Missing`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{Event, EventStatus};
use crate::step::{Step, StepBody};

/// Subject of the note that moves a session to another version; its payload is a [`Move`].
pub const NOTE_VERSION: &str = "graph_version";

/// Longest name of a version, in bytes. A longer one is refused.
pub const VERSION_BYTES_MAX: usize = 64;

/// A person's decision to continue a session with another version. The step names the person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    pub from: String,
    pub to: String,
}

/// A version that an invoked agent lacked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    pub agent: String,
    /// The session's version.
    pub needs: String,
    /// The versions that the agent has, those for new sessions first.
    pub registered: Vec<String>,
    /// The session's newest step at that time.
    pub step: u32,
}

/// The version that a session goes on with, after these steps; `None` before the first claim.
pub fn of(steps: &[Step<Value>]) -> Option<&str> {
    steps.iter().rev().find_map(|step| match &step.body {
        StepBody::Claim { graph_version, .. } => Some(graph_version.as_str()),
        StepBody::Note { subject, payload, .. } if subject == NOTE_VERSION => {
            payload["to"].as_str()
        }
        _ => None,
    })
}

/// Whether a step moves the session to another version.
pub fn is_move<P>(step: &Step<P>) -> bool {
    matches!(&step.body, StepBody::Note { subject, .. } if subject == NOTE_VERSION)
}

/// The version that the newest invocation lacked; `None` if it lacked none. Events may be in any order.
pub fn missing(events: &[Event]) -> Option<Missing> {
    use EventStatus as E;
    let received = [E::AgentEntrypointStarted, E::AgentEntrypointFailed, E::AgentVersionMissing];
    let requests = events.iter().filter(|event| received.contains(&event.status));
    let newest = requests.max_by_key(|event| (event.about.ordinal(), event.status))?;
    let detail = newest.detail.clone().filter(|_| newest.status == E::AgentVersionMissing)?;
    serde_json::from_value(detail).ok()
}
