//! Cuts a history after each event, replays the prefix and goes on: the rest must be the same.

use asl::execution::Execution;
use asl::history::Event;
use serde_json::{Value, json};

use crate::given::start;
use crate::recorded::{Replay, records};
use crate::run::{Happening, Run, Script, definition, run};

/// Most cuts per recording.
const CUTS_MAX: usize = 40;

/// Runs it once, then once more from every prefix of its history.
pub fn check(text: &Value, input: &Value, script: &Script<'_>) {
    let definition = definition(&text.to_string());
    let whole = run(&definition, input, script);
    assert!(whole.history.len() > 5, "{:?}", whole.types());
    for cut in 0..=whole.history.len() {
        let mut resumed = Run::resume(&definition, input, script, &whole.history[..cut]);
        resumed.run_to_end();
        assert_eq!(resumed.history, whole.history, "cut after {cut} events");
        assert_eq!(resumed.execution.outcome(), whole.execution.outcome());
    }
}

/// A typical workflow: a conditional put, an invocation, a loop of check and callback wait, an end.
fn workflow() -> Value {
    let retry = json!([{"ErrorEquals": ["States.TaskFailed"], "IntervalSeconds": 1, "MaxAttempts": 2, "JitterStrategy": "FULL"}]);
    json!({
        "QueryLanguage": "JSONata",
        "StartAt": "InitializeSession",
        "TimeoutSeconds": 3600,
        "States": {
            "InitializeSession": {
                "Type": "Task", "Resource": "arn:aws:states:::dynamodb:putItem",
                "Arguments": {"TableName": "t", "Item": {"PK": {"S": "{% 'SESSION#' & $states.input.session_id %}"}}},
                "Assign": {"wait_s": 5, "round": 0, "nonce": "{% $uuid() %}"},
                "Retry": retry.clone(),
                "Catch": [{"ErrorEquals": ["DynamoDB.ConditionalCheckFailedException"], "Next": "Duplicate"}],
                "Next": "InvokeAgent"
            },
            "InvokeAgent": {
                "Type": "Task", "Resource": "arn:aws:states:::lambda:invoke",
                "Arguments": {"FunctionName": "invoker", "Payload": {"draw": "{% $random() %}", "at": "{% $now() %}"}},
                "Retry": retry, "Output": "{% $states.result.Payload %}", "Next": "CheckStatus"
            },
            "CheckStatus": {
                "Type": "Choice", "Default": "Failure",
                "Choices": [
                    {"Condition": "{% $states.input.status = 'BUSY' %}", "Assign": {"round": "{% $round + 1 %}"}, "Next": "Wait"},
                    {"Condition": "{% $states.input.status = 'COMPLETED' %}", "Next": "Success"}
                ]
            },
            "Wait": {
                "Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
                "TimeoutSeconds": "{% $wait_s %}", "HeartbeatSeconds": "{% $wait_s - 1 %}",
                "Arguments": {"FunctionName": "poller", "Payload": {"token": "{% $states.context.Task.Token %}"}},
                "Assign": {"wait_s": "{% $wait_s * 2 %}"},
                "Catch": [{
                    "ErrorEquals": ["States.Timeout"], "Assign": {"wait_s": "{% $wait_s * 2 %}"},
                    "Output": {"status": "BUSY"}, "Next": "Breathe"
                }],
                "Next": "CheckStatus"
            },
            "Breathe": {"Type": "Wait", "Seconds": "{% $round %}", "Next": "CheckStatus"},
            "Success": {"Type": "Succeed", "Output": {"round": "{% $round %}", "nonce": "{% $nonce %}"}},
            "Duplicate": {"Type": "Succeed", "Output": "{% $states.input.Error %}"},
            "Failure": {"Type": "Fail", "Error": "{% $states.input.status %}", "Cause": "{% $string($round) %}"}
        }
    })
}

fn answer(value: Value) -> (i64, Happening) {
    (20, Happening::Answer(json!({ "Payload": value, "StatusCode": 200 })))
}

#[test]
fn a_completed_workflow_resumes_from_every_prefix() {
    let script = |state: &str, attempt: usize| match (state, attempt) {
        ("InitializeSession", 0) => {
            vec![(10, Happening::Fail("DynamoDB.ThrottlingException", "slow down"))]
        }
        ("InitializeSession", _) => vec![(10, Happening::Answer(json!({})))],
        ("InvokeAgent", 0) => vec![(30, Happening::Fail("Lambda.ServiceException", "once"))],
        ("InvokeAgent", _) => vec![answer(json!({"status": "BUSY"}))],
        // A heartbeat timeout, then a timeout despite heartbeats, then an early and a late
        // callback.
        ("Wait", 0) => vec![answer(json!({}))],
        ("Wait", 1) => (0..5)
            .map(|beat| (beat * 2_500, Happening::Heartbeat))
            .chain([answer(json!({}))])
            .collect(),
        ("Wait", 2) => {
            vec![(5, Happening::CallbackSuccess(json!({"status": "BUSY"}))), answer(json!({}))]
        }
        ("Wait", _) => vec![
            answer(json!({})),
            (9_000, Happening::Heartbeat),
            (15_000, Happening::CallbackSuccess(json!({"status": "COMPLETED"}))),
        ],
        other => panic!("{other:?}"),
    };
    check(&workflow(), &json!({"session_id": "s"}), &script);
}

#[test]
fn failed_and_duplicate_workflows_resume_from_every_prefix() {
    let fails = |state: &str, _: usize| match state {
        "InitializeSession" => vec![(10, Happening::Answer(json!({})))],
        _ => vec![answer(json!({"status": "FAILED"}))],
    };
    check(&workflow(), &json!({"session_id": "s"}), &fails);
    let duplicate = |_: &str, _: usize| {
        vec![(10, Happening::Fail("DynamoDB.ConditionalCheckFailedException", "there"))]
    };
    check(&workflow(), &json!({"session_id": "s"}), &duplicate);
}

