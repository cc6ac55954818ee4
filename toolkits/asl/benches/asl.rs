//! Measures the interpreter alone, in memory, with state machines that never wait.
//!
//! Each number is the median of several runs. The same machine at half and twice the size shows any
//! growth that is worse than linear.

#![expect(clippy::unwrap_used, reason = "a bench that cannot run has nothing to say")]
#![expect(clippy::disallowed_methods, reason = "a bench measures real time")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use asl::definition::Definition;
use asl::execution::{Execution, Next, Outcome, Start};
use asl::time::Timestamp;
use serde_json::{Map, Value, json};

/// Runs per machine; odd, so that there is a median.
const ROUNDS: usize = 7;

fn main() {
    print("Pass states", 1_000, chain);
    // Four events an item: twice as many items stay below the limit of a history.
    print("items, inline Map", 3_000, |items| map(items, "INLINE"));
    print("items, distributed Map", 10_000, |items| map(items, "DISTRIBUTED"));
}

fn print(what: &str, size: usize, machine: impl Fn(usize) -> (Value, Value)) {
    let [half, whole, twice] = [size / 2, size, size * 2].map(|size| {
        let (definition, input) = machine(size);
        median(&definition, &input)
    });
    println!("{size} {what}: {whole:.1?} (half as many: {half:.1?}, twice as many: {twice:.1?})");
}

fn median(definition: &Value, input: &Value) -> Duration {
    let definition = Arc::new(Definition::parse(&definition.to_string()).unwrap());
    let mut rounds: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            run(&definition, input);
            began.elapsed()
        })
        .collect();
    rounds.sort_unstable();
    rounds[ROUNDS / 2]
}

fn run(definition: &Arc<Definition>, input: &Value) {
    let now = Timestamp::from_millis(1_795_257_000_000);
    let start = Start {
        execution_arn: "arn:aws:states:us-east-1:000000000000:execution:bench:one".to_owned(),
        execution_name: "one".to_owned(),
        role_arn: "arn:aws:iam::000000000000:role/bench".to_owned(),
        state_machine_arn: "arn:aws:states:us-east-1:000000000000:stateMachine:bench".to_owned(),
        state_machine_name: "bench".to_owned(),
        input: input.to_string(),
        started_at: now,
        token_seed: "seed".to_owned(),
    };
    let mut execution = Execution::new(Arc::clone(definition), start).unwrap();
    loop {
        match execution.next(now) {
            Next::Record(events) => {
                events.iter().for_each(|event| execution.apply(event).unwrap());
            }
            Next::Done(outcome) => return assert!(matches!(outcome, Outcome::Succeeded(_))),
            other => panic!("nothing here waits: {other:?}"),
        }
    }
}

fn chain(length: usize) -> (Value, Value) {
    let states: Map<String, Value> = (0..length)
        .map(|at| {
            let state = match at + 1 < length {
                true => json!({"Type": "Pass", "Next": format!("S{}", at + 1)}),
                false => json!({"Type": "Pass", "End": true}),
            };
            (format!("S{at}"), state)
        })
        .collect();
    (json!({"StartAt": "S0", "States": states}), json!({"a": 1}))
}

fn map(items: usize, mode: &str) -> (Value, Value) {
    let machine = json!({"StartAt": "M", "States": {"M": {
        "Type": "Map", "End": true,
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": mode, "ExecutionType": "STANDARD"},
            "StartAt": "P", "States": {"P": {"Type": "Pass", "End": true}}
        }
    }}});
    (machine, (0..items).collect())
}
