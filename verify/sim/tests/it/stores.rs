//! The stores that sessions run on: a new one for each run.

use journal::dynamo::DynamoStore;
use journal::sqlite::{Durability, SqliteStore};
use sim::backing_store::BackingStore;

/// Opens one store after another.
pub type Stores = Box<dyn FnMut() -> BackingStore>;

pub fn memory() -> Option<Stores> {
    Some(Box::new(BackingStore::memory))
}

pub fn sqlite() -> Option<Stores> {
    let folder = tempfile::tempdir().unwrap();
    let mut opened = 0;
    Some(Box::new(move || {
        opened += 1;
        let path = folder.path().join(format!("{opened}.db"));
        BackingStore::sqlite(SqliteStore::open(&path, Durability::Relaxed).unwrap())
    }))
}

/// `None` if no DynamoDB endpoint is configured.
#[expect(clippy::disallowed_methods, reason = "the test runner passes DynamoDB's address")]
pub fn dynamodb() -> Option<Stores> {
    let Ok(endpoint) = std::env::var("DAYBOOK_TEST_DYNAMODB") else {
        println!("skipped: DAYBOOK_TEST_DYNAMODB names no DynamoDB endpoint");
        return None;
    };
    Some(Box::new(move || {
        let endpoint = endpoint.clone();
        BackingStore::dynamo(async move { DynamoStore::fresh_for_tests(&endpoint).await.unwrap() })
    }))
}
