//! The agent host: runs agents in this process, or each session in its own process.

mod isolated;
mod process;
mod progress;

use axum::body::Bytes;
use journal::id::SessionId;

use crate::store::Database;
pub use isolated::{Isolated, PROCESSES_MAX, Settings};

/// The agent host behind the local endpoint's `AgentCore` API.
#[derive(Clone, Debug)]
pub enum Agents {
    /// In this process.
    Here(agent::host::Host<Database>),
    /// Each session in its own process, as `AgentCore` runs it in its own container.
    Isolated(Isolated),
}

/// An agent's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub status: u16,
    /// JSON text.
    pub body: Vec<u8>,
}

/// Why an invocation got no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// No process. The agent has not begun.
    #[error("{0}")]
    NotStarted(String),
    /// No free slot. The agent has not begun.
    #[error("all {0} session slots are in use")]
    Full(usize),
    /// The connection broke after the request was sent. The agent may have begun.
    #[error("the agent's process did not answer: {0}")]
    Lost(String),
}

impl Agents {
    /// Forwards an invocation to the session's agent.
    ///
    /// # Errors
    /// See [`Unanswered`].
    pub async fn invoke(&self, session: &SessionId, body: Bytes) -> Result<Answer, Unanswered> {
        match self {
            Self::Here(host) => {
                let response = host.invoke(&body).await;
                let body = response.body.to_string().into_bytes();
                Ok(Answer { status: response.status, body })
            }
            Self::Isolated(isolated) => isolated.invoke(session, body).await,
        }
    }

    /// Whether the session has an agent, busy or idle.
    pub fn has(&self, session: &SessionId) -> bool {
        match self {
            Self::Here(host) => host.has(session),
            Self::Isolated(isolated) => isolated.has(session),
        }
    }

    /// Stops the session's agent. Returns whether there was one.
    pub async fn stop(&self, session: &SessionId) -> bool {
        match self {
            Self::Here(host) => host.stop_session(session),
            Self::Isolated(isolated) => isolated.stop(session).await,
        }
    }

    /// Ends the processes of sessions that are not at work, so that others can have theirs.
    pub(crate) fn stop_idle(&self, is_at_work: impl Fn(&SessionId) -> bool) {
        if let Self::Isolated(isolated) = self {
            isolated.stop_idle(is_at_work);
        }
    }

    /// Stops all agents and waits until they have stopped.
    pub async fn shutdown(&self) {
        match self {
            Self::Here(host) => host.shutdown().await,
            Self::Isolated(isolated) => isolated.shutdown().await,
        }
    }
}
