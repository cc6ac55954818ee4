//! A person's actions on a session: answer its question, cancel it, resume it.
//!
//! Each action is one function of [`Control`], over the journal's store and a port to the session's
//! executions ([`executions`]). Terminal, page, API, event bus and callback all call these functions.
//! [`answer`](mod@answer) validates an answer against the open question and writes its step.
//! [`resume`](mod@resume) starts another execution if the last one has ended.

pub mod answer;
mod cancel;
pub mod error;
pub mod executions;
mod records;
pub mod resume;

use journal::clock::Clock;
use journal::id::SessionId;
use journal::store::Store;
use journal::wait::Wait;
use serde::Serialize;
use serde_json::{Value, json};

pub use error::{Error, Refused};
pub use executions::{Execution, Executions, Workflow};

/// A journal, and the executions of its sessions.
#[derive(Clone, Debug)]
pub struct Control<S, E> {
    pub store: S,
    pub clock: Clock,
    pub executions: E,
}

/// A person's action.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A [`graph::question::Answer`], as JSON.
    Answer(Value),
    Cancel {
        reason: Option<String>,
    },
    Resume,
}

impl Action {
    /// The last segment of the action's route in the API.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Answer(_) => "answer",
            Self::Cancel { .. } => "cancel",
            Self::Resume => "resume",
        }
    }

    /// The body of the API's request.
    pub fn body(&self) -> Value {
        match self {
            Self::Answer(answer) => answer.clone(),
            Self::Cancel { reason: Some(reason) } => json!({ "reason": reason }),
            Self::Cancel { reason: None } | Self::Resume => json!({}),
        }
    }
}

/// The outcome of an action. Serialized as the body of the API's reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Done {
    Answered(Answered),
    Cancelled(Cancelled),
    Resumed(Resumed),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answered {
    pub session_id: SessionId,
    /// The number of the answer's step.
    pub step: u32,
    /// Whether this call woke the workflow; absent where another process wakes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub woken: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cancelled {
    pub session_id: SessionId,
    pub woken: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resumed {
    pub session_id: SessionId,
    pub woken: bool,
    /// The new execution, if the last one had ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_arn: Option<String>,
}

impl<S: Store, E: Executions> Control<S, E> {
    /// # Errors
    /// See [`Error`].
    pub async fn act(&self, session: &SessionId, action: &Action) -> Result<Done, Error> {
        Ok(match action {
            Action::Answer(said) => Done::Answered(self.answer(session, said).await?),
            Action::Cancel { reason } => {
                Done::Cancelled(self.cancel(session, reason.as_deref()).await?)
            }
            Action::Resume => Done::Resumed(self.resume(session).await?),
        })
    }
}

impl<S: Store, E: Workflow> Control<S, E> {
    /// Has the parked workflow read the journal again; returns whether one was parked.
    async fn wake(&self, session: &SessionId) -> Result<bool, Error> {
        match Wait::read(&self.store, session).await? {
            Some(wait) => self.executions.wake(&wait.token).await,
            None => Ok(false),
        }
    }
}
