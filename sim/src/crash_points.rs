//! Every crash point of any agent: its session is run once undisturbed, and then once for each
//! write and each way in which that write can go wrong.
//!
//! [`crash_points`] is what a new agent or tool gets for free. It finds the points by itself, in the
//! log of the undisturbed run, whoever writes there: state machine, invoker, agent, poller, person.

use std::collections::BTreeMap;
use std::fmt;

use journal::key;
use journal::step::StepBody;
use serde_json::Value;

use crate::beneath::Beneath;
use crate::effects;
use crate::faults::Faults;
use crate::scenario::Scenario;
use crate::session::{Report, Staged};
use crate::table::{Write, read_step};
use crate::world::Setup;

/// How one write goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Its process dies before it lands.
    DiesBefore,
    /// It lands, and its process dies before it learns so.
    DiesAfter,
    /// It lands, and its process is told that nobody knows.
    ReplyLost,
    /// It does not land, and its process is told that nobody knows.
    Lost,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::DiesBefore, Self::DiesAfter, Self::ReplyLost, Self::Lost];
}

/// A write, and how it goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Which of all writes that are tried, from 0.
    pub write: usize,
    /// How it goes wrong.
    pub mode: Mode,
}

/// The one thing that goes wrong in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// A write.
    Write(Point),
    /// The state machine's process dies after so many additions to its history, and goes on from
    /// there.
    Restart {
        /// How many.
        after: usize,
    },
}

/// What became of all runs of a scenario.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The run that nothing disturbed.
    pub undisturbed: Report,
    /// How many others there were.
    pub runs: usize,
    /// What did not hold, each with the run in which it did not.
    pub broken: Vec<String>,
}

/// Runs a scenario's session once undisturbed, and once for each write and [`Mode`] and each
/// addition to the execution's history. `open` gives each run a store of its own.
///
/// Steps decide, so all of theirs are gone through. Of the others, only each `nth` is, 1 being all;
/// as there are four modes, an odd number leaves some of each.
///
/// Each run must come to the undisturbed one's verdict and to its result, as the scenario views it;
/// hold what [`crate::check`] says; and perform no tool call whose outcome was journaled, none that
/// changes the world more than once, and each that the undisturbed one performed.
///
/// # Panics
/// When no runtime can be started.
pub fn crash_points(scenario: &Scenario, nth: usize, open: &mut dyn FnMut() -> Beneath) -> Outcome {
    disturbed(scenario, open, |undisturbed| disturbances(undisturbed, nth))
}

/// As [`crash_points`], but of all points, those of the steps too, only each `nth` is gone through:
/// for a long session on a slow store, beside all of them on a fast one.
///
/// # Panics
/// When no runtime can be started.
pub fn sampled_crash_points(
    scenario: &Scenario,
    nth: usize,
    open: &mut dyn FnMut() -> Beneath,
) -> Outcome {
    let sample = |undisturbed: &Report| {
        disturbances(undisturbed, 1).into_iter().step_by(nth.max(1)).collect()
    };
    disturbed(scenario, open, sample)
}

fn disturbed(
    scenario: &Scenario,
    open: &mut dyn FnMut() -> Beneath,
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

fn staged(scenario: &Scenario, beneath: Beneath, disturbance: Option<Disturbance>) -> Staged {
    let setup = Setup::new(SEED, Faults::NONE, scenario.clone());
    Staged::new(Setup { beneath, disturbance, ..setup })
}

/// Decides how long things take; nothing else is left to chance here.
pub(crate) const SEED: u64 = 1;

/// Runs a session on a runtime whose time is simulated.
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
    /// Adds what does not hold of a run.
    pub(crate) fn add(&mut self, scenario: &Scenario, name: &str, report: &Report) {
        self.runs += 1;
        let mut broken = report.broken.clone();
        if report.verdict != self.undisturbed.verdict {
            let (came, other) = (report.verdict, self.undisturbed.verdict);
            broken.push(format!("the verdict is {came:?}, undisturbed {other:?}"));
        }
        let view = |report| result(report).map(|result| (scenario.view)(&result));
        let (came, other) = (view(report), view(&self.undisturbed));
        if came != other {
            broken.push(format!("the result is {came:?}, undisturbed {other:?}"));
        }
        let counts = effects::counts(report);
        for (call, least) in effects::counts(&self.undisturbed) {
            // One disturbance costs at most one call again.
            let most = least + 1;
            let count = counts.get(&call).copied().unwrap_or(0);
            if !(least..=most).contains(&count) {
                broken.push(format!("{call} was performed {count} times, undisturbed {least}"));
            }
        }
        if !broken.is_empty() {
            self.broken.push(format!("{name}: {}", broken.join("; ")));
        }
    }

    /// How often each call was performed in the run that nothing disturbed.
    pub fn calls(&self) -> BTreeMap<String, usize> {
        effects::counts(&self.undisturbed)
    }
}

/// What a session's end holds.
fn result(report: &Report) -> Option<Value> {
    let mut ends = report.items.iter().filter(|item| item.text_opt("Kind") == Some("end"));
    let end = ends.next_back().and_then(|item| read_step(item).ok())?;
    match end.body {
        StepBody::End { payload, .. } => Some(payload),
        _ => None,
    }
}

/// A disturbance of a run, as somebody who looks for its cause wants it told.
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
