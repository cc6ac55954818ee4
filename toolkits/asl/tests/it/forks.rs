//! `Parallel` and `Map`: concurrency, failures, and what each thread sees.

use asl::execution::{Next, Outcome};
use asl::history::Failure;
use serde_json::{Value, json};

use crate::given::BEGIN;
use crate::prefixes;
use crate::run::{Run, definition, run};

/// Runs a machine without tasks, then again from every prefix.
fn whole(text: &Value, input: &Value) -> (Vec<String>, Result<Value, (String, String)>, i64) {
    prefixes::check(text, input, &|_, _| Vec::new());
    let definition = definition(&text.to_string());
    let silent = |_: &str, _| Vec::new();
    let run = run(&definition, input, &silent);
    let failed = run.types().last().is_some_and(|last| last != "ExecutionSucceeded");
    let outcome = if failed { Err(run.failure()) } else { Ok(run.output()) };
    (run.types(), outcome, run.now.as_millis() - BEGIN.as_millis())
}

fn branch(name: &str, state: Value) -> Value {
    json!({"StartAt": name, "States": {name: state}})
}

fn each(fields: Value, state: Value) -> Value {
    let mut map = json!({"Type": "Map", "End": true, "ItemProcessor": branch("One", state)});
    map.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({"StartAt": "Each", "States": {"Each": map}})
}

#[test]
fn branches_run_at_once_and_join_in_definition_order() {
    let mut short = branch("Short", json!({"Type": "Wait", "Seconds": 10, "Next": "Say"}));
    short["States"]["Say"] = json!({"Type": "Pass", "Result": "short", "End": true});
    let long = branch("Long", json!({"Type": "Wait", "Seconds": 20, "End": true}));
    let all = json!({"Type": "Parallel", "End": true, "Branches": [long, short]});
    let machine = json!({"StartAt": "All", "States": {"All": all}});
    let (types, output, millis) = whole(&machine, &json!("in"));
    assert_eq!((output, millis), (Ok(json!(["in", "short"])), 20_000));
    assert_eq!(
        types[types.len() - 3..types.len() - 1],
        ["ParallelStateSucceeded", "ParallelStateExited"]
    );
}

#[test]
fn a_failed_branch_fails_the_parallel_state() {
    let machine = json!({"StartAt": "All", "States": {
        "All": {"Type": "Parallel", "Next": "Over", "Branches": [
            branch("Good", json!({"Type": "Pass", "End": true})),
            branch("Bad", json!({"Type": "Fail", "Error": "E", "Cause": "why"})),
        ],
            "Retry": [{"ErrorEquals": ["E"], "MaxAttempts": 1}],
            "Catch": [{"ErrorEquals": ["E"], "ResultPath": "$.error", "Next": "Over"}]},
        "Over": {"Type": "Succeed"}
    }});
    let (types, output, millis) = whole(&machine, &json!({"a": 1}));
    assert_eq!(output, Ok(json!({"a": 1, "error": {"Error": "E", "Cause": "why"}})));
    assert_eq!(millis, 1_000);
    let of_all: Vec<&str> =
        types.iter().map(String::as_str).filter(|name| name.starts_with("Parallel")).collect();
    assert_eq!(
        of_all,
        [
            "ParallelStateEntered",
            "ParallelStateStarted",
            "ParallelStateStarted",
            "ParallelStateFailed",
            "ParallelStateExited",
        ]
    );
}

#[test]
fn iterations_stay_within_max_concurrency() {
    let wait = json!({"Type": "Wait", "Seconds": 10, "End": true});
    for (concurrency, millis) in [(0, 10_000), (1, 40_000), (2, 20_000), (3, 20_000)] {
        let machine = each(json!({"MaxConcurrency": concurrency}), wait.clone());
        let (_, output, took) = whole(&machine, &json!([1, 2, 3, 4]));
        assert_eq!((output, took), (Ok(json!([1, 2, 3, 4])), millis), "{concurrency}");
    }
}

const EXCEEDED: &str = "States.ExceedToleratedFailureThreshold";

