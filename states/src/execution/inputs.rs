//! What comes from outside: answers of calls, callbacks, heartbeats, an abort.
//!
//! Each returns the one event to append and then apply. Whoever comes first wins: an answer or a
//! callback for a task that has ended meanwhile is refused, and the refusal says so.

use serde_json::Value;

use super::{Attempt, Call, Execution, PAYLOAD_BYTES_MAX, Position, Stage};
use crate::definition::{Resource, State};
use crate::error_name;
use crate::history::{Event, EventKind, Failure, Integration};
use crate::jsonata::{NESTING_MAX, is_shallow};
use crate::time::Timestamp;
use crate::token;

/// The task is not open any more: it ended, timed out, or its call had answered already. Drop the
/// answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("task of event {0} is not open")]
pub struct TaskClosed(pub u64);

/// Why a token cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallbackError {
    /// The token was ours and its task has ended or timed out: AWS answers `TaskTimedOut`.
    #[error("task has ended or timed out")]
    TimedOut,
    /// This execution never gave out that token: AWS answers `InvalidToken`.
    #[error("token is not one of this execution")]
    Unknown,
}

/// The execution has ended; nothing can be done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("execution has ended")]
pub struct AlreadyEnded;

impl Execution {
    /// The call that [`super::Next::RunTask`] asked for answered.
    ///
    /// For a task that waits for its token this is only `TaskSubmitted`. Its callback may have come
    /// first; then the task is closed and the answer is dropped.
    ///
    /// # Errors
    /// The task is not open any more.
    pub fn task_succeeded(
        &self,
        event_id: u64,
        output: &Value,
        now: Timestamp,
    ) -> Result<Event, TaskClosed> {
        let (attempt, resource) = self.open_call(event_id)?;
        let kind = match payload(output, resource.arn()) {
            Err(failure) => EventKind::TaskFailed(integration(resource), failure),
            Ok(text) if attempt.token.is_some() => {
                EventKind::TaskSubmitted(integration(resource), text)
            }
            Ok(text) => EventKind::TaskSucceeded(integration(resource), text),
        };
        Ok(self.proposal(kind, now))
    }

    /// The call that [`super::Next::RunTask`] asked for failed, and with it the task.
    ///
    /// # Errors
    /// The task is not open any more.
    pub fn task_failed(
        &self,
        event_id: u64,
        failure: Failure,
        now: Timestamp,
    ) -> Result<Event, TaskClosed> {
        let (_, resource) = self.open_call(event_id)?;
        Ok(self.proposal(EventKind::TaskFailed(integration(resource), failure), now))
    }

    /// `SendTaskSuccess`. It may come before the call itself has answered.
    ///
    /// # Errors
    /// The token's task has ended, or the token is not ours.
    pub fn callback_succeeded(
        &self,
        token: &str,
        output: &Value,
        now: Timestamp,
    ) -> Result<Event, CallbackError> {
        let resource = self.open_callback(token)?;
        let kind = match payload(output, resource.arn()) {
            Err(failure) => EventKind::TaskFailed(integration(resource), failure),
            Ok(text) => EventKind::TaskSucceeded(integration(resource), text),
        };
        Ok(self.proposal(kind, now))
    }

    /// `SendTaskFailure`; both members of the failure may be absent.
    ///
    /// # Errors
    /// The token's task has ended, or the token is not ours.
    pub fn callback_failed(
        &self,
        token: &str,
        failure: Failure,
        now: Timestamp,
    ) -> Result<Event, CallbackError> {
        let resource = self.open_callback(token)?;
        Ok(self.proposal(EventKind::TaskFailed(integration(resource), failure), now))
    }

    /// `SendTaskHeartbeat`. It is no event: a shell that wants it to outlive a crash stores the
    /// time beside the history and says it again after a replay. An older time than the last
    /// changes nothing.
    ///
    /// # Errors
    /// The token's task has ended, or the token is not ours.
    pub fn heartbeat(&mut self, token: &str, now: Timestamp) -> Result<(), CallbackError> {
        self.open_callback(token)?;
        if let Position::In(_, Stage::Open(attempt)) = &mut self.position {
            attempt.beat_at = attempt.beat_at.max(now);
        }
        Ok(())
    }

    /// `StopExecution`.
    ///
    /// # Errors
    /// The execution has ended.
    pub fn abort(&self, failure: Failure, now: Timestamp) -> Result<Event, AlreadyEnded> {
        match self.position {
            // Before its first event there is no history that an abort could follow.
            Position::Before | Position::Ended(_) => Err(AlreadyEnded),
            _ => Ok(Event {
                previous_event_id: 0,
                ..self.proposal(EventKind::ExecutionAborted(failure), now)
            }),
        }
    }

    fn proposal(&self, kind: EventKind, now: Timestamp) -> Event {
        Event {
            id: self.last_event_id + 1,
            previous_event_id: self.last_event_id,
            timestamp: now,
            kind,
        }
    }

    fn open_call(&self, event_id: u64) -> Result<(&Attempt, &Resource), TaskClosed> {
        match self.open_attempt() {
            Some((attempt, resource))
                if attempt.event_id == event_id && attempt.call == Call::Started =>
            {
                Ok((attempt, resource))
            }
            _ => Err(TaskClosed(event_id)),
        }
    }

    fn open_callback(&self, token: &str) -> Result<&Resource, CallbackError> {
        if let Some((attempt, resource)) = self.open_attempt()
            && attempt.token.as_deref() == Some(token)
        {
            return Ok(resource);
        }
        let locator = token::locate(token).ok_or(CallbackError::Unknown)?;
        let genuine =
            token::mint(&self.start.token_seed, &self.start.execution_arn, locator.event_id)
                == token;
        // A genuine token of an event to come cannot have been given out by us.
        let given = genuine && locator.event_id <= self.last_event_id;
        Err(if given { CallbackError::TimedOut } else { CallbackError::Unknown })
    }

    fn open_attempt(&self) -> Option<(&Attempt, &Resource)> {
        match &self.position {
            Position::In(visit, Stage::Open(attempt)) => match self.state_of(visit) {
                State::Task(task) => Some((attempt, &task.resource)),
                _ => None,
            },
            _ => None,
        }
    }
}

pub(super) fn integration(resource: &Resource) -> Integration {
    match resource {
        Resource::Function { .. } => Integration::Function,
        Resource::Service { resource_type, resource, .. } => Integration::Service {
            resource_type: resource_type.clone(),
            resource: resource.clone(),
        },
    }
}

/// A value's JSON text, or the failure that its size or its depth is to `what` returned it.
pub(super) fn payload(value: &Value, what: &str) -> Result<String, Failure> {
    if !is_shallow(value) {
        let cause = format!(
            "The state/task '{what}' returned a result nested more than {NESTING_MAX} levels deep."
        );
        return Err(Failure::new(error_name::DATA_LIMIT_EXCEEDED, Some(cause)));
    }
    let text = value.to_string();
    if text.len() <= PAYLOAD_BYTES_MAX {
        return Ok(text);
    }
    let cause = format!(
        "The state/task '{what}' returned a result with a size exceeding the maximum number of bytes service limit."
    );
    Err(Failure::new(error_name::DATA_LIMIT_EXCEEDED, Some(cause)))
}
