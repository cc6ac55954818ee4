//! State machines, checked and run without a stack.

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
fn everything_that_is_wrong_is_named_with_its_place() {
    let machine = r#"{"StartAt": "A", "States": {
        "A": {"Type": "Pass", "Next": "B", "Foo": 1},
        "B": {"Type": "Wait", "End": true}
    }}"#;
    let ran = tried("check", machine, "");
    assert_eq!(ran.exit, 1, "{ran:#?}");
    insta::assert_snapshot!(ran.stdout, @r"
    SCHEMA_VALIDATION_FAILED: Field 'Foo' is not supported at /States/A/Foo
    SCHEMA_VALIDATION_FAILED: Exactly one of 'Seconds' and 'Timestamp' is required at /States/B
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
fn a_state_that_calls_a_service_says_what_can_be_run() {
    let machine = r#"{"StartAt": "Call", "States": {
        "Call": {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "End": true}
    }}"#;
    let ran = tried("run", machine, "{}");
    assert_eq!(ran.exit, 1, "{ran:#?}");
    assert!(ran.stdout.contains("TaskFailed"), "{ran:#?}");
}
