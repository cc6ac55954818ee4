//! A real store behind the simulated table: each of its replies is compared with the table's.
//!
//! The store runs on a thread and a runtime of its own, in real time. A caller blocks until the
//! reply arrives, so that simulated time does not advance and a run is the same however fast the
//! store is.

use std::fmt;
use std::pin::Pin;
use std::sync::mpsc;

use journal::dynamo::DynamoStore;
use journal::item::Item;
use journal::sqlite::SqliteStore;
use journal::store::{Condition, Error, Key, Page, Query, Store, Written};

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The store that holds a table's items in addition to the table itself.
#[derive(Clone, Debug, Default)]
pub struct BackingStore(Option<Real>);

#[derive(Clone)]
struct Real {
    store: Kind,
    /// Closed when the last clone is dropped, which ends the thread.
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

impl BackingStore {
    /// None: the table is in memory only.
    pub fn memory() -> Self {
        Self(None)
    }

    /// An empty `SQLite` file.
    pub fn sqlite(store: SqliteStore) -> Self {
        Self(Some(Real { store: Kind::Sqlite(store), jobs: worker() }))
    }

    /// An empty `DynamoDB` table. `open` is awaited on the runtime that uses the table, because a
    /// client's connections belong to the runtime that opened them.
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

/// A reply; an error is a text, because every error is unexpected here.
pub(crate) type Answer<T> = Result<T, String>;

/// A thread that runs one job after another.
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
        // The caller waits below.
        let _ = sender.send(work.await);
    };
    jobs.send(Box::pin(job)).unwrap_or_else(|_| panic!("the store's thread is gone"));
    answer.recv().unwrap_or_else(|_| panic!("the store's thread is gone"))
}
