//! Definitions that AWS accepted or rejected, and our error messages.

use asl::definition::{Definition, Workflow};
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
    MISSING_END_STATE: Workflow has no terminal state at /States
    MISSING_TRANSITION_TARGET: Missing 'Next' target: Nowhere at /States/A
    SCHEMA_VALIDATION_FAILED: This object should have only one of the following fields: [Next, End] at /States/A
    SCHEMA_VALIDATION_FAILED: There should only be one of the following fields: [Next, End] at /States/A
    SCHEMA_VALIDATION_FAILED: The QueryLanguage is set to 'JSONata', but field 'InputPath' is only supported for the 'JSONPath' QueryLanguage at /States/A
    INVALID_JSONATA_EXPRESSION: Unexpected end of expression at /States/A/Output/a/1
    RESERVED_VARIABLE_NAME: Cannot assign to reserved variable '$states'. at /States/A/Assign/states
    SCHEMA_VALIDATION_FAILED: This object should have only one of the following fields: [ItemProcessor, Iterator] at /States/A
    SCHEMA_VALIDATION_FAILED: The field 'Type' should have one of these values: [Task, Wait, Pass, Succeed, Fail, Choice, Parallel, Map] at /States/A/Type
    SCHEMA_VALIDATION_FAILED: This object should have only one of the following fields: [SecondsPath, Seconds, TimestampPath, Timestamp] at /States/A
    SCHEMA_VALIDATION_FAILED: Minimum value is 0 at /States/A/Seconds
    SCHEMA_VALIDATION_FAILED: String does not match RFC3339 timestamp at /States/A/Timestamp
    SCHEMA_VALIDATION_FAILED: Field 'End' is not supported at /States/A
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
    SCHEMA_VALIDATION_FAILED: The object must have only one of the following fields, [And, Or, Not, Variable, Condition] at /States/A/Choices/0
    SCHEMA_VALIDATION_FAILED: Value must be a boolean or an expression at /States/A/Choices/0/Condition
    SCHEMA_VALIDATION_FAILED: Value is not a valid resource ARN at /States/A/Resource
    SCHEMA_VALIDATION_FAILED: The resource provided arn:aws:states:::states:startExecution.never is not recognized. The value is not a valid resource ARN, or the resource is not available in this region. at /States/A/Resource
    SCHEMA_VALIDATION_FAILED: 'HeartbeatSeconds' must be smaller than 'TimeoutSeconds' at /States/A
    SCHEMA_VALIDATION_FAILED: These fields are required: [ErrorEquals] at /States/A/Retry/0
    SCHEMA_VALIDATION_FAILED: States.ALL must appear alone and at end of list at /States/A/Retry/0/ErrorEquals
    SCHEMA_VALIDATION_FAILED: States.ALL must appear alone and at end of list at /States/A/Catch/0/ErrorEquals
    SCHEMA_VALIDATION_FAILED: Minimum value is 1 at /States/A/Retry/0/BackoffRate
    "#);
}

/// The error for a machine with one state `A` in JSONPath.
fn path_refusal(fields: Value, workflow: Workflow) -> String {
    let machine = json!({"StartAt": "A", "States": {"A": fields}});
    Definition::check(&machine.to_string(), workflow).unwrap_err()[0].to_string()
}

#[test]
fn validation_errors_have_the_words_measured_on_aws() {
    let task = |resource: &str, more: Value| {
        let mut task = json!({"Type": "Task", "Resource": resource, "End": true});
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        task
    };
    let (standard, express) = (Workflow::Standard, Workflow::Express);
    let invoke = "arn:aws:states:::lambda:invoke";
    let activity = "arn:aws:states:us-east-1:123456789012:activity:a";
    let processor = json!({
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"},
        "StartAt": "B", "States": {"B": {"Type": "Pass", "End": true}},
    });
    let refusals = [
        path_refusal(
            json!({"Type": "Wait", "Timestamp": "2016-12-05 21:29:29Z", "End": true}),
            standard,
        ),
        path_refusal(task(invoke, json!({"Credentials": {}})), standard),
        path_refusal(task(activity, json!({})), express),
        path_refusal(task("arn:aws:states:::lambda:invoke.sync", json!({})), standard),
        path_refusal(json!({"Type": "Map", "ItemProcessor": processor, "End": true}), express),
        path_refusal(
            json!({"Type": "Pass", "Parameters": {"a": {"b.$": r#"States.StringToJson('{"t": "\"x\""}')"#}}, "End": true}),
            standard,
        ),
        path_refusal(json!({"Type": "Pass", "Parameters": {"a.$": "x"}, "End": true}), standard),
        path_refusal(json!({"Type": "Pass", "InputPath": "x", "End": true}), standard),
        path_refusal(json!({"Type": "Pass", "Output": 1, "End": true}), standard),
        path_refusal(
            task(invoke, json!({"TimeoutSeconds": 1, "TimeoutSecondsPath": "$.t"})),
            standard,
        ),
        path_refusal(
            json!({"Type": "Choice", "Choices": [{"Variable": "x", "IsNull": true, "Next": "A"}]}),
            standard,
        ),
        refusal(json!({"Type": "Pass", "Output": "{% phone %}", "End": true})),
    ];
    insta::assert_snapshot!(refusals.join("\n"), @r#"
    SCHEMA_VALIDATION_FAILED: String does not match RFC3339 timestamp at /States/A/Timestamp
    SCHEMA_VALIDATION_FAILED: The field 'RoleArn' is required but was missing at /States/A/Credentials
    SCHEMA_VALIDATION_FAILED: Express state machine does not support Activity ARN at /States/A/Resource
    SCHEMA_VALIDATION_FAILED: The resource provided arn:aws:states:::lambda:invoke.sync is not recognized. The value is not a valid resource ARN, or the resource is not available in this region. at /States/A/Resource
    SCHEMA_VALIDATION_FAILED: The field 'Mode' with value 'DISTRIBUTED' is not supported inside 'EXPRESS' state machines at /States/A/ItemProcessor/ProcessorConfig/Mode
    SCHEMA_VALIDATION_FAILED: The value for the field 'b.$' must be a valid JSONPath or a valid intrinsic function call at /States/A/Parameters/a (invalid intrinsic function 'States.StringToJson('{"t": "\"x\""}')': invalid escape '\"')
    SCHEMA_VALIDATION_FAILED: The value for the field 'a.$' must be a valid JSONPath or a valid intrinsic function call at /States/A/Parameters
    SCHEMA_VALIDATION_FAILED: Value must be a valid JSONPath. at /States/A/InputPath
    SCHEMA_VALIDATION_FAILED: The QueryLanguage is set to 'JSONPath', but field 'Output' is only supported for the 'JSONata' QueryLanguage at /States/A
    SCHEMA_VALIDATION_FAILED: There should only be one of the following fields: [TimeoutSeconds, TimeoutSecondsPath] at /States/A
    SCHEMA_VALIDATION_FAILED: Value is not a Reference Path: Reference path didn't start with '$' at /States/A/Choices/0/Variable
    UNSUPPORTED_JSONATA_EXPRESSION: Reference to 'phone' at the top level is not supported. at /States/A/Output
    "#);
}