#[test]
fn stopped_and_timed_out_ones_resume_from_every_prefix() {
    let stopped = |state: &str, _: usize| match state {
        "InitializeSession" => vec![(10, Happening::Answer(json!({})))],
        _ => vec![(40, Happening::Abort)],
    };
    check(&workflow(), &json!({"session_id": "s"}), &stopped);
    let silent = |state: &str, attempt: usize| match (state, attempt) {
        ("InitializeSession", 0) => vec![(10, Happening::Answer(json!({})))],
        _ => Vec::new(),
    };
    check(&workflow(), &json!({"session_id": "s"}), &silent);
}

/// A number below `bound`, derived from seed, state and attempt.
fn draw(seed: u64, state: &str, attempt: usize, what: u64, bound: u64) -> u64 {
    let mut hash = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (attempt as u64) << 32 ^ what;
    for byte in state.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    ((hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) % bound
}

#[test]
fn random_workflows_resume_from_every_prefix() {
    for seed in 0..24 {
        let script = |state: &str, attempt: usize| {
            let draw = |what, bound| draw(seed, state, attempt, what, bound);
            let at = draw(1, 9_000) as i64;
            let status = ["BUSY", "BUSY", "COMPLETED", "FAILED"]
                [if attempt > 6 { 2 } else { draw(2, 4) as usize }];
            let back = Happening::CallbackSuccess(json!({ "status": status }));
            match (state, draw(0, 8)) {
                ("InitializeSession" | "InvokeAgent", 0) if attempt < 2 => {
                    vec![(at, Happening::Fail("Some.Error", "x"))]
                }
                ("InitializeSession", _) => vec![(at, Happening::Answer(json!({})))],
                ("InvokeAgent", _) => vec![answer(json!({"status": "BUSY"}))],
                (_, 0 | 1) if attempt < 6 => vec![answer(json!({}))],
                (_, 2) if attempt < 6 => (0..4)
                    .map(|beat| (beat * 2_000, Happening::Heartbeat))
                    .chain([answer(json!({}))])
                    .collect(),
                (_, 3) => vec![(3, back), answer(json!({}))],
                (_, 4) if attempt < 6 => vec![
                    answer(json!({})),
                    (at, Happening::CallbackFailure("States.Timeout", "said so")),
                ],
                (_, 5) => vec![(at, Happening::Abort)],
                _ => vec![answer(json!({})), (at.min(3_000), back)],
            }
        };
        println!("seed {seed}");
        check(&workflow(), &json!({"session_id": "s"}), &script);
    }
}

#[test]
fn a_random_choice_resumes_from_every_prefix() {
    // After a cut between a choice and its successor, replay must reproduce random values, time,
    // and variables that the choice assigned.
    let text = json!({
        "QueryLanguage": "JSONata", "StartAt": "A",
        "States": {
            "A": {
                "Type": "Choice", "Default": "End",
                "Choices": [
                    {"Condition": "{% $exists($n) and $n > 9 %}", "Next": "End"},
                    {"Condition": "{% $random() < 0.5 %}", "Assign": {"n": "{% $exists($n) ? $n + 1 : 1 %}"}, "Next": "B"},
                    {"Condition": "{% true %}", "Assign": {"n": "{% $exists($n) ? $n + 2 : 2 %}"}, "Next": "C"}
                ]
            },
            "B": {"Type": "Wait", "Seconds": 1, "Next": "A"},
            "C": {"Type": "Pass", "Next": "A"},
            "End": {"Type": "Succeed", "Output": "{% $n %}"}
        }
    });
    check(&text, &json!({}), &|_, _| Vec::new());
}

#[test]
fn every_recording_resumes_from_every_prefix() {
    for record in records("asl_executions.jsonl") {
        let name = record["name"].as_str().unwrap();
        let definition = definition(&record["definition"].to_string());
        let mut whole = Replay::new(&definition, &record);
        let outcome = whole.run();
        // Long histories are cut at intervals, and always near their ends.
        let events = whole.history.len();
        let stride = events.div_ceil(CUTS_MAX).max(1);
        for cut in (0..=events).filter(|cut| cut % stride == 0 || cut + 3 > events) {
            let mut resumed = whole.cut(cut);
            assert_eq!(resumed.run(), outcome, "{name}: cut after {cut} events");
            assert_eq!(resumed.history, whole.history, "{name}: cut after {cut} events");
        }
    }
}

#[test]
fn a_damaged_history_is_rejected() {
    let text = json!({
        "QueryLanguage": "JSONata", "StartAt": "A",
        "States": {"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Succeed"}}
    });
    let definition = definition(&text.to_string());
    let history = run(&definition, &json!({}), &|_, _| Vec::new()).history;
    let refusal = |history: &[Event]| {
        let replayed = Execution::replay(definition.clone(), start(&json!({})), history);
        replayed.map(|_| ()).unwrap_err().to_string()
    };
    let without = |index| [&history[..index], &history[index + 1..]].concat();
    assert_eq!(refusal(&without(2)), "event 4 follows event 2");
    assert_eq!(refusal(&without(0)), "event 2 follows event 0");
    let mut swapped = history.clone();
    (swapped[1].kind, swapped[2].kind) = (history[2].kind.clone(), history[1].kind.clone());
    assert_eq!(refusal(&swapped), "event 2 (PassStateExited) cannot happen here");
    let after_the_end = Event { id: 7, ..history[3].clone() };
    let longer = [history.clone(), vec![after_the_end]].concat();
    assert_eq!(refusal(&longer), "event 7 (SucceedStateEntered) cannot happen here");
}
