//! `daybook workflow`: checks and runs state machines without a stack.

use std::fs;

use crate::harness::{Ran, run_in};

fn tried(deed: &str, machine: &str, input: &str) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("machine.json"), machine).unwrap();
    fs::write(folder.path().join("input.json"), input).unwrap();
    match deed {
        "run" => {
            run_in(folder.path(), &["workflow", "run", "machine.json", "--input", "input.json"])
        }
        _ => run_in(folder.path(), &["workflow", deed, "machine.json"]),
    }
}

#[test]
fn our_own_state_machine_is_one() {
    let ran = tried("check", workflow::state_machine::TEXT, "");
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, ""), "{ran:#?}");
}

#[test]
fn check_reports_every_error_with_its_location() {
    let machine = r#"{"StartAt": "A", "States": {
        "A": {"Type": "Pass", "Next": "B", "Foo": 1},
        "B": {"Type": "Wait", "End": true}
    }}"#;
    let ran = tried("check", machine, "");
    assert_eq!(ran.exit, 1, "{ran:#?}");
    insta::assert_snapshot!(ran.stdout, @r"
    SCHEMA_VALIDATION_FAILED: Field 'Foo' is not supported at /States/A
    SCHEMA_VALIDATION_FAILED: This object should have only one of the following fields: [SecondsPath, Seconds, TimestampPath, Timestamp] at /States/B
    ");
}

#[test]
fn a_state_machine_is_run_and_its_history_is_a_table() {
    let machine = r#"{"StartAt": "Wait", "States": {
        "Wait": {"Type": "Wait", "Seconds": 60, "Next": "Greet"},
        "Greet": {"Type": "Pass", "Parameters": {"text.$": "States.Format('hello {}', $.name)"}, "End": true}
    }}"#;
    let ran = tried("run", machine, r#"{"name": "ann"}"#);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    let column = |at: usize| -> Vec<&str> {
        ran.stdout.lines().skip(1).filter_map(|line| line.split_whitespace().nth(at)).collect()
    };
    assert_eq!(column(2), ["0.000", "0.000", "60.000", "60.000", "60.000", "60.000"]);
    assert_eq!(
        column(3),
        [
            "ExecutionStarted",
            "WaitStateEntered",
            "WaitStateExited",
            "PassStateEntered",
            "PassStateExited",
            "ExecutionSucceeded"
        ]
    );
    assert!(ran.stdout.trim_end().ends_with(r#"{"text":"hello ann"}"#), "{}", ran.stdout);
}

#[test]
fn an_unsupported_task_fails_with_the_supported_ones() {
    let machine = r#"{"StartAt": "Call", "States": {
        "Call": {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "End": true}
    }}"#;
    let ran = tried("run", machine, "{}");
    assert_eq!(ran.exit, 1, "{ran:#?}");
    assert!(ran.stdout.contains("TaskFailed"), "{ran:#?}");
}

/// `dev` with an invalid functions file: reports the error and starts nothing.
fn refused(functions: &str) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let machine = r#"{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}"#;
    fs::write(folder.path().join("machine.json"), machine).unwrap();
    fs::write(folder.path().join("functions.json"), functions).unwrap();
    run_in(
        folder.path(),
        &[
            "dev",
            "--listen",
            "127.0.0.1:0",
            "--workflow",
            "machine.json",
            "--functions",
            "functions.json",
        ],
    )
}

#[test]
fn an_invalid_functions_file_is_refused_with_its_format() {
    let ran = refused(r#"{"functions": {"f": {"command": "x", "timeout_s": 0, "args": []}}}"#);
    assert_eq!((ran.exit, ran.stdout.as_str()), (2, ""), "{ran:#?}");
    assert!(
        ran.stderr.contains("function `f`: `timeout_s` must be a whole number from 1 to 900"),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains("hint: its format is"), "{ran:#?}");
}

#[test]
fn functions_need_no_workflow_file() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run_in(folder.path(), &["dev", "--functions", "nowhere.json"]);
    assert_eq!(ran.exit, 2, "{ran:#?}");
    assert!(ran.stderr.contains("nowhere.json"), "{ran:#?}");
}

