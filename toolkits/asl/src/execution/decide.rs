//! Decides the next event, or what to wait for.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};

use super::output::{effective, filled, sentence};
use super::thread::{Failed, Position, Stage, Thread, View};
use super::{Decision, Execution, Next, Phase};
use crate::definition::{Kind, Retrier, SECONDS_MAX, Slot, Until, accept};
use crate::error_name;
use crate::expression::{Fault, Scope};
use crate::history::{EVENTS_MAX, EventKind, Failure};
use crate::jsonata::fraction;
use crate::time::Timestamp;
use crate::token;

/// An error before it has become an event.
#[derive(Clone, Debug)]
pub(super) enum Stopped {
    /// The state fails; `Retry` and `Catch` apply.
    Fault(Fault),
    /// The thread fails at once.
    Fatal(Failure),
}

impl From<Fault> for Stopped {
    fn from(fault: Fault) -> Stopped {
        Stopped::Fault(fault)
    }
}

pub(super) type Result<T> = std::result::Result<T, Stopped>;

/// What a thread does next.
pub(super) enum Step {
    Record {
        previous_event_id: u64,
        kind: EventKind,
    },
    /// Nothing to do before this time or an input.
    Wait(Timestamp),
    /// The machine ended with this output.
    Finish(Arc<Value>),
    /// No catcher matched this failure.
    Fail(Failure),
}

pub(super) fn record(view: View<'_>, kind: EventKind) -> Step {
    Step::Record { previous_event_id: view.last, kind }
}

impl Execution {
    pub(super) fn decide(&self, now: Timestamp) -> Decision {
        let thread = match &self.phase {
            Phase::Ended(outcome, _) => return Decision::Await(Next::Done(outcome.clone())),
            Phase::Before => {
                let (input, role_arn) = (self.start.input.clone(), self.start.role_arn.clone());
                let kind = EventKind::ExecutionStarted { input, role_arn };
                return Decision::Record { previous_event_id: 0, kind };
            }
            Phase::Running(thread) => thread,
        };
        if now >= self.deadline() {
            let kind = EventKind::ExecutionTimedOut(Failure::new(error_name::TIMEOUT, None));
            return Decision::Record { previous_event_id: 0, kind };
        }
        let ends = |kind| Decision::Record { previous_event_id: thread.last, kind };
        if self.last_event_id + 1 >= EVENTS_MAX {
            let cause = format!(
                "The execution reached the maximum number of history events ({EVENTS_MAX})."
            );
            let failure = Failure::new(error_name::RUNTIME, Some(cause));
            return ends(EventKind::ExecutionFailed(failure));
        }
        match self.step(thread, now) {
            Step::Record { previous_event_id, kind } => {
                Decision::Record { previous_event_id, kind }
            }
            Step::Finish(value) => {
                ends(EventKind::ExecutionSucceeded { output: value.to_string() })
            }
            Step::Fail(failure) => ends(EventKind::ExecutionFailed(failure)),
            Step::Wait(at) => {
                let (requests, wake_at) = (self.requests(thread), at.min(self.deadline()));
                Decision::Await(match requests.is_empty() {
                    true => Next::WaitUntil(wake_at),
                    false => Next::RunTasks { requests, wake_at },
                })
            }
        }
    }

    /// The machine's own timeout. A redrive restarts it.
    fn deadline(&self) -> Timestamp {
        let from = self.redriven_at.unwrap_or(self.start.started_at);
        from.plus_seconds(self.definition.timeout_s.unwrap_or(SECONDS_MAX))
    }

    pub(super) fn step(&self, thread: &Thread, now: Timestamp) -> Step {
        match &thread.position {
            Position::Between { to: None, value } => Step::Finish(Arc::clone(value)),
            Position::Between { to: Some(name), value } => {
                let state_type = thread.machine.states[name].kind.state_type();
                let (name, input) = (name.clone(), value.to_string());
                let kind = EventKind::StateEntered { state_type, name, input };
                Step::Record { previous_event_id: thread.last, kind }
            }
            Position::In(visit, stage) => {
                let view = thread.view(visit);
                match self.run(view, stage, now) {
                    Ok(step) => step,
                    Err(Stopped::Fatal(failure)) => Step::Fail(failure),
                    Err(Stopped::Fault(fault)) => faulted(view, stage, fault),
                }
            }
        }
    }

