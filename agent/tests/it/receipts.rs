//! A store whose steps of people need receipts, as in an account.

use std::collections::BTreeMap;
use std::time::Duration;

use journal::item::{Item, Value};
use journal::sqlite::SqliteStore;
use journal::store::{Condition, Error, Key, Page, Query, Store, Written};

#[derive(Clone, Debug)]
pub struct Receipted(pub SqliteStore);

impl Store for Receipted {
    async fn put(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        self.0.put(item, condition).await
    }

    async fn update(
        &self,
        key: Key,
        set: BTreeMap<String, Value>,
        condition: Condition,
    ) -> Result<Written, Error> {
        self.0.update(key, set, condition).await
    }

    async fn get(&self, key: Key) -> Result<Option<Item>, Error> {
        self.0.get(key).await
    }

    async fn query(&self, query: Query) -> Result<Page, Error> {
        self.0.query(query).await
    }

    async fn changed(&self, timeout: Duration) {
        self.0.changed(timeout).await;
    }

    fn has_receipts(&self) -> bool {
        true
    }
}
