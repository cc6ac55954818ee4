//! States without calls: Choice, Wait, Pass, Succeed, Fail; variables and the context object.

use asl::execution::{BATCH_EVENTS_MAX, Execution, Next};
use asl::history::EVENTS_MAX;
use serde_json::{Value, json};

use crate::given::{BEGIN, start};
use crate::run::{Run, definition, run};

fn machine(states: Value) -> String {
    json!({"QueryLanguage": "JSONata", "StartAt": "A", "States": states}).to_string()
}

fn ran(states: Value, input: Value) -> Run<'static> {
    run(&definition(&machine(states)), &input, &|_, _| Vec::new())
}

#[test]
fn a_choice_takes_its_first_true_rule_or_default() {
    let states = json!({
        "A": {
            "Type": "Choice",
            "Choices": [
                {"Condition": "{% $states.input.n in [1, 2] %}", "Assign": {"by": "first"}, "Output": "one", "Next": "B"},
                {"Condition": "{% $states.input.n > 1 %}", "Assign": {"by": "second"}, "Next": "B"}
            ],
            "Assign": {"by": "default"},
            "Default": "B"
        },
        "B": {"Type": "Succeed", "Output": ["{% $by %}", "{% $states.input %}"]}
    });
    let chosen = |n: i64| ran(states.clone(), json!({ "n": n })).output();
    assert_eq!(chosen(2), json!(["first", "one"]));
    assert_eq!(chosen(3), json!(["second", {"n": 3}]));
    assert_eq!(chosen(0), json!(["default", {"n": 0}]));
}

#[test]
fn a_choice_without_match_or_default_fails() {
    let run = ran(
        json!({
            "A": {"Type": "Choice", "Choices": [{"Condition": "{% false %}", "Next": "B"}]},
            "B": {"Type": "Succeed"}
        }),
        json!({}),
    );
    let (error, cause) = run.failure();
    assert_eq!(error, "States.Runtime");
    let words = "Failed to transition out of the state. The state does not point to a next state.";
    assert!(cause.ends_with(words), "{cause}");
    assert_eq!(run.types(), ["ExecutionStarted", "ChoiceStateEntered", "ExecutionFailed"]);
}

