//! The stack's executions over the simulator's store, with store faults and crashes of the process that
//! runs them.

use std::sync::Arc;
use std::time::Duration;

use asl::history::{Event, EventKind};
use journal::clock::Clock;
use serde_json::json;
use sim::faults::{Chance, Faults};
use sim::process::Process;
use sim::store::{Disk, SimStore};
use sim::tasks::Tasks;
use sim::world::ORIGIN;
use stack::executions::{
    ExecutionStore as _, Executions, RUNNING, Record, Request, StartError, conformance,
};
use stack::functions::Functions;

use crate::{paused, seeds};

const FUNCTION: &str = "arn:aws:lambda:us-east-1:000000000000:function:increment";

/// Two calls with a wait in between that is long enough to park the execution.
const TEXT: &str = r#"{ "StartAt": "First", "States": {
    "First": { "Type": "Task", "Resource": "arn:aws:lambda:us-east-1:000000000000:function:increment",
               "Next": "Pause" },
    "Pause": { "Type": "Wait", "Seconds": 300, "Next": "Last" },
    "Last": { "Type": "Task", "Resource": "arn:aws:lambda:us-east-1:000000000000:function:increment",
              "End": true } } }"#;

/// Executions of one run.
const EXECUTIONS: usize = 5;

/// Most processes of one run, far more than needed.
const LIVES_MAX: u32 = 1_000;

/// Pause before a failed store operation is retried.
const AGAIN: Duration = Duration::from_secs(1);

struct Bench {
    disk: Arc<Disk>,
    chance: Arc<Chance>,
    clock: Clock,
}

impl Bench {
    fn new(seed: u64, faults: Faults) -> Self {
        let (chance, clock) = (Arc::new(Chance::new(seed)), Clock::scaled(ORIGIN, 1));
        let disk = Disk::new(Arc::clone(&chance), faults, clock.clone(), Tasks::default());
        Self { disk: Arc::new(disk), chance, clock }
    }

    /// The store of a new process. A process whose name starts with `state-machine` does not die.
    fn store(&self, process: &str) -> (SimStore, Arc<Process>) {
        let process = Arc::new(Process::new(process.to_owned(), self.clock.clone()));
        (SimStore::new(Arc::clone(&self.disk), Arc::clone(&process)), process)
    }

    /// One process: starts the missing executions, and runs all of them to their end.
    async fn live(&self, store: SimStore) {
        let increment = |payload: serde_json::Value| async move {
            Ok(json!(payload.as_i64().unwrap_or_default() + 1))
        };
        let functions = Functions::default().with(FUNCTION, increment);
        let executions = until_ok(async || {
            Executions::open(store.clone(), self.clock.clone(), TEXT, functions.clone()).await
        })
        .await;
        let all_end = async {
            for number in 0..EXECUTIONS {
                let request = Request { name: format!("e-{number}"), input: "0".to_owned() };
                until_ok(async || match executions.start(request.clone()).await {
                    Err(StartError::AlreadyExists(_)) => Ok(()),
                    started => started.map(drop),
                })
                .await;
            }
            while !until_ok(async || executions.list(Some(RUNNING), None, 1).await).await.is_empty()
            {
                tokio::time::sleep(AGAIN).await;
            }
        };
        tokio::select! {
            () = executions.supervise() => unreachable!("it runs until it is stopped"),
            () = all_end => {}
        }
    }

    async fn run(&self) -> u32 {
        for life in 1..LIVES_MAX {
            let (store, process) = self.store(&format!("stack-{life}"));
            let limit = self.chance.between(Duration::from_secs(10), Duration::from_secs(900));
            tokio::select! {
                () = self.live(store) => return life,
                () = process.death() => {}
                () = tokio::time::sleep(limit) => process.kill(),
            }
        }
        panic!("not all executions end");
    }

    async fn records(&self) -> Vec<(Record, Vec<Event>)> {
        let (store, _) = self.store("state-machine");
        let mut found = Vec::new();
        for record in until_ok(async || store.newest_first(None, i64::MAX, 99).await).await {
            let history =
                until_ok(async || store.history(record.id, 0, false, usize::MAX).await).await;
            let events = history.iter().map(|body| serde_json::from_str(body).unwrap());
            found.push((record, events.collect()));
        }
        found
    }
}

async fn until_ok<T, E>(mut ask: impl AsyncFnMut() -> Result<T, E>) -> T {
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}

fn store_faults(seed: u64) -> Faults {
    let Faults {
        store_slow,
        store_unavailable,
        store_lost,
        store_unanswered,
        store_late,
        crash,
        ..
    } = Faults::of(seed);
    Faults {
        store_slow,
        store_unavailable,
        store_lost,
        store_unanswered,
        store_late,
        crash,
        ..Faults::NONE
    }
}

#[test]
fn the_simulated_store_passes_the_execution_store_suite() {
    paused(async { conformance::all(Bench::new(0, Faults::NONE).store("suite").0).await });
}

#[test]
fn executions_end_once_with_any_faults_and_crashes() {
    let mut lives = 0;
    for seed in seeds(200) {
        let (died, records) = paused(async {
            let bench = Bench::new(seed, store_faults(seed));
            (bench.run().await, bench.records().await)
        });
        lives += died;
        assert_eq!(records.len(), EXECUTIONS, "SIM_SEED={seed}");
        for (record, events) in records {
            let ended = (record.status.as_str(), record.output.as_deref());
            assert_eq!(ended, ("SUCCEEDED", Some("2")), "SIM_SEED={seed}");
            let ids: Vec<u64> = events.iter().map(|event| event.id).collect();
            let dense: Vec<u64> = (1..=ids.len() as u64).collect();
            assert_eq!(ids, dense, "SIM_SEED={seed}");
            let ends = |e: &&Event| matches!(e.kind, EventKind::ExecutionSucceeded { .. });
            assert_eq!(events.iter().filter(ends).count(), 1, "SIM_SEED={seed}");
        }
    }
    println!("{lives} processes");
}
