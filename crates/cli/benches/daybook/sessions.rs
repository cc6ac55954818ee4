//! Whole sessions: from an event on the bus to a verdict in the journal, every record durable.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent::model::Models;
use agent::settings::Defaults;
use agent::tool::{Servers, Timeouts};
use graph::profile::Limits;
use journal::sqlite::Durability;
use serde_json::{Value, json};
use stack::executions::Record;
use stack::functions;
use stack::stack::{Config, Isolation, Stack};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;
use workflow::rule::{DETAIL_TYPE, SOURCE};

use crate::runs::STEPS;
use crate::{BURST, Pace, RECORD_BYTES, in_parallel, median, scratch};

/// Timeout of a session.
const WITHIN: Duration = Duration::from_secs(180);

/// Number of timed checkups; the median is reported.
const CHECKUPS: usize = 20;

/// Sessions per second at a concurrency, of a ten-step agent that needs no answers.
pub async fn rate(at_once: usize, within: Duration) -> Pace {
    let folder = scratch();
    let stack = Arc::new(Running::start(folder.path(), 1).await);
    let running = Arc::clone(&stack);
    let detail = json!({
        "agent": STEPS.name(),
        "input": { "steps": 10, "bytes": RECORD_BYTES },
    });
    let pace = in_parallel(at_once, move |_| {
        let (stack, detail) = (Arc::clone(&running), detail.to_string());
        async move {
            let (began, mut done) = (Instant::now(), 0);
            while began.elapsed() < within {
                stack.session(&detail).await;
                done += 1;
            }
            done
        }
    })
    .await;
    let stack = Arc::try_unwrap(stack).unwrap_or_else(|_| unreachable!("all tasks are done"));
    stack.stack.shutdown().await;
    pace
}

/// From a trigger of `checkup` to its verdict, in milliseconds.
pub async fn checkup_ms() -> f64 {
    let folder = scratch();
    let running = Running::start(folder.path(), 1).await;
    let mut times = Vec::new();
    for _ in 0..CHECKUPS {
        let began = Instant::now();
        running.session("{}").await;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    running.stack.shutdown().await;
    median(&mut times)
}

/// A stack with notifications of ended executions. Polling the journal for each verdict would dominate the
/// measurement.
pub struct Running {
    pub stack: Stack,
    client: reqwest::Client,
    ends: Arc<Ends>,
    _listening: AbortOnDropHandle<()>,
}

/// One for each execution, by its name, whether it ends first or is waited for first.
#[derive(Default)]
struct Ends(Mutex<HashMap<String, End>>);

/// A reported end, or its waiter.
enum End {
    Told(Arc<Record>),
    Awaited(oneshot::Sender<Arc<Record>>),
}

impl Ends {
    fn tell(&self, record: Arc<Record>) {
        let mut ends = self.0.lock().unwrap();
        match ends.remove(&record.name) {
            Some(End::Awaited(waiting)) => drop(waiting.send(record)),
            _ => drop(ends.insert(record.name.clone(), End::Told(record))),
        }
    }

    async fn of(&self, name: &str) -> Arc<Record> {
        let told = {
            let mut ends = self.0.lock().unwrap();
            match ends.remove(name) {
                Some(End::Told(record)) => return record,
                _ => {
                    let (waiting, told) = oneshot::channel();
                    ends.insert(name.to_owned(), End::Awaited(waiting));
                    told
                }
            }
        };
        told.await.unwrap()
    }
}

impl Running {
    pub async fn start(folder: &Path, time_scale: u32) -> Self {
        let stack = start(folder, time_scale).await;
        let (ends, mut ended) = (Arc::new(Ends::default()), stack.executions().ends());
        let told = Arc::clone(&ends);
        let listening = AbortOnDropHandle::new(tokio::spawn(async move {
            while let Ok(record) = ended.recv().await {
                told.tell(record);
            }
        }));
        Self { stack, client: reqwest::Client::new(), ends, _listening: listening }
    }

    /// Puts an event through the endpoint, waits for the execution's end and says how it ended.
    pub async fn session(&self, detail: &str) -> Arc<Record> {
        let entry = json!({ "Source": SOURCE, "DetailType": DETAIL_TYPE, "Detail": detail });
        let answer: Value = self
            .client
            .post(self.stack.url())
            .header("x-amz-target", "AWSEvents.PutEvents")
            .header("content-type", "application/x-amz-json-1.1")
            .body(json!({ "Entries": [entry] }).to_string())
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        let name = answer["Entries"][0]["EventId"].as_str().unwrap();
        let ended = tokio::time::timeout(WITHIN, self.ends.of(name)).await.unwrap();
        // The poller has written the verdict before it lets the state machine succeed.
        assert_eq!(ended.status, "SUCCEEDED", "{:?}", ended.cause);
        ended
    }
}

async fn start(folder: &Path, time_scale: u32) -> Stack {
    let config = Config {
        listen: ([127, 0, 0, 1], 0).into(),
        data: folder.to_owned(),
        accepts_loss: false,
        durability: Durability::Fsync,
        encrypt: false,
        load: stack::load::Limits::default(),
        notify: None,
        time_scale,
        clock: None,
        // As `daybook dev` does, checkpoints are signed.
        keys: Some(folder.join("keys")),
        witnesses: Vec::new(),
        token: None,
        token_name: None,
        ttl_days: workflow::limits::TTL_DAYS,
        workflow: None,
        functions: functions::File::default(),
        isolation: Isolation::None,
        servers: Servers::bundled("/nonexistent".as_ref(), packs::all()),
        timeouts: Timeouts { connect: BURST, init: BURST },
        models: Models::default(),
        defaults: Defaults::default(),
        admission: Limits::default(),
        agents: packs::all_and(vec![STEPS.clone()]).unwrap(),
    };
    Stack::start(config).await.unwrap()
}
