//! A table in memory. The tests of the poller have it, too.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use journal::id::SessionId;
use journal::item::{Item, Value};
use journal::log::Leaf;
use journal::log::table::TableLog;
use journal::store::{
    AllWritten, Condition, Cursor, Error, Key, Page, Partition, Query, Store, Transact, Written,
};

/// Items of a page, few enough that most queries have several.
const PAGE: usize = 7;

/// Every so many transactions meet another one.
const CONTENDED: usize = 5;

/// A table as DynamoDB is: conditional writes of several items are atomic, and may be refused because of another one.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    items: Arc<Mutex<BTreeMap<Key, Item>>>,
    transactions: Arc<AtomicUsize>,
    is_logged: bool,
}

impl Memory {
    /// Like the store of an account.
    pub fn with_log(self) -> Self {
        Self { is_logged: true, ..self }
    }

    pub fn items(&self) -> Vec<Item> {
        self.items.lock().unwrap().values().cloned().collect()
    }

    /// What anybody can do who may write the table.
    pub fn tamper(&self, pk: &str, sk: &str, change: impl FnOnce(&mut Option<Item>)) {
        let (mut items, key) = (self.items.lock().unwrap(), Key::new(pk, sk));
        let mut item = items.remove(&key);
        change(&mut item);
        items.extend(item.map(|item| (key, item)));
    }
}

fn key_of(item: &Item) -> Key {
    Key::new(item.pk.as_str(), item.sk.as_str())
}

impl Transact for Memory {
    async fn put_all(&self, items: Vec<(Item, Condition)>) -> Result<AllWritten, Error> {
        tokio::task::yield_now().await;
        assert!(items.len() <= journal::limits::TRANSACTION_ITEMS_MAX);
        let keys: std::collections::BTreeSet<_> =
            items.iter().map(|(item, _)| key_of(item)).collect();
        assert_eq!(keys.len(), items.len(), "DynamoDB refuses two writes of one item");
        if self.transactions.fetch_add(1, Ordering::Relaxed) % CONTENDED == CONTENDED - 1 {
            return Ok(AllWritten::Contended);
        }
        let mut stored = self.items.lock().unwrap();
        for (at, (item, condition)) in items.iter().enumerate() {
            let found = stored.get(&key_of(item));
            if !condition.holds(found) {
                return Ok(AllWritten::Refused { at, found: found.cloned() });
            }
        }
        stored.extend(items.into_iter().map(|(item, _)| (key_of(&item), item)));
        Ok(AllWritten::Done)
    }
}

impl Store for Memory {
    async fn put(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        if let Some(leaf) = Leaf::of(&item).filter(|_| self.is_logged) {
            return TableLog::new(self.clone()).put(item, condition, &leaf).await;
        }
        tokio::task::yield_now().await;
        let mut stored = self.items.lock().unwrap();
        let found = stored.get(&key_of(&item));
        if !condition.holds(found) {
            return Ok(Written::Refused(found.cloned()));
        }
        stored.insert(key_of(&item), item);
        Ok(Written::Done)
    }

    async fn update(
        &self,
        key: Key,
        set: BTreeMap<String, Value>,
        condition: Condition,
    ) -> Result<Written, Error> {
        let mut stored = self.items.lock().unwrap();
        let found = stored.get(&key).cloned();
        if !condition.holds(found.as_ref()) {
            return Ok(Written::Refused(found));
        }
        let mut item = found.unwrap_or_else(|| Item::new(key.pk.as_str(), key.sk.as_str()));
        item.attributes.extend(set);
        stored.insert(key, item);
        Ok(Written::Done)
    }

    async fn get(&self, key: Key) -> Result<Option<Item>, Error> {
        tokio::task::yield_now().await;
        Ok(self.items.lock().unwrap().get(&key).cloned())
    }

    async fn query(&self, query: Query) -> Result<Page, Error> {
        tokio::task::yield_now().await;
        let Partition::Table(pk) = &query.partition else { unreachable!("no index is queried") };
        let stored = self.items.lock().unwrap();
        let within = |key: &Key| {
            key.pk == *pk
                && query.from.as_ref().is_none_or(|from| key.sk >= *from)
                && query.to.as_ref().is_none_or(|to| key.sk <= *to)
        };
        let mut items: Vec<_> =
            stored.iter().filter(|(key, _)| within(key)).map(|(_, item)| item.clone()).collect();
        if query.reverse {
            items.reverse();
        }
        if let Some(after) = &query.after {
            let place = items.iter().position(|item| key_of(item) == after.key).unwrap();
            items.drain(..=place);
        }
        let length = query.limit.unwrap_or(PAGE).min(PAGE);
        let is_last = items.len() <= length;
        items.truncate(length);
        let last = items.last().filter(|_| !is_last);
        let next = last.map(|item| Cursor { key: key_of(item), at: None });
        Ok(Page { items, next })
    }

    fn has_receipts(&self) -> bool {
        self.is_logged
    }

    async fn changed(&self, _: Duration) {}

    async fn log_session(&self, session: &SessionId) -> Result<(), Error> {
        TableLog::new(self.clone()).log_session(session).await
    }
}