/// Checks and runs what nobody should write, and returns what is said of it; the program must come to
/// its end by itself.
fn hostile(machine: &str) -> (Ran, Ran) {
    (tried("check", machine, "{}"), tried("run", machine, "{}"))
}

fn saying(expression: &str) -> String {
    let output = format!("{{% {expression} %}}");
    serde_json::json!({"QueryLanguage": "JSONata", "StartAt": "Say", "States": {
        "Say": {"Type": "Pass", "Output": output, "End": true},
    }})
    .to_string()
}

#[test]
fn an_invalid_definition_is_refused_by_check_and_run() {
    let deep = "[".repeat(100_000);
    let next = r#"{"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"}}}"#;
    for machine in ["", "{", "[]", "7", r#"{"States": 1}"#, deep.as_str(), next] {
        let start = machine.get(..20).unwrap_or(machine);
        let (checked, run) = hostile(machine);
        assert_eq!((checked.exit, run.exit), (1, 1), "{start}: {checked:#?}");
        assert_eq!(checked.stdout, run.stdout, "{start}");
        assert!(!checked.stdout.trim().is_empty(), "{start}");
    }
    let large = format!(r#"{{"Comment": "{}"}}"#, "x".repeat(2 * 1024 * 1024));
    let (checked, run) = hostile(&large);
    assert_eq!((checked.exit, run.exit), (2, 2));
    assert!(checked.stderr.contains("larger than 1048576 bytes"), "{checked:#?}");
}

#[test]
fn an_endless_state_machine_stops_at_the_history_limit() {
    let machine = r#"{"StartAt": "A", "States": {
        "A": {"Type": "Pass", "Next": "B"},
        "B": {"Type": "Choice", "Default": "A", "Choices": [{"Variable": "$.never", "IsPresent": true, "Next": "Out"}]},
        "Out": {"Type": "Succeed"}
    }}"#;
    let (checked, run) = hostile(machine);
    assert_eq!((checked.exit, run.exit), (0, 1));
    assert_eq!(run.stdout.lines().count(), 1 + 25_000);
    let last = run.stdout.lines().last().unwrap();
    assert!(last.contains("ExecutionFailed") && last.contains("25000"), "{last}");
}

#[test]
fn an_unbounded_expression_fails_its_state_with_a_reason() {
    for expression in [
        "($f := function() { $f() }; $f())",
        "$reduce([1..60], function($grown, $i) { $grown & $grown }, 'x')",
        "$reduce([1..60], function($grown, $i) { {'a': $grown, 'b': $grown} }, 1)",
        "$string($reduce([1..60], function($grown, $i) { {'a': $grown, 'b': $grown} }, 1))",
        "$pad('x', 2000000000)",
        "($x := $pad('', 100000); $map([1..50000], function() { $x & $x }))",
        "$replace($pad('x', 100000, 'x'), 'x', $pad('y', 100000, 'y'))",
        "$replace($pad('x', 100000, 'x'), /x/, $pad('y', 100000, 'y'))",
        "[1..10000000]",
        "$match($pad('', 100000, 'a'), /(a*)*(a*)*b/)",
    ] {
        let (checked, run) = hostile(&saying(expression));
        assert_eq!((checked.exit, run.exit), (0, 1), "{expression}: {run:#?}");
        assert!(run.stdout.contains("States.QueryEvaluationError"), "{expression}: {}", run.stdout);
    }
}

