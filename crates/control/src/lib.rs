//! A person's actions on a session: answer its question, cancel it, resume it.
//!
//! Each action is one function of [`Control`], over the journal's store and a port to the session's
//! executions ([`executions`]). Terminal, page, API, event bus and callback all call these functions.
//! [`answer`](mod@answer) validates an answer against the open question and writes its step.
//! [`resume`](mod@resume) starts another execution if the last one has ended. [`version`] moves a session to another
//! version of its agent.

pub mod answer;
mod cancel;
pub mod error;
pub mod executions;
mod records;
pub mod resume;
pub mod version;

use journal::clock::Clock;
use journal::id::SessionId;
use journal::lease::Lease;
use journal::store::Store;
use journal::wait::Wait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use workflow::limits::SILENT_AFTER;

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
    /// Wakes a session's workflow or starts it again, in another version if one is given.
    Resume {
        as_version: Option<AsVersion>,
    },
}

/// The version that a session is to go on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsVersion {
    #[serde(rename = "as_version")]
    pub version: String,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl Action {
    /// The last segment of the action's route in the API.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Answer(_) => "answer",
            Self::Cancel { .. } => "cancel",
            Self::Resume { .. } => "resume",
        }
    }

    /// The body of the API's request.
    pub fn body(&self) -> Value {
        match self {
            Self::Answer(answer) => answer.clone(),
            Self::Cancel { reason: Some(reason) } => json!({ "reason": reason }),
            Self::Resume { as_version: Some(as_version) } => json!(as_version),
            Self::Cancel { reason: None } | Self::Resume { as_version: None } => json!({}),
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
    /// The number of the step that moved it to another version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
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
            Action::Resume { as_version: None } => Done::Resumed(self.resume(session).await?),
            Action::Resume { as_version: Some(to) } => {
                let step = self.move_to(session, to).await?;
                Done::Resumed(Resumed { step: Some(step), ..self.resume(session).await? })
            }
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

    /// Whether a runner holds the session and writes heartbeats.
    async fn has_heartbeat(&self, session: &SessionId) -> Result<bool, Error> {
        let now = self.clock.now();
        let lease = Lease::read(&self.store, session).await?;
        Ok(lease.is_some_and(|it| it.runner.is_some() && now.since(it.heartbeat_at) < SILENT_AFTER))
    }
}
