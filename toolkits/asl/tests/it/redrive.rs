//! Redrives: what runs again, what is kept, and that every prefix continues the same way.

use asl::execution::NotRedrivable;
use asl::history::EventKind;
use serde_json::{Value, json};

use crate::run::{Happening, Happenings, Run, Script, definition, run};

const TASK: &str = "arn:aws:states:::lambda:invoke";

fn task() -> Value {
    json!({"Type": "Task", "Resource": TASK, "End": true})
}

fn machine(state: Value) -> Value {
    json!({"StartAt": "A", "States": {"A": state}})
}

fn answers(value: Value) -> Happenings {
    vec![(10, Happening::Answer(value))]
}

fn fails() -> Happenings {
    vec![(10, Happening::Fail("Broken", "as scripted"))]
}

/// Runs until it fails, redrives it once, and resumes it from every prefix of what follows.
fn redriven<'a>(text: &Value, input: &Value, script: &'a Script<'a>) -> Run<'a> {
    let definition = definition(&text.to_string());
    let mut whole = run(&definition, input, script);
    let ended = whole.history.len();
    whole.now = whole.now.plus_seconds(100);
    let event = whole.execution.redrive(whole.now).unwrap();
    whole.record(vec![event]);
    whole.run_to_end();
    for cut in ended + 1..=whole.history.len() {
        let mut resumed = Run::resume(&definition, input, script, &whole.history[..cut]);
        resumed.run_to_end();
        assert_eq!(resumed.history, whole.history, "cut after {cut} events");
    }
    whole
}

/// The events from the redrive on: type and previous event.
fn after(run: &Run<'_>) -> Vec<(String, u64)> {
    let events = run.history.iter();
    let redriven =
        |event: &&asl::history::Event| !matches!(event.kind, EventKind::ExecutionRedriven { .. });
    let events = events.skip_while(redriven);
    events.map(|event| (event.kind.type_name(), event.previous_event_id)).collect()
}

fn types(run: &Run<'_>) -> Vec<String> {
    after(run).into_iter().map(|(event_type, _)| event_type).collect()
}

#[test]
fn a_failed_task_is_scheduled_again_and_its_retries_count_anew() {
    let mut text = task();
    text["Retry"] = json!([{"ErrorEquals": ["Broken"], "MaxAttempts": 1, "IntervalSeconds": 2}]);
    text["Parameters"] =
        json!({"count.$": "$$.Execution.RedriveCount", "retries.$": "$$.State.RetryCount"});
    let script = |_: &str, n: usize| if n < 3 { fails() } else { answers(json!(7)) };
    let run = redriven(&machine(text), &json!({}), &script);
    assert_eq!(run.output(), json!(7));
    let expected = [
        ("ExecutionRedriven", 9),
        ("TaskScheduled", 10),
        ("TaskStarted", 11),
        ("TaskFailed", 12),
        ("TaskScheduled", 13),
        ("TaskStarted", 14),
        ("TaskSucceeded", 15),
        ("TaskStateExited", 16),
        ("ExecutionSucceeded", 17),
    ];
    let expected = expected.map(|(event_type, previous)| (event_type.to_owned(), previous));
    assert_eq!(after(&run), expected);
    let parameters = run.history.iter().filter_map(|event| match &event.kind {
        EventKind::TaskScheduled(task) => Some(task.parameters.as_str()),
        _ => None,
    });
    let expected = [(0, 0), (0, 1), (1, 0), (1, 1)];
    let expected =
        expected.map(|(count, retries)| format!(r#"{{"count":{count},"retries":{retries}}}"#));
    assert_eq!(parameters.collect::<Vec<_>>(), expected);
}

#[test]
fn a_map_runs_only_its_failed_and_missing_iterations_again() {
    let text = machine(json!({
        "Type": "Map", "MaxConcurrency": 1, "End": true,
        "ItemProcessor": {"StartAt": "T", "States": {"T": task()}},
    }));
    // The second iteration fails at first, and so does the redriven one.
    let script = |_: &str, n: usize| if n == 1 { fails() } else { answers(json!(n)) };
    let run = redriven(&text, &json!([1, 2, 3]), &script);
    assert_eq!(run.output(), json!([0, 2, 3]));
    let begun = |event_type: &str| run.types().iter().filter(|it| *it == event_type).count();
    assert_eq!((begun("MapIterationStarted"), begun("MapStateStarted")), (3, 1));
    assert_eq!(types(&run)[..2], ["ExecutionRedriven", "TaskScheduled"]);
}

#[test]
fn a_redriven_map_keeps_to_its_concurrency() {
    let text = machine(json!({
        "Type": "Map", "MaxConcurrency": 1, "ToleratedFailureCount": 1, "End": true,
        "ItemProcessor": {"StartAt": "T", "States": {"T": task()},
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}},
    }));
    let script = |_: &str, n: usize| if n < 2 { fails() } else { answers(json!(n)) };
    let run = redriven(&text, &json!([1, 2, 3]), &script);
    assert_eq!(run.output(), json!([2, 3, 4]));
    let open = |run: &Run<'_>| {
        let mut open: i32 = 0;
        let mut most = 0;
        for event_type in run.types() {
            open += i32::from(event_type == "TaskScheduled");
            open -= i32::from(event_type.starts_with("TaskSuc") || event_type == "TaskFailed");
            most = open.max(most);
        }
        most
    };
    assert_eq!(open(&run), 1);
}

