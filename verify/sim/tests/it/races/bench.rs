//! Both stores, and a race on either.

use std::fmt;

use journal::dynamo::DynamoStore;
use journal::sqlite::{Durability, SqliteStore};
use journal::store::Store;
use sim::interleave::{Io, Limits, Race, explore};
use tokio::runtime::Runtime;

/// Generates a test per race and store.
macro_rules! on_both_stores {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $name() {
                let (bench, _folder) = crate::races::bench::sqlite();
                super::$name(&bench);
            })+
        }
        mod dynamodb {
            $(#[test]
            fn $name() {
                let Some(bench) = crate::races::bench::dynamodb() else { return };
                super::$name(&bench);
            })+
        }
    };
}

/// A store with the runtime of its races.
pub struct Bench<S> {
    pub io: Io,
    pub store: S,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sqlite,
    DynamoDb,
}

/// The limits on a store, and the least number of schedules.
pub struct Extent {
    pub limits: Limits,
    pub schedules_min: usize,
}

pub fn sqlite() -> (Bench<SqliteStore>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("journal.db"), Durability::Relaxed).unwrap();
    (Bench { io: Io::start(), store, kind: Kind::Sqlite }, folder)
}

/// An empty table, or `None` if no DynamoDB endpoint is configured.
#[expect(clippy::disallowed_methods, reason = "the test runner passes DynamoDB's address")]
pub fn dynamodb() -> Option<Bench<DynamoStore>> {
    let Ok(endpoint) = std::env::var("DAYBOOK_TEST_DYNAMODB") else {
        println!("skipped: DAYBOOK_TEST_DYNAMODB names no DynamoDB endpoint");
        return None;
    };
    let io = Io::start();
    let store = io.wait(async move { DynamoStore::fresh_for_tests(&endpoint).await }).unwrap();
    Some(Bench { io, store, kind: Kind::DynamoDb })
}

pub fn paused() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// At least this many schedules, within these limits.
pub fn at_least(schedules_min: usize, limits: Limits) -> Extent {
    Extent { limits, schedules_min }
}

impl<S: Store> Bench<S> {
    /// Runs a race on SQLite with the first limits, or on DynamoDB with the second.
    pub fn race<T>(
        &self,
        on_sqlite: Extent,
        on_dynamodb: Extent,
        prepare: impl AsyncFn(&mut Race<S>) -> T,
        judge: impl AsyncFn(&Race<S>, T) -> Vec<String>,
    ) {
        let Extent { limits, schedules_min } = match self.kind {
            Kind::Sqlite => on_sqlite,
            Kind::DynamoDb => on_dynamodb,
        };
        let explored = explore(&self.io, paused, &self.store, limits, prepare, judge);
        println!("{}: {explored:?}", self.kind);
        if let Some(broken) = explored.broken {
            panic!("schedule {}: {broken}", explored.schedules);
        }
        assert!(explored.schedules >= schedules_min, "only {} schedules", explored.schedules);
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "SQLite",
            Self::DynamoDb => "DynamoDB",
        })
    }
}
