//! What each program asks the cloud for, in runs with every fault: what its role must allow, and no more.

use std::collections::BTreeSet;
use std::path::PathBuf;

use sim::clerk;
use sim::faults::Faults;
use sim::run_scenario;
use sim::scenario::Scenario;

use crate::asking::people;
use crate::{paused, simulate};

/// The kept list, which the infrastructure's tests hold the roles against.
fn kept() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/requests.txt")
}

#[expect(clippy::disallowed_methods, reason = "the switch that insta has for the same")]
fn updates() -> bool {
    std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always")
}

#[test]
fn each_program_makes_the_requests_that_are_listed_and_no_others() {
    let mut made = BTreeSet::new();
    for seed in 0..200 {
        made.extend(simulate(seed, &Faults::of(seed)).requests);
        made.extend(simulate(seed, &Faults::abandoned(seed)).requests);
    }
    for seed in 0..20 {
        let mut scenario = Scenario { people: people(seed), ..clerk::scenario() };
        // So that the key is asked for as well.
        scenario.detail["dedupe_key"] = "once".into();
        made.extend(paused(run_scenario(&scenario, seed, &Faults::of(seed))).requests);
    }
    let lines: Vec<String> = made
        .iter()
        // People are nobody's role.
        .filter(|request| request.role != "person")
        .map(|request| format!("{} {} {}\n", request.role, request.action, request.about))
        .collect();
    if updates() {
        std::fs::write(kept(), lines.concat()).unwrap();
    }
    let listed = std::fs::read_to_string(kept()).unwrap_or_default();
    assert_eq!(lines.concat(), listed, "`INSTA_UPDATE=always` lists them anew");
}