#[test]
fn a_run_calls_only_the_functions_of_the_file() {
    let machine = r#"{"QueryLanguage": "JSONata", "StartAt": "Echo", "States": {
        "Echo": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke",
            "Arguments": {"FunctionName": "echo", "Payload": {"said": "{% $states.input.name %}"}},
            "Output": "{% $states.result.Payload.said %}", "Next": "Nobody"},
        "Nobody": {"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:000000000000:function:nobody",
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Put"}], "End": true},
        "Put": {"Type": "Task", "Resource": "arn:aws:states:::events:putEvents", "Arguments": {"Entries": []}, "End": true}
    }}"#;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("machine.json", machine);
    write("input.json", r#"{"name": "ann"}"#);
    write("functions.json", r#"{"functions": {"echo": {"command": "/bin/cat"}}}"#);
    let run = |arguments: &[&str]| {
        let command = ["--json", "workflow", "run", "machine.json", "--input", "input.json"];
        run_in(folder.path(), &[&command, arguments].concat())
    };
    let ran = run(&["--functions", "functions.json"]);
    assert_eq!(ran.exit, 1, "{ran:#?}");
    assert!(ran.stdout.contains(r#""output":"\"ann\"""#), "{}", ran.stdout);
    assert!(ran.stdout.contains("events:putEvents' is not one that this machine offers"));
    assert!(ran.stdout.contains("Lambda.ResourceNotFoundException"), "{}", ran.stdout);
    let without = run(&[]);
    assert_eq!(without.exit, 1, "{without:#?}");
    assert!(without.stdout.contains("Function not found: echo"), "{}", without.stdout);
    let unreadable = run(&["--functions", "nowhere.json"]);
    assert_eq!(unreadable.exit, 2, "{unreadable:#?}");
}

/// Source: AWS, "Testing state machines with Step Functions Local", the example `MockConfigFile.json`, with a
/// definition and expectations.
#[test]
fn a_mock_config_file_tests_paths_and_outputs() {
    let machine = r#"{"StartAt": "LambdaState", "States": {
        "LambdaState": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke",
            "Parameters": {"FunctionName": "HelloWorldFunction", "Payload.$": "$"},
            "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 2, "MaxAttempts": 3, "BackoffRate": 2}],
            "Next": "SQSState"},
        "SQSState": {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage",
            "Parameters": {"QueueUrl": "https://sqs.us-east-1.amazonaws.com/1/myQueue", "MessageBody.$": "$"},
            "End": true}
    }}"#;
    let tests = r#"{
        "StateMachines": {"LambdaSQSIntegration": {
            "Definition": "machine.json",
            "TestCases": {
                "HappyPath": {"LambdaState": "MockedLambdaSuccess", "SQSState": "MockedSQSSuccess"},
                "RetryPath": {"LambdaState": "MockedLambdaRetry", "SQSState": "MockedSQSSuccess"},
                "HybridPath": {"SQSState": "MockedSQSSuccess"}
            },
            "Expectations": {
                "HappyPath": {"Path": ["LambdaState", "SQSState"]},
                "RetryPath": {"States": {"LambdaState": {"Visits": 1, "Output": {"StatusCode": 200}}}}
            }
        }},
        "MockedResponses": {
            "MockedLambdaSuccess": {"0": {"Return": {"StatusCode": 200, "Payload": {"body": "Hello"}}}},
            "MockedLambdaRetry": {
                "0": {"Throw": {"Error": "Lambda.ResourceNotReadyException", "Cause": "Lambda resource is not ready."}},
                "1-2": {"Throw": {"Error": "Lambda.TimeoutException", "Cause": "Lambda timed out."}},
                "3": {"Return": {"StatusCode": 200}}
            },
            "MockedSQSSuccess": {"0": {"Return": {"MD5OfMessageBody": "3bcb6e8e-7h85-4375-b0bc-1a59812c6e51"}}}
        }
    }"#;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("machine.json"), machine).unwrap();
    fs::write(folder.path().join("tests.json"), tests).unwrap();
    let ran = run_in(folder.path(), &["workflow", "test", "tests.json"]);
    assert_eq!(ran.exit, 1, "{ran:#?}");
    assert_eq!(
        ran.stdout,
        "ok LambdaSQSIntegration/HappyPath\n\
         ok LambdaSQSIntegration/RetryPath\n\
         failed LambdaSQSIntegration/HybridPath\n  \
         the state LambdaState calls arn:aws:states:::lambda:invoke and has no mock\n"
    );
    fs::write(folder.path().join("tests.json"), tests.replace("HybridPath", "X")).unwrap();
    let ran = run_in(folder.path(), &["--json", "workflow", "test", "tests.json"]);
    assert_eq!(
        (ran.json()[0]["case"].as_str(), ran.json()[0]["passed"].as_bool()),
        (Some("HappyPath"), Some(true))
    );
}
