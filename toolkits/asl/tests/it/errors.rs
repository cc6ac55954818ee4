//! Retry and Catch, timeouts, and what fails an execution.

use asl::execution::{AlreadyEnded, Outcome, PAYLOAD_BYTES_MAX};
use asl::history::Failure;
use serde_json::{Value, json};

use crate::given::BEGIN;
use crate::run::{Happening, definition, run};

/// A machine with one task `Work` with these fields, and a `Pass` named `Rescue` if it has a
/// `Catch`.
fn machine(fields: Value) -> String {
    let mut task =
        json!({"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": true});
    let rescued = fields.get("Catch").is_some();
    task.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let mut states = json!({ "Work": task });
    if rescued {
        states["Rescue"] = json!({"Type": "Pass", "Output": {"in": "{% $states.input %}", "seen": "{% $exists($seen) ? $seen : 'nothing' %}"}, "End": true});
    }
    json!({"QueryLanguage": "JSONata", "StartAt": "Work", "States": states}).to_string()
}

fn fails(error: &'static str) -> Vec<(i64, Happening)> {
    vec![(0, Happening::Fail(error, "because"))]
}

fn answers(value: Value) -> Vec<(i64, Happening)> {
    vec![(0, Happening::Answer(value))]
}

#[test]
fn a_retrier_backs_off_to_its_maximum_delay_then_stops() {
    let definition = definition(&machine(json!({"Retry": [{
        "ErrorEquals": ["E"], "IntervalSeconds": 2, "BackoffRate": 3, "MaxAttempts": 4, "MaxDelaySeconds": 10
    }]})));
    let run = run(&definition, &json!({}), &|_, _| fails("E"));
    // 2, 6, 18 cut to 10, 10.
    assert_eq!(run.millis_of("TaskScheduled"), [0, 2_000, 8_000, 18_000, 28_000]);
    assert_eq!(run.failure(), ("E".to_owned(), "because".to_owned()));
}

#[test]
fn full_jitter_stays_below_the_delay_and_is_replayed() {
    let definition = definition(&machine(json!({"Retry": [{
        "ErrorEquals": ["States.TaskFailed"], "IntervalSeconds": 100, "BackoffRate": 1, "JitterStrategy": "FULL"
    }]})));
    let times = || run(&definition, &json!({}), &|_, _| fails("E")).millis_of("TaskScheduled");
    let first = times();
    assert_eq!(first, times());
    assert_eq!(first.len(), 4);
    assert!(first.windows(2).all(|pair| pair[1] - pair[0] < 100_000), "{first:?}");
    assert_ne!(first[1] * 2, first[2], "each delay is drawn anew");
}

#[test]
fn the_first_matching_retrier_decides_and_counts_alone() {
    let definition = definition(&machine(json!({
        "Retry": [
            {"ErrorEquals": ["A", "B"], "IntervalSeconds": 1, "BackoffRate": 2, "MaxAttempts": 2},
            {"ErrorEquals": ["C"], "IntervalSeconds": 5},
            {"ErrorEquals": ["States.ALL"], "MaxAttempts": 99}
        ],
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Rescue"}]
    })));
    // AWS's own example: A, B, C, B; the last exhausts the first retrier and does not fall through
    // to the third.
    let script = |_: &str, attempt: usize| fails(["A", "B", "C", "B"][attempt]);
    let run = run(&definition, &json!({}), &script);
    assert_eq!(run.millis_of("TaskScheduled"), [0, 1_000, 3_000, 8_000]);
    assert_eq!(run.output()["in"]["Error"], "B");
}

