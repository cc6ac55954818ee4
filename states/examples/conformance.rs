//! Runs every execution that AWS recorded and prints a line a feature, and last `N passed, N
//! failed`.
//!
//! A case that needs what this engine does not do yet counts as failed. `CONFORMANCE_DIR` names the
//! folder.

#![expect(clippy::unwrap_used, reason = "a broken recording should stop it where it breaks")]

#[path = "../tests/it/given.rs"]
mod given;
#[path = "../tests/it/masks.rs"]
mod masks;
#[path = "../tests/it/recorded.rs"]
mod recorded;

use std::collections::BTreeMap;

use serde_json::Value;
use states::definition::Definition;

use recorded::{disagreement, in_scope, records, replay_recorded};

/// Passed and failed.
type Tally = (u32, u32);

fn passes(record: &Value) -> bool {
    // What is out of scope is refused as a definition; a machine of both query languages has one
    // that is refused.
    let Ok(definition) = Definition::parse(&record["definition"].to_string()) else { return false };
    if !in_scope(record) {
        return false;
    }
    let (outcome, history) = replay_recorded(definition, record);
    disagreement(record, &outcome, &history).is_none()
}

fn count(tally: &mut Tally, passed: bool) {
    if passed {
        tally.0 += 1;
    } else {
        tally.1 += 1;
    }
}

fn main() {
    let records = records("asl_executions.jsonl");
    let mut total = (0, 0);
    let mut features: BTreeMap<&str, Tally> = BTreeMap::new();
    for record in &records {
        let passed = passes(record);
        count(&mut total, passed);
        let tags = record["features"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for tag in tags {
            count(features.entry(tag).or_default(), passed);
        }
    }
    for (feature, (passed, failed)) in &features {
        println!("{feature}: {passed} passed, {failed} failed");
    }
    println!("{} passed, {} failed", total.0, total.1);
}
