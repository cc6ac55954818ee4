//! Fuzz targets for code that reads untrusted bytes.
//!
//! A target is a module with two functions. `check` takes an input and panics if the code breaks a
//! promise. `seeds` returns initial inputs, built from the golden files and the tables of the tests,
//! so that they stay up to date.
//!
//! The fuzzer's programs, one per target, are the examples; `scripts/fuzz.sh` builds them with
//! instrumentation and runs them. Without instrumentation this is an ordinary crate, whose one test
//! checks every seed.

pub mod canonical;
pub mod corpus;
pub mod cursor;
pub mod endpoint;
pub mod expression;
pub mod import;
pub mod machine;
pub mod pattern;
pub mod record;
pub mod trigger;

/// A sealed session as exported.
const SESSION: &str = include_str!("../../../journal/tests/it/golden/session.jsonl");

/// Records of older writers.
const OLD_RECORDS: &str = include_str!("../../../journal/tests/it/golden/old-records.jsonl");

/// The records of the golden session and of older writers, as DynamoDB's JSON.
fn golden_records() -> Vec<serde_json::Value> {
    let lines = SESSION.lines().chain(OLD_RECORDS.lines());
    let values = lines.map(|line| serde_json::from_str(line).expect("a golden file is JSON"));
    values
        .filter_map(|mut line: serde_json::Value| match line.get_mut("record") {
            Some(record) => Some(record.take()),
            None => line.get("PK").is_some().then_some(line),
        })
        .collect()
}

fn golden_items() -> Vec<journal::item::Item> {
    let records = golden_records();
    let items = records.iter().map(journal::item::Item::from_json);
    items.collect::<Result<_, _>>().expect("a golden record is an item")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_passes_its_fuzz_target() {
        for (check, seeds) in [
            (canonical::check as fn(&[u8]), canonical::seeds()),
            (endpoint::check, endpoint::seeds()),
            (expression::check, expression::seeds()),
            (import::check, import::seeds()),
            (machine::check, machine::seeds()),
            (pattern::check, pattern::seeds()),
            (record::check, record::seeds()),
            (trigger::check, trigger::seeds()),
        ] {
            assert!(!seeds.is_empty());
            seeds.iter().for_each(|seed| check(seed));
        }
    }
}