    fn run(&self, view: View<'_>, stage: &Stage, now: Timestamp) -> Result<Step> {
        match stage {
            Stage::Open(attempt) => return Ok(self.watch(view, attempt, now)),
            Stage::Forked(fork) => return self.run_fork(view, fork, now),
            Stage::Broken(failed) => return self.broken(view, failed, 0, view.last, now),
            Stage::Failed(failed) => return self.recover(view, failed, now),
            Stage::Entered | Stage::Succeeded(_) => {}
        }
        let context = || self.context(view, None, None);
        let mut scope = self.scope(view, &context, now, &view.last.to_string());
        if let Stage::Succeeded(result) = stage {
            scope.result = Some(result);
            return self.exit(view, &mut scope, &view.state.result, result, "");
        }
        match &view.state.kind {
            Kind::Task(task) => self.schedule(view, task, now),
            Kind::Parallel { .. } | Kind::Map(_) => Ok(record(view, self.fork_started(view, now)?)),
            Kind::Choice { .. } => self.choice(view, &mut scope),
            Kind::Wait(until) => {
                let until = self.until(view, until)?;
                if now < until {
                    return Ok(Step::Wait(until));
                }
                self.pass_on(view, &mut scope)
            }
            Kind::Succeed => self.pass_on(view, &mut scope),
            Kind::Pass { parameters, result } => {
                let value = filled(view, &mut scope, parameters.as_ref(), "Parameters")?;
                let value = result.as_ref().map_or(value, Cow::Borrowed);
                self.exit(view, &mut scope, &view.state.result, &value, "")
            }
            Kind::Fail { error, cause } => {
                let input = effective(view, &scope)?;
                let mut text = |slot: &Option<Slot>| {
                    let text = slot
                        .as_ref()
                        .map(|slot| slot.evaluate(&mut scope, &input, "", "string", accept::text));
                    text.transpose()
                };
                Ok(Step::Fail(Failure { error: text(error)?, cause: text(cause)? }))
            }
        }
    }

    fn pass_on(&self, view: View<'_>, scope: &mut Scope<'_>) -> Result<Step> {
        let input = effective(view, scope)?;
        self.exit(view, scope, &view.state.result, &input, "")
    }

    fn choice(&self, view: View<'_>, scope: &mut Scope<'_>) -> Result<Step> {
        let Kind::Choice { rules, default } = &view.state.kind else {
            unreachable!("only a choice chooses")
        };
        let input = effective(view, scope)?;
        match choose(view, scope)? {
            Some(index) => {
                let rule = &rules[index].result;
                let prefix = format!("Choices[{index}]/");
                // In JSONPath `OutputPath` belongs to the state, whichever rule matched.
                let merged;
                let result = match &view.state.result.shape {
                    shape @ crate::definition::Shape::JsonPath { .. } => {
                        merged = crate::definition::Yield {
                            assign: rule.assign.clone(),
                            shape: shape.clone(),
                        };
                        &merged
                    }
                    crate::definition::Shape::Jsonata(_) => rule,
                };
                self.exit(view, scope, result, &input, &prefix)
            }
            None if default.is_some() => self.exit(view, scope, &view.state.result, &input, ""),
            None => {
                // AWS's page names `States.NoChoiceMatched`; measured is this.
                let cause = sentence(
                    view,
                    "Failed to transition out of the state. The state does not point to a next state.",
                );
                Err(Stopped::Fatal(Failure::new(error_name::RUNTIME, Some(cause))))
            }
        }
    }

    /// The target of a choice, re-evaluated with the data that the state had when it was left.
    pub(super) fn chosen(&self, view: View<'_>, at: Timestamp) -> Option<String> {
        let Kind::Choice { rules, default } = &view.state.kind else { return None };
        let context = || self.context(view, None, None);
        let mut scope = self.scope(view, &context, at, &view.last.to_string());
        match choose(view, &mut scope) {
            Ok(Some(index)) => Some(rules[index].next.clone()),
            Ok(None) => default.clone(),
            Err(_) => None,
        }
    }

    /// End of a wait. Evaluated at the time of entry, so that a second evaluation gives the same
    /// time.
    fn until(&self, view: View<'_>, until: &Until) -> Result<Timestamp> {
        let context = || self.context(view, None, None);
        let mut scope = self.scope(view, &context, view.visit.entered_at, &view.last.to_string());
        let input = effective(view, &scope)?;
        Ok(match until {
            Until::Seconds(slot) => {
                let seconds = slot.evaluate(&mut scope, &input, "", "number", accept::seconds)?;
                view.visit.entered_at.plus_seconds(seconds)
            }
            Until::Timestamp(slot) => {
                let until = slot.evaluate(&mut scope, &input, "", "string", accept::time)?;
                until.plus_millis(self.wall_ahead_ms.saturating_neg())
            }
        })
    }

