//! A store whose writers can be stopped at any call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use journal::item::{Item, Value};
use journal::log::Leaf;
use journal::log::table::TableLog;
use journal::store::{AllWritten, Condition, Error, Key, Page, Query, Store, Transact, Written};
use tokio::sync::Notify;

/// At which call a writer is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    Before(usize),
    After(usize),
}

/// Which calls are counted. A writer that is killed at a read leaves what it leaves before its next write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    All,
    Writes,
}

/// A store whose user is killed at a call: the call never returns, unless it is resumed.
#[derive(Clone, Debug)]
pub struct Killed<S> {
    store: S,
    kill: Kill,
    counted: Counted,
    calls: Arc<AtomicUsize>,
    killed: Arc<Notify>,
    resumed: Arc<Notify>,
}

impl<S: Transact> Killed<S> {
    pub fn new(store: S, kill: Kill, counted: Counted) -> Self {
        Self {
            store,
            kill,
            counted,
            calls: Arc::default(),
            killed: Arc::default(),
            resumed: Arc::default(),
        }
    }

    /// Runs work until it is killed; `None` if it was.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            // What is killed is dropped.
            () = self.stopped() => None,
            done = work => Some(done),
        }
    }

    /// Returns when the user is at the call.
    pub async fn stopped(&self) {
        self.killed.notified().await;
    }

    /// Lets the call return, as if it had taken long.
    pub fn resume(&self) {
        self.resumed.notify_one();
    }

    async fn read<T>(&self, read: impl Future<Output = T>) -> T {
        match self.counted {
            Counted::All => self.call(read).await,
            Counted::Writes => read.await,
        }
    }

    async fn call<T>(&self, call: impl Future<Output = T>) -> T {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        if self.kill == Kill::Before(number) {
            self.die().await;
        }
        let done = call.await;
        if self.kill == Kill::After(number) {
            self.die().await;
        }
        done
    }

    async fn die(&self) {
        self.killed.notify_one();
        self.resumed.notified().await;
    }
}

impl<S: Transact> Transact for Killed<S> {
    async fn put_all(&self, items: Vec<(Item, Condition)>) -> Result<AllWritten, Error> {
        self.call(self.store.put_all(items)).await
    }
}

impl<S: Transact> Store for Killed<S> {
    async fn put(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        match Leaf::of(&item) {
            Some(leaf) => TableLog::new(self.clone()).put(item, condition, &leaf).await,
            None => self.call(self.store.put(item, condition)).await,
        }
    }

    async fn update(
        &self,
        key: Key,
        set: BTreeMap<String, Value>,
        condition: Condition,
    ) -> Result<Written, Error> {
        self.call(self.store.update(key, set, condition)).await
    }

    async fn get(&self, key: Key) -> Result<Option<Item>, Error> {
        self.read(self.store.get(key)).await
    }

    async fn query(&self, query: Query) -> Result<Page, Error> {
        self.read(self.store.query(query)).await
    }

    async fn changed(&self, timeout: Duration) {
        self.store.changed(timeout).await;
    }
}
