//! Executions that AWS recorded: reading them, running them again, comparing.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};
use states::definition::Definition;
use states::execution::{Execution, Next, Outcome};
use states::history::{Event, Failure};

use crate::given::{BEGIN, start};
use crate::masks::difference;

/// The recordings' folder, if there is one: `CONFORMANCE_DIR`, else beside the project.
pub fn folder() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "tests have no config.rs")]
    let named = std::env::var_os("CONFORMANCE_DIR").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/conformance"))
    });
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no recordings in {} (set CONFORMANCE_DIR)", folder.display());
    None
}

/// The records of one file.
pub fn records(file: &str) -> Vec<Value> {
    let Some(folder) = folder() else { return Vec::new() };
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether a record carries a feature's tag.
pub fn has(record: &Value, feature: &str) -> bool {
    record["features"].as_array().unwrap().iter().any(|found| found == feature)
}

/// Whether a record lies within what this engine supports today.
pub fn in_scope(record: &Value) -> bool {
    record["query_language"] == "JSONata"
        && record["type"] == "STANDARD"
        && matches!(record["class"].as_str(), Some("pure" | "lambda" | "service"))
        && !has(record, "state:Map")
        && !has(record, "state:Parallel")
}

/// Answers each call with its recorded outcome, jumps over every wait.
pub fn replay_recorded(definition: Definition, record: &Value) -> (Outcome, Vec<Event>) {
    let mut execution = Execution::new(Arc::new(definition), start(&record["input"])).unwrap();
    let outcomes = record["tasks"]["outcomes"].as_array().cloned().unwrap_or_default();
    let (mut now, mut history, mut calls) = (BEGIN, Vec::new(), 0);
    loop {
        let events = match execution.next(now) {
            Next::Record(events) => events,
            Next::WaitUntil(at) => {
                now = at;
                continue;
            }
            Next::RunTask(request) => {
                let outcome = &outcomes[calls];
                assert_eq!(outcome["state"], request.state.as_str());
                calls += 1;
                let result = &outcome["result"];
                if result["event"].as_str().unwrap().ends_with("TimedOut") {
                    now = request.timeout_at;
                    continue;
                }
                let answer = match result.get("output") {
                    Some(output) => execution.task_succeeded(request.event_id, output, now),
                    None => execution.task_failed(request.event_id, failure(result), now),
                };
                vec![answer.unwrap()]
            }
            Next::Done(outcome) => {
                assert_eq!(calls, outcomes.len(), "every recorded call was made");
                return (outcome, history);
            }
        };
        for event in &events {
            execution.apply(event).unwrap();
        }
        history.extend(events);
    }
}

fn failure(result: &Value) -> Failure {
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    Failure { error: text(&result["error"]), cause: text(&result["cause"]) }
}

/// The event as the recordings have it: payloads parsed, times and truncation flags left out.
fn as_recorded(event: &Event) -> Value {
    let mut json = serde_json::to_value(event).unwrap();
    let members = json.as_object_mut().unwrap();
    members.remove("timestamp");
    for details in members.values_mut().filter_map(Value::as_object_mut) {
        parse_payloads(details);
    }
    json
}

fn parse_payloads(details: &mut Map<String, Value>) {
    details.retain(|name, _| {
        !matches!(name.as_str(), "inputDetails" | "outputDetails" | "assignedVariablesDetails")
    });
    let parsed = |value: &Value| value.as_str().map(|text| serde_json::from_str(text).unwrap());
    for name in ["input", "output", "parameters"] {
        if let Some(value) = details.get(name).and_then(parsed) {
            details.insert(name.to_owned(), value);
        }
    }
    for variable in
        details.get_mut("assignedVariables").and_then(Value::as_object_mut).into_iter().flatten()
    {
        *variable.1 = parsed(variable.1).unwrap();
    }
    let cause: Option<Value> = details
        .get("cause")
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str(text).ok());
    if let Some(cause) = cause.filter(Value::is_object) {
        details.insert("cause".to_owned(), cause);
    }
}

/// The first level that does not agree (1 status, output and error; 2 cause; 3 history), with the
/// difference.
pub fn disagreement(record: &Value, outcome: &Outcome, history: &[Event]) -> Option<(u32, String)> {
    let masks: Vec<String> = record["masks"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|mask| mask.as_str().unwrap().to_owned())
        .collect();
    let expect = &record["expect"];
    let (output, failure) = match outcome {
        Outcome::Succeeded(text) => (serde_json::from_str(text).unwrap(), Failure::default()),
        Outcome::Failed(failure) | Outcome::Aborted(failure) => (Value::Null, failure.clone()),
        Outcome::TimedOut => (Value::Null, Failure::default()),
    };
    let differ =
        |recorded: &Value, actual: &Value, path| difference(recorded, actual, &masks, path);
    let level_1 = differ(&expect["status"], &outcome.status().into(), "status")
        .or_else(|| differ(&expect["output"], &output, "output"))
        .or_else(|| differ(&expect["error"], &failure.error.into(), "error"));
    if let Some(found) = level_1 {
        return Some((1, found));
    }
    let cause = failure.cause.unwrap_or_default();
    let level_2 = match expect.get("cause_json") {
        Some(recorded) => {
            differ(recorded, &serde_json::from_str(&cause).unwrap_or_default(), "cause")
        }
        None => {
            differ(&expect["cause"].as_str().unwrap_or_default().into(), &cause.into(), "cause")
        }
    };
    if let Some(found) = level_2 {
        return Some((2, found));
    }
    if record["compare_history"] == "none" || record["normalized"] == "GenericTransformer" {
        return None;
    }
    let actual: Value = history.iter().map(as_recorded).collect();
    differ(&record["history"], &actual, "history").map(|found| (3, found))
}
