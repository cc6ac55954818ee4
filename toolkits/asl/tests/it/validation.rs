//! Definitions that AWS accepted or rejected, and our error messages.

use asl::definition::Definition;
use serde_json::{Value, json};

/// The error for a machine with one state `A`: a valid `Pass` with these fields.
fn refusal(fields: Value) -> String {
    refusal_of(json!({"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": fields}}))
}

fn refusal_of(machine: Value) -> String {
    Definition::parse(&machine.to_string()).unwrap_err().to_string()
}

#[test]
fn a_validation_error_names_position_and_problem() {
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
    insta::assert_snapshot!(refusals.join("\n"), @r#"
    SCHEMA_VALIDATION_FAILED: Definition must be a valid JSON object
    SCHEMA_VALIDATION_FAILED: These fields are required: [States, StartAt] at /
    SCHEMA_VALIDATION_FAILED: These fields are required: [StartAt] at /
    MISSING_TRANSITION_TARGET: Missing 'StartAt' target: B at /StartAt
    MISSING_TRANSITION_TARGET: State "B" is not reachable. at /States/B
    SCHEMA_VALIDATION_FAILED: 'QueryLanguage' can not be 'JSONPath' if set to 'JSONata' for whole state machine at /States/A
    SCHEMA_VALIDATION_FAILED: No state ends the execution at /States
    MISSING_TRANSITION_TARGET: Missing 'Next' target: Nowhere at /States/A
    SCHEMA_VALIDATION_FAILED: One of 'Next' and 'End' is required at /States/A
    SCHEMA_VALIDATION_FAILED: 'Next' and 'End' exclude each other at /States/A
    SCHEMA_VALIDATION_FAILED: Field 'InputPath' is not supported at /States/A/InputPath
    SCHEMA_VALIDATION_FAILED: expression does not compile: S0207: Unexpected end of expression at /States/A/Output/a/1
    SCHEMA_VALIDATION_FAILED: Value must be a variable: an identifier of at most 80 characters, not 'states' at /States/A/Assign/states
    SCHEMA_VALIDATION_FAILED: These fields are required: [ItemProcessor] at /States/A
    SCHEMA_VALIDATION_FAILED: The field 'Type' should have one of these values: [Task, Wait, Pass, Succeed, Fail, Choice, Parallel, Map] at /States/A/Type
    SCHEMA_VALIDATION_FAILED: Exactly one of 'Seconds' and 'Timestamp' is required at /States/A
    SCHEMA_VALIDATION_FAILED: Value must be a whole number of seconds, at most 99999999, or an expression at /States/A/Seconds
    SCHEMA_VALIDATION_FAILED: Value must be an RFC 3339 time or an expression at /States/A/Timestamp
    SCHEMA_VALIDATION_FAILED: Field 'End' is not supported at /States/A/End
    SCHEMA_VALIDATION_FAILED: Value must be a string or an expression at /States/A/Cause
    "#);
}

#[test]
fn a_validation_error_points_into_rules_and_retriers() {
    let task = "arn:aws:states:::lambda:invoke";
    let refusals = [
        refusal(json!({"Type": "Choice", "Choices": []})),
        refusal(json!({"Type": "Choice", "Choices": [{"Next": "A"}]})),
        refusal(json!({"Type": "Choice", "Choices": [{"Condition": "yes", "Next": "A"}]})),
        refusal(json!({"Type": "Task", "Resource": "lambda", "End": true})),
        refusal(
            json!({"Type": "Task", "Resource": "arn:aws:states:::states:startExecution.never", "End": true}),
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
    insta::assert_snapshot!(refusals.join("\n"), @r#"
    SCHEMA_VALIDATION_FAILED: Value cannot be empty at /States/A/Choices
    SCHEMA_VALIDATION_FAILED: These fields are required: [Condition] at /States/A/Choices/0
    SCHEMA_VALIDATION_FAILED: Value must be a boolean or an expression at /States/A/Choices/0/Condition
    SCHEMA_VALIDATION_FAILED: The resource provided lambda is not recognized. The value is not a valid resource ARN, or the resource is not available in this region. at /States/A/Resource
    SCHEMA_VALIDATION_FAILED: The resource provided arn:aws:states:::states:startExecution.never is not recognized. The value is not a valid resource ARN, or the resource is not available in this region. at /States/A/Resource
    SCHEMA_VALIDATION_FAILED: 'HeartbeatSeconds' must be smaller than 'TimeoutSeconds' at /States/A
    SCHEMA_VALIDATION_FAILED: These fields are required: [ErrorEquals] at /States/A/Retry/0
    SCHEMA_VALIDATION_FAILED: 'States.ALL' must stand alone and last at /States/A/Retry/0/ErrorEquals
    SCHEMA_VALIDATION_FAILED: 'States.ALL' must stand alone and last at /States/A/Catch/0/ErrorEquals
    SCHEMA_VALIDATION_FAILED: Value must be a number, at least 1 at /States/A/Retry/0/BackoffRate
    "#);
}