    fn recover(&self, view: View<'_>, failed: &Failed, now: Timestamp) -> Result<Step> {
        if failed.while_catching {
            return Ok(Step::Fail(failed.failure.clone()));
        }
        if let Some(retry_at) = self.retry_at(view, failed, 0) {
            if now < retry_at {
                return Ok(Step::Wait(retry_at));
            }
            return match &view.state.kind {
                Kind::Task(task) => self.schedule(view, task, now),
                _ => Ok(record(view, self.fork_started(view, now)?)),
            };
        }
        let Some(index) = catcher(view, &failed.failure) else {
            return Ok(Step::Fail(failed.failure.clone()));
        };
        let error = failed.failure.error.as_deref().unwrap_or_default();
        let cause = failed.failure.cause.as_deref().unwrap_or_default();
        let error_output = json!({"Error": error, "Cause": cause});
        let context = || self.context(view, None, None);
        let mut scope = self.scope(view, &context, now, &view.last.to_string());
        scope.error_output = Some(&error_output);
        let (result, prefix) = (&view.state.catch[index].result, format!("Catch[{index}]/"));
        self.exit(view, &mut scope, result, &error_output, &prefix)
    }

    /// When a failure is retried, if at all; `more` is the number of failures not yet counted in
    /// the visit.
    pub(super) fn retry_at(&self, view: View<'_>, failed: &Failed, more: u64) -> Option<Timestamp> {
        let (index, retrier) = retrier(view, &failed.failure)?;
        let failures = view.visit.failures.get(&index).copied().unwrap_or_default() + more;
        let delay_ms = || self.delay_ms(retrier, failures, failed.event_id);
        (failures <= retrier.max_attempts).then(|| failed.at.plus_millis(delay_ms()))
    }

    /// Delay before the attempt that follows a retrier's `failures`-th failure.
    fn delay_ms(&self, retrier: &Retrier, failures: u64, event_id: u64) -> i64 {
        let power = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
        let backed_off = retrier.interval_s as f64 * retrier.backoff_rate.powi(power);
        let seconds = backed_off.min(retrier.max_delay_s.unwrap_or(SECONDS_MAX) as f64);
        let share = if retrier.full_jitter {
            let start = &self.start;
            fraction(&token::digest(&[
                &start.token_seed,
                &start.execution_arn,
                "jitter",
                &event_id.to_string(),
            ]))
        } else {
            1.0
        };
        (seconds * share * 1_000.0) as i64
    }
}

/// The retrier that matches a failure, exhausted or not.
pub(super) fn retrier<'a>(view: View<'a>, failure: &Failure) -> Option<(usize, &'a Retrier)> {
    let error = failure.error.as_deref().unwrap_or_default();
    let mut retriers = view.state.retry.iter().enumerate();
    retriers.find(|(_, retrier)| error_name::matches(&retrier.error_equals, error))
}

/// The catcher that matches a failure.
pub(super) fn catcher(view: View<'_>, failure: &Failure) -> Option<usize> {
    let error = failure.error.as_deref().unwrap_or_default();
    let mut catchers = view.state.catch.iter();
    catchers.position(|catcher| error_name::matches(&catcher.error_equals, error))
}

/// The first rule whose condition is true.
fn choose(view: View<'_>, scope: &mut Scope<'_>) -> Result<Option<usize>> {
    let Kind::Choice { rules, .. } = &view.state.kind else { return Ok(None) };
    let input = effective(view, scope)?;
    for (index, rule) in rules.iter().enumerate() {
        if rule.holds(scope, &input, &format!("Choices[{index}]/"))? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Turns an error into an event where the state's `Retry` and `Catch` apply.
fn faulted(view: View<'_>, stage: &Stage, fault: Fault) -> Step {
    let failure = Failure::new(fault.error, Some(sentence(view, &fault.cause)));
    let seen = retrier(view, &failure).is_some() || catcher(view, &failure).is_some();
    let catching = matches!(stage, Stage::Failed(_));
    if fault.error != error_name::QUERY_EVALUATION_ERROR && (!seen || catching) {
        return Step::Fail(failure);
    }
    let previous_event_id = view.before_evaluation(stage);
    let state = view.visit.state.clone();
    let kind = EventKind::EvaluationFailed { state, location: fault.location, failure };
    Step::Record { previous_event_id, kind }
}
