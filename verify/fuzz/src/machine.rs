//! The States Language: no definition or expression crashes the interpreter, repeated decisions are
//! equal, and a replayed execution continues where it was.
//!
//! An input that starts with `{` is a definition. Any other is the text of a JSONata expression.
//! Tasks get no replies and time out.

use std::sync::Arc;

use asl::definition::Definition;
use asl::execution::{Execution, Next, Outcome, PAYLOAD_BYTES_MAX, Start};
use asl::time::Timestamp;
use serde_json::{Value, json};
use workflow::state_machine;

/// Most decisions per input.
const DECISIONS_MAX: usize = 12;

/// Checks a definition, or a machine with one state that has the expression as its output.
///
/// # Panics
/// A promise is broken.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if text.starts_with('{') { run(text) } else { run(&machine(text).to_string()) }
}

/// The workflow's own definition and each of its expressions, and other parts of the language.
pub fn seeds() -> Vec<Vec<u8>> {
    let own: Value = serde_json::from_str(state_machine::TEXT).expect("the workflow is JSON");
    let mut seeds = Vec::new();
    expressions(&own, &mut seeds);
    seeds.extend(
        [
            "$states.input.a[b > 1].c",
            "$sum([1..100]) & $string($states.input)",
            "($f := function($x) { $x > 0 ? $x : 0 }; $f(20))",
            "$map([1, 2], function($v, $i) { {'v': $v * $i} }) ~> $reverse",
            "$states.input.a^(>b).{ 'k': b }",
            "$match('abcabc', /b(c)/).groups[0] & $replace('aa', /a/, 'b')",
            "$parse('[1, 2.5e10]') ~> $partition(1)",
            "[$hash('a', 'SHA-256'), $uuid(), $random(), $range(1, 9, 2)]",
            "$fromMillis($toMillis('2026-11-21T10:30:00Z'), '[Y]-[M01]')",
            "$formatNumber(1e21, '#,##0.00') & $pad('x', -5) & $substring('é', -1)",
            "$error('x') ~> $assert(false)",
            "-$power(2, 0.5) / 0",
        ]
        .map(|text| text.as_bytes().to_vec()),
    );
    let retried = json!({
        "QueryLanguage": "JSONata", "StartAt": "Choose", "TimeoutSeconds": 500, "States": {
            "Choose": { "Type": "Choice", "Default": "Call", "Choices": [
                { "Condition": "{% $states.input.a = 2 %}", "Next": "Wait" } ] },
            "Wait": { "Type": "Wait", "Seconds": 3, "Assign": { "x": "{% 1 %}" }, "Next": "Call" },
            "Call": {
                "Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "TimeoutSeconds": 5,
                "Arguments": { "FunctionName": "f", "Payload": "{% $states.input %}" },
                "Retry": [{ "ErrorEquals": ["States.Timeout"], "IntervalSeconds": 1,
                    "MaxAttempts": 2, "BackoffRate": 1.5, "JitterStrategy": "FULL" }],
                "Catch": [{ "ErrorEquals": ["States.ALL"], "Next": "Fail" }],
                "Next": "Done" },
            "Fail": { "Type": "Fail", "Error": "E", "Cause": "{% $states.input.Error %}" },
            "Done": { "Type": "Succeed" },
        },
    });
    seeds.push(retried.to_string().into_bytes());
    let paths = json!({
        "StartAt": "Set", "States": {
            "Set": { "Type": "Pass", "InputPath": "$.a", "ResultPath": "$.x.y", "Next": "Choose",
                "Assign": { "v.$": "$[?(@.b > 1)].c", "n.$": "States.ArrayLength($)" } },
            "Choose": { "Type": "Choice", "Default": "All", "Choices": [
                { "And": [{ "Variable": "$.x.y[0].b", "NumericLessThan": 2 },
                    { "Not": { "Variable": "$v", "IsNull": true } }], "Next": "Each" } ] },
            "Each": { "Type": "Map", "ItemsPath": "$.x.y", "MaxConcurrency": 1, "Next": "All",
                "ItemSelector": { "i.$": "$$.Map.Item.Index", "f.$": "States.Format('{}', $n)" },
                "ItemProcessor": { "StartAt": "One", "States": {
                    "One": { "Type": "Succeed" } } },
                "Retry": [{ "ErrorEquals": ["States.ALL"] }] },
            "All": { "Type": "Parallel", "End": true, "ResultSelector": { "r.$": "$[*]" },
                "Catch": [{ "ErrorEquals": ["States.ALL"], "ResultPath": null, "Next": "Over" }],
                "Branches": [
                    { "StartAt": "P", "States": { "P": { "Type": "Pass", "End": true } } },
                    { "StartAt": "Q", "States": { "Q": { "Type": "Fail", "Error": "E" } } } ] },
            "Over": { "Type": "Succeed" },
        },
    });
    seeds.push(paths.to_string().into_bytes());
    seeds
}

