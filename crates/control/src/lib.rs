//! A person's actions on a session: answer its question, cancel it, resume it.
//!
//! Each action is one function of [`Control`], over the journal's store and a port to the session's
//! executions ([`executions`]), and journals its caller, a [`Principal`]. Terminal, page, API, event
//! bus, callback and the poller's URL all call these functions. [`answer`](mod@answer) validates an
//! answer against the open question and writes its step. [`resume`](mod@resume) starts another
//! execution if the last one has ended. [`erase`](mod@erase) destroys the key of a session's contents. [`version`] moves a session to another version of its agent.

pub mod answer;
mod cancel;
pub mod erase;
pub mod error;
pub mod executions;
pub mod halt;
mod records;
pub mod resume;
pub mod version;

use std::time::Duration;

use journal::clock::{Clock, Stamp};
use journal::id::SessionId;
use journal::lease::Lease;
use journal::principal::Principal;
use journal::store::Store;
use journal::wait::Wait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use workflow::limits::SILENT_AFTER;

pub use error::{Error, Refused};
pub use executions::{Execution, Executions, Forwarded, Workflow};

/// Timeout for an action to reach the journal after another process accepted it.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(30);

/// Timeout of one wait for a change of the journal.
const LOOK: Duration = Duration::from_millis(500);

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
    /// Destroys the key of its contents.
    Erase {
        reason: String,
    },
}

/// The version that a session is to go on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsVersion {
    #[serde(rename = "as_version")]
    pub version: String,
}

impl AsVersion {
    /// The version that a request to resume names in its body; `None` if the body is empty.
    ///
    /// # Errors
    /// The body says something else.
    pub fn of_request(given: Value) -> serde_json::Result<Option<Self>> {
        let is_empty = given.is_null() || given.as_object().is_some_and(Map::is_empty);
        if is_empty { Ok(None) } else { serde_json::from_value(given).map(Some) }
    }
}

impl Action {
    /// The last segment of the action's route in the API.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Answer(_) => "answer",
            Self::Cancel { .. } => "cancel",
            Self::Resume { .. } => "resume",
            Self::Erase { .. } => "erase",
        }
    }

    /// The action of a request to the API's route `name`; `None` if there is no such route.
    ///
    /// # Errors
    /// The body is not JSON, or names something else than a version to resume with.
    pub fn of_request(name: &str, body: &[u8]) -> Result<Option<Self>, serde_json::Error> {
        let given = if body.is_empty() { Value::Null } else { serde_json::from_slice(body)? };
        Ok(match name {
            "answer" => Some(Self::Answer(given)),
            "cancel" => Some(Self::Cancel { reason: given["reason"].as_str().map(str::to_owned) }),
            "resume" => Some(Self::Resume { as_version: AsVersion::of_request(given)? }),
            "erase" => Some(Self::Erase { reason: reason_of(&given) }),
            _ => None,
        })
    }

    /// The body of the API's request.
    pub fn body(&self) -> Value {
        match self {
            Self::Answer(answer) => answer.clone(),
            Self::Cancel { reason: Some(reason) } | Self::Erase { reason } => {
                json!({ "reason": reason })
            }
            Self::Resume { as_version: Some(as_version) } => json!(as_version),
            Self::Cancel { reason: None } | Self::Resume { as_version: None } => json!({}),
        }
    }
}

/// The reason that a request's body gives; empty, and so refused, without one.
pub fn reason_of(given: &Value) -> String {
    given["reason"].as_str().unwrap_or_default().to_owned()
}

/// The outcome of an action. Serialized as the body of the API's reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Done {
    Answered(Answered),
    Cancelled(Cancelled),
    Resumed(Resumed),
    Erased(Erased),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Erased {
    pub session_id: SessionId,
    /// When its key was destroyed, which may have been earlier.
    pub erased_at: Stamp,
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
    /// Performs an action. `by` is the caller as its channel knows it; nothing in the action counts.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn act(
        &self,
        session: &SessionId,
        action: &Action,
        by: &Principal,
    ) -> Result<Done, Error> {
        Ok(match action {
            Action::Answer(said) => Done::Answered(self.answer(session, said, by).await?),
            Action::Cancel { reason } => {
                Done::Cancelled(self.cancel(session, reason.as_deref(), by).await?)
            }
            Action::Resume { as_version } => {
                Done::Resumed(self.resume(session, as_version.as_ref(), by).await?)
            }
            Action::Erase { reason } => Done::Erased(self.erase(session, reason, by).await?),
        })
    }
}

impl<S: Store, E: Workflow> Control<S, E> {
    /// Waits until the journal shows an action that another process accepted.
    async fn confirmed<T>(
        &self,
        shown: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let shown = self.clock.timeout(CONFIRMED_WITHIN, shown).await;
        shown.unwrap_or(Err(Error::Unconfirmed))
    }

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
        // A heartbeat from the future is of a clock that was ahead.
        let apart = |at: Stamp| now.since(at).max(at.since(now));
        Ok(lease.is_some_and(|it| it.runner().is_some() && apart(it.heartbeat_at) < SILENT_AFTER))
    }
}
