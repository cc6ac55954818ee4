//! A real store beneath the simulated table: each of its answers is held against the table's own.
//!
//! It works on a thread and a runtime of its own, where time is real. Whoever asks waits for the
//! answer without yielding, so that the simulated time stands still meanwhile and a run stays the
//! same however long the store takes.

use std::fmt;
use std::pin::Pin;
use std::sync::mpsc;

use journal::dynamo::DynamoStore;
use journal::item::Item;
use journal::sqlite::SqliteStore;
use journal::store::{Condition, Error, Key, Page, Query, Store, Written};

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What keeps a table's items beside the table itself.
#[derive(Clone, Debug, Default)]
pub struct Beneath(Option<Real>);

#[derive(Clone)]
struct Real {
    store: Kind,
    /// Closed with the last clone, which ends the thread.
    jobs: mpsc::Sender<Job>,
}

#[derive(Clone)]
enum Kind {
    Sqlite(SqliteStore),
    Dynamo(DynamoStore),
}

impl fmt::Debug for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.store {
            Kind::Sqlite(_) => "Sqlite",
            Kind::Dynamo(_) => "Dynamo",
        })
    }
}

impl Beneath {
    /// Nothing: the table is in memory only.
    pub fn memory() -> Self {
        Self(None)
    }

    /// A `SQLite` file without sessions.
    pub fn sqlite(store: SqliteStore) -> Self {
        Self(Some(Real { store: Kind::Sqlite(store), jobs: worker() }))
    }

    /// A `DynamoDB` table without sessions. `open` is awaited where the table is used from: a
    /// client's connections live on the runtime that opened them.
    pub fn dynamo(open: impl Future<Output = DynamoStore> + Send + 'static) -> Self {
        let jobs = worker();
        let store = wait(&jobs, open);
        Self(Some(Real { store: Kind::Dynamo(store), jobs }))
    }

    pub(crate) fn put(&self, item: &Item, condition: &Condition) -> Option<Answer<Written>> {
        let (item, condition) = (item.clone(), condition.clone());
        Some(match self.0.as_ref()?.clone() {
            Real { store: Kind::Sqlite(store), jobs } => {
                ask(&jobs, async move { store.put(item, condition).await })
            }
            Real { store: Kind::Dynamo(store), jobs } => {
                ask(&jobs, async move { store.put(item, condition).await })
            }
        })
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Answer<Option<Item>>> {
        let key = key.clone();
        Some(match self.0.as_ref()?.clone() {
            Real { store: Kind::Sqlite(store), jobs } => {
                ask(&jobs, async move { store.get(key).await })
            }
            Real { store: Kind::Dynamo(store), jobs } => {
                ask(&jobs, async move { store.get(key).await })
            }
        })
    }

    pub(crate) fn query(&self, query: &Query) -> Option<Answer<Page>> {
        let query = query.clone();
        Some(match self.0.as_ref()?.clone() {
            Real { store: Kind::Sqlite(store), jobs } => {
                ask(&jobs, async move { store.query(query).await })
            }
            Real { store: Kind::Dynamo(store), jobs } => {
                ask(&jobs, async move { store.query(query).await })
            }
        })
    }
}

/// An answer; an error is told in words, for any is unexpected here.
pub(crate) type Answer<T> = Result<T, String>;

/// A thread that does one job after the other.
fn worker() -> mpsc::Sender<Job> {
    let (jobs, queue) = mpsc::channel::<Job>();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.unwrap_or_else(|error| panic!("a runtime starts: {error}"));
        for job in queue {
            runtime.block_on(job);
        }
    });
    jobs
}

fn ask<T: Send + 'static>(
    jobs: &mpsc::Sender<Job>,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Answer<T> {
    wait(jobs, work).map_err(|error| format!("{error}: {error:?}"))
}

fn wait<T: Send + 'static>(
    jobs: &mpsc::Sender<Job>,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let (sender, answer) = mpsc::channel();
    let job = async move {
        // Whoever asked waits below.
        let _ = sender.send(work.await);
    };
    jobs.send(Box::pin(job)).unwrap_or_else(|_| panic!("the store's thread is gone"));
    answer.recv().unwrap_or_else(|_| panic!("the store's thread is gone"))
}
