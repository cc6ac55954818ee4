//! Runs of distributed maps whose iterations the caller runs as executions of their own.

use asl::error_name;
use asl::execution::{Execution, MapRun, Next, Outcome, Source};
use asl::history::Failure;
use serde_json::{Value, json};

use crate::given::start;
use crate::run::{Run, definition};

const SILENT: &dyn Fn(&str, usize) -> crate::run::Happenings = &|_, _| Vec::new();

fn machine(fields: Value) -> Value {
    let mut map = json!({
        "Type": "Map", "End": true, "Label": "Mine",
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            "StartAt": "T",
            "States": {"T": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": true}},
        },
    });
    map.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({"StartAt": "A", "States": {"A": map}})
}

/// Runs until the caller has to perform the run.
fn begun(text: &Value, input: &Value) -> (Run<'static>, u64) {
    let mut run = Run::resume(&definition(&text.to_string()), input, SILENT, &[]);
    run.execution.run_children();
    assert!(matches!(run.settle(), Next::WaitUntil(_)), "{:?}", run.types());
    let open = run.execution.open_map_runs();
    assert_eq!(open.len(), 1);
    (run, open[0])
}

fn described(run: &Run<'_>, id: u64) -> MapRun {
    run.execution.map_run(id).unwrap().unwrap()
}

#[test]
fn a_run_is_described_performed_and_replayed() {
    let fields = json!({
        "MaxConcurrency": 3, "ToleratedFailureCount": 2, "ToleratedFailurePercentage": 10,
        "ItemSelector": {"of.$": "$$.Map.Item.Value", "at.$": "$$.Map.Item.Index"},
        "ResultPath": "$.done",
    });
    let text = machine(fields);
    let text = {
        let mut text = text;
        text["States"]["A"]["ItemsPath"] = json!("$.items");
        text
    };
    let input = json!({"items": ["a", "b"]});
    let (mut run, id) = begun(&text, &input);
    let plan = described(&run, id);
    assert!(plan.arn.starts_with("arn:aws:states:us-east-1:000000000000:mapRun:orders/Mine:"));
    assert_eq!((plan.max_concurrency, plan.tolerated_count), (Some(3), Some(2)));
    assert_eq!((plan.tolerated_percentage, plan.redriven), (Some(10.0), false));
    assert_eq!(plan.source, Source::Items(vec![json!("a"), json!("b")]));
    definition(&plan.definition);
    let inputs = run.execution.map_run_inputs(id, vec![json!("a"), json!("b")]).unwrap().unwrap();
    let expected = [(json!({"of": "a", "at": 0}), 1), (json!({"of": "b", "at": 1}), 1)];
    assert_eq!(inputs, expected);

    let event = run.execution.map_run_succeeded(id, &json!(["A", "B"]), run.now).unwrap();
    run.record(vec![event]);
    let done = json!({"items": ["a", "b"], "done": ["A", "B"]});
    assert_eq!(run.settle(), Next::Done(Outcome::Succeeded(done.to_string())));
    let types = run.types();
    assert_eq!(
        types[2..6],
        ["MapStateStarted", "MapRunStarted", "MapRunSucceeded", "MapStateSucceeded"]
    );
    let late = run.execution.map_run_succeeded(id, &json!([]), run.now);
    assert!(late.is_err(), "a run ends once");
    // A prefix continues without its result being computed again.
    for cut in 5..run.history.len() {
        let history = &run.history[..cut];
        let definition = definition(&text.to_string());
        let mut again = Execution::replay(definition, start(&input), history).unwrap();
        again.run_children();
        while let Next::Record(events) = again.next(run.now) {
            events.iter().for_each(|event| again.apply(event).unwrap());
        }
        assert_eq!(again.outcome(), run.execution.outcome(), "cut after {cut}");
    }
}

