//! Tests every crash point of an agent: runs its session once without faults, then once for each
//! write and each way in which that write can fail.
//!
//! [`crash_points`] works for any new agent or tool. It finds the writes in the log of the first
//! run, whichever component makes them: state machine, invoker, agent, poller or person.

use std::collections::BTreeMap;
use std::fmt;

use journal::key;
use journal::step::StepBody;
use serde_json::Value;

use crate::backing_store::BackingStore;
use crate::effects;
use crate::faults::Faults;
use crate::scenario::Scenario;
use crate::session::{Report, Staged};
use crate::table::{Write, read_step};
use crate::world::Setup;

/// How a write fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The process dies before the write.
    DiesBefore,
    /// The process dies after the write, before the reply.
    DiesAfter,
    /// The write succeeds, but its result is reported as unknown.
    ReplyLost,
    /// The write fails, and its result is reported as unknown.
    Lost,
}

impl Mode {
    pub const ALL: [Self; 4] = [Self::DiesBefore, Self::DiesAfter, Self::ReplyLost, Self::Lost];
}

/// A write, and how it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Index of the write among all attempts, from 0.
    pub write: usize,
    pub mode: Mode,
}

/// The only fault of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    Write(Point),
    /// The state machine's process dies after this many additions to its history, and resumes from
    /// it.
    Restart {
        after: usize,
    },
}

/// The result of all runs of a scenario.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The run without faults.
    pub undisturbed: Report,
    /// Number of runs with a fault.
    pub runs: usize,
    /// Violations, each with its run.
    pub broken: Vec<String>,
}

/// Runs a scenario's session once without faults, then once for each write and [`Mode`] and each
/// addition to the execution's history. `open` gives each run a store of its own.
///
/// All writes of steps are tested, because steps decide. Of the others every `nth` is; 1 means all.
/// There are four modes, so an odd number covers each of them.
///
/// Each run must reach the verdict of the run without faults, and its result according to the
/// scenario's view. It must satisfy [`crate::check`]. It must make no tool call whose outcome was
/// journaled, no mutating call twice, and every call of the run without faults.
///
/// # Panics
/// No runtime can be started.
pub fn crash_points(
    scenario: &Scenario,
    nth: usize,
    open: &mut dyn FnMut() -> BackingStore,
) -> Outcome {
    disturbed(scenario, open, |undisturbed| disturbances(undisturbed, nth))
}

/// Like [`crash_points`], but tests only every `nth` of all writes, including steps: for a long
/// session on a slow store, in addition to all of them on a fast one.
///
/// # Panics
/// No runtime can be started.
pub fn sampled_crash_points(
    scenario: &Scenario,
    nth: usize,
    open: &mut dyn FnMut() -> BackingStore,
) -> Outcome {
    let sample = |undisturbed: &Report| {
        disturbances(undisturbed, 1).into_iter().step_by(nth.max(1)).collect()
    };
    disturbed(scenario, open, sample)
}

fn disturbed(
    scenario: &Scenario,
    open: &mut dyn FnMut() -> BackingStore,
    disturbances: impl Fn(&Report) -> Vec<Disturbance>,
) -> Outcome {
    let undisturbed = simulate(staged(scenario, open(), None));
    let mut outcome = Outcome { broken: undisturbed.broken.clone(), undisturbed, runs: 0 };
    for disturbance in disturbances(&outcome.undisturbed) {
        let report = simulate(staged(scenario, open(), Some(disturbance)));
        outcome.add(scenario, &Named(&outcome.undisturbed, disturbance).to_string(), &report);
    }
    outcome
}

fn staged(
    scenario: &Scenario,
    backing_store: BackingStore,
    disturbance: Option<Disturbance>,
) -> Staged {
    let setup = Setup::new(SEED, Faults::NONE, scenario.clone());
    Staged::new(Setup { backing_store, disturbance, ..setup })
}

/// Decides the duration of operations; nothing else is random here.
pub(crate) const SEED: u64 = 1;

/// Runs a session on a runtime with simulated time.
pub(crate) fn simulate(staged: Staged) -> Report {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.unwrap_or_else(|error| panic!("a runtime starts: {error}"));
    runtime.block_on(staged.run())
}

fn disturbances(undisturbed: &Report, nth: usize) -> Vec<Disturbance> {
    let points = |write: &Write| {
        Mode::ALL.map(|mode| Disturbance::Write(Point { write: write.number, mode }))
    };
    let (steps, others): (Vec<&Write>, Vec<&Write>) =
        undisturbed.log.iter().partition(|write| write.item.sk.starts_with(key::STEP_PREFIX));
    let recorded = undisturbed.executions.iter().map(|ended| ended.recorded).max().unwrap_or(0);
    let restarts = (1..=recorded).map(|after| Disturbance::Restart { after });
    let others = others.into_iter().flat_map(points).chain(restarts);
    steps.into_iter().flat_map(points).chain(others.step_by(nth.max(1))).collect()
}

impl Outcome {
    /// Adds the violations of a run.
    pub(crate) fn add(&mut self, scenario: &Scenario, name: &str, report: &Report) {
        self.runs += 1;
        let mut broken = report.broken.clone();
        if report.verdict != self.undisturbed.verdict {
            let (came, other) = (report.verdict, self.undisturbed.verdict);
            broken.push(format!("the verdict is {came:?}, without faults {other:?}"));
        }
        let view = |report| result(report).map(|result| (scenario.view)(&result));
        let (came, other) = (view(report), view(&self.undisturbed));
        if came != other {
            broken.push(format!("the result is {came:?}, without faults {other:?}"));
        }
        let counts = effects::counts(report);
        for (call, least) in effects::counts(&self.undisturbed) {
            // A fault repeats at most one call.
            let most = least + 1;
            let count = counts.get(&call).copied().unwrap_or(0);
            if !(least..=most).contains(&count) {
                broken.push(format!("{call} was performed {count} times, without faults {least}"));
            }
        }
        if !broken.is_empty() {
            self.broken.push(format!("{name}: {}", broken.join("; ")));
        }
    }

    /// Number of calls in the run without faults.
    pub fn calls(&self) -> BTreeMap<String, usize> {
        effects::counts(&self.undisturbed)
    }
}

/// The result in a session's end.
fn result(report: &Report) -> Option<Value> {
    let mut ends = report.items.iter().filter(|item| item.text_opt("Kind") == Some("end"));
    let end = ends.next_back().and_then(|item| read_step(item).ok())?;
    match end.body {
        StepBody::End { payload, .. } => Some(payload),
        _ => None,
    }
}

/// Describes a run's fault for debugging.
struct Named<'a>(&'a Report, Disturbance);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let point = match self.1 {
            Disturbance::Restart { after } => return write!(f, "restart after {after}"),
            Disturbance::Write(point) => point,
        };
        write!(f, "write {} {:?}", point.write, point.mode)?;
        let Some(write) = self.0.log.iter().find(|write| write.number == point.write) else {
            return Ok(());
        };
        let what = write.item.text_opt("Kind").or(write.item.text_opt("Status"));
        write!(f, " ({}, {} {})", write.process, write.item.sk, what.unwrap_or_default())
    }
}
