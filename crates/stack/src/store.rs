//! The database of a stack, and a journal that is local or in an AWS account.

use std::collections::BTreeMap;
use std::time::Duration;

use journal::cipher::{KeyChange, KeyState};
#[cfg(feature = "dynamodb")]
use journal::dynamo::DynamoStore;
use journal::id::SessionId;
use journal::item::{Item, Value};
use journal::sqlite::SqliteStore;
use journal::store::{Condition, Error, Key, Page, Query, Store, Written};

/// Holds a stack's journal and its executions. Another database implements [`Store`] in `journal` and
/// [`ExecutionStore`](crate::executions::ExecutionStore) in `executions`, and is named here.
pub type Database = SqliteStore;

/// A journal, local or in an AWS account.
#[derive(Clone, Debug)]
pub enum Journal {
    /// A local SQLite file.
    Here(Database),
    /// A DynamoDB table in an AWS account.
    #[cfg(feature = "dynamodb")]
    There(DynamoStore),
}

/// Calls the same method on either variant.
macro_rules! of_either {
    ($journal:expr, $store:ident => $call:expr) => {
        match $journal {
            Journal::Here($store) => $call,
            #[cfg(feature = "dynamodb")]
            Journal::There($store) => $call,
        }
    };
}

impl Journal {
    /// The local file.
    pub fn here(&self) -> Option<&Database> {
        match self {
            Self::Here(database) => Some(database),
            #[cfg(feature = "dynamodb")]
            Self::There(_) => None,
        }
    }

    pub fn is_in_account(&self) -> bool {
        match self {
            Self::Here(_) => false,
            #[cfg(feature = "dynamodb")]
            Self::There(_) => true,
        }
    }
}

impl Store for Journal {
    async fn put(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        of_either!(self, store => store.put(item, condition).await)
    }

    async fn update(
        &self,
        key: Key,
        set: BTreeMap<String, Value>,
        condition: Condition,
    ) -> Result<Written, Error> {
        of_either!(self, store => store.update(key, set, condition).await)
    }

    async fn get(&self, key: Key) -> Result<Option<Item>, Error> {
        of_either!(self, store => store.get(key).await)
    }

    async fn query(&self, query: Query) -> Result<Page, Error> {
        of_either!(self, store => store.query(query).await)
    }

    async fn count_by_status(&self, query: Query) -> Result<BTreeMap<String, u64>, Error> {
        of_either!(self, store => store.count_by_status(query).await)
    }

    async fn changed(&self, timeout: Duration) {
        of_either!(self, store => store.changed(timeout).await);
    }

    async fn log_session(&self, session: &SessionId) -> Result<(), Error> {
        of_either!(self, store => store.log_session(session).await)
    }

    fn has_receipts(&self) -> bool {
        of_either!(self, store => store.has_receipts())
    }

    async fn session_key(&self, session: &SessionId) -> Result<KeyState, Error> {
        of_either!(self, store => store.session_key(session).await)
    }

    async fn change_key(&self, session: &SessionId, change: KeyChange) -> Result<(), Error> {
        of_either!(self, store => store.change_key(session, change).await)
    }

    async fn key_change_journaled(&self, session: &SessionId) -> Result<(), Error> {
        of_either!(self, store => store.key_change_journaled(session).await)
    }

    async fn guarded(&self, text: &str) -> Result<String, Error> {
        of_either!(self, store => store.guarded(text).await)
    }
}
