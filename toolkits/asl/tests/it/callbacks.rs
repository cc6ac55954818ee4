//! Tasks that wait for a token.

use asl::execution::{CallbackError, Next, TaskClosed};
use asl::history::Failure;
use asl::token;
use serde_json::{Value, json};

use crate::given::BEGIN;
use crate::run::{Happening, Run, definition, run};

/// A task that passes its token on, then a `Pass`; errors are caught into the output.
fn machine() -> String {
    json!({
        "QueryLanguage": "JSONata",
        "StartAt": "Park",
        "States": {
            "Park": {
                "Type": "Task",
                "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
                "Arguments": {"FunctionName": "poller", "Payload": {"token": "{% $states.context.Task.Token %}"}},
                "TimeoutSeconds": "{% $states.input.wait_s %}",
                "HeartbeatSeconds": "{% $states.input.beat_s %}",
                "Catch": [{"ErrorEquals": ["States.ALL"], "Output": "{% $states.errorOutput %}", "Next": "Done"}],
                "Next": "Done"
            },
            "Done": {"Type": "Pass", "End": true}
        }
    })
    .to_string()
}

fn parked(happenings: Vec<(i64, Happening)>) -> (Value, Vec<String>, i64) {
    let script = move |_: &str, _| happenings.clone();
    let definition = definition(&machine());
    let run = run(&definition, &json!({"wait_s": 60, "beat_s": 10}), &script);
    (run.output(), run.types(), run.now.as_millis() - BEGIN.as_millis())
}

const OPENING: [&str; 4] = ["ExecutionStarted", "TaskStateEntered", "TaskScheduled", "TaskStarted"];
const CLOSING: [&str; 4] =
    ["TaskStateExited", "PassStateEntered", "PassStateExited", "ExecutionSucceeded"];

#[track_caller]
fn check(happenings: Vec<(i64, Happening)>, output: Value, middle: &[&str], ends_at_ms: i64) {
    let (found, types, at) = parked(happenings);
    assert_eq!(found, output);
    assert_eq!(types, [&OPENING[..], middle, &CLOSING[..]].concat());
    assert_eq!(at, ends_at_ms);
}

fn answer() -> Happening {
    Happening::Answer(json!({"StatusCode": 200}))
}

#[test]
fn the_call_only_submits_and_the_callback_is_the_result() {
    check(
        vec![(100, answer()), (3_000, Happening::CallbackSuccess(json!({"done": 1.5})))],
        json!({"done": 1.5}),
        &["TaskSubmitted", "TaskSucceeded"],
        3_000,
    );
}

#[test]
fn a_callback_may_arrive_before_the_call_returns() {
    check(
        vec![(50, Happening::CallbackSuccess(json!("early"))), (100, answer())],
        json!("early"),
        &["TaskSucceeded"],
        50,
    );
}

#[test]
fn a_callback_can_fail_the_task() {
    check(
        vec![(100, answer()), (200, Happening::CallbackFailure("Mine", "why"))],
        json!({"Error": "Mine", "Cause": "why"}),
        &["TaskSubmitted", "TaskFailed"],
        200,
    );
}

#[test]
fn a_call_that_fails_fails_the_task() {
    check(
        vec![(100, Happening::Fail("Lambda.TooManyRequestsException", "slow down"))],
        json!({"Error": "Lambda.TooManyRequestsException", "Cause": "slow down"}),
        &["TaskFailed"],
        100,
    );
}

#[test]
fn a_missing_heartbeat_times_the_task_out() {
    let silence = json!({"Error": "States.HeartbeatTimeout", "Cause": ""});
    check(vec![(100, answer())], silence.clone(), &["TaskSubmitted", "TaskTimedOut"], 10_000);
    check(
        vec![(100, answer()), (8_000, Happening::Heartbeat), (17_000, Happening::Heartbeat)],
        silence,
        &["TaskSubmitted", "TaskTimedOut"],
        27_000,
    );
}

#[test]
fn heartbeats_do_not_extend_the_task_timeout() {
    let mut happenings = vec![(100, answer())];
    happenings.extend((1..20).map(|beat| (beat * 5_000, Happening::Heartbeat)));
    let timeout = json!({"Error": "States.Timeout", "Cause": ""});
    check(happenings, timeout, &["TaskSubmitted", "TaskTimedOut"], 60_000);
}

#[test]
fn a_token_works_once_and_only_for_its_execution() {
    let silent = |_: &str, _| Vec::new();
    let definition = definition(&machine());
    let mut run = Run::resume(&definition, &json!({"wait_s": 60, "beat_s": 10}), &silent, &[]);
    let Next::RunTasks { requests, .. } = run.settle() else { panic!("no task") };
    let request = &requests[0];
    let token = request.token.clone().unwrap();
    assert_eq!(request.arguments["Payload"]["token"], token);
    assert_eq!(token::locate(&token).unwrap().execution_arn, run.execution.start().execution_arn);
    let forged = token.replace("-3-", "-4-");
    let failure = || Failure::new("E", None);
    assert_eq!(
        run.execution.callback_succeeded("nonsense", &json!(1), BEGIN),
        Err(CallbackError::Unknown)
    );
    assert_eq!(
        run.execution.callback_failed(&forged, failure(), BEGIN),
        Err(CallbackError::Unknown)
    );
    let event = run.execution.callback_succeeded(&token, &json!(1), BEGIN).unwrap();
    run.record(vec![event]);
    assert_eq!(
        run.execution.callback_succeeded(&token, &json!(2), BEGIN),
        Err(CallbackError::TimedOut)
    );
    assert_eq!(run.execution.heartbeat(&token, BEGIN), Err(CallbackError::TimedOut));
    assert_eq!(
        run.execution.task_succeeded(request.event_id, &json!(3), BEGIN),
        Err(TaskClosed(request.event_id))
    );
}

#[test]
fn a_call_returns_once() {
    let silent = |_: &str, _| Vec::new();
    let definition = definition(&machine());
    let mut run = Run::resume(&definition, &json!({"wait_s": 60, "beat_s": 10}), &silent, &[]);
    let asked = run.settle();
    assert_eq!(run.settle(), asked, "it is asked for until it has answered");
    let Next::RunTasks { requests, .. } = asked else { panic!("no task") };
    let request = &requests[0];
    let event = run.execution.task_succeeded(request.event_id, &json!({}), BEGIN).unwrap();
    run.record(vec![event]);
    assert_eq!(run.settle(), Next::WaitUntil(BEGIN.plus_seconds(10)));
    assert_eq!(
        run.execution.task_succeeded(request.event_id, &json!({}), BEGIN),
        Err(TaskClosed(request.event_id))
    );
}