#[test]
fn retry_counts_reset_per_visit_and_are_in_the_context() {
    let text = json!({
        "QueryLanguage": "JSONata",
        "StartAt": "Work",
        "States": {
            "Work": {
                "Type": "Task", "Resource": "arn:aws:states:::lambda:invoke",
                "Arguments": {"retry": "{% $states.context.State.RetryCount %}"},
                "Assign": {"rounds": "{% ($exists($rounds) ? $rounds : 0) + 1 %}"},
                "Retry": [{"ErrorEquals": ["E"], "MaxAttempts": 1}],
                "Next": "Again"
            },
            "Again": {
                "Type": "Choice", "Default": "End",
                "Choices": [{"Condition": "{% $rounds < 3 %}", "Next": "Work"}]
            },
            "End": {"Type": "Succeed", "Output": "{% $rounds %}"}
        }
    });
    let definition = definition(&text.to_string());
    let script = |_: &str, attempt: usize| {
        if attempt.is_multiple_of(2) { fails("E") } else { answers(json!(1)) }
    };
    let run = run(&definition, &json!({}), &script);
    assert_eq!(run.output(), json!(3));
    let parameters: Vec<String> = run
        .history
        .iter()
        .map(|event| {
            serde_json::to_value(event).unwrap()["taskScheduledEventDetails"]["parameters"]
                .to_string()
        })
        .filter(|text| text != "null")
        .collect();
    let (first, second) = (r#""{\"retry\":0}""#, r#""{\"retry\":1}""#);
    assert_eq!(parameters, [first, second, first, second, first, second]);
}

#[test]
fn a_catcher_reads_the_error_assigns_and_continues() {
    let definition = definition(&machine(json!({"Catch": [
        {"ErrorEquals": ["Other"], "Next": "Rescue"},
        {
            "ErrorEquals": ["DynamoDB.ConditionalCheckFailedException"],
            "Assign": {"seen": "{% $states.errorOutput.Error & ' at ' & $states.input.at %}"},
            "Output": {"cause": "{% $states.errorOutput.Cause %}"},
            "Next": "Rescue"
        },
        {"ErrorEquals": ["States.ALL"], "Next": "Rescue"}
    ]})));
    let caught =
        |error| run(&definition, &json!({"at": "noon"}), &move |_, _| fails(error)).output();
    assert_eq!(
        caught("DynamoDB.ConditionalCheckFailedException"),
        json!({"in": {"cause": "because"}, "seen": "DynamoDB.ConditionalCheckFailedException at noon"}),
    );
    assert_eq!(
        caught("Else"),
        json!({"in": {"Error": "Else", "Cause": "because"}, "seen": "nothing"})
    );
}

#[test]
fn an_error_while_catching_is_not_caught_again() {
    let definition = definition(&machine(json!({"Catch": [
        {"ErrorEquals": ["States.ALL"], "Output": "{% $nothing %}", "Next": "Rescue"}
    ]})));
    let run = run(&definition, &json!({}), &|_, _| fails("E"));
    let (error, cause) = run.failure();
    assert_eq!(error, "States.QueryEvaluationError");
    assert!(cause.contains("'Catch[0]/Output'"), "{cause}");
}

#[test]
fn a_bad_expression_of_a_task_can_be_retried_and_caught() {
    let definition = definition(&machine(json!({
        "Arguments": "{% $states.input.no %}",
        "Retry": [{"ErrorEquals": ["States.QueryEvaluationError"], "MaxAttempts": 2}],
        "Catch": [{"ErrorEquals": ["States.QueryEvaluationError"], "Next": "Rescue"}]
    })));
    let run = run(&definition, &json!({}), &|_, _| Vec::new());
    assert_eq!(run.millis_of("EvaluationFailed"), [0, 1_000, 3_000]);
    assert_eq!(run.output()["in"]["Error"], "States.QueryEvaluationError");
}

#[test]
fn a_task_timeout_is_caught_and_the_machine_timeout_not() {
    let fields = json!({"TimeoutSeconds": 5, "Catch": [{"ErrorEquals": ["States.Timeout"], "Next": "Rescue"}]});
    let text = machine(fields);
    let silent = |_: &str, _| Vec::new();
    let caught = run(&definition(&text), &json!({}), &silent);
    assert_eq!(caught.output()["in"], json!({"Error": "States.Timeout", "Cause": ""}));
    assert_eq!(caught.millis_of("TaskTimedOut"), [5_000]);
    let mut machine: Value = serde_json::from_str(&text).unwrap();
    machine["TimeoutSeconds"] = json!(3);
    let ended = run(&definition(&machine.to_string()), &json!({}), &silent);
    assert_eq!(ended.execution.outcome().unwrap().status(), "TIMED_OUT");
    assert_eq!(ended.millis_of("ExecutionTimedOut"), [3_000]);
}

#[test]
fn an_execution_is_aborted_once() {
    let definition = definition(&machine(json!({})));
    let run = run(&definition, &json!({}), &|_, _| vec![(7, Happening::Abort)]);
    assert_eq!(run.failure(), ("Stop".to_owned(), "by hand".to_owned()));
    assert_eq!(run.execution.outcome().unwrap().status(), "ABORTED");
    assert_eq!(run.execution.abort(Failure::default(), BEGIN), Err(AlreadyEnded));
}

#[test]
fn a_result_over_the_limit_fails_its_task() {
    let definition = definition(&machine(json!({"Catch": [
        {"ErrorEquals": ["States.DataLimitExceeded"], "Next": "Rescue"}
    ]})));
    let fits = json!("a".repeat(PAYLOAD_BYTES_MAX - 2));
    assert_eq!(run(&definition, &json!({}), &|_, _| answers(fits.clone())).output(), fits);
    let too_large = json!("a".repeat(PAYLOAD_BYTES_MAX - 1));
    let script = |_: &str, _| answers(too_large.clone());
    let run = run(&definition, &json!({}), &script);
    assert_eq!(run.output()["in"]["Error"], "States.DataLimitExceeded");
}

#[test]
fn an_oversized_output_ends_the_execution_uncaught() {
    let definition = definition(&machine(json!({
        "Output": "{% $join($map([1..2000], function($i) { $pad('', 200, 'a') })) %}",
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Rescue"}]
    })));
    let run = run(&definition, &json!({}), &|_, _| answers(json!(1)));
    assert_eq!(run.failure().0, "States.DataLimitExceeded");
}

#[test]
fn a_result_nested_too_deep_for_json_fails_its_task() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let definition = definition(&machine(json!({"Output": {"in": "{% $states.result %}"}})));
    let run = |levels| {
        run(&definition, &json!({}), &|_, _| answers(nested(levels))).execution.outcome().cloned()
    };
    assert!(matches!(run(119), Some(Outcome::Succeeded(_))));
    assert!(matches!(run(120), Some(Outcome::Failed(_))), "the output around it is too deep");
    assert!(matches!(run(500), Some(Outcome::Failed(_))));
}

