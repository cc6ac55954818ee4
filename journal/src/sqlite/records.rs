//! The journal's records in the file.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::Connection;

use super::log::NewLeaf;
use super::{POLL_INTERVAL, READ_HERE_BYTES_MAX, SqliteStore, rows};
use crate::cipher::{KeyChange, KeyRefused, KeyState};
use crate::id::SessionId;
use crate::item::{Item, Value};
use crate::key::EVENT_PREFIX;
use crate::store::{Condition, Error, Key, Page, Query, Store, Written};

impl Store for SqliteStore {
    async fn put(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        rows::check_size(&item)?;
        self.check_encrypted(&item)?;
        let leaf = NewLeaf::of(&item);
        let item = rows::Encoded::of(item);
        let put = move |connection: &Connection| rows::put(connection, &item, &condition);
        let mut written = match leaf {
            None => self.writer()?.run_one(put).await??,
            Some(leaf) => self.writer()?.run_logged(put, move |_| Some(leaf)).await?,
        };
        if let Written::Refused(Some(there)) = &mut written {
            self.open_items([there])?;
        }
        Ok(written)
    }

    async fn update(
        &self,
        key: Key,
        set: BTreeMap<String, Value>,
        condition: Condition,
    ) -> Result<Written, Error> {
        let is_event = key.sk.starts_with(EVENT_PREFIX);
        let at = key.clone();
        let update = move |connection: &Connection| rows::update(connection, &key, set, &condition);
        if !is_event {
            return self.writer()?.run_one(update).await?;
        }
        let leaf = move |connection: &Connection| {
            let item = rows::get(connection, &at).ok().flatten();
            item.as_ref().and_then(NewLeaf::of)
        };
        self.writer()?.run_logged(update, leaf).await
    }

    async fn get(&self, key: Key) -> Result<Option<Item>, Error> {
        let mut item = self.read_here(|connection| rows::get(connection, &key))?;
        self.open_items(&mut item)?;
        Ok(item)
    }

    async fn query(&self, query: Query) -> Result<Page, Error> {
        // Cursor reads are large, so they use the blocking pool.
        let here = match query.after {
            None => self.read_here(|connection| {
                rows::query_within(connection, &query, READ_HERE_BYTES_MAX)
            })?,
            Some(_) => None,
        };
        let mut page = match here {
            Some(page) => page,
            None => self.read(move |connection| rows::query(connection, &query)).await?,
        };
        self.open_items(&mut page.items)?;
        Ok(page)
    }

    async fn count_by_status(&self, query: Query) -> Result<BTreeMap<String, u64>, Error> {
        self.read(move |connection| rows::count_by_status(connection, &query)).await
    }

    async fn changed(&self, timeout: Duration) {
        if self.shared.writer.is_none() {
            return tokio::time::sleep(timeout.min(POLL_INTERVAL)).await;
        }
        let mut changes = self.shared.changes.subscribe();
        // The caller does not need to know whether the wait ended by a change or a timeout.
        let _ = tokio::time::timeout(timeout, changes.changed()).await;
    }

    async fn session_key(&self, session: &SessionId) -> Result<KeyState, Error> {
        self.key_state(session)
    }

    async fn change_key(&self, session: &SessionId, change: KeyChange) -> Result<(), Error> {
        let keys = self.keys()?.ok_or(KeyRefused::NotEncrypted)?;
        keys.change(session, &change)?;
        if matches!(change, KeyChange::Destroy(_)) {
            self.release_deduplication(session).await?;
        }
        Ok(())
    }

    async fn key_change_journaled(&self, session: &SessionId) -> Result<(), Error> {
        match self.keys()? {
            Some(keys) => keys.journaled(session),
            None => Ok(()),
        }
    }

    async fn guarded(&self, text: &str) -> Result<String, Error> {
        let keys = self.keys()?.filter(|_| self.encrypts());
        Ok(keys.map_or_else(|| text.to_owned(), |keys| keys.guarded(text)))
    }
}
