//! Seeded sessions of an agent that asks: answered at once, by two people, late, or too late, with
//! faults, cancellations and expiries in between.

use std::collections::BTreeMap;
use std::time::Duration;

use sim::clerk::{self, QUESTION_OPEN};
use sim::faults::Faults;
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
        // Just in time or a little too late.
        _ => vec![Person::taking(QUESTION_OPEN - s(600), QUESTION_OPEN + s(600))],
    }
}

fn check(seeds: std::ops::Range<u64>, faults: impl Fn(u64) -> Faults) -> BTreeMap<String, u64> {
    let (mut verdicts, mut failed) = (BTreeMap::new(), Vec::new());
    for seed in seeds.clone() {
        let scenario = Scenario { people: people(seed), ..clerk::scenario() };
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
fn undisturbed_sessions_that_ask_succeed_however_late_they_are_answered() {
    let verdicts = check(seeds(12), |_| Faults::NONE);
    assert_eq!(verdicts.keys().collect::<Vec<_>>(), ["SESSION_SUCCEEDED "]);
}

#[test]
fn sessions_that_ask_reach_one_verdict_and_lose_nothing_whatever_fails() {
    check(seeds(60), Faults::of);
}
