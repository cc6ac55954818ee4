//! Executions of the real state machine, with scripted functions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use journal::clock::{Clock, Stamp};
use journal::sqlite::{Durability, SqliteStore};
use serde_json::{Value, json};
use stack::bus::Bus;
use stack::executions::{Executions, RUNNING, Record, Request};
use stack::functions::{Answer, FunctionError, Functions};
use stack::{dynamodb, names};
use tempfile::TempDir;
use tokio::task::JoinSet;
use workflow::state_machine;

/// The timeout of every wait in a test.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// The speed of the executions' clock, as a multiple of the machine's.
const SCALE: u32 = 100;

pub const SESSION: &str = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f";
pub const TIME: &str = "2026-11-21T10:30:00Z";

/// A function's response to its n-th call (from 0) of a kind.
pub type Script = fn(kind: &str, n: usize, payload: &Value) -> Answer;

/// A received function call: its kind and payload.
pub type Calls = Arc<Mutex<Vec<(String, Value)>>>;

/// A folder that outlives the processes in it.
pub struct Folder {
    dir: TempDir,
}

/// Supervised executions.
pub struct World {
    pub executions: Executions,
    pub bus: Bus,
    pub store: SqliteStore,
    pub calls: Calls,
    tasks: JoinSet<()>,
}

impl Folder {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    fn journal(&self) -> PathBuf {
        self.path().join("journal.db")
    }

    pub async fn open(&self, script: Script) -> World {
        let store = SqliteStore::open(&self.journal(), Durability::Relaxed).unwrap();
        self.open_over(store, script).await
    }

    /// Supervises the executions of a stopped world, over the same connection.
    pub async fn open_beside(&self, world: &World, script: Script) -> World {
        self.open_over(world.store.clone(), script).await
    }

    async fn open_over(&self, store: SqliteStore, script: Script) -> World {
        let begin = Stamp::parse(TIME).unwrap();
        let newest = stack::executions::newest_time(&store).await.unwrap();
        let clock = Clock::scaled(newest.unwrap_or(begin).max(begin), SCALE);
        let calls = Calls::default();
        let functions = scripted(script, &calls);
        let text = text();
        let executions =
            Executions::open(store.clone(), clock.clone(), &text, functions.clone()).await.unwrap();
        let bus = Bus::new(executions.clone(), functions, clock).unwrap();
        let mut tasks = JoinSet::new();
        let supervised = executions.clone();
        tasks.spawn(async move { supervised.supervise().await });
        World { executions, bus, store, calls, tasks }
    }
}

pub fn text() -> String {
    state_machine::with_substitutions(&[
        ("JOURNAL_TABLE_NAME", dynamodb::TABLE_NAME),
        ("JOURNAL_TTL_DAYS", "90"),
        ("INVOKER_FUNCTION_ARN", names::INVOKER_ARN),
        ("POLLER_FUNCTION_ARN", names::POLLER_ARN),
        (state_machine::TRIGGER_PRINCIPAL, state_machine::PRINCIPAL_OF_INPUT),
    ])
}

/// The invoker's calls have the kind `invoke`, the poller's have their mode as kind.
pub fn scripted(script: Script, calls: &Calls) -> Functions {
    let counts: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let functions = Functions::default();
    [names::INVOKER_ARN, names::POLLER_ARN].into_iter().fold(functions, |functions, arn| {
        let (counts, calls) = (Arc::clone(&counts), Arc::clone(calls));
        functions.with(arn, move |payload| {
            let kind = payload["mode"].as_str().unwrap_or("invoke").to_owned();
            let n = {
                let mut counts = counts.lock().unwrap();
                let n = counts.entry(kind.clone()).or_default();
                *n += 1;
                *n - 1
            };
            calls.lock().unwrap().push((kind.clone(), payload.clone()));
            let answer = script(&kind, n, &payload);
            async move { answer }
        })
    })
}

/// The token of the n-th parking (from 0), once the poller has it.
pub async fn parked(calls: &Calls, n: usize) -> String {
    let token = || {
        let calls = calls.lock().unwrap();
        let mut tokens = calls.iter().filter_map(|(_, payload)| payload["token"].as_str());
        tokens.nth(n).map(str::to_owned)
    };
    let waiting = async {
        loop {
            if let Some(token) = token() {
                return token;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.expect("the workflow parks")
}

impl World {
    /// Starts the session's execution as the bus does, but under its own name.
    pub async fn start(&self, name: &str) -> String {
        let input = json!({ "session_id": SESSION, "time": TIME, "detail": {} }).to_string();
        self.executions.start(Request { name: name.to_owned(), input }).await.unwrap().arn
    }

    /// The execution's row, once it has ended.
    pub async fn ended(&self, arn: &str) -> Record {
        let waiting = async {
            loop {
                let record = self.executions.describe(arn).await.unwrap().unwrap();
                if record.status != RUNNING {
                    return record;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let ended = tokio::time::timeout(TIMEOUT, waiting).await;
        match ended {
            Ok(record) => record,
            Err(_) => panic!("the execution does not end: {:#?}", self.types(arn).await),
        }
    }

    /// As [`parked`].
    pub async fn parked(&self, n: usize) -> String {
        parked(&self.calls, n).await
    }

    pub fn called(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|(kind, _)| kind.clone()).collect()
    }

    pub async fn history(&self, arn: &str) -> Vec<Value> {
        let record = self.executions.describe(arn).await.unwrap().unwrap();
        let history = self.executions.history(record.id, None, false, 10_000).await.unwrap();
        history.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
    }

    pub async fn types(&self, arn: &str) -> Vec<String> {
        let history = self.history(arn).await;
        history.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    /// The names of the entered states, in order.
    pub async fn path(&self, arn: &str) -> Vec<String> {
        let history = self.history(arn).await;
        let name =
            |event: &Value| Some(event["stateEnteredEventDetails"]["name"].as_str()?.to_owned());
        history.iter().filter_map(name).collect()
    }

    /// Stops as a shutdown does.
    pub async fn close(mut self) {
        self.executions.begin_stop();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// The invoker's reply.
pub fn accepted() -> Answer {
    Ok(json!({ "outcome": "accepted", "seen": "2026-11-21T10:30:01.000000000Z" }))
}

/// The poller's reply without a verdict.
pub fn judged(status: &str, payload: &Value) -> Answer {
    let mut watch = payload["watch"].clone();
    watch["timeout_s"] = json!(60);
    watch["heartbeat_s"] = json!(30);
    let seen = "2026-11-21T10:30:02.000000000Z";
    Ok(json!({ "status": status, "seen": seen, "watch": watch }))
}

/// The poller's reply with a verdict.
pub fn verdict(status: &str, session_status: &str, payload: &Value) -> Answer {
    let mut reply = judged(status, payload)?;
    reply["verdict"] = json!({
        "session_id": SESSION, "status": session_status, "head": "abc",
        "error": "SessionFailed", "cause": "ToolError: X - y",
    });
    Ok(reply)
}

pub fn failed(name: &str) -> Answer {
    Err(FunctionError::new(name, "as scripted"))
}
