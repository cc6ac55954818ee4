//! The exploration itself: it leaves out nothing that makes a difference.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use journal::item::Item;
use journal::store::{Condition, Key, Store as _};
use sim::interleave::{Explored, Frailty, Limits, explore};

use super::bench::{paused, sqlite};

/// What one participant does: `r` and `w` read and write the record that follows.
type Script = &'static str;

/// Explores scripts against one another; returns what each participant read in each schedule.
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
                        for deed in script.split(' ') {
                            let key = Key::new(partition.as_str(), &deed[1..]);
                            if deed.starts_with('w') {
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
fn operations_that_cannot_meet_are_run_in_one_order_and_those_that_do_in_all() {
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

/// Without a reduction there are as many schedules as ways to shuffle; what is seen is the same.
#[test]
fn leaving_out_orders_leaves_out_no_outcome() {
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
fn a_bound_counts_interruptions_and_nothing_else() {
    for (preemptions, schedules) in [(0, 2), (1, 6), (2, 14), (100, 20)] {
        let limits = Limits::NONE.interrupted(preemptions);
        let (explored, _) = explored(&["wa wa wa", "wb wb wb"], limits);
        assert_eq!(explored.schedules, schedules, "{preemptions} {explored:?}");
    }
}

#[test]
fn every_write_is_once_the_last_before_a_death() {
    let (explored, _) = explored(&["wa rb wc"], Limits::NONE.faulty(1));
    assert_eq!(explored.schedules, 3, "{explored:?}");
}
