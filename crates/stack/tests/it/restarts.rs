//! A runner that fails is restarted, and an execution that fails again and again ends with a name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use asl::execution::Outcome;
use asl::history::Event;
use asl::time::Timestamp;
use journal::clock::{Clock, Stamp};
use journal::item::{Item, Value};
use journal::sqlite::{Durability, SqliteStore};
use journal::store::{Condition, Error, Key, Page, Query, Store, Written};
use serde_json::json;
use stack::executions::{
    ExecutionStore, Executions, Inserted, MachineRow, NewExecution, RUNNING, Record, Request,
};
use tempfile::TempDir;
use tokio_util::task::AbortOnDropHandle;
use workflow::error_name::EXECUTION_BROKEN;

use crate::executions::success;
use crate::world::{Calls, SESSION, TIME, TIMEOUT, scripted, text};

/// Speed of the clock, so that delays of restarts are short.
const SCALE: u32 = 200;

/// Failures after which an execution ends.
const FAILURES: u32 = 6;

/// A store with faults.
#[derive(Clone, Debug)]
struct Faulty {
    store: SqliteStore,
    faults: Arc<Faults>,
}

#[derive(Debug, Default)]
struct Faults {
    /// Appends that will panic.
    panics: AtomicU32,
    /// Appends that will fail as on a full disk.
    full: AtomicU32,
    /// Whether histories have a line that cannot be read.
    damaged: AtomicBool,
}

fn take(count: &AtomicU32) -> bool {
    count.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1)).is_ok()
}

impl Store for Faulty {
    async fn put(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        self.store.put(item, condition).await
    }

    async fn update(
        &self,
        key: Key,
        set: BTreeMap<String, Value>,
        condition: Condition,
    ) -> Result<Written, Error> {
        self.store.update(key, set, condition).await
    }

    async fn get(&self, key: Key) -> Result<Option<Item>, Error> {
        self.store.get(key).await
    }

    async fn query(&self, query: Query) -> Result<Page, Error> {
        self.store.query(query).await
    }

    async fn changed(&self, timeout: Duration) {
        self.store.changed(timeout).await;
    }
}

impl ExecutionStore for Faulty {
    async fn open_machine(
        &self,
        arn: &str,
        definition: &str,
        now: Timestamp,
    ) -> Result<MachineRow, Error> {
        self.store.open_machine(arn, definition, now).await
    }

    async fn definition(&self, machine: i64) -> Result<String, Error> {
        self.store.definition(machine).await
    }

    async fn newest_time(&self) -> Result<Option<Timestamp>, Error> {
        self.store.newest_time().await
    }

    async fn holds_executions(&self) -> Result<bool, Error> {
        self.store.holds_executions().await
    }

    async fn start_all(
        &self,
        machine: i64,
        executions: Vec<NewExecution>,
    ) -> Result<Vec<Inserted>, Error> {
        self.store.start_all(machine, executions).await
    }

    async fn append(
        &self,
        execution: i64,
        events: &[Event],
        ended: Option<&(Outcome, Timestamp)>,
    ) -> Result<(), Error> {
        assert!(!take(&self.faults.panics), "on purpose");
        if take(&self.faults.full) {
            return Err(Error::Unavailable("database or disk is full".into()));
        }
        self.store.append(execution, events, ended).await
    }

    async fn redrive(
        &self,
        execution: i64,
        event: &Event,
        token: Option<&str>,
    ) -> Result<bool, Error> {
        self.store.redrive(execution, event, token).await
    }

    async fn running_after(&self, after: i64, limit: usize) -> Result<Vec<Record>, Error> {
        self.store.running_after(after, limit).await
    }

    async fn running(&self, ids: &[i64]) -> Result<Vec<Record>, Error> {
        self.store.running(ids).await
    }

    async fn find(&self, arn: &str) -> Result<Option<Record>, Error> {
        self.store.find(arn).await
    }

    async fn newest_first(
        &self,
        status: Option<&str>,
        before: i64,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        self.store.newest_first(status, before, limit).await
    }

    async fn counts(&self) -> Result<Vec<(String, i64)>, Error> {
        self.store.counts().await
    }

    async fn history(
        &self,
        execution: i64,
        after: i64,
        reverse: bool,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
        let mut history = self.store.history(execution, after, reverse, limit).await?;
        if self.faults.damaged.load(Ordering::Acquire) {
            history.push("{".to_owned());
        }
        Ok(history)
    }
}

/// Runs an execution in a store with faults, to its end.
async fn ended_with(faults: Faults) -> Record {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(&folder.path().join("journal.db"), Durability::Relaxed).unwrap();
    let store = Faulty { store, faults: Arc::new(faults) };
    let clock = Clock::scaled(Stamp::parse(TIME).unwrap(), SCALE);
    let functions = scripted(success, &Calls::default());
    let executions = Executions::open(store, clock, &text(), functions).await.unwrap();
    let input = json!({ "session_id": SESSION, "time": TIME, "detail": {} }).to_string();
    let started = executions.start(Request { name: SESSION.to_owned(), input }).await.unwrap();
    let (supervised, mut ends) = (executions.clone(), executions.ends());
    let _supervisor =
        AbortOnDropHandle::new(tokio::spawn(async move { supervised.supervise().await }));
    let ended = tokio::time::timeout(TIMEOUT, ends.recv()).await.expect("the execution ends");
    assert_ne!(ended.unwrap().status, RUNNING, "the end is announced, so the watchdog sees it");
    executions.describe(&started.arn).await.unwrap().unwrap()
}

fn is_broken(record: &Record, why: &str) {
    assert_eq!(
        (record.status.as_str(), record.error.as_deref()),
        ("FAILED", Some(EXECUTION_BROKEN))
    );
    let cause = record.cause.as_deref().unwrap_or_default();
    assert!(cause.contains("failed 6 times") && cause.contains(why), "{cause}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_panics_is_restarted() {
    let panics = AtomicU32::new(FAILURES - 1);
    let record = ended_with(Faults { panics, ..Faults::default() }).await;
    assert_eq!(record.status, "SUCCEEDED", "{record:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_keeps_panicking_ends_its_execution() {
    let panics = AtomicU32::new(FAILURES);
    let record = ended_with(Faults { panics, ..Faults::default() }).await;
    is_broken(&record, "panicked: on purpose");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_without_a_readable_history_ends() {
    let damaged = AtomicBool::new(true);
    let record = ended_with(Faults { damaged, ..Faults::default() }).await;
    is_broken(&record, "unreadable record");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_delays_an_execution_and_ends_none() {
    let full = AtomicU32::new(2 * FAILURES);
    let record = ended_with(Faults { full, ..Faults::default() }).await;
    assert_eq!(record.status, "SUCCEEDED", "{record:?}");
}
