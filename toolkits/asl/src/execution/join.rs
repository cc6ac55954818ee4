//! Folds the events of a `Parallel` or `Map` and of its threads.

use std::sync::Arc;

use super::Execution;
use super::decide::Step;
use super::distributed::Run;
use super::fold::{Moved, Turn, count, failed};
use super::fork::Fork;
use super::thread::{Failed, Item, Position, Stage, Thread, View};
use crate::definition::{Kind, Map, StateType};
use crate::history::{Event, EventKind, Failure, Moment};

impl Execution {
    pub(super) fn fold_fork(&self, view: View<'_>, fork: &mut Fork, event: &Event) -> Moved {
        let turn = match (&view.state.kind, &event.kind) {
            (Kind::Map(map), EventKind::MapIteration { moment, name, index })
                if *name == view.visit.state =>
            {
                let index = usize::try_from(*index).unwrap_or(usize::MAX);
                match moment {
                    Moment::Started => self.begin_iteration(view, map, fork, event, index),
                    _ => self.end_iteration(view, fork, event, index),
                }
            }
            (Kind::Map(map), _) if fork.run.is_some() && event.previous_event_id == fork.last => {
                self.fold_run(view, map, fork, event)
            }
            (Kind::Parallel { .. }, EventKind::ForkFailed(_) | EventKind::ParallelStateStarted) => {
                self.branch_failed(view, fork, event)
            }
            _ => None,
        };
        if turn.is_some() {
            return Ok(turn);
        }
        let over = EventKind::ForkSucceeded(view.state.kind.state_type());
        if event.kind == over
            && event.previous_event_id == fork.last
            && fork.ended == fork.results.len()
        {
            let stage = Stage::Succeeded(Arc::new(fork.output()));
            return Ok(Some(Turn::to(fork.last, Position::In(view.visit.clone(), stage))));
        }
        self.fold_threads(view, fork, event)
    }

    fn begin_iteration(
        &self,
        view: View<'_>,
        map: &Map,
        fork: &mut Fork,
        event: &Event,
        index: usize,
    ) -> Option<Turn> {
        if index != fork.begun || fork.free.front() != Some(&event.previous_event_id) {
            return None;
        }
        let item = Item { index, value: fork.items.get(index)?.clone() };
        if fork.run.as_ref().is_some_and(|run| run.arn.is_some()) {
            return None;
        }
        let input = self.iteration_input(view, map, &item, event.timestamp).ok()?;
        // A distributed `Map` whose iterations are in this history.
        fork.run = None;
        let mut thread = Thread::begin(&map.processor, Arc::new(input), event.id, event.timestamp);
        if !map.distributed {
            thread.variables = Arc::clone(view.variables);
        }
        thread.item = Some(Arc::new(item));
        fork.free.pop_front();
        fork.begun += 1;
        fork.running.insert(index, Arc::new(thread));
        Some(Turn::stay(view))
    }

    fn end_iteration(
        &self,
        view: View<'_>,
        fork: &mut Fork,
        event: &Event,
        index: usize,
    ) -> Option<Turn> {
        let EventKind::MapIteration { moment, .. } = &event.kind else { return None };
        let thread = Arc::clone(fork.running.get(&index)?);
        if thread.last != event.previous_event_id {
            return None;
        }
        match (moment, self.step(&thread, event.timestamp)) {
            (Moment::Succeeded, Step::Finish(value)) => fork.succeed(index, &value),
            (Moment::Failed, Step::Fail(failure)) => {
                if let Some(failure) = fork.fail(index, failure) {
                    return Some(broken(view, event, &failure, thread.last, fork));
                }
            }
            _ => return None,
        }
        fork.last = event.id;
        match fork.waiting.pop_first() {
            Some((index, thread)) => _ = fork.running.insert(index, thread),
            None => fork.free.push_back(thread.last),
        }
        Some(Turn::stay(view))
    }

