//! `Map` in distributed mode, with iterations that only compute. They are child executions; the
//! parent's history records only that they ran.
//!
//! All iterations run to completion within one decision, and a replay runs them again with the same
//! result. Iterations that call a task, wait or retry need records of their own. They run like those
//! of a `Map` in inline mode, and their events are in the parent's history, where AWS has a history
//! for each iteration.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::decide::{Result, Step};
use super::fork::{Fork, exceeded};
use super::thread::{Item, View};
use super::{Execution, Next, Outcome, Phase, Start};
use crate::definition::{Definition, Map};
use crate::error_name;
use crate::history::{EventKind, Failure};
use crate::time::Timestamp;
use crate::token;

/// Most events of all iterations of one run together, so that a decision ends.
pub const RUN_EVENTS_MAX: u64 = 100_000;

/// The result of each iteration; `None` for a tolerated failure.
pub(super) type Results = Arc<Vec<Option<Arc<Value>>>>;

/// Progress of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    pub(super) started: bool,
    pub(super) ended: bool,
    /// It failed, and a redriven execution is to run it again.
    pub(super) redriven: bool,
    /// Cached for the event that the result decides.
    pub(super) outcome: Arc<OnceLock<std::result::Result<Results, Failure>>>,
}

impl Execution {
    pub(super) fn run_distributed(
        &self,
        view: View<'_>,
        map: &Map,
        fork: &Fork,
        run: &Run,
        now: Timestamp,
    ) -> Result<Step> {
        let kind = if run.redriven {
            let map_run_arn = self.map_run_arn(view);
            EventKind::MapRunRedriven { map_run_arn, redrive_count: self.redrives }
        } else if !run.started {
            EventKind::MapRunStarted { map_run_arn: self.map_run_arn(view) }
        } else {
            match self.run_outcome(view, map, fork, run, now) {
                Ok(_) => EventKind::MapRunSucceeded,
                Err(failure) => EventKind::MapRunFailed(failure),
            }
        };
        Ok(Step::Record { previous_event_id: fork.last, kind })
    }

    /// The result of each iteration.
    pub(super) fn run_outcome(
        &self,
        view: View<'_>,
        map: &Map,
        fork: &Fork,
        run: &Run,
        now: Timestamp,
    ) -> std::result::Result<Results, Failure> {
        let outcome = run.outcome.get_or_init(|| {
            let (mut results, mut failed) = (Vec::with_capacity(fork.items.len()), 0);
            let mut events_left = RUN_EVENTS_MAX;
            for (index, value) in fork.items.iter().enumerate() {
                let item = Item { index, value: value.clone() };
                match self.run_child(view, map, &item, now, &mut events_left) {
                    Ok(output) => results.push(Some(Arc::new(output))),
                    Err(failure) => {
                        failed += 1;
                        results.push(None);
                        if failed > fork.tolerated() {
                            return Err(exceeded(fork.tolerated(), failure));
                        }
                    }
                }
            }
            Ok(Arc::new(results))
        });
        outcome.clone()
    }

    fn run_child(
        &self,
        view: View<'_>,
        map: &Map,
        item: &Item,
        now: Timestamp,
        events_left: &mut u64,
    ) -> std::result::Result<Value, Failure> {
        let input = self.iteration_input(view, map, item, now).map_err(|_| {
            let cause = "The field 'ItemSelector' could not be evaluated.".to_owned();
            Failure::new(error_name::RUNTIME, Some(cause))
        })?;
        let whole = &self.start;
        let start = Start {
            execution_arn: format!("{}:{}", self.map_run_arn(view), item.index),
            execution_name: item.index.to_string(),
            role_arn: whole.role_arn.clone(),
            state_machine_arn: whole.state_machine_arn.clone(),
            state_machine_name: whole.state_machine_name.clone(),
            input: input.to_string(),
            started_at: now,
            token_seed: whole.token_seed.clone(),
        };
        let machine = Arc::clone(&map.processor);
        let mut child = Execution {
            definition: Arc::new(Definition { machine, timeout_s: None }),
            start: Arc::new(start),
            input: Arc::new(input),
            last_event_id: 0,
            newest_at: now,
            wall_ahead_ms: self.wall_ahead_ms,
            redrives: 0,
            redriven_at: None,
            phase: Phase::Before,
        };
        loop {
            match child.next(now) {
                Next::Record(events) => {
                    *events_left = events_left.saturating_sub(events.len() as u64);
                    if *events_left == 0 {
                        let cause = format!(
                            "The iterations of a Map in distributed mode had more than {RUN_EVENTS_MAX} events."
                        );
                        return Err(Failure::new(error_name::RUNTIME, Some(cause)));
                    }
                    for event in &events {
                        child.apply(event).expect("what is decided at a position fits it");
                    }
                }
                Next::Done(Outcome::Succeeded(output)) => {
                    return Ok(serde_json::from_str(&output).expect("an output is JSON"));
                }
                Next::Done(Outcome::Failed(failure) | Outcome::Aborted(failure)) => {
                    return Err(failure);
                }
                Next::Done(Outcome::TimedOut) => {
                    return Err(Failure::new(error_name::TIMEOUT, None));
                }
                Next::RunTasks { .. } | Next::WaitUntil(_) => {
                    let cause =
                        "An iteration of a Map in distributed mode that only computes did not end.";
                    return Err(Failure::new(error_name::RUNTIME, Some(cause.to_owned())));
                }
            }
        }
    }

    fn map_run_arn(&self, view: View<'_>) -> String {
        let start = &self.start;
        let event = view.visit.entered_event_id.to_string();
        let code = token::digest(&[&start.token_seed, &start.execution_arn, "map run", &event]);
        let machine = start.state_machine_arn.replacen(":stateMachine:", ":mapRun:", 1);
        format!("{machine}/{}:{}", view.visit.state, hex::encode(&code[..16]))
    }
}
