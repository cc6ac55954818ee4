//! Folds events into the state of an execution.

use std::sync::Arc;

use serde_json::Value;

use super::decide::retrier;
use super::thread::{Attempt, Call, Failed, Position, Stage, Thread, View, Visit};
use super::{Execution, Outcome, Phase, StartError};
use crate::definition::{Kind, Transition};
use crate::error_name;
use crate::expression::Variables;
use crate::history::{Event, EventKind, Failure};
use crate::token;

/// A history cannot be replayed: it is damaged or belongs to another definition.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("the execution's start is invalid")]
    Start(#[from] StartError),
    /// An event is missing, duplicated or out of order.
    #[error("event {found} follows event {last}")]
    Order {
        /// Id of the last valid event.
        last: u64,
        /// Id of the invalid event.
        found: u64,
    },
    /// The event is not possible in the execution's current state.
    #[error("event {id} ({event_type}) cannot happen here")]
    Misfit { id: u64, event_type: String },
    /// A payload in the event is not JSON text.
    #[error("event {id} holds text that is not JSON")]
    NotJson {
        id: u64,
        #[source]
        source: serde_json::Error,
    },
}

type Result<T> = std::result::Result<T, ReplayError>;

/// What an event does to a visit; `None` if the event does not belong to it.
pub(super) type Moved = Result<Option<Turn>>;

pub(super) struct Turn {
    /// `previousEventId` of the next event.
    last: u64,
    /// `None` if the fork was changed in place.
    position: Option<Position>,
    assigned: Variables,
}

impl Turn {
    pub(super) fn to(last: u64, position: Position) -> Turn {
        Turn { last, position: Some(position), assigned: Variables::new() }
    }

    /// The visit continues; only its fork changed.
    pub(super) fn stay(view: View<'_>) -> Turn {
        Turn { last: view.last, position: None, assigned: Variables::new() }
    }
}

impl Execution {
    /// Applies one durable event.
    ///
    /// # Errors
    /// The event does not fit; the execution is unchanged. An event that [`Execution::next`] or an
    /// input proposed always fits, unless another was applied in between.
    pub fn apply(&mut self, event: &Event) -> Result<()> {
        if event.id != self.last_event_id + 1 {
            return Err(ReplayError::Order { last: self.last_event_id, found: event.id });
        }
        let misfit = || ReplayError::Misfit { id: event.id, event_type: event.kind.type_name() };
        self.newest_at = self.newest_at.max(event.timestamp);
        let next = match (&self.phase, &event.kind) {
            (Phase::Ended(outcome, thread), EventKind::ExecutionRedriven { redrive_count })
                if *redrive_count == self.redrives + 1 =>
            {
                let thread = thread.redriven(event, outcome);
                self.redrives += 1;
                self.redriven_at = Some(event.timestamp);
                Phase::Running(thread)
            }
            (Phase::Ended(..), _) => return Err(misfit()),
            (Phase::Before, EventKind::ExecutionStarted { .. }) => {
                // As on AWS, the entry of the first state has no previous event.
                let (machine, input) = (&self.definition.machine, Arc::clone(&self.input));
                Phase::Running(Thread::begin(machine, input, 0, event.timestamp))
            }
            (Phase::Before, _) => return Err(misfit()),
            (Phase::Running(thread), kind) if let Some(outcome) = outcome(kind) => {
                Phase::Ended(outcome, Box::new(thread.clone()))
            }
            (Phase::Running(_), _) => {
                let Phase::Running(mut thread) = std::mem::replace(&mut self.phase, Phase::Before)
                else {
                    unreachable!("it was matched above")
                };
                let folded = self.fold(&mut thread, event);
                self.phase = Phase::Running(thread);
                if !folded? {
                    return Err(misfit());
                }
                self.last_event_id = event.id;
                return Ok(());
            }
        };
        self.phase = next;
        self.last_event_id = event.id;
        Ok(())
    }

