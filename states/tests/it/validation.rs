//! Definitions that AWS accepted or rejected, and what our refusals say.

use serde_json::{Value, json};
use states::definition::{Definition, Problem};

use crate::recorded::records;

#[test]
fn accepts_and_rejects_what_aws_does() {
    let (mut accepted, mut rejected, mut unsupported) = (0, 0, 0);
    for record in records("asl_validation.jsonl") {
        let text = match &record["definition"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // Whether AWS supports `.sync` or a callback depends on the machine's type, which a
        // definition does not know.
        let by_type = record["type"] == "EXPRESS"
            && record["error"]["message"].as_str().is_some_and(|text| text.contains("Express"));
        let one_state = record["api"] == "TestState" && !text.contains("\"States\"");
        if by_type || one_state {
            continue;
        }
        match (Definition::parse(&text), record["accept"].as_bool().unwrap()) {
            (Ok(_), true) => accepted += 1,
            (Err(error), true) if matches!(error.problem, Problem::Unsupported(_)) => {
                unsupported += 1
            }
            (Err(_), false) => rejected += 1,
            (result, _) => panic!(
                "{}: {:?}",
                record["name"],
                result.map(|_| ()).map_err(|error| error.to_string())
            ),
        }
    }
    println!("{accepted} accepted, {rejected} rejected, {unsupported} not supported yet");
}

/// The refusal of a machine of one state `A`, with these fields over a valid `Pass`.
fn refusal(fields: Value) -> String {
    refusal_of(json!({"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": fields}}))
}

fn refusal_of(machine: Value) -> String {
    Definition::parse(&machine.to_string()).unwrap_err().to_string()
}

#[test]
fn a_refusal_names_the_place_and_the_problem() {
    let refusals = [
        refusal_of(json!([])),
        refusal_of(json!({})),
        refusal_of(json!({"States": {"A": {"Type": "Pass", "End": true}}})),
        refusal_of(
            json!({"QueryLanguage": "JSONata", "StartAt": "B", "States": {"A": {"Type": "Pass", "End": true}}}),
        ),
        refusal_of(json!({"QueryLanguage": "JSONata", "StartAt": "A", "States": {
            "A": {"Type": "Pass", "End": true}, "B": {"Type": "Pass", "End": true}
        }})),
        refusal_of(json!({"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true}}})),
        refusal_of(json!({"QueryLanguage": "JSONata", "StartAt": "A", "States": {
            "A": {"Type": "Pass", "QueryLanguage": "JSONPath", "End": true}
        }})),
        refusal(json!({"Type": "Pass", "Next": "A"})),
        refusal(json!({"Type": "Pass", "Next": "Nowhere"})),
        refusal(json!({"Type": "Pass"})),
        refusal(json!({"Type": "Pass", "Next": "A", "End": true})),
        refusal(json!({"Type": "Pass", "End": true, "InputPath": "$"})),
        refusal(json!({"Type": "Pass", "End": true, "Output": {"a": [1, "{% $x + %}"]}})),
        refusal(json!({"Type": "Pass", "End": true, "Assign": {"states": 1}})),
        refusal(json!({"Type": "Map", "End": true})),
        refusal(json!({"Type": "Mop", "End": true})),
        refusal(json!({"Type": "Wait", "End": true})),
        refusal(json!({"Type": "Wait", "Seconds": -1, "End": true})),
        refusal(json!({"Type": "Wait", "Timestamp": "tomorrow", "End": true})),
        refusal(json!({"Type": "Succeed", "End": true})),
        refusal(json!({"Type": "Fail", "Cause": 1})),
    ];
    insta::assert_snapshot!(refusals.join("\n"), @r"
    value must be an object at /
    field 'States' is required at /
    field 'StartAt' is required at /
    there is no state 'B' at /StartAt
    state cannot be reached at /States/B
    query language JSONPath is not supported yet at /States/A/QueryLanguage
    a state of a JSONata machine cannot be JSONPath at /States/A
    no state ends the execution at /States
    there is no state 'Nowhere' at /States/A
    one of 'Next' and 'End' is required at /States/A
    'Next' and 'End' exclude each other at /States/A
    field 'InputPath' is not supported here at /States/A/InputPath
    expression does not compile: S0207: Unexpected end of expression at /States/A/Output/a/1
    value must be a variable: an identifier of at most 80 characters, not 'states' at /States/A/Assign/states
    state type Map is not supported yet at /States/A/Type
    value must be one of Task, Wait, Pass, Succeed, Fail, Choice, Parallel, Map at /States/A/Type
    exactly one of 'Seconds' and 'Timestamp' is required at /States/A
    value must be a whole number of seconds, at most 99999999, or an expression at /States/A/Seconds
    value must be an RFC 3339 time or an expression at /States/A/Timestamp
    field 'End' is not supported here at /States/A/End
    value must be a string at /States/A/Cause
    ");
}

#[test]
fn a_refusal_names_the_place_in_rules_retriers_and_catchers() {
    let task = "arn:aws:states:::lambda:invoke";
    let refusals = [
        refusal(json!({"Type": "Choice", "Choices": []})),
        refusal(json!({"Type": "Choice", "Choices": [{"Next": "A"}]})),
        refusal(json!({"Type": "Choice", "Choices": [{"Condition": "yes", "Next": "A"}]})),
        refusal(json!({"Type": "Task", "Resource": "lambda", "End": true})),
        refusal(
            json!({"Type": "Task", "Resource": "arn:aws:states:::states:startExecution.sync:2", "End": true}),
        ),
        refusal(
            json!({"Type": "Task", "Resource": task, "TimeoutSeconds": 5, "HeartbeatSeconds": 5, "End": true}),
        ),
        refusal(json!({"Type": "Task", "Resource": task, "End": true, "Retry": [{}]})),
        refusal(json!({"Type": "Task", "Resource": task, "End": true, "Retry": [
            {"ErrorEquals": ["States.ALL"]}, {"ErrorEquals": ["Late"]}
        ]})),
        refusal(json!({"Type": "Task", "Resource": task, "End": true, "Catch": [
            {"ErrorEquals": ["States.ALL", "Other"], "Next": "A"}
        ]})),
        refusal(json!({"Type": "Task", "Resource": task, "End": true, "Retry": [
            {"ErrorEquals": ["E"], "BackoffRate": 0.5}
        ]})),
    ];
    insta::assert_snapshot!(refusals.join("\n"), @r"
    value must be an array that is not empty at /States/A/Choices
    field 'Condition' is required at /States/A/Choices/0
    value must be a boolean or an expression at /States/A/Choices/0/Condition
    value must be the ARN of a function or of a service integration at /States/A/Resource
    '.sync' is not supported yet at /States/A/Resource
    'HeartbeatSeconds' must be smaller than 'TimeoutSeconds' at /States/A
    field 'ErrorEquals' is required at /States/A/Retry/0
    'States.ALL' must stand alone and last at /States/A/Retry/0/ErrorEquals
    'States.ALL' must stand alone and last at /States/A/Catch/0/ErrorEquals
    value must be a number, at least 1 at /States/A/Retry/0/BackoffRate
    ");
}
