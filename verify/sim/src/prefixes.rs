//! Tests every prefix of an agent's journal: runs its session once, then resumes it from each
//! record as if everything had died after that record was written.

use std::time::Duration;

use journal::key;

use crate::backing_store::BackingStore;
use crate::crash_points::{Outcome, SEED, simulate};
use crate::faults::Faults;
use crate::scenario::Scenario;
use crate::session::{Report, Staged};
use crate::world::Setup;

/// Time between the cut and the resume.
const LATER: Duration = Duration::from_secs(30);

/// Runs a scenario's session once, then resumes it from each record, step or event, with another
/// execution, as `resume` does. `open` gives each run an empty store.
///
/// The invariants are those of [`crash_points`](crate::crash_points::crash_points). The tools have
/// made the calls that preceded the record after the cut.
///
/// # Panics
/// No runtime can be started.
pub fn prefixes(scenario: &Scenario, open: &mut dyn FnMut() -> BackingStore) -> Outcome {
    let setup = Setup::new(SEED, Faults::NONE, scenario.clone());
    let whole = Staged::new(Setup { backing_store: open(), ..setup });
    let undisturbed = simulate(whole.clone());
    let mut outcome = Outcome { broken: undisturbed.broken.clone(), undisturbed, runs: 0 };
    for cut in cuts(&outcome.undisturbed) {
        let staged = cut_off(&whole, &outcome.undisturbed, cut, open());
        let report = simulate(staged);
        let newest = cut.checked_sub(1).map(|last| &outcome.undisturbed.log[last].item.sk);
        let name = format!("cut after {cut} writes, the newest {}", newest.map_or("none", |sk| sk));
        outcome.add(scenario, &name, &report);
    }
    outcome
}

/// Number of writes of each prefix: up to and including each record before the verdict.
fn cuts(report: &Report) -> Vec<usize> {
    let is_record =
        |sk: &str| sk.starts_with(key::STEP_PREFIX) || sk.starts_with(key::EVENT_PREFIX);
    let verdict = report.verdict.map(|verdict| verdict.as_str());
    let log = report.log.iter().enumerate();
    let records = log.filter(|(_, write)| write.landed && is_record(&write.item.sk));
    let ends = records.map(|(place, write)| (place + 1, write.item.text_opt("Status")));
    [0].into_iter()
        .chain(ends.take_while(|(_, status)| status.is_none() || *status != verdict).map(|c| c.0))
        .collect()
}

fn cut_off(whole: &Staged, report: &Report, cut: usize, backing_store: BackingStore) -> Staged {
    let log = report.log[..cut].to_vec();
    let begins_at = log.last().map_or(whole.setup.begins_at, |write| write.at.after(LATER));
    let calls = report.calls.iter().filter(|call| call.after <= cut).cloned().collect();
    let setup = Setup { begins_at, backing_store, ..whole.setup.clone() };
    Staged { setup, session: whole.session.clone(), log, calls }
}