    /// Folds an event into a thread or one of its descendants. Returns false, and changes nothing,
    /// if it belongs to none of them.
    pub(super) fn fold(&self, thread: &mut Thread, event: &Event) -> Result<bool> {
        let Thread { machine, item, last, at, variables, position } = thread;
        let turn = match position {
            Position::Between { to, value } => {
                let EventKind::StateEntered { state_type, name, .. } = &event.kind else {
                    return Ok(false);
                };
                let fits = to.as_ref() == Some(name)
                    && event.previous_event_id == *last
                    && machine.states[name].kind.state_type() == *state_type;
                let visit = || Visit::begin(name, event, value);
                fits.then(|| Turn::to(event.id, Position::In(visit(), Stage::Entered)))
            }
            Position::In(visit, stage) => {
                let (state, item) = (&machine.states[&visit.state], item.as_deref());
                let view = View { state, visit, variables, item, last: *last };
                self.turn(view, stage, event)?
            }
        };
        let Some(turn) = turn else { return Ok(false) };
        *last = turn.last;
        *at = event.timestamp;
        if let Some(next) = turn.position {
            *position = next;
        }
        if !turn.assigned.is_empty() {
            Arc::make_mut(variables).extend(turn.assigned);
        }
        Ok(true)
    }

    fn turn(&self, view: View<'_>, stage: &mut Stage, event: &Event) -> Moved {
        if let Stage::Forked(fork) = stage
            && let Some(turn) = self.fold_fork(view, fork, event)?
        {
            return Ok(Some(turn));
        }
        let state_type = view.state.kind.state_type();
        match &event.kind {
            EventKind::StateExited { name, .. }
                if *name == view.visit.state && event.previous_event_id == view.last =>
            {
                return self.leave(view, stage, event);
            }
            EventKind::EvaluationFailed { state, location, failure }
                if *state == view.visit.state =>
            {
                return Ok(self.evaluation_failed(
                    view,
                    stage,
                    event,
                    location.as_deref(),
                    failure,
                ));
            }
            _ => {}
        }
        if event.previous_event_id != view.last {
            return Ok(None);
        }
        let mut visit = view.visit.clone();
        let next = match (&*stage, &event.kind) {
            (Stage::Entered | Stage::Broken(_) | Stage::Failed(_), kind) if begins(view, kind) => {
                let Ok(fork) = self.fork(view, event.timestamp, event.id) else { return Ok(None) };
                Some(Stage::Forked(Box::new(fork)))
            }
            // The failure was counted when it occurred.
            (Stage::Broken(failed), EventKind::ForkFailed(kind)) if *kind == state_type => {
                Some(Stage::Failed(failed.clone()))
            }
            (stage, _) => self.task_stage(view, &mut visit, stage, event)?,
        };
        Ok(next.map(|stage| Turn::to(event.id, Position::In(visit, stage))))
    }

    /// The stage of a task after one of its events; `None` if the event does not fit.
    fn task_stage(
        &self,
        view: View<'_>,
        visit: &mut Visit,
        stage: &Stage,
        event: &Event,
    ) -> Result<Option<Stage>> {
        let json = |text: &str| json(event.id, text);
        Ok(match (stage, &event.kind) {
            (Stage::Entered | Stage::Failed(_), EventKind::TaskScheduled(task)) => {
                let limits = (task.timeout_s, task.heartbeat_s);
                Some(Stage::Open(self.attempt(view, event, json(&task.parameters)?, limits)))
            }
            (
                Stage::Entered | Stage::Failed(_),
                EventKind::LambdaFunctionScheduled { input, timeout_s, .. },
            ) => Some(Stage::Open(self.attempt(view, event, json(input)?, (*timeout_s, None)))),
            (Stage::Open(attempt), EventKind::TaskStarted(_))
                if attempt.call == Call::Scheduled =>
            {
                Some(Stage::Open(Attempt { call: Call::Started, ..attempt.clone() }))
            }
            (Stage::Open(attempt), EventKind::TaskSubmitted(..))
                if attempt.call == Call::Started =>
            {
                Some(Stage::Open(Attempt { call: Call::Submitted, ..attempt.clone() }))
            }
            (Stage::Open(_), EventKind::TaskSucceeded(_, output)) => {
                Some(Stage::Succeeded(Arc::new(json(output)?)))
            }
            (
                Stage::Open(_),
                EventKind::TaskFailed(_, failure) | EventKind::TaskTimedOut(_, failure),
            ) => Some(Stage::Failed(failed(view, visit, event, failure, false))),
            _ => None,
        })
    }

