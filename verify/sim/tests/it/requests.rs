//! The cloud requests of each program in runs with every fault: its role must allow exactly these.

use std::collections::BTreeSet;
use std::path::PathBuf;

use sim::faults::Faults;
use sim::payment_agent;
use sim::run_scenario;
use sim::scenario::Scenario;

use crate::asking::people;
use crate::{paused, simulate};

/// The golden list, which infra's tests compare with the roles.
fn kept() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/requests.txt")
}

#[expect(clippy::disallowed_methods, reason = "insta's own switch for updating")]
fn updates() -> bool {
    std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always")
}

#[test]
fn each_program_makes_exactly_the_listed_requests() {
    let mut made = BTreeSet::new();
    for seed in 0..200 {
        made.extend(simulate(seed, &Faults::of(seed)).requests);
        made.extend(simulate(seed, &Faults::abandoned(seed)).requests);
    }
    for seed in 0..20 {
        let mut scenario = Scenario { people: people(seed), ..payment_agent::scenario() };
        // So that requests for the deduplication key are included.
        scenario.detail["dedupe_key"] = "once".into();
        made.extend(paused(run_scenario(&scenario, seed, &Faults::of(seed))).requests);
    }
    let lines: Vec<String> = made
        .iter()
        // People have no role.
        .filter(|request| request.role != "person")
        .map(|request| format!("{} {} {}\n", request.role, request.action, request.about))
        .collect();
    if updates() {
        std::fs::write(kept(), lines.concat()).unwrap();
    }
    let listed = std::fs::read_to_string(kept()).unwrap_or_default();
    assert_eq!(lines.concat(), listed, "run with `INSTA_UPDATE=always` to update the list");
}
