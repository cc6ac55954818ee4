//! Where the agents run: in this process, or each session in a process of its own.

mod isolated;
mod process;
mod told;

use axum::body::Bytes;
use journal::id::SessionId;
use journal::sqlite::SqliteStore;

pub use isolated::{Isolated, Settings};

/// The agent host behind the local endpoint's `AgentCore` API.
#[derive(Clone, Debug)]
pub enum Agents {
    /// In this process.
    Here(agent::host::Host<SqliteStore>),
    /// Each session in a container's stead: a process of its own.
    Isolated(Isolated),
}

/// What an agent answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body, JSON text.
    pub body: Vec<u8>,
}

/// Why no agent answered.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// Certainly nothing was begun: no place, or no process.
    #[error("{0}")]
    NotStarted(String),
    /// There is no place for another session.
    #[error("{0} sessions are running, which is the most")]
    Full(usize),
    /// The request was on its way: it may have been begun.
    #[error("the agent's process did not answer: {0}")]
    Lost(String),
}

impl Agents {
    /// Hands an invocation to the session's agent.
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

    /// Whether something runs for a session, at work or idle.
    pub fn has(&self, session: &SessionId) -> bool {
        match self {
            Self::Here(host) => host.has(session),
            Self::Isolated(isolated) => isolated.has(session),
        }
    }

    /// Stops what runs for a session; says whether there was something.
    pub async fn stop(&self, session: &SessionId) -> bool {
        match self {
            Self::Here(host) => host.stop_session(session),
            Self::Isolated(isolated) => isolated.stop(session).await,
        }
    }

    /// Stops everything and waits until it has stopped.
    pub async fn shutdown(&self) {
        match self {
            Self::Here(host) => host.shutdown().await,
            Self::Isolated(isolated) => isolated.shutdown().await,
        }
    }
}
