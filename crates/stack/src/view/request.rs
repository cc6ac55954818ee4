//! What a model was sent, from the journal alone.

use graph::request::Sent;
use serde::Serialize;
use serde_json::Value;

use super::Step;

/// The request to a model, as the journal holds it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ModelRequest {
    Recorded {
        /// The model, system prompt, messages, tools and settings, with the hashes of the texts.
        sent: Value,
    },
    /// There was no request: the agent's policy answered.
    Policy,
    /// An earlier version of Daybook wrote the step.
    Unrecorded,
    /// A record that the request needs is missing or changed.
    Damaged { problem: String },
}

impl From<Sent> for ModelRequest {
    fn from(sent: Sent) -> Self {
        match sent {
            Sent::Request(sent) => Self::Recorded { sent },
            Sent::Policy => Self::Policy,
            Sent::Unrecorded => Self::Unrecorded,
            Sent::Damaged(problem) => Self::Damaged { problem },
        }
    }
}

impl Step {
    /// Adds the request, if the step is the outcome of a chat.
    #[must_use]
    pub fn with_request(self, sent: Option<Sent>) -> Self {
        Self { request: sent.map(ModelRequest::from), ..self }
    }
}