    fn evaluation_failed(
        &self,
        view: View<'_>,
        stage: &Stage,
        event: &Event,
        location: Option<&str>,
        failure: &Failure,
    ) -> Option<Turn> {
        if event.previous_event_id != view.before_evaluation(stage) {
            return None;
        }
        let mut visit = view.visit.clone();
        let forks = matches!(view.state.kind, Kind::Map(_) | Kind::Parallel { .. });
        let running = matches!(stage, Stage::Entered | Stage::Forked(_) | Stage::Broken(_));
        let in_catch = location.is_some_and(|location| location.starts_with("Catch["));
        let while_catching = in_catch && matches!(stage, Stage::Failed(_));
        let mut failed = failed(view, &mut visit, event, failure, while_catching);
        if let Stage::Forked(fork) = stage {
            failed.fork = Some(fork.clone());
        }
        let stage = if forks && running { Stage::Broken(failed) } else { Stage::Failed(failed) };
        Some(Turn::to(event.id, Position::In(visit, stage)))
    }

    fn attempt(
        &self,
        view: View<'_>,
        event: &Event,
        arguments: Value,
        limits: (Option<u64>, Option<u64>),
    ) -> Attempt {
        let waits = matches!(&view.state.kind, Kind::Task(task) if task.resource.waits_for_token());
        let (timeout_s, heartbeat_s) = limits;
        Attempt {
            event_id: event.id,
            scheduled_at: event.timestamp,
            heartbeat_at: event.timestamp,
            arguments: Arc::new(arguments),
            token: waits
                .then(|| token::mint(&self.start.token_seed, &self.start.execution_arn, event.id)),
            timeout_s,
            heartbeat_s,
            call: Call::Scheduled,
        }
    }

    fn leave(&self, view: View<'_>, stage: &Stage, event: &Event) -> Moved {
        let EventKind::StateExited { output, assigned_variables, .. } = &event.kind else {
            return Ok(None);
        };
        let to = match (stage, &view.state.kind, &view.state.next) {
            (Stage::Open(_) | Stage::Forked(_) | Stage::Broken(_), ..)
            | (_, Kind::Fail { .. }, _) => return Ok(None),
            (Stage::Failed(failed), ..) => {
                let error = failed.failure.error.as_deref().unwrap_or_default();
                let matching = |names: &[String]| error_name::matches(names, error);
                let mut catchers = view.state.catch.iter();
                match catchers.find(|catcher| matching(&catcher.error_equals)) {
                    Some(catcher) => Some(catcher.next.clone()),
                    None => return Ok(None),
                }
            }
            (_, Kind::Choice { .. }, _) => match self.chosen(view, event.timestamp) {
                Some(name) => Some(name),
                None => return Ok(None),
            },
            (_, _, Transition::Next(name)) => Some(name.clone()),
            (_, _, Transition::End) => None,
        };
        let value = Arc::new(json(event.id, output)?);
        let mut assigned = Variables::new();
        for (name, text) in assigned_variables {
            assigned.insert(name.clone(), Arc::new(json(event.id, text)?));
        }
        Ok(Some(Turn { last: event.id, position: Some(Position::Between { to, value }), assigned }))
    }
}

/// The outcome that an event gives an execution.
fn outcome(kind: &EventKind) -> Option<Outcome> {
    Some(match kind {
        EventKind::ExecutionSucceeded { output } => Outcome::Succeeded(output.clone()),
        EventKind::ExecutionFailed(failure) => Outcome::Failed(failure.clone()),
        EventKind::ExecutionTimedOut(_) => Outcome::TimedOut,
        EventKind::ExecutionAborted(failure) => Outcome::Aborted(failure.clone()),
        _ => return None,
    })
}

/// Whether an event starts the branches or iterations of a state.
fn begins(view: View<'_>, kind: &EventKind) -> bool {
    match view.state.kind {
        Kind::Parallel { .. } => *kind == EventKind::ParallelStateStarted,
        Kind::Map(_) => matches!(kind, EventKind::MapStateStarted { .. }),
        _ => false,
    }
}

/// Counts a failure for the retrier that matches it.
pub(super) fn count(view: View<'_>, visit: &mut Visit, failure: &Failure) {
    visit.failed += 1;
    if let Some((index, _)) = retrier(view, failure) {
        *visit.failures.entry(index).or_default() += 1;
    }
}

pub(super) fn failed(
    view: View<'_>,
    visit: &mut Visit,
    event: &Event,
    failure: &Failure,
    while_catching: bool,
) -> Failed {
    count(view, visit, failure);
    Failed {
        event_id: event.id,
        failure: failure.clone(),
        at: event.timestamp,
        while_catching,
        fork: None,
    }
}

fn json(id: u64, text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|source| ReplayError::NotJson { id, source })
}
