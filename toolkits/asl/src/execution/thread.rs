//! A thread of an execution: the machine itself, a branch, or an iteration.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::fork::Fork;
use crate::definition::{Machine, State};
use crate::expression::Variables;
use crate::history::{Event, Failure};
use crate::time::Timestamp;

#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) machine: Arc<Machine>,
    /// The item of an iteration.
    pub(super) item: Option<Arc<Item>>,
    /// `previousEventId` of its next event.
    pub(super) last: u64,
    /// Time of its newest event.
    pub(super) at: Timestamp,
    pub(super) variables: Arc<Variables>,
    pub(super) position: Position,
}

#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) index: usize,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Position {
    /// Between two states, with the value for the next state or the machine's output.
    Between {
        to: Option<String>,
        value: Arc<Value>,
    },
    In(Visit, Stage),
}

/// One visit to a state.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) state: String,
    pub(super) entered_event_id: u64,
    pub(super) previous_event_id: u64,
    pub(super) entered_at: Timestamp,
    pub(super) input: Arc<Value>,
    /// Failures so far, by matching retrier.
    pub(super) failures: BTreeMap<usize, u64>,
    /// All failures so far: `State.RetryCount` of the next attempt.
    pub(super) failed: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Stage {
    Entered,
    Open(Attempt),
    Forked(Box<Fork>),
    Succeeded(Arc<Value>),
    /// A `Parallel` or `Map` has failed and has neither recorded it nor been retried yet.
    Broken(Failed),
    Failed(Failed),
}

#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) event_id: u64,
    pub(super) scheduled_at: Timestamp,
    pub(super) heartbeat_at: Timestamp,
    pub(super) arguments: Arc<Value>,
    pub(super) token: Option<String>,
    pub(super) timeout_s: Option<u64>,
    pub(super) heartbeat_s: Option<u64>,
    pub(super) call: Call,
}

/// Progress of an attempt's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Scheduled,
    Started,
    /// The call returned; the task now waits for its callback.
    Submitted,
}

#[derive(Clone, Debug)]
pub(super) struct Failed {
    pub(super) event_id: u64,
    pub(super) failure: Failure,
    pub(super) at: Timestamp,
    /// The error occurred while catching another, so it cannot be caught.
    pub(super) while_catching: bool,
    /// The branches or iterations of a `Parallel` or `Map` that failed, which a redrive continues.
    pub(super) fork: Option<Box<Fork>>,
}

/// The data available to evaluations in a state.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) state: &'a State,
    pub(super) visit: &'a Visit,
    pub(super) variables: &'a Arc<Variables>,
    pub(super) item: Option<&'a Item>,
    pub(super) last: u64,
}

impl View<'_> {
    /// `previousEventId` of an expression's failure in this stage.
    ///
    /// AWS decides a state's entry and the start of its first iterations at once. A failure in that
    /// decision names the event before it, not the entry or the start. Recorded for a state that
    /// fails after its entry; assumed for a `Map` that fails after its start.
    pub(super) fn before_evaluation(&self, stage: &Stage) -> u64 {
        match stage {
            Stage::Entered => self.visit.previous_event_id,
            Stage::Forked(fork) if self.visit.failed == 0 && fork.begun == 0 => {
                self.visit.previous_event_id
            }
            _ => self.last,
        }
    }
}

impl Thread {
    pub(super) fn begin(
        machine: &Arc<Machine>,
        value: Arc<Value>,
        last: u64,
        at: Timestamp,
    ) -> Thread {
        Thread {
            machine: Arc::clone(machine),
            item: None,
            last,
            at,
            variables: Arc::default(),
            position: Position::Between { to: Some(machine.start_at.clone()), value },
        }
    }

    pub(super) fn state_name(&self) -> Option<&str> {
        match &self.position {
            Position::In(visit, _) => Some(&visit.state),
            Position::Between { .. } => None,
        }
    }

    pub(super) fn attempt(&self) -> Option<&Attempt> {
        match &self.position {
            Position::In(_, Stage::Open(attempt)) => Some(attempt),
            _ => None,
        }
    }

    /// The data available to evaluations in the visit.
    pub(super) fn view<'a>(&'a self, visit: &'a Visit) -> View<'a> {
        let (state, item) = (&self.machine.states[&visit.state], self.item.as_deref());
        View { state, visit, variables: &self.variables, item, last: self.last }
    }

    /// Visits this thread and its descendants, outermost first.
    pub(super) fn visit_all<'a>(&'a self, visit: &mut dyn FnMut(&'a Thread)) {
        visit(self);
        if let Position::In(_, Stage::Forked(fork)) = &self.position {
            fork.running.values().for_each(|thread| thread.visit_all(visit));
        }
    }

    /// Changes the open attempt that an event scheduled.
    pub(super) fn change_attempt(&mut self, event_id: u64, change: &mut dyn FnMut(&mut Attempt)) {
        match &mut self.position {
            Position::In(_, Stage::Open(attempt)) if attempt.event_id == event_id => {
                change(attempt)
            }
            Position::In(_, Stage::Forked(fork)) => {
                for thread in fork.running.values_mut() {
                    Arc::make_mut(thread).change_attempt(event_id, change);
                }
            }
            _ => {}
        }
    }
}

impl Visit {
    pub(super) fn begin(state: &str, event: &Event, input: &Arc<Value>) -> Visit {
        Visit {
            state: state.to_owned(),
            entered_event_id: event.id,
            previous_event_id: event.previous_event_id,
            entered_at: event.timestamp,
            input: Arc::clone(input),
            failures: BTreeMap::new(),
            failed: 0,
        }
    }
}