#[test]
fn a_wrong_type_names_the_expected_type() {
    let causes: Vec<String> = [
        json!({"Type": "Choice", "Choices": [{"Condition": "{% 1 %}", "Next": "Z"}]}),
        json!({"Type": "Wait", "Seconds": "{% 'x' %}", "End": true}),
        json!({"Type": "Wait", "Timestamp": "{% $states.input %}", "End": true}),
        json!({"Type": "Fail", "Error": "{% [1] %}"}),
        json!({"Type": "Pass", "Output": ["{% 1 %}", {"a": "{% 'a' + 1 %}"}], "End": true}),
        json!({"Type": "Pass", "Output": "{% function($x) { $x } %}", "End": true}),
        json!({"Type": "Pass", "Output": "{% $eval('1') %}", "End": true}),
        json!({"Type": "Pass", "Output": "{% $nosuch(1) %}", "End": true}),
    ]
    .into_iter()
    .map(|state| {
        let choice = state["Type"] == "Choice";
        let states = if choice {
            json!({"A": state, "Z": {"Type": "Succeed"}})
        } else {
            json!({ "A": state })
        };
        ran(states, json!({})).failure().1.split_once("#2). ").unwrap().1.to_owned()
    })
    .collect();
    insta::assert_snapshot!(causes.join("\n"), @r#"
    The JSONata expression '1' specified for the field 'Choices[0]/Condition' returned an unexpected result type. Expected 'boolean', but was 'number' for value: 1
    The JSONata expression ''x'' specified for the field 'Seconds' returned an unexpected result type. Expected 'number', but was 'string' for value: "x"
    The JSONata expression '$states.input' specified for the field 'Timestamp' returned an unexpected result type. Expected 'string', but was 'object' for value: {}
    The JSONata expression '[1]' specified for the field 'Error' returned an unexpected result type. Expected 'string', but was 'array' for value: [1]
    The JSONata expression ''a' + 1' specified for the field 'Output[1]/a' threw an error during evaluation. T2001: The left side of the + operator must evaluate to a number
    The JSONata expression 'function($x) { $x }' specified for the field 'Output' returned an unsupported result type.
    The JSONata expression '$eval('1')' specified for the field 'Output' threw an error during evaluation. T1006: Attempted to invoke a non-function
    The JSONata expression '$nosuch(1)' specified for the field 'Output' threw an error during evaluation. T1006: Attempted to invoke a non-function
    "#);
}

#[test]
fn a_wait_ends_at_its_time() {
    let ended = |wait: Value, input: Value| {
        let run = ran(json!({ "A": wait }), input);
        (run.millis_of("WaitStateExited"), run.output())
    };
    let input = json!({"s": 90, "at": "2026-11-21T10:31:00.123Z"});
    let seconds = |seconds: Value| json!({"Type": "Wait", "Seconds": seconds, "End": true});
    assert_eq!(ended(seconds(json!(7)), input.clone()), (vec![7_000], input.clone()));
    assert_eq!(ended(seconds(json!("{% $states.input.s * 2 %}")), input.clone()).0, [180_000]);
    let timestamp = |time: &str| json!({"Type": "Wait", "Timestamp": time, "Output": "{% $now() %}", "End": true});
    let expected = (vec![60_000], json!("2026-11-21T10:31:00.123Z"));
    assert_eq!(ended(timestamp("{% $states.input.at %}"), input.clone()), expected);
    assert_eq!(ended(timestamp("2000-01-01T00:00:00Z"), input).0, [0]);
}

#[test]
fn a_wait_until_a_timestamp_follows_the_wall_clock() {
    let minute = 60_000;
    let next = |wait: Value, ahead_ms: i64| {
        let definition = definition(&machine(json!({ "A": wait })));
        let mut execution = Execution::new(definition, start(&json!({}))).unwrap();
        let Next::Record(events) = execution.next(BEGIN) else { panic!("it starts") };
        events.iter().for_each(|event| execution.apply(event).unwrap());
        execution.set_wall_ahead(ahead_ms);
        execution.next(BEGIN)
    };
    let until = json!({"Type": "Wait", "Timestamp": "2026-11-21T10:31:00.123Z", "End": true});
    let seconds = json!({"Type": "Wait", "Seconds": 60, "End": true});
    let waits = |millis| Next::WaitUntil(BEGIN.plus_millis(millis));
    assert_eq!(next(until.clone(), 0), waits(minute));
    assert_eq!(next(until.clone(), 40_000), waits(20_000));
    assert_eq!(next(until.clone(), -minute), waits(2 * minute));
    assert!(matches!(next(until, minute), Next::Record(_)));
    assert_eq!(next(seconds, minute), waits(minute));
}

#[test]
fn output_and_assign_read_variables_from_before_the_state() {
    let run = ran(
        json!({
            "A": {"Type": "Pass", "Assign": {"x": 1, "zero": 0.0}, "Next": "B"},
            "B": {"Type": "Pass", "Assign": {"x": "{% $x + 1 %}", "y": "{% $x %}"}, "Output": "{% $x %}", "Next": "C"},
            "C": {"Type": "Pass", "Output": ["{% $states.input %}", "{% $x %}", "{% $y %}", 0, 0.0], "End": true}
        }),
        json!({}),
    );
    assert_eq!(run.output().to_string(), "[1,2,1,0,0.0]", "numbers keep their spelling");
}

#[test]
fn the_context_object_equals_that_of_aws() {
    let run = ran(
        json!({"A": {"Type": "Pass", "Output": "{% $states.context %}", "End": true}}),
        json!({"a": 1}),
    );
    insta::assert_snapshot!(serde_json::to_string_pretty(&run.output()).unwrap(), @r#"
    {
      "Execution": {
        "Id": "arn:aws:states:us-east-1:000000000000:execution:orders:one",
        "Input": {
          "a": 1
        },
        "StartTime": "2026-11-21T10:30:00.123Z",
        "Name": "one",
        "RoleArn": "arn:aws:iam::000000000000:role/orders",
        "RedriveCount": 0
      },
      "StateMachine": {
        "Id": "arn:aws:states:us-east-1:000000000000:stateMachine:orders",
        "Name": "orders"
      },
      "State": {
        "Name": "A",
        "EnteredTime": "2026-11-21T10:30:00.123Z"
      }
    }
    "#);
}

#[test]
fn the_workflow_s_expressions_evaluate() {
    let check = |expression: &str, expected: Value| {
        let state = json!({"Type": "Pass", "Output": format!("{{% {expression} %}}"), "End": true});
        let input = json!({"time": "2026-11-21T10:30:00Z", "detail": {}, "n": 5});
        assert_eq!(ran(json!({ "A": state }), input).output(), expected, "{expression}");
    };
    check(
        "$replace($fromMillis($toMillis($states.input.time)), 'Z', '000000Z')",
        json!("2026-11-21T10:30:00.000000000Z"),
    );
    check("$pad($string($states.input.n), -8, '0')", json!("00000005"));
    check("$merge([$states.input.detail, {'a': 1}])", json!({"a": 1}));
    check("$exists($states.input.detail.agent)", json!(false));
    check("'a' in ['a', 'b']", json!(true));
    check("$states.input.n * 1.25", json!(6.25));
    check("$min([1200, $ceil(5 * $power(1.25, 3))])", json!(10));
    check("$states.input.n ~> $string", json!("5"));
}

#[test]
fn fail_takes_its_error_and_cause_from_expressions() {
    let run = ran(
        json!({"A": {"Type": "Fail", "Error": "{% $states.input.e %}", "Cause": "{% 'c' & 1 %}"}}),
        json!({"e": "E"}),
    );
    assert_eq!(run.failure(), ("E".to_owned(), "c1".to_owned()));
}

#[test]
fn a_loop_without_a_wait_ends_at_the_history_limit() {
    let definition = definition(&machine(json!({
        "A": {"Type": "Choice", "Choices": [{"Condition": "{% true %}", "Next": "A"}], "Default": "B"},
        "B": {"Type": "Succeed"}
    })));
    let execution = Execution::new(definition.clone(), start(&json!({}))).unwrap();
    let Next::Record(events) = execution.next(BEGIN) else { panic!("nothing to record") };
    assert_eq!(events.len(), BATCH_EVENTS_MAX);
    let run = run(&definition, &json!({}), &|_, _| Vec::new());
    assert_eq!(run.history.len() as u64, EVENTS_MAX);
    assert_eq!(run.failure().0, "States.Runtime");
}

#[test]
fn variables_have_a_limit() {
    let run = ran(
        json!({"A": {"Type": "Pass", "Assign": {"x": "{% $join($map([1..2000], function($i) { $pad('', 200, 'a') })) %}"}, "End": true}}),
        json!({}),
    );
    assert_eq!(run.failure().0, "States.DataLimitExceeded");
}

#[test]
fn an_execution_is_cheap_to_share_and_safe_to_send() {
    fn check<T: Clone + Send + Sync>() {}
    check::<Execution>();
    check::<Next>();
}
