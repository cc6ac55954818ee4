//! Tests of the exploration: it omits no relevant order.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use journal::item::Item;
use journal::store::{Condition, Key, Store as _};
use sim::interleave::{Explored, Frailty, Limits, explore};

use super::bench::{paused, sqlite};

/// A participant's operations: `r` and `w` read and write the following record.
type Script = &'static str;

/// Explores scripts; returns what each participant read in each schedule.
fn explored(scripts: &[Script], limits: Limits) -> (Explored, BTreeSet<Vec<String>>) {
    let (bench, _folder) = sqlite();
    let (runs, seen) = (Mutex::new(0), Mutex::new(BTreeSet::new()));
    let explored = explore(
        &bench.io,
        paused,
        &bench.store,
        limits,
        async |race| {
            *runs.lock().unwrap() += 1;
            let partition = format!("run {}", runs.lock().unwrap());
            let read = Arc::new(Mutex::new(vec![String::new(); scripts.len()]));
            for (index, script) in scripts.iter().copied().enumerate() {
                let (partition, read) = (partition.clone(), Arc::clone(&read));
                race.enter("participant", Frailty::Dies, move |gate| {
                    let (partition, read) = (partition.clone(), Arc::clone(&read));
                    async move {
                        for action in script.split(' ') {
                            let key = Key::new(partition.as_str(), &action[1..]);
                            if action.starts_with('w') {
                                let item = Item::new(&key.pk, &key.sk).with("By", index as u32);
                                let _ = gate.put(item, Condition::Absent).await.unwrap();
                            } else {
                                let found = gate.get(key).await.unwrap();
                                let by = found.and_then(|item| item.number("By").ok());
                                read.lock().unwrap()[index].push_str(&format!("{by:?} "));
                            }
                        }
                    }
                });
            }
            read
        },
        async |_, read| {
            seen.lock().unwrap().insert(read.lock().unwrap().clone());
            Vec::new()
        },
    );
    (explored, seen.into_inner().unwrap())
}

#[test]
fn only_conflicting_operations_run_in_every_order() {
    for (scripts, schedules) in [
        (&["wa wb", "wc wd"][..], 1),
        (&["ra ra", "ra ra"], 1),
        (&["wa", "wa"], 2),
        (&["wa wa wa", "wa wa wa"], 20),
        (&["wa", "wa", "wa"], 6),
        (&["wa wb", "wa wb"], 4),
    ] {
        let (explored, _) = explored(scripts, Limits::NONE);
        assert_eq!(explored.schedules, schedules, "{scripts:?} {explored:?}");
    }
}

/// Without reduction there are as many schedules as interleavings; the results are the same.
#[test]
fn omitting_equivalent_orders_omits_no_result() {
    for scripts in [
        &["wa rb wc", "wb ra rc"][..],
        &["ra wa rb wb", "rb wb ra wa"],
        &["wa rb", "wb rc", "wc ra"],
    ] {
        let (few, seen) = explored(scripts, Limits::NONE);
        let (all, seen_in_all) = explored(scripts, Limits::NONE.interrupted(100));
        assert_eq!(seen, seen_in_all, "{scripts:?}");
        assert!(few.schedules < all.schedules, "{few:?} {all:?}");
    }
}

#[test]
fn the_preemption_limit_counts_only_interruptions() {
    for (preemptions, schedules) in [(0, 2), (1, 6), (2, 14), (100, 20)] {
        let limits = Limits::NONE.interrupted(preemptions);
        let (explored, _) = explored(&["wa wa wa", "wb wb wb"], limits);
        assert_eq!(explored.schedules, schedules, "{preemptions} {explored:?}");
    }
}

#[test]
fn a_participant_dies_once_after_each_of_its_writes() {
    let (explored, _) = explored(&["wa rb wc"], Limits::NONE.faulty(1));
    assert_eq!(explored.schedules, 3, "{explored:?}");
}