#[test]
fn a_map_tolerates_its_configured_failures() {
    let judge = json!({"Type": "Choice", "Default": "Bad", "Choices": [
        {"Variable": "$", "NumericGreaterThan": 1, "Next": "Good"}
    ]});
    for (fields, expected) in [
        (json!({"ToleratedFailureCount": 2}), Ok(json!([2, 3]))),
        (json!({"ToleratedFailurePercentage": 50}), Ok(json!([2, 3]))),
        (json!({"ToleratedFailureCount": 1}), Err(EXCEEDED)),
        (json!({}), Err("E")),
    ] {
        for mode in ["INLINE", "DISTRIBUTED"] {
            let mut machine = each(fields.clone(), judge.clone());
            let processor = &mut machine["States"]["Each"]["ItemProcessor"];
            processor["ProcessorConfig"] = json!({"Mode": mode, "ExecutionType": "STANDARD"});
            processor["States"]["Good"] = json!({"Type": "Succeed"});
            processor["States"]["Bad"] = json!({"Type": "Fail", "Error": "E"});
            let (_, outcome, _) = whole(&machine, &json!([0, 1, 2, 3]));
            let outcome = outcome.map_err(|(error, _)| error);
            // A run of a distributed map does not tell which failure was one too many.
            let expected = match (mode, expected.clone()) {
                ("DISTRIBUTED", Err(_)) => Err(EXCEEDED),
                (_, expected) => expected,
            };
            assert_eq!(outcome, expected.map_err(str::to_owned), "{fields} {mode}");
        }
    }
}

#[test]
fn items_are_batched_with_their_batch_input() {
    let fields = json!({"ItemBatcher": {"MaxItemsPerBatch": 2, "BatchInput": {"n.$": "$[0]"}}});
    let machine = each(fields, json!({"Type": "Pass", "End": true}));
    let (_, output, _) = whole(&machine, &json!([7, 8, 9]));
    let shared = json!({"n": 7});
    let batches = json!([
        {"BatchInput": shared, "Items": [7, 8]}, {"BatchInput": shared, "Items": [9]}
    ]);
    assert_eq!(output, Ok(batches));
}

#[test]
fn iterations_read_outer_variables_and_keep_their_own() {
    let machine = json!({"QueryLanguage": "JSONata", "StartAt": "Set", "States": {
        "Set": {"Type": "Pass", "Assign": {"outer": 10}, "Next": "Each"},
        "Each": {"Type": "Map", "Items": [1, 2], "Next": "Say", "ItemProcessor": {
            "StartAt": "Add", "States": {
                "Add": {"Type": "Pass", "Assign": {"inner": "{% $states.input + $outer %}"}, "Next": "Out"},
                "Out": {"Type": "Pass", "Output": "{% $inner %}", "End": true}
            }
        }},
        "Say": {"Type": "Pass", "Output": "{% [$states.input, $exists($inner)] %}", "End": true}
    }});
    let (_, output, _) = whole(&machine, &json!({}));
    assert_eq!(output, Ok(json!([11, 12, false])));
}

