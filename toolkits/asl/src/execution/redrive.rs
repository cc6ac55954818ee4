//! `RedriveExecution`: an execution that ended without success continues from the states that did.
//!
//! Results of states, branches and iterations that succeeded are kept. A task is scheduled again, a `Wait`
//! waits again, a `Fail` is entered again, and retries count from zero. AWS documents this by state; the
//! order of events is assumed: the redrive names the event that ended the execution, the next event of the
//! machine names the redrive, and branches and iterations go on after their own last event.

use std::sync::Arc;

use super::distributed::Run;
use super::fork::Fork;
use super::thread::{Failed, Position, Stage, Thread, Visit};
use super::{Execution, Outcome, Phase};
use crate::definition::Kind;
use crate::error_name;
use crate::history::{Event, EventKind};
use crate::time::Timestamp;

/// A history of this many events cannot be redriven.
///
/// Source: AWS, "Restarting state machine executions with redrive", eligibility.
pub const REDRIVE_EVENTS_MAX: u64 = 24_999;

/// An execution cannot be redriven; worded as the `redriveStatusReason` of `DescribeExecution`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRedrivable {
    #[error("Execution is RUNNING and cannot be redriven")]
    Running,
    #[error("Execution is SUCCEEDED and cannot be redriven")]
    Succeeded,
    #[error("Execution history event limit exceeded")]
    HistoryFull,
}

impl Execution {
    /// `RedriveExecution`.
    ///
    /// # Errors
    /// The execution has not ended, has succeeded, or has too many events.
    pub fn redrive(&self, now: Timestamp) -> Result<Event, NotRedrivable> {
        match &self.phase {
            Phase::Before | Phase::Running(_) => return Err(NotRedrivable::Running),
            Phase::Ended(Outcome::Succeeded(_), _) => return Err(NotRedrivable::Succeeded),
            Phase::Ended(..) if self.last_event_id >= REDRIVE_EVENTS_MAX => {
                return Err(NotRedrivable::HistoryFull);
            }
            Phase::Ended(..) => {}
        }
        let kind = EventKind::ExecutionRedriven { redrive_count: self.redrives + 1 };
        let (id, previous_event_id) = (self.last_event_id + 1, self.last_event_id);
        Ok(Event { id, previous_event_id, timestamp: now, kind })
    }
}

impl Thread {
    /// The machine's thread as the event redrives it.
    pub(super) fn redriven(&self, event: &Event, outcome: &Outcome) -> Thread {
        let mut thread = self.clone();
        thread.last = event.id;
        let too_large = matches!(outcome, Outcome::Failed(failure) if is_too_large(failure));
        thread.redrive(event, too_large);
        thread
    }

    fn redrive(&mut self, event: &Event, too_large: bool) {
        self.at = event.timestamp;
        let Position::In(visit, stage) = &mut self.position else { return };
        let kind = &self.machine.states[&visit.state].kind;
        match kind {
            Kind::Fail { .. } => {
                let (to, value) = (Some(visit.state.clone()), Arc::clone(&visit.input));
                self.position = Position::Between { to, value };
                return;
            }
            Kind::Parallel { .. } | Kind::Map(_) => *stage = fork_stage(stage, event, too_large),
            Kind::Wait(_) => {
                visit.entered_at = event.timestamp;
                *stage = Stage::Entered;
            }
            _ => *stage = Stage::Entered,
        }
        reset(visit, self.last);
    }
}

/// The state begins anew: its retries count from zero, and a failing expression names the newest event.
fn reset(visit: &mut Visit, last: u64) {
    visit.previous_event_id = last;
    visit.failures.clear();
    visit.failed = 0;
}

/// A `Parallel` or `Map` continues the branches or iterations that did not succeed. If its data were too
/// large, all of them begin again.
fn fork_stage(stage: &Stage, event: &Event, too_large: bool) -> Stage {
    let fork = match stage {
        Stage::Succeeded(result) if !too_large => return Stage::Succeeded(Arc::clone(result)),
        Stage::Forked(fork) => Some(fork),
        Stage::Broken(Failed { failure, fork, .. })
        | Stage::Failed(Failed { failure, fork, .. })
            if !is_too_large(failure) =>
        {
            fork.as_ref()
        }
        _ => None,
    };
    match fork.filter(|fork| fork.tolerated.is_ok()) {
        Some(fork) => Stage::Forked(Box::new(fork.redriven(event))),
        None => Stage::Entered,
    }
}

fn is_too_large(failure: &crate::history::Failure) -> bool {
    failure.error.as_deref() == Some(error_name::DATA_LIMIT_EXCEEDED)
}

impl Fork {
    fn redriven(&self, event: &Event) -> Fork {
        let mut fork = self.clone();
        fork.last = event.id;
        fork.ended -= fork.failed.len();
        let mut threads = std::mem::take(&mut fork.failed);
        threads.append(&mut fork.running);
        for thread in threads.values_mut() {
            Arc::make_mut(thread).redrive(event, false);
        }
        threads.append(&mut fork.waiting);
        for (index, thread) in threads {
            let running = fork.running.len() < fork.slots;
            let to = if running { &mut fork.running } else { &mut fork.waiting };
            to.insert(index, thread);
        }
        let left = fork.results.len() - fork.begun.min(fork.results.len());
        let free = fork.slots.saturating_sub(fork.running.len()).min(left);
        fork.free = vec![event.id; if fork.items.is_empty() { 0 } else { free }].into();
        if let Some(run) = fork.run.as_mut().filter(|run| run.arn.is_some()) {
            *run = Run { arn: run.arn.clone(), redriven: true, ..Run::default() };
        }
        fork
    }
}
