//! Random sessions of an agent that asks: answered at once, by two people, late, or too late, with
//! faults, cancellations and expiries.

use std::collections::BTreeMap;
use std::time::Duration;

use sim::faults::Faults;
use sim::payment_agent::{self, QUESTION_OPEN};
use sim::person::Person;
use sim::run_scenario;
use sim::scenario::Scenario;

use crate::{seeds, trace, verdict};

pub fn people(seed: u64) -> Vec<Person> {
    let s = Duration::from_secs;
    match seed % 4 {
        0 => vec![Person::CAREFUL],
        1 => vec![Person::taking(s(0), s(3)), Person::taking(s(0), s(3))],
        2 => vec![Person::taking(s(30), s(1_800))],
        // Just in time or slightly too late.
        _ => vec![Person::taking(QUESTION_OPEN - s(600), QUESTION_OPEN + s(600))],
    }
}

fn check(seeds: std::ops::Range<u64>, faults: impl Fn(u64) -> Faults) -> BTreeMap<String, u64> {
    let (mut verdicts, mut failed) = (BTreeMap::new(), Vec::new());
    for seed in seeds.clone() {
        let scenario = Scenario { people: people(seed), ..payment_agent::scenario() };
        let report = crate::paused(run_scenario(&scenario, seed, &faults(seed)));
        *verdicts.entry(verdict(&report)).or_default() += 1;
        if !report.broken.is_empty() {
            failed.push(format!("SIM_SEED={seed}: {}", report.broken.join("; ")));
            if seeds.end - seeds.start == 1 {
                println!("{}", trace(&report));
            }
        }
    }
    println!("{verdicts:?}");
    assert!(failed.is_empty(), "{} of {seeds:?}:\n{}", failed.len(), failed.join("\n"));
    verdicts
}

#[test]
fn sessions_that_ask_succeed_without_faults() {
    let verdicts = check(seeds(12), |_| Faults::NONE);
    assert_eq!(verdicts.keys().collect::<Vec<_>>(), ["SESSION_SUCCEEDED "]);
}

#[test]
fn sessions_that_ask_reach_one_verdict_with_any_faults() {
    check(seeds(60), Faults::of);
}