#[test]
fn a_plain_function_has_lambda_function_events() {
    let definition = definition(&machine(json!({
        "Resource": "arn:aws:lambda:us-east-1:000000000000:function:f", "TimeoutSeconds": 9
    })));
    let done = run(&definition, &json!({"a": 1}), &|_, _| answers(json!({"b": 2})));
    assert_eq!(done.output(), json!({"b": 2}));
    let late = run(&definition, &json!({}), &|_, _| Vec::new());
    assert!(matches!(late.execution.outcome(), Some(Outcome::Failed(_))));
    insta::assert_snapshot!([done.types(), late.types()].map(|types| types.join(" ")).join("\n"), @r"
    ExecutionStarted TaskStateEntered LambdaFunctionScheduled LambdaFunctionStarted LambdaFunctionSucceeded TaskStateExited ExecutionSucceeded
    ExecutionStarted TaskStateEntered LambdaFunctionScheduled LambdaFunctionStarted LambdaFunctionTimedOut ExecutionFailed
    ");
}

/// The error and the cause, without its opening, of a machine with one state.
fn failure_of(state: Value, input: Value) -> (String, String) {
    let machine = json!({"StartAt": "A", "States": {"A": state}});
    let run = run(&definition(&machine.to_string()), &input, &|_, _| Vec::new());
    let (error, cause) = run.failure();
    let cause = cause.split_once("#2). ").map_or(cause.clone(), |(_, cause)| cause.to_owned());
    (error, cause)
}

#[test]
fn a_wait_that_cannot_be_computed_has_the_cause_of_aws() {
    let wait = |fields: Value| {
        let mut wait = json!({"Type": "Wait", "End": true});
        wait.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        failure_of(wait, json!({"at": "2016-13-05T21:29:29Z", "n": -1}))
    };
    let jsonata = |field: &str, source: &str| {
        wait(json!({"QueryLanguage": "JSONata", field: format!("{{% {source} %}}")}))
    };
    let (runtime, query) = ("States.Runtime", "States.QueryEvaluationError");
    for ((error, cause), (expected, words)) in [
        (
            wait(json!({"SecondsPath": "$.none"})),
            (runtime, "The SecondsPath parameter does not reference an input value: $.none"),
        ),
        (
            wait(json!({"TimestampPath": "$.none"})),
            (runtime, "The TimestampPath parameter does not reference an input value: $.none"),
        ),
        (
            jsonata("Timestamp", "$states.input.at"),
            (
                query,
                "The Timestamp parameter does not reference a valid ISO-8601 extended offset date-time format string: $states.input.at == 2016-13-05T21:29:29Z",
            ),
        ),
        (
            jsonata("Seconds", "$states.input.n"),
            (query, "The Seconds parameter references a negative value: $states.input.n == -1"),
        ),
        (
            jsonata("Seconds", "$states.input.at"),
            (
                query,
                "The JSONata expression '$states.input.at' specified for the field 'Seconds' returned an unexpected result type. Expected 'number', but was 'string' for value: \"2016-13-05T21:29:29Z\"",
            ),
        ),
    ] {
        assert_eq!((error.as_str(), cause.as_str()), (expected, words));
    }
}

#[test]
fn a_wrong_concurrency_fails_a_map_before_its_items() {
    let processor = json!({"StartAt": "B", "States": {"B": {"Type": "Pass", "End": true}}});
    let map = json!({"StartAt": "A", "States": {"A": {
        "Type": "Map", "MaxConcurrencyPath": "$.n", "ItemsPath": "$.none",
        "ItemProcessor": processor, "End": true,
    }}});
    let run = run(&definition(&map.to_string()), &json!({"n": "many"}), &|_, _| Vec::new());
    let (error, cause) = run.failure();
    assert_eq!(error, "States.Runtime");
    let words =
        r#"The MaxConcurrencyPath field refers to value "many" which is not a valid integer: $.n"#;
    assert!(cause.ends_with(words), "{cause}");
    let types: Vec<String> = run.history.iter().map(|event| event.kind.type_name()).collect();
    assert_eq!(types, ["ExecutionStarted", "MapStateEntered", "ExecutionFailed"]);
}

#[test]
fn a_failed_item_selector_names_the_event_before_its_map() {
    let processor = json!({"StartAt": "B", "States": {"B": {"Type": "Pass", "End": true}}});
    let map = json!({"QueryLanguage": "JSONata", "StartAt": "First", "States": {
        "First": {"Type": "Pass", "Next": "A"},
        "A": {
            "Type": "Map", "Items": [1], "ItemSelector": {"x": "{% $none %}"},
            "ItemProcessor": processor, "End": true,
        },
    }});
    let run = run(&definition(&map.to_string()), &json!({}), &|_, _| Vec::new());
    let ids: Vec<(u64, u64, String)> = run
        .history
        .iter()
        .map(|event| (event.id, event.previous_event_id, event.kind.type_name()))
        .collect();
    let named: Vec<(u64, u64, &str)> =
        ids.iter().map(|(id, before, name)| (*id, *before, name.as_str())).collect();
    assert_eq!(
        named[3..],
        [
            (4, 3, "MapStateEntered"),
            (5, 4, "MapStateStarted"),
            (6, 3, "EvaluationFailed"),
            (7, 6, "MapStateFailed"),
            (8, 7, "ExecutionFailed"),
        ]
    );
}
