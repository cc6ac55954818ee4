//! The stores that sessions are run on: a fresh one for each run.

use journal::dynamo::DynamoStore;
use journal::sqlite::{Durability, SqliteStore};
use sim::beneath::Beneath;

/// Opens one store after the other.
pub type Stores = Box<dyn FnMut() -> Beneath>;

pub fn memory() -> Option<Stores> {
    Some(Box::new(Beneath::memory))
}

pub fn sqlite() -> Option<Stores> {
    let folder = tempfile::tempdir().unwrap();
    let mut opened = 0;
    Some(Box::new(move || {
        opened += 1;
        let path = folder.path().join(format!("{opened}.db"));
        Beneath::sqlite(SqliteStore::open(&path, Durability::Relaxed).unwrap())
    }))
}

/// Nothing where no DynamoDB is named.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says where DynamoDB is")]
pub fn dynamodb() -> Option<Stores> {
    let Ok(endpoint) = std::env::var("DAYBOOK_TEST_DYNAMODB") else {
        println!("skipped: DAYBOOK_TEST_DYNAMODB names no DynamoDB endpoint");
        return None;
    };
    Some(Box::new(move || {
        let endpoint = endpoint.clone();
        Beneath::dynamo(async move { DynamoStore::fresh_for_tests(&endpoint).await.unwrap() })
    }))
}
