//! Proves a session's leaves in the tree of a checkpoint.

use futures_util::future::try_join;

use super::super::{
    ENTRIES_MAX, Entry, Extract, HeadEntry, Proof, Shard, ShardHead, Tree, too_many,
};
use super::{TableLog, items};
use crate::id::SessionId;
use crate::store::{Error, Query, Transact};

/// Most checkpoints among which a cosigned one is looked for.
const CHECKPOINTS_MAX: usize = 100;

/// Where the root log states a head.
struct Stated {
    index: u64,
    leaf: Vec<u8>,
    /// The shard's number of leaves.
    size: u64,
}

impl<S: Transact> TableLog<S> {
    /// A session's leaves, proven in the tree of a checkpoint.
    pub(super) async fn extract(&self, session: &SessionId) -> Result<Extract, Error> {
        let shard = Shard::of(session);
        let mut found = self.found_at_most(ENTRIES_MAX, shard, session).await?;
        found.sort_by_key(|found| found.index);
        let newest = match found.last() {
            Some(newest) => self.stated_over(shard, newest.index).await?,
            None => None,
        };
        let cosigned = match newest {
            Some(stated) => self.cosigned(stated.index + 1).await?,
            None => None,
        };
        let checkpoint = match cosigned {
            Some(note) => Some(note),
            None => self.checkpoint().await?,
        };
        let size = checkpoint.as_deref().and_then(Extract::size_of).unwrap_or(0);
        let mut entries = Vec::new();
        for found in &found {
            entries.push(self.entry(shard, found.index, size).await?);
        }
        Ok(Extract { checkpoint, entries })
    }

    /// Where a session's leaves are, unless there are more than `most`.
    async fn found_at_most(
        &self,
        most: usize,
        shard: Shard,
        session: &SessionId,
    ) -> Result<Vec<items::Found>, Error> {
        let prefix = items::of_session(session);
        let mut query = Query::prefix(items::partition(Tree::Shard(shard)), &prefix);
        let mut found = Vec::new();
        loop {
            let page = self.store.query(query.clone()).await?;
            for item in &page.items {
                found.push(items::Found::read(item)?);
            }
            if found.len() > most {
                return Err(too_many(session));
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(found),
            }
        }
    }

    /// A leaf of a shard, proven in a root log of `size` leaves if that covers it.
    async fn entry(&self, shard: Shard, index: u64, size: u64) -> Result<Entry, Error> {
        let leaf = self.leaf(Tree::Shard(shard), index).await?;
        let stated = self.stated_over(shard, index).await?.filter(|stated| stated.index < size);
        let Some(stated) = stated else { return Ok(Entry { index, leaf, proof: None }) };
        let (path, of_head) = try_join(
            self.inclusion(Tree::Shard(shard), index, stated.size),
            self.inclusion(Tree::Signed, stated.index, size),
        )
        .await?;
        let head = HeadEntry { index: stated.index, leaf: stated.leaf, path: of_head };
        Ok(Entry { index, leaf, proof: Some(Proof::Shard { path, head }) })
    }

    /// The first head in the root log that covers a leaf. A later one would do, but the first is in the oldest checkpoint
    /// and stays the same.
    async fn stated_over(&self, shard: Shard, leaf: u64) -> Result<Option<Stated>, Error> {
        let page = self.store.query(items::heads_over(shard, leaf).limited(1)).await?;
        let Some(item) = page.items.first() else { return Ok(None) };
        let index = items::Found::read(item)?.index;
        let leaf = self.leaf(Tree::Signed, index).await?;
        let stated = ShardHead::parse(&leaf).ok_or_else(|| items::malformed(item))?;
        Ok(Some(Stated { index, leaf, size: stated.head.size }))
    }

    /// The newest checkpoint.
    pub(super) async fn checkpoint(&self) -> Result<Option<String>, Error> {
        let page = self.store.query(items::checkpoints(0).limited(1)).await?;
        Ok(page.items.first().and_then(items::note))
    }

    /// The newest checkpoint of at least this many leaves with a cosignature.
    async fn cosigned(&self, size: u64) -> Result<Option<String>, Error> {
        let page = self.store.query(items::checkpoints(size).limited(CHECKPOINTS_MAX)).await?;
        let mut notes = page.items.iter().filter_map(items::note);
        Ok(notes.find(|note| Extract::signatures_of(note) > 1))
    }
}
