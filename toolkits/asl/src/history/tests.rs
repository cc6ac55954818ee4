use serde_json::{Value, json};

use super::*;

fn check(kind: EventKind, expected: Value) {
    let event = Event {
        id: 4,
        previous_event_id: 3,
        timestamp: Timestamp::from_millis(1_795_257_000_123),
        kind,
    };
    let json = serde_json::to_value(&event).unwrap();
    let mut whole = json!({"timestamp": 1_795_257_000.123, "type": event.kind.type_name(), "id": 4, "previousEventId": 3});
    if let (Some(whole), Some(details)) = (whole.as_object_mut(), expected.as_object()) {
        whole.extend(details.clone());
    }
    assert_eq!(json, whole);
    assert_eq!(serde_json::from_value::<Event>(json).unwrap(), event);
}

fn invoke() -> Integration {
    Integration::Service { resource_type: "lambda".to_owned(), resource: "invoke".to_owned() }
}

#[test]
fn execution_events_are_spelled_as_in_the_api() {
    check(
        EventKind::ExecutionStarted { input: "{}".to_owned(), role_arn: "arn:role".to_owned() },
        json!({"executionStartedEventDetails": {"input": "{}", "inputDetails": {"truncated": false}, "roleArn": "arn:role"}}),
    );
    check(
        EventKind::ExecutionSucceeded { output: "1".to_owned() },
        json!({"executionSucceededEventDetails": {"output": "1", "outputDetails": {"truncated": false}}}),
    );
    check(
        EventKind::ExecutionFailed(Failure { error: None, cause: Some("why".to_owned()) }),
        json!({"executionFailedEventDetails": {"cause": "why"}}),
    );
    check(
        EventKind::ExecutionTimedOut(Failure::default()),
        json!({"executionTimedOutEventDetails": {}}),
    );
    check(
        EventKind::ExecutionAborted(Failure::new("E", None)),
        json!({"executionAbortedEventDetails": {"error": "E"}}),
    );
}

#[test]
fn state_event_names_contain_the_state_type() {
    for state_type in StateType::ALL {
        check(
            EventKind::StateEntered { state_type, name: "A".to_owned(), input: "{}".to_owned() },
            json!({"stateEnteredEventDetails": {"name": "A", "input": "{}", "inputDetails": {"truncated": false}}}),
        );
    }
    check(
        EventKind::StateExited {
            state_type: StateType::Pass,
            name: "A".to_owned(),
            output: "{}".to_owned(),
            assigned_variables: BTreeMap::from([("x".to_owned(), "1".to_owned())]),
        },
        json!({"stateExitedEventDetails": {
            "name": "A", "output": "{}", "outputDetails": {"truncated": false},
            "assignedVariables": {"x": "1"}, "assignedVariablesDetails": {"truncated": false}
        }}),
    );
    check(
        EventKind::EvaluationFailed {
            state: "A".to_owned(),
            location: Some("Output".to_owned()),
            failure: Failure::new("E", Some("why".to_owned())),
        },
        json!({"evaluationFailedEventDetails": {"error": "E", "cause": "why", "location": "Output", "state": "A"}}),
    );
}

#[test]
fn task_events_differ_by_integration() {
    check(
        EventKind::TaskScheduled(TaskScheduled {
            resource_type: "lambda".to_owned(),
            resource: "invoke".to_owned(),
            region: "us-east-1".to_owned(),
            parameters: "{}".to_owned(),
            timeout_s: Some(5),
            heartbeat_s: None,
        }),
        json!({"taskScheduledEventDetails": {
            "resourceType": "lambda", "resource": "invoke", "region": "us-east-1", "parameters": "{}", "timeoutInSeconds": 5
        }}),
    );
    let of_task = json!({"resourceType": "lambda", "resource": "invoke"});
    check(EventKind::TaskStarted(invoke()), json!({ "taskStartedEventDetails": of_task }));
    check(
        EventKind::TaskSubmitted(invoke(), "1".to_owned()),
        json!({"taskSubmittedEventDetails": {
            "resourceType": "lambda", "resource": "invoke", "output": "1", "outputDetails": {"truncated": false}
        }}),
    );
    check(
        EventKind::TaskTimedOut(invoke(), Failure::new("States.Timeout", None)),
        json!({"taskTimedOutEventDetails": {"resourceType": "lambda", "resource": "invoke", "error": "States.Timeout"}}),
    );
    check(
        EventKind::LambdaFunctionScheduled {
            resource: "arn:f".to_owned(),
            input: "{}".to_owned(),
            timeout_s: None,
        },
        json!({"lambdaFunctionScheduledEventDetails": {
            "resource": "arn:f", "input": "{}", "inputDetails": {"truncated": false}
        }}),
    );
    check(EventKind::TaskStarted(Integration::Function), json!({}));
    check(
        EventKind::TaskFailed(Integration::Function, Failure::new("E", Some("why".to_owned()))),
        json!({"lambdaFunctionFailedEventDetails": {"error": "E", "cause": "why"}}),
    );
}

#[test]
fn an_unsupported_event_is_rejected_with_the_reason() {
    let reject = |json: Value| serde_json::from_value::<Event>(json).unwrap_err().to_string();
    insta::assert_snapshot!(reject(json!({"timestamp": 0, "type": "ActivityScheduled", "id": 1})), @"unknown event type 'ActivityScheduled'");
    insta::assert_snapshot!(reject(json!({"timestamp": 0, "type": "ExecutionSucceeded", "id": 1})), @"event of type 'ExecutionSucceeded' has no 'output'");
    insta::assert_snapshot!(reject(json!({"type": "ExecutionTimedOut", "id": 1})), @"event of type 'ExecutionTimedOut' has no 'timestamp'");
}