#[test]
fn a_parallel_runs_only_the_branches_again_that_did_not_succeed() {
    let branch = |name: &str, state: Value| json!({"StartAt": name, "States": {name: state}});
    let text = machine(json!({"Type": "Parallel", "End": true, "Branches": [
        branch("Quick", json!({"Type": "Pass", "Result": "kept", "End": true})),
        branch("Slow", json!({"Type": "Wait", "Seconds": 3, "End": true})),
        branch("Call", task()),
    ]}));
    let script = |_: &str, n: usize| if n == 0 { fails() } else { answers(json!("again")) };
    let run = redriven(&text, &json!({}), &script);
    assert_eq!(run.output(), json!(["kept", {}, "again"]));
    let entered = |name: &str| {
        let entered = run.history.iter();
        entered.filter(|event| matches!(&event.kind, EventKind::StateEntered { name: it, .. } if it == name)).count()
    };
    assert_eq!((entered("Quick"), entered("Slow"), entered("Call")), (1, 1, 1));
    // The wait began again with the redrive.
    let redriven_at = run.millis_of("ExecutionRedriven")[0];
    assert_eq!(run.millis_of("WaitStateExited"), [redriven_at + 3_000]);
}

#[test]
fn a_nested_parallel_that_failed_is_redriven_inside_out() {
    let branch = |name: &str, state: Value| json!({"StartAt": name, "States": {name: state}});
    let inner = json!({"Type": "Parallel", "End": true, "Branches": [
        branch("Done", json!({"Type": "Pass", "Result": 1, "End": true})), branch("Call", task()),
    ]});
    let text = machine(json!({"Type": "Parallel", "End": true, "Branches": [
        branch("Inner", inner), branch("Other", json!({"Type": "Pass", "Result": 2, "End": true})),
    ]}));
    let script = |_: &str, n: usize| if n == 0 { fails() } else { answers(json!(3)) };
    let run = redriven(&text, &json!({}), &script);
    assert_eq!(run.output(), json!([[1, 3], 2]));
    assert_eq!(run.types().iter().filter(|it| *it == "PassStateEntered").count(), 2);
}

#[test]
fn a_fail_state_fails_again() {
    let text = machine(json!({"Type": "Fail", "Error": "E", "Cause": "c"}));
    let run = redriven(&text, &json!({}), &|_, _| Vec::new());
    assert_eq!(run.failure(), ("E".to_owned(), "c".to_owned()));
    assert_eq!(types(&run), ["ExecutionRedriven", "FailStateEntered", "ExecutionFailed"]);
}

#[test]
fn an_aborted_callback_task_gets_a_new_token() {
    let mut state = task();
    state["Resource"] = json!(format!("{TASK}.waitForTaskToken"));
    state["Parameters"] = json!({"token.$": "$$.Task.Token"});
    let script = |_: &str, n: usize| match n {
        0 => vec![(10, Happening::Abort)],
        _ => vec![(10, Happening::CallbackSuccess(json!("late")))],
    };
    let run = redriven(&machine(state), &json!({}), &script);
    assert_eq!(run.output(), json!("late"));
}

#[test]
fn the_machines_timeout_counts_from_the_redrive() {
    let mut text = machine(json!({"Type": "Wait", "Seconds": 20, "End": true}));
    text["TimeoutSeconds"] = json!(10);
    let run = redriven(&text, &json!({}), &|_, _| Vec::new());
    assert_eq!(run.millis_of("ExecutionTimedOut"), [10_000, 120_000]);
}

#[test]
fn a_failed_run_of_a_distributed_map_is_redriven() {
    let text = machine(json!({
        "Type": "Map", "End": true,
        "ItemProcessor": {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "E"}},
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}},
    }));
    let run = redriven(&text, &json!([1]), &|_, _| Vec::new());
    assert_eq!(types(&run)[..3], ["ExecutionRedriven", "MapRunRedriven", "MapRunFailed"]);
}

#[test]
fn a_state_whose_data_were_too_large_runs_again_as_a_whole() {
    let large = "x".repeat(200 * 1024);
    let text = machine(json!({
        "Type": "Map", "MaxConcurrency": 1, "End": true,
        "ItemProcessor": {"StartAt": "T", "States": {"T": task()}},
    }));
    let script = |_: &str, n: usize| answers(if n < 2 { json!(large) } else { json!(n) });
    let run = redriven(&text, &json!([1, 2]), &script);
    assert_eq!(run.output(), json!([2, 3]));
    assert_eq!(types(&run)[..2], ["ExecutionRedriven", "MapStateStarted"]);
}

#[test]
fn only_an_execution_that_ended_without_success_is_redriven() {
    let text = definition(&machine(json!({"Type": "Pass", "End": true})).to_string());
    let run = run(&text, &json!({}), &|_, _| Vec::new());
    assert_eq!(run.execution.redrive(run.now), Err(NotRedrivable::Succeeded));
    let mut run = Run::resume(&text, &json!({}), &|_, _| Vec::new(), &run.history[..2]);
    assert_eq!(run.execution.redrive(run.now), Err(NotRedrivable::Running));
    let looping = json!({"StartAt": "A", "States": {"A": {"Type": "Choice", "Default": "A",
        "Choices": [{"Variable": "$.end", "IsPresent": true, "Next": "B"}]}, "B": {"Type": "Succeed"}}});
    let looping = definition(&looping.to_string());
    run = Run::resume(&looping, &json!({}), &|_, _| Vec::new(), &[]);
    run.run_to_end();
    assert_eq!(run.execution.redrive(run.now), Err(NotRedrivable::HistoryFull));
}
