//! The lifecycle of a task: scheduled, started, timed out.

use serde_json::Value;

use super::decide::{Result, Step, Stopped, record};
use super::inputs::integration;
use super::output::{bounded, filled, sentence};
use super::thread::{Attempt, Call, Thread, View};
use super::{Execution, TaskRequest};
use crate::definition::{Kind, Resource, SECONDS_MAX, Slot, Task, accept};
use crate::error_name;
use crate::history::{EventKind, Failure, TaskScheduled};
use crate::time::Timestamp;
use crate::token;

impl Execution {
    pub(super) fn schedule(&self, view: View<'_>, task: &Task, now: Timestamp) -> Result<Step> {
        let (seed, arn) = (&self.start.token_seed, &self.start.execution_arn);
        let token =
            task.resource.waits_for_token().then(|| token::mint(seed, arn, self.last_event_id + 1));
        let context = || self.context(view, None, token.as_deref());
        let mut scope = self.scope(view, &context, now, &view.last.to_string());
        let arguments = filled(view, &mut scope, task.arguments.as_ref(), "Arguments")?;
        let input = super::output::effective(view, &scope)?;
        let mut limit = |slot: &Option<Slot>| {
            let limit = slot
                .as_ref()
                .map(|slot| slot.evaluate(&mut scope, &input, "", "number", accept::limit));
            limit.transpose()
        };
        let timeout_s = limit(&task.timeout)?;
        let heartbeat_s = limit(&task.heartbeat)?;
        let text = bounded(view, &arguments)?;
        Ok(record(
            view,
            match &task.resource {
                // A plain function cannot send heartbeats, and its event has no field for them.
                Resource::Function { arn } => EventKind::LambdaFunctionScheduled {
                    resource: arn.clone(),
                    input: text,
                    timeout_s,
                },
                Resource::Service { resource_type, resource, .. } => {
                    EventKind::TaskScheduled(TaskScheduled {
                        resource_type: resource_type.clone(),
                        resource: resource.clone(),
                        region: self.region().to_owned(),
                        parameters: text,
                        timeout_s,
                        heartbeat_s,
                    })
                }
                Resource::Activity { .. } => {
                    let cause =
                        sentence(view, "Activities are not supported: no worker can ask for one.");
                    return Err(Stopped::Fatal(Failure::new(error_name::RUNTIME, Some(cause))));
                }
            },
        ))
    }

    pub(super) fn region(&self) -> &str {
        self.start.execution_arn.split(':').nth(3).unwrap_or_default()
    }

    pub(super) fn watch(&self, view: View<'_>, attempt: &Attempt, now: Timestamp) -> Step {
        let Kind::Task(task) = &view.state.kind else { unreachable!("only tasks are attempted") };
        if attempt.call == Call::Scheduled {
            return record(view, EventKind::TaskStarted(integration(&task.resource)));
        }
        let (strikes_at, error) = attempt.strikes();
        if now < strikes_at {
            return Step::Wait(strikes_at);
        }
        let failure = Failure::new(error, None);
        record(view, EventKind::TaskTimedOut(integration(&task.resource), failure))
    }

    /// The calls that must be in flight, for a thread and its descendants, oldest first.
    pub(super) fn requests(&self, thread: &Thread) -> Vec<TaskRequest> {
        let mut requests = Vec::new();
        thread.visit_all(&mut |thread| {
            let (Some(attempt), Some(state)) = (thread.attempt(), thread.state_name()) else {
                return;
            };
            let Kind::Task(task) = &thread.machine.states[state].kind else { return };
            if attempt.call != Call::Started {
                return;
            }
            requests.push(TaskRequest {
                event_id: attempt.event_id,
                state: state.to_owned(),
                resource: task.resource.arn().to_owned(),
                arguments: Value::clone(&attempt.arguments),
                token: attempt.token.clone(),
                timeout_at: attempt.timeout_at(),
                heartbeat_s: attempt.heartbeat_s,
            });
        });
        requests.sort_by_key(|request| request.event_id);
        requests
    }
}

impl Attempt {
    fn timeout_at(&self) -> Timestamp {
        self.scheduled_at.plus_seconds(self.timeout_s.unwrap_or(SECONDS_MAX))
    }

    /// When the attempt times out, and the error name.
    fn strikes(&self) -> (Timestamp, &'static str) {
        let timeout_at = self.timeout_at();
        match self.heartbeat_s.map(|seconds| self.heartbeat_at.plus_seconds(seconds)) {
            Some(silent_at) if silent_at < timeout_at => (silent_at, error_name::HEARTBEAT_TIMEOUT),
            _ => (timeout_at, error_name::TIMEOUT),
        }
    }
}