    fn fold_run(&self, view: View<'_>, map: &Map, fork: &mut Fork, event: &Event) -> Option<Turn> {
        let run = fork.run.clone()?;
        fork.run = Some(match &event.kind {
            EventKind::MapRunStarted { map_run_arn } if run.arn.is_none() => {
                let arn = Some(map_run_arn.as_str().into());
                Run { arn, event_id: event.id, ..run }
            }
            EventKind::MapRunRedriven { .. } if run.redriven => {
                Run { redriven: false, was_redriven: true, event_id: event.id, ..run }
            }
            EventKind::MapRunSucceeded { output: Some(output) } if run.arn.is_some() => {
                fork.results = Arc::default();
                let output = Some(Arc::new(serde_json::from_str(output).ok()?));
                Run { output, ended: true, ..run }
            }
            EventKind::MapRunSucceeded { output: None } if run.arn.is_some() => {
                let results = self.run_outcome(view, map, fork, &run, event.timestamp).ok()?;
                fork.ended = results.len();
                fork.results = results;
                Run { ended: true, ..run }
            }
            EventKind::MapRunFailed(failure) if run.arn.is_some() => {
                return Some(broken(view, event, failure, event.id, fork));
            }
            _ => return None,
        });
        fork.last = event.id;
        Some(Turn::stay(view))
    }

    fn fold_threads(&self, view: View<'_>, fork: &mut Fork, event: &Event) -> Moved {
        let indexes: Vec<usize> = fork.running.keys().copied().collect();
        for index in indexes {
            let Some(thread) = fork.running.get_mut(&index) else { continue };
            if !thread.expects(event) || !self.fold(Arc::make_mut(thread), event)? {
                continue;
            }
            // The end of a branch has no event of its own.
            let branch = matches!(view.state.kind, Kind::Parallel { .. });
            if let (true, Position::Between { to: None, value }) = (branch, &thread.position) {
                let value = Arc::clone(value);
                fork.succeed(index, &value);
                fork.last = event.id;
            }
            return Ok(Some(Turn::stay(view)));
        }
        Ok(None)
    }

    /// A branch has failed. That has no event of its own: the fork fails or retries.
    fn branch_failed(&self, view: View<'_>, fork: &Fork, event: &Event) -> Option<Turn> {
        let failed = fork.in_turn().into_iter().find_map(|(_, thread)| {
            let ours = thread.last == event.previous_event_id;
            match ours.then(|| self.step(thread, event.timestamp))? {
                Step::Fail(failure) => Some(thread.failed(failure)),
                _ => None,
            }
        })?;
        let mut visit = view.visit.clone();
        count(view, &mut visit, &failed.failure);
        let stage = match event.kind {
            EventKind::ForkFailed(StateType::Parallel) => {
                Stage::Failed(Failed { fork: Some(Box::new(fork.clone())), ..failed })
            }
            EventKind::ParallelStateStarted => {
                Stage::Forked(Box::new(self.fork(view, event.timestamp, event.id).ok()?))
            }
            _ => return None,
        };
        Some(Turn::to(event.id, Position::In(visit, stage)))
    }
}

impl Thread {
    /// Whether an event may belong to this thread or a descendant, judging by its
    /// `previousEventId`.
    fn expects(&self, event: &Event) -> bool {
        match &self.position {
            Position::In(_, Stage::Forked(_)) => true,
            Position::In(visit, Stage::Entered) => {
                [self.last, visit.previous_event_id].contains(&event.previous_event_id)
            }
            _ => self.last == event.previous_event_id,
        }
    }
}

/// The fork has failed; `last` is the `previousEventId` of the next event.
fn broken(view: View<'_>, event: &Event, failure: &Failure, last: u64, fork: &Fork) -> Turn {
    let mut visit = view.visit.clone();
    let failed = failed(view, &mut visit, event, failure, false);
    let failed = Failed { fork: Some(Box::new(fork.clone())), ..failed };
    Turn::to(last, Position::In(visit, Stage::Broken(failed)))
}
