//! Inputs to an execution: results of calls, callbacks, heartbeats, an abort.
//!
//! Each function returns the one event to append and then apply. The first input wins: a result or
//! callback for a task that has already ended is rejected.

use serde_json::Value;

use super::thread::{Attempt, Call, Thread};
use super::{Execution, PAYLOAD_BYTES_MAX, Phase};
use crate::definition::{Kind, Resource};
use crate::error_name;
use crate::history::{Event, EventKind, Failure, Integration};
use crate::jsonata::{NESTING_MAX, is_shallow};
use crate::time::Timestamp;
use crate::token;

/// The task has ended, timed out, or its call has already returned. Drop the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("task of event {0} is not open")]
pub struct TaskClosed(pub u64);

/// A token was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallbackError {
    /// The task of this token has ended or timed out. AWS returns `TaskTimedOut`.
    #[error("task has ended or timed out")]
    TimedOut,
    /// This execution never issued the token. AWS returns `InvalidToken`.
    #[error("token is not one of this execution")]
    Unknown,
}

/// The execution has ended and accepts no input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("execution has ended")]
pub struct AlreadyEnded;

impl Execution {
    /// The call that [`super::Next::RunTasks`] requested has returned.
    ///
    /// For a task that waits for a token this only records `TaskSubmitted`. If its callback came
    /// first, the task is closed and the result is dropped.
    ///
    /// # Errors
    /// The task is not open.
    pub fn task_succeeded(
        &self,
        event_id: u64,
        output: &Value,
        now: Timestamp,
    ) -> Result<Event, TaskClosed> {
        let (thread, attempt, resource) = self.open_call(event_id)?;
        let kind = match payload(output, resource.arn()) {
            Err(failure) => EventKind::TaskFailed(integration(resource), failure),
            Ok(text) if attempt.token.is_some() => {
                EventKind::TaskSubmitted(integration(resource), text)
            }
            Ok(text) => EventKind::TaskSucceeded(integration(resource), text),
        };
        Ok(self.proposal(thread.last, kind, now))
    }

    /// The call that [`super::Next::RunTasks`] requested has failed, and the task with it.
    ///
    /// # Errors
    /// The task is not open.
    pub fn task_failed(
        &self,
        event_id: u64,
        failure: Failure,
        now: Timestamp,
    ) -> Result<Event, TaskClosed> {
        let (thread, _, resource) = self.open_call(event_id)?;
        let kind = EventKind::TaskFailed(integration(resource), failure);
        Ok(self.proposal(thread.last, kind, now))
    }

    /// `SendTaskSuccess`. It may arrive before the call itself has returned.
    ///
    /// # Errors
    /// The task has ended, or the token is not from this execution.
    pub fn callback_succeeded(
        &self,
        token: &str,
        output: &Value,
        now: Timestamp,
    ) -> Result<Event, CallbackError> {
        let (thread, _, resource) = self.open_callback(token)?;
        let kind = match payload(output, resource.arn()) {
            Err(failure) => EventKind::TaskFailed(integration(resource), failure),
            Ok(text) => EventKind::TaskSucceeded(integration(resource), text),
        };
        Ok(self.proposal(thread.last, kind, now))
    }

    /// `SendTaskFailure`; error and cause are optional.
    ///
    /// # Errors
    /// The task has ended, or the token is not from this execution.
    pub fn callback_failed(
        &self,
        token: &str,
        failure: Failure,
        now: Timestamp,
    ) -> Result<Event, CallbackError> {
        let (thread, _, resource) = self.open_callback(token)?;
        let kind = EventKind::TaskFailed(integration(resource), failure);
        Ok(self.proposal(thread.last, kind, now))
    }

    /// `SendTaskHeartbeat`. A heartbeat is not an event: to keep it across a crash, store the time
    /// beside the history and call this again after a replay. A time older than the last has no
    /// effect.
    ///
    /// # Errors
    /// The task has ended, or the token is not from this execution.
    pub fn heartbeat(&mut self, token: &str, now: Timestamp) -> Result<(), CallbackError> {
        let event_id = self.open_callback(token)?.1.event_id;
        if let Phase::Running(thread) = &mut self.phase {
            let mut beat =
                |attempt: &mut Attempt| attempt.heartbeat_at = attempt.heartbeat_at.max(now);
            thread.change_attempt(event_id, &mut beat);
        }
        Ok(())
    }

    /// `StopExecution`.
    ///
    /// # Errors
    /// The execution has ended.
    pub fn abort(&self, failure: Failure, now: Timestamp) -> Result<Event, AlreadyEnded> {
        match self.phase {
            // Before its first event an execution has no history that an abort could follow.
            Phase::Before | Phase::Ended(..) => Err(AlreadyEnded),
            Phase::Running(_) => Ok(self.proposal(0, EventKind::ExecutionAborted(failure), now)),
        }
    }

    pub(super) fn proposal(
        &self,
        previous_event_id: u64,
        kind: EventKind,
        now: Timestamp,
    ) -> Event {
        Event { id: self.last_event_id + 1, previous_event_id, timestamp: now, kind }
    }

    fn open_call(&self, event_id: u64) -> Result<Open<'_>, TaskClosed> {
        let called =
            |attempt: &Attempt| attempt.event_id == event_id && attempt.call == Call::Started;
        self.find_open(&called).ok_or(TaskClosed(event_id))
    }

    fn open_callback(&self, token: &str) -> Result<Open<'_>, CallbackError> {
        let waits = |attempt: &Attempt| attempt.token.as_deref() == Some(token);
        if let Some(open) = self.find_open(&waits) {
            return Ok(open);
        }
        let locator = token::locate(token).ok_or(CallbackError::Unknown)?;
        let genuine =
            token::mint(&self.start.token_seed, &self.start.execution_arn, locator.event_id)
                == token;
        // We cannot have issued a token for a future event, genuine or not.
        let given = genuine && locator.event_id <= self.last_event_id;
        Err(if given { CallbackError::TimedOut } else { CallbackError::Unknown })
    }

    fn find_open(&self, accept: &dyn Fn(&Attempt) -> bool) -> Option<Open<'_>> {
        let Phase::Running(whole) = &self.phase else { return None };
        let mut found = None;
        whole.visit_all(&mut |thread| {
            if let (Some(attempt), Some(state)) = (thread.attempt(), thread.state_name())
                && let Kind::Task(task) = &thread.machine.states[state].kind
                && accept(attempt)
            {
                found = Some((thread, attempt, &task.resource));
            }
        });
        found
    }
}

/// An open task: its thread, its attempt and its resource.
type Open<'a> = (&'a Thread, &'a Attempt, &'a Resource);

pub(super) fn integration(resource: &Resource) -> Integration {
    match resource {
        Resource::Function { .. } | Resource::Activity { .. } => Integration::Function,
        Resource::Service { resource_type, resource, .. } => Integration::Service {
            resource_type: resource_type.clone(),
            resource: resource.clone(),
        },
    }
}

/// A value's JSON text, or the failure if it is too large or nested too deep; `what` names the
/// state or task.
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