fn expressions(value: &Value, found: &mut Vec<Vec<u8>>) {
    match value {
        Value::String(text) => {
            let inner = text.strip_prefix("{%").and_then(|text| text.strip_suffix("%}"));
            found.extend(inner.map(|text| text.trim().as_bytes().to_vec()));
        }
        Value::Array(values) => values.iter().for_each(|value| expressions(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| expressions(value, found)),
        _ => {}
    }
}

fn machine(expression: &str) -> Value {
    json!({
        "QueryLanguage": "JSONata", "StartAt": "Say",
        "States": { "Say": { "Type": "Pass", "Output": format!("{{% {expression} %}}"), "End": true } },
    })
}

fn run(text: &str) {
    let definition = match Definition::parse(text) {
        Ok(definition) => Arc::new(definition),
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(definition.state_names().any(|name| name == definition.start_at()));
    let fresh = || Execution::new(definition.clone(), start()).expect("the input is JSON");
    let mut execution = fresh();
    let mut history = Vec::new();
    let mut now = start().started_at;
    for _ in 0..DECISIONS_MAX {
        let next = execution.next(now);
        let replayed = Execution::replay(definition.clone(), start(), &history);
        let replayed = replayed.expect("a history fits the definition that it is of").next(now);
        // The limit on real time may apply to one evaluation and not to the other.
        if burns(&next) || burns(&replayed) {
            return;
        }
        assert_eq!(replayed, next, "a replayed execution decides the same");
        match next {
            Next::Record(events) => {
                for event in &events {
                    execution.apply(event).expect("what was decided fits");
                }
                history.extend(events);
            }
            Next::RunTasks { wake_at, .. } => now = wake_at.max(now),
            Next::WaitUntil(time) => now = time.max(now),
            Next::Done(outcome) => return ended(&outcome),
        }
    }
}

/// Whether an expression took too long, according to JSONata's error code.
fn burns(next: &Next) -> bool {
    format!("{next:?}").contains("D1012")
}

fn ended(outcome: &Outcome) {
    if let Outcome::Succeeded(output) = outcome {
        assert!(output.len() <= PAYLOAD_BYTES_MAX, "{} bytes", output.len());
        assert!(serde_json::from_str::<Value>(output).is_ok(), "an output can be read: {output}");
    }
}

fn start() -> Start {
    Start {
        execution_arn: "arn:aws:states:us-east-1:000000000000:execution:m:one".to_owned(),
        execution_name: "one".to_owned(),
        role_arn: "arn:aws:iam::000000000000:role/m".to_owned(),
        state_machine_arn: "arn:aws:states:us-east-1:000000000000:stateMachine:m".to_owned(),
        state_machine_name: "m".to_owned(),
        input: r#"{"a": [{"b": 1, "c": "x"}, {"b": 2.5, "c": null}], "é": {"": true}}"#.to_owned(),
        started_at: Timestamp::from_millis(1_795_000_000_000),
        token_seed: "seed".to_owned(),
    }
}
