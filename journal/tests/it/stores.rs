//! Both stores, for tests that run on each.

use journal::dynamo::DynamoStore;
use journal::sqlite::{Durability, SqliteStore};

/// A journal in a temporary folder.
pub struct Temporary {
    pub store: SqliteStore,
    _dir: tempfile::TempDir,
}

pub fn sqlite() -> Temporary {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&dir.path().join("journal.db"), Durability::Relaxed).unwrap();
    Temporary { store, _dir: dir }
}

/// An empty table, or `None` if no DynamoDB endpoint is configured.
#[expect(clippy::disallowed_methods, reason = "the test runner passes DynamoDB's address")]
pub async fn dynamodb() -> Option<DynamoStore> {
    let Ok(endpoint) = std::env::var("DAYBOOK_TEST_DYNAMODB") else {
        println!("skipped: DAYBOOK_TEST_DYNAMODB names no DynamoDB endpoint");
        return None;
    };
    Some(DynamoStore::fresh_for_tests(&endpoint).await.unwrap())
}

/// Generates a test per function and store.
macro_rules! on_both_stores {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let temporary = crate::stores::sqlite();
                super::$name(temporary.store.clone()).await;
            })+
        }
        mod dynamodb {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let Some(store) = crate::stores::dynamodb().await else { return };
                super::$name(store).await;
            })+
        }
    };
}