#[test]
fn items_are_selected_before_they_are_batched() {
    let fields = json!({
        "ItemSelector": {"v.$": "$$.Map.Item.Value"},
        "ItemBatcher": {"MaxItemsPerBatch": 2, "BatchInput": {"all": true}},
    });
    let (run, id) = begun(&machine(fields), &json!([1, 2, 3]));
    let items = vec![json!(1), json!(2), json!(3)];
    let inputs = run.execution.map_run_inputs(id, items).unwrap().unwrap();
    let first = json!({"BatchInput": {"all": true}, "Items": [{"v": 1}, {"v": 2}]});
    let second = json!({"BatchInput": {"all": true}, "Items": [{"v": 3}]});
    assert_eq!(inputs, [(first, 2), (second, 1)]);
}

#[test]
fn a_reader_and_a_writer_are_evaluated_for_the_caller() {
    let fields = json!({
        "ItemReader": {
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW", "MaxItemsPath": "$.most"},
            "Parameters": {"Bucket": "b", "Key.$": "$.key"},
        },
        "ResultWriter": {
            "Resource": "arn:aws:states:::s3:putObject", "Parameters": {"Bucket.$": "$.to", "Prefix": "p"},
        },
    });
    let input = json!({"most": 5, "key": "k.csv", "to": "t"});
    let (run, id) = begun(&machine(fields.clone()), &input);
    let plan = described(&run, id);
    let Source::Reader(reading) = plan.source else { panic!("{:?}", plan.source) };
    assert_eq!(reading.arguments, json!({"Bucket": "b", "Key": "k.csv"}));
    assert_eq!((reading.max_items, &reading.config["InputType"]), (Some(5), &json!("CSV")));
    assert_eq!(plan.writer.unwrap().arguments, json!({"Bucket": "t", "Prefix": "p"}));
    let length =
        &serde_json::to_value(&run.history[2]).unwrap()["mapStateStartedEventDetails"]["length"];
    assert_eq!(*length, json!(0));

    // Without a caller that runs it, the state fails.
    let mut alone = Run::resume(&definition(&machine(fields).to_string()), &input, SILENT, &[]);
    alone.run_to_end();
    assert!(alone.failure().1.contains("'ItemReader' of a Map needs a running stack"));
}

#[test]
fn a_failed_run_can_be_caught_and_redriven() {
    let (mut run, id) = begun(&machine(json!({})), &json!([1]));
    let failure = Failure::new(error_name::TOLERATED_FAILURES_EXCEEDED, None);
    let event = run.execution.map_run_failed(id, failure.clone(), run.now).unwrap();
    run.record(vec![event]);
    assert_eq!(run.settle(), Next::Done(Outcome::Failed(failure.clone())));
    let event = run.execution.redrive(run.now).unwrap();
    run.record(vec![event]);
    run.settle();
    let open = run.execution.open_map_runs();
    assert_eq!(open.len(), 1);
    assert!(described(&run, open[0]).redriven && open[0] > id);
    assert_eq!(run.types().last().unwrap(), "MapRunRedriven");
    let event = run.execution.map_run_succeeded(open[0], &json!([7]), run.now).unwrap();
    run.record(vec![event]);
    assert_eq!(run.settle(), Next::Done(Outcome::Succeeded("[7]".to_owned())));

    let fields = json!({"Catch": [{"ErrorEquals": ["States.ExceedToleratedFailureThreshold"], "Next": "B"}]});
    let mut text = machine(fields);
    text["States"]["B"] = json!({"Type": "Succeed"});
    let (mut run, id) = begun(&text, &json!([1]));
    let event = run.execution.map_run_failed(id, failure, run.now).unwrap();
    run.record(vec![event]);
    assert!(matches!(run.settle(), Next::Done(Outcome::Succeeded(_))));
}

#[test]
fn a_result_that_is_too_large_fails_the_run() {
    let (mut run, id) = begun(&machine(json!({})), &json!([1]));
    let event = run.execution.map_run_succeeded(id, &json!("x".repeat(300_000)), run.now).unwrap();
    run.record(vec![event]);
    run.settle();
    assert_eq!(run.failure().0, error_name::DATA_LIMIT_EXCEEDED);
}