#[test]
fn a_distributed_map_calls_tasks_and_waits_in_its_history() {
    let wait = json!({"Type": "Wait", "Seconds": 1, "Next": "Call"});
    let mut machine = each(json!({"ToleratedFailureCount": 1}), wait);
    let processor = &mut machine["States"]["Each"]["ItemProcessor"];
    processor["ProcessorConfig"] = json!({"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"});
    processor["States"]["Call"] = json!({
        "Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": true,
        "Parameters": {"FunctionName": "f", "Payload.$": "$"},
    });
    let definition = definition(&machine.to_string());
    let answer = |_: &str, _| Vec::new();
    let mut run = Run::resume(&definition, &json!([1, 2]), &answer, &[]);
    let Next::WaitUntil(at) = run.settle() else { panic!("{:?}", run.types()) };
    run.now = at;
    let Next::RunTasks { requests, .. } = run.settle() else { panic!("{:?}", run.types()) };
    assert_eq!(requests.len(), 2);
    let at = run.execution.newest_at();
    let ok = run.execution.task_succeeded(requests[0].event_id, &json!("one"), at).unwrap();
    run.record(vec![ok]);
    let lost = Failure::new("E", None);
    let failed = run.execution.task_failed(requests[1].event_id, lost, at).unwrap();
    run.record(vec![failed]);
    assert_eq!(run.settle(), Next::Done(Outcome::Succeeded(r#"["one"]"#.to_owned())));
}

#[test]
fn calls_of_branches_run_together_until_one_fails() {
    let call = json!({"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
        "Parameters": {"FunctionName": "f", "Payload.$": "$$.Task.Token"}, "End": true});
    let machine = json!({"StartAt": "All", "States": {"All": {
        "Type": "Parallel", "End": true,
        "Branches": [branch("One", call.clone()), branch("Two", call)]
    }}});
    let silent = |_: &str, _| Vec::new();
    let definition = definition(&machine.to_string());
    let mut run = Run::resume(&definition, &json!({}), &silent, &[]);
    let Next::RunTasks { requests, .. } = run.settle() else { panic!("no tasks") };
    let states: Vec<&str> = requests.iter().map(|request| request.state.as_str()).collect();
    assert_eq!(states, ["One", "Two"]);
    assert_eq!(run.execution.open_tokens().len(), 2);
    assert_ne!(requests[0].token, requests[1].token);
    let token = requests[1].token.clone().unwrap();
    let event = run.execution.callback_succeeded(&token, &json!(2), BEGIN).unwrap();
    run.record(vec![event]);
    let failure = Failure::new("E", None);
    let event = run.execution.task_failed(requests[0].event_id, failure, BEGIN).unwrap();
    run.record(vec![event]);
    assert!(matches!(run.settle(), Next::Done(_)), "{:?}", run.types());
    assert_eq!(run.failure(), ("E".to_owned(), String::new()));
    assert!(run.execution.open_tasks().is_empty());
}

/// Id, previous event and type of each event.
fn chain(machine: &Value, input: &Value) -> Vec<(u64, u64, String)> {
    let run = run(&definition(&machine.to_string()), input, &|_, _| Vec::new());
    let events = run.history.iter();
    events.map(|event| (event.id, event.previous_event_id, event.kind.type_name())).collect()
}

#[track_caller]
fn check_chain(machine: &Value, input: &Value, expected: &[(u64, u64, &str)]) {
    let found = chain(machine, input);
    let found: Vec<_> = found.iter().map(|(id, last, name)| (*id, *last, name.as_str())).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_runtime_error_in_a_branch_ends_the_execution_at_once() {
    let catch = json!([{"ErrorEquals": ["States.ALL"], "Next": "Over"}]);
    let broken = json!({"Type": "Pass", "Parameters": {"m.$": "$.nope"}, "End": true});
    let machine = json!({"StartAt": "All", "States": {
        "All": {"Type": "Parallel", "End": true, "Branches": [branch("Fast", broken.clone())],
            "Catch": catch.clone()},
        "Over": {"Type": "Succeed"},
    }});
    let expected = [
        (1, 0, "ExecutionStarted"),
        (2, 0, "ParallelStateEntered"),
        (3, 2, "ParallelStateStarted"),
        (4, 3, "PassStateEntered"),
        (5, 4, "ExecutionFailed"),
    ];
    check_chain(&machine, &json!({"x": "a"}), &expected);
    let mut machine = each(json!({"Catch": catch}), broken);
    machine["States"]["Over"] = json!({"Type": "Succeed"});
    let expected = [
        (1, 0, "ExecutionStarted"),
        (2, 0, "MapStateEntered"),
        (3, 2, "MapStateStarted"),
        (4, 3, "MapIterationStarted"),
        (5, 4, "PassStateEntered"),
        (6, 5, "ExecutionFailed"),
    ];
    check_chain(&machine, &json!([{}]), &expected);
}

#[test]
fn a_nested_parallel_that_fails_fails_the_outer_one() {
    let bad = branch("Bad", json!({"Type": "Fail", "Error": "E"}));
    let inner = json!({"Type": "Parallel", "End": true, "Branches": [bad]});
    let machine = json!({"StartAt": "Outer", "States": {
        "Outer": {"Type": "Parallel", "End": true, "Branches": [branch("Inner", inner)]},
    }});
    let expected = [
        (1, 0, "ExecutionStarted"),
        (2, 0, "ParallelStateEntered"),
        (3, 2, "ParallelStateStarted"),
        (4, 3, "ParallelStateEntered"),
        (5, 4, "ParallelStateStarted"),
        (6, 5, "FailStateEntered"),
        (7, 6, "ParallelStateFailed"),
        (8, 7, "ParallelStateFailed"),
        (9, 8, "ExecutionFailed"),
    ];
    check_chain(&machine, &json!({}), &expected);
}

#[test]
fn an_item_selector_that_fails_later_names_the_start_of_its_map() {
    let fields = json!({"QueryLanguage": "JSONata", "MaxConcurrency": 1, "Items": [1, 0],
        "ItemSelector": {"of": "{% $states.context.Map.Item.Value = 1 ? 1 : $none %}"}});
    let mut machine = each(fields, json!({"Type": "Pass", "End": true}));
    machine["QueryLanguage"] = json!("JSONata");
    let expected = [
        (4, 3, "MapIterationStarted"),
        (5, 4, "PassStateEntered"),
        (6, 5, "PassStateExited"),
        (7, 6, "MapIterationSucceeded"),
    ];
    let found = chain(&machine, &json!({}));
    let found: Vec<_> = found.iter().map(|(id, last, name)| (*id, *last, name.as_str())).collect();
    assert_eq!(found[3..7], expected);
    let failed = found.iter().find(|(.., name)| *name == "EvaluationFailed").unwrap();
    assert_eq!(failed.1, 3, "assumed: {found:?}");
}
