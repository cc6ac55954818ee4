//! Random sessions, and races in every order.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod asking;
mod assistant;
mod capacity;
mod disturbed;
mod executions;
mod long;
mod races;
mod requests;
mod stores;

use std::collections::BTreeMap;

use sim::faults::Faults;
use sim::{Report, run};

fn simulate(seed: u64, faults: &Faults) -> Report {
    paused(run(seed, faults))
}

fn paused<T>(run: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(run)
}

/// The seeds from `SIM_SEED` (one) or `SIM_SEEDS` (how many), or else this many.
#[expect(clippy::disallowed_methods, reason = "how to repeat a failing seed")]
fn seeds(count: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match (number("SIM_SEED"), number("SIM_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, many) => 0..many.unwrap_or(count),
    }
}

/// Whether seeds were requested.
#[expect(clippy::disallowed_methods, reason = "as above")]
fn are_asked_for() -> bool {
    ["SIM_SEED", "SIM_SEEDS"].iter().any(|name| std::env::var_os(name).is_some())
}

/// Runs seeds, and fails with the violations and how to reproduce them.
fn check(seeds: std::ops::Range<u64>, faults: impl Fn(u64) -> Faults) {
    let mut verdicts: BTreeMap<String, u64> = BTreeMap::new();
    let mut failed = Vec::new();
    for seed in seeds.clone() {
        let report = simulate(seed, &faults(seed));
        *verdicts.entry(verdict(&report)).or_default() += 1;
        if !report.broken.is_empty() {
            failed.push(format!("SIM_SEED={seed}: {}", report.broken.join("; ")));
            if seeds.end - seeds.start == 1 {
                println!("{}", trace(&report));
            }
        }
    }
    println!("{verdicts:?}");
    let first: Vec<_> = failed.iter().take(20).cloned().collect();
    assert!(failed.is_empty(), "{} of {seeds:?}:\n{}", failed.len(), first.join("\n"));
}

fn verdict(report: &Report) -> String {
    let Some(verdict) = report.verdict else { return "none".to_owned() };
    let named = |item: &&journal::item::Item| item.text_opt("Status") == Some(verdict.as_str());
    let error = report.items.iter().find(named).and_then(|item| item.text_opt("ErrorMessage"));
    let kind = error.and_then(|error| error.split(" - ").next()).unwrap_or_default();
    format!("{verdict} {kind}")
}

/// The writes and the history of the executions.
fn trace(report: &Report) -> String {
    let mut text = format!("{:#?} {}\n", report.faults, report.session);
    for write in &report.log {
        let landed = if write.landed { "" } else { " REFUSED" };
        let item = write.item.to_json().to_string();
        let item: String = item.chars().take(700).collect();
        text.push_str(&format!("{} {}{landed} {item}\n", write.at, write.process));
    }
    for (number, ended) in report.executions.iter().enumerate() {
        for event in &ended.history {
            let shown: String = format!("{:?}", event.kind).chars().take(400).collect();
            text.push_str(&format!("{number} {} {shown}\n", event.timestamp.as_millis()));
        }
    }
    text
}

#[test]
fn sessions_without_faults_reach_their_verdict() {
    check(seeds(100), |_| Faults::NONE);
}

/// In each of these seeds the agent's announcement of its end is written, with an earlier
/// timestamp, after the poller has read what it seals.
#[test]
fn an_announcement_during_sealing_is_not_reported_as_forged() {
    for seed in [61, 94, 191, 388, 468, 470] {
        check(seed..seed + 1, Faults::of);
    }
    for seed in [1564, 1674] {
        check(seed..seed + 1, |_| Faults::NONE);
    }
}

#[test]
fn a_seed_reproduces_its_session() {
    let writes = |seed| {
        let report = simulate(seed, &Faults::of(seed));
        let key = |write: &sim::store::Write| {
            (write.at, write.process.clone(), write.item.sk.clone(), write.landed)
        };
        report.log.iter().map(key).collect::<Vec<_>>()
    };
    for seed in 0..40 {
        assert_eq!(writes(seed), writes(seed), "SIM_SEED={seed}");
    }
}

#[test]
fn sessions_with_faults_reach_one_verdict_and_lose_nothing() {
    check(seeds(FIRST), Faults::of);
}

#[test]
fn the_watchdog_ends_sessions_with_stopped_executions() {
    check(seeds(300), Faults::abandoned);
}

/// Seeds of the quick test.
const FIRST: u64 = 500;

/// Seeds in all.
const ALL: u64 = 10_000;

/// The rest of ten thousand seeds, in parts that run in parallel.
mod ten_thousand_sessions_with_faults {
    use super::{ALL, FIRST, Faults, are_asked_for, check};

    const PARTS: u64 = 10;

    fn part(number: u64) {
        if are_asked_for() {
            // The quick test runs these.
            return;
        }
        let length = (ALL - FIRST) / PARTS;
        let first = FIRST + number * length;
        check(first..first + length, Faults::of);
    }

    macro_rules! parts {
        ($($name:ident: $number:literal),+ $(,)?) => {
            $(#[test]
            fn $name() {
                part($number);
            })+
        };
    }

    parts!(
        part_1: 0, part_2: 1, part_3: 2, part_4: 3, part_5: 4,
        part_6: 5, part_7: 6, part_8: 7, part_9: 8, part_10: 9,
    );
}
