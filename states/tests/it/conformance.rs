//! Every supported execution that AWS recorded happens here as it happened there.

use serde_json::Value;
use states::definition::{Definition, Problem};

use crate::recorded::{disagreement, has, in_scope, records, replay_recorded};

/// Cases that are supported and differ, each with the reason. A later issue empties it.
const KNOWN_DIFFERENCES: &[(&str, &str)] = &[];

#[test]
fn every_supported_recording_agrees_in_outcome_cause_and_history() {
    let records: Vec<Value> =
        records("asl_executions.jsonl").into_iter().filter(in_scope).collect();
    let (mut passed, mut wrong) = ([0; 3], Vec::new());
    for record in &records {
        let name = record["name"].as_str().unwrap();
        let definition = Definition::parse(&record["definition"].to_string())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let (outcome, history) = replay_recorded(definition, record);
        let known = KNOWN_DIFFERENCES.iter().any(|(known, _)| *known == name);
        let found = disagreement(record, &outcome, &history);
        let level = found.as_ref().map_or(4, |(level, _)| *level);
        (1..level).for_each(|level| passed[level as usize - 1] += 1);
        match found {
            Some((level, found)) if !known => wrong.push(format!("{name}: level {level}: {found}")),
            None if known => {
                wrong.push(format!("{name}: agrees, take it off the list of known differences"))
            }
            _ => {}
        }
    }
    println!("{} recordings; agree at level 1, 2, 3: {passed:?}", records.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_not_supported_is_refused_by_name_and_never_run() {
    for record in records("asl_executions.jsonl") {
        let supported = in_scope(&record)
            || (record["query_language"] == "JSONata" && !has(&record, "state:Map"));
        if supported || record["query_language"] == "mixed" {
            continue;
        }
        let error = Definition::parse(&record["definition"].to_string())
            .expect_err(record["name"].as_str().unwrap());
        assert!(matches!(error.problem, Problem::Unsupported(_)), "{}: {error}", record["name"]);
    }
}
