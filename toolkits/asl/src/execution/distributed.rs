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
use super::fork::{Fork, exceeded_of_run};
use super::thread::{Item, View};
use super::{Execution, Next, Outcome, Phase, Start};
use crate::definition::{Definition, Map, SECONDS_MAX};
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
    /// Set once it has started.
    pub(super) arn: Option<Arc<str>>,
    /// The event that started it, or the newest redrive.
    pub(super) event_id: u64,
    pub(super) ended: bool,
    /// The state's result, if the iterations were executions of their own.
    pub(super) output: Option<Arc<Value>>,
    /// It failed, and a redriven execution is to run it again.
    pub(super) redriven: bool,
    pub(super) was_redriven: bool,
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
        let kind = match &run.arn {
            Some(arn) if run.redriven => {
                let redrive_count = self.redrives;
                EventKind::MapRunRedriven { map_run_arn: arn.to_string(), redrive_count }
            }
            None => EventKind::MapRunStarted { map_run_arn: self.map_run_arn(view, map, fork) },
            // Its iterations run as executions of their own until the caller says how they ended.
            Some(_) if self.has_children => {
                return Ok(Step::Wait(self.start.started_at.plus_seconds(SECONDS_MAX)));
            }
            Some(_) => match self.run_outcome(view, map, fork, run, now) {
                Ok(_) => EventKind::MapRunSucceeded { output: None },
                Err(failure) => EventKind::MapRunFailed(failure),
            },
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
                let arn = run.arn.as_deref().unwrap_or_default();
                match self.run_child(view, map, arn, &item, now, &mut events_left) {
                    Ok(output) => results.push(Some(Arc::new(output))),
                    // A bug of this engine is none of an iteration.
                    Err(failure) if events_left == 0 => return Err(failure),
                    Err(_) => {
                        failed += 1;
                        results.push(None);
                        if failed > fork.tolerated() {
                            return Err(exceeded_of_run());
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
        arn: &str,
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
            execution_arn: format!("{arn}:{}", item.index),
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
            has_children: false,
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

    fn map_run_arn(&self, view: View<'_>, map: &Map, fork: &Fork) -> String {
        let start = &self.start;
        let event = fork.last.to_string();
        let label = label(view, map);
        let code = token::digest(&[&start.token_seed, &start.execution_arn, "map run", &event]);
        let machine = start.state_machine_arn.replacen(":stateMachine:", ":mapRun:", 1);
        format!("{machine}/{label}:{}", uuid(&code))
    }
}

/// Longest label, in characters.
///
/// Source: AWS, "Using Map state in Distributed mode", `Label`.
const LABEL_CHARS_MAX: usize = 40;

/// `Label`, or what an ARN can hold of the state's name.
pub(super) fn label(view: View<'_>, map: &Map) -> String {
    let text = map.label.as_deref().unwrap_or(&view.visit.state);
    let kept = text.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c));
    let label: String = kept.take(LABEL_CHARS_MAX).collect();
    if label.is_empty() { "map".to_owned() } else { label }
}

/// A UUID's spelling of random bytes.
fn uuid(bytes: &[u8]) -> String {
    let text = hex::encode(&bytes[..16]);
    [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-")
}
