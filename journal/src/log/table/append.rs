//! Appends leaves.

use std::time::Duration;

use futures_util::future::{join, try_join_all};
use tlog::hash::Hash;
use tlog::proof::{verify_consistency, verify_inclusion};
use tlog::tree::{Frontier, TreeHead};

use super::super::{Leaf, SHARDS, Shard, ShardHead, Stage, Tree};
use super::{Damaged, TableLog, items};
use crate::event::EventStatus;
use crate::id::SessionId;
use crate::item::Item;
use crate::key;
use crate::limits::WRITE_ATTEMPTS_MAX;
use crate::store::{AllWritten, Condition, Error, Key, Query, Retry, Transact, Written, query_all};

/// Most leaves of one transaction; more are appended by further ones. With the record these are 65 items of at most 100,
/// and less than 1 MB of at most 4 MB: a leaf and its nodes have at most 10 KiB, and a record 400 KiB.
pub(super) const LEAVES_AT_ONCE: usize = 32;

/// How often a leaf is appended anew because another writer took its number. One of the writers gets each number, so
/// only more writers to one shard than this, at one moment, exhaust it; the caller may then try again.
const ATTEMPTS_MAX: u32 = 64;

/// Longest pause before the second attempt; each further one is longer by as much.
const PAUSE: Duration = Duration::from_millis(4);

/// Longest pause between two attempts. An append takes a few requests of some milliseconds each.
const PAUSE_MAX: Duration = Duration::from_millis(100);

impl<S: Transact> TableLog<S> {
    /// Writes a record if the condition holds, together with its leaf and with that of its session's start, unless the
    /// log has them.
    ///
    /// # Errors
    /// As [`Store::put`](crate::store::Store::put). [`Error::Unavailable`] also if too many write to the shard at once,
    /// and [`Error::Corrupt`] if its tree cannot be read. Nothing was written then: a verdict without a leaf would look
    /// like one that was added later.
    pub async fn put(
        &self,
        item: Item,
        condition: Condition,
        leaf: &Leaf,
    ) -> Result<Written, Error> {
        for attempt in 1..=ATTEMPTS_MAX {
            let missing = self.missing_with(leaf).await?;
            let mut writes = vec![(item.clone(), condition.clone())];
            writes.extend(self.appended(Shard::of(&leaf.session), &missing).await?);
            match self.store.put_all(writes).await? {
                AllWritten::Done => return Ok(Written::Done),
                AllWritten::Refused { at: 0, found: Some(found) } => {
                    return Ok(Written::Refused(Some(found)));
                }
                AllWritten::Refused { at: 0, found: None } => {
                    let found = self.store.get(Key::new(item.pk, item.sk)).await?;
                    return Ok(Written::Refused(found));
                }
                AllWritten::Refused { .. } | AllWritten::Contended => pause(attempt).await,
            }
        }
        Err(contended(Tree::Shard(Shard::of(&leaf.session))))
    }

    /// Appends the leaves that the log lacks for the records of a session. Idempotent.
    ///
    /// # Errors
    /// The table cannot be read or written, or the shard's tree cannot be read.
    pub async fn log_session(&self, session: &SessionId) -> Result<(), Error> {
        let (mut attempt, mut failures) = (0, 0);
        while attempt < ATTEMPTS_MAX {
            match self.append_missing(session).await {
                Ok(Appended::All) => return Ok(()),
                Ok(Appended::Some) => {}
                Ok(Appended::None) => {
                    attempt += 1;
                    pause(attempt).await;
                }
                Err(error) => {
                    failures += 1;
                    match error.retry() {
                        // The next attempt finds what this one may have written.
                        Retry::After(pause) | Retry::Unknown(pause)
                            if failures < WRITE_ATTEMPTS_MAX =>
                        {
                            tokio::time::sleep(pause * failures).await;
                        }
                        _ => return Err(error),
                    }
                }
            }
        }
        Err(contended(Tree::Shard(Shard::of(session))))
    }

    async fn append_missing(&self, session: &SessionId) -> Result<Appended, Error> {
        let missing = self.missing(session, |_| true).await?;
        if missing.is_empty() {
            return Ok(Appended::All);
        }
        let writes = self.appended(Shard::of(session), &missing).await?;
        Ok(match self.store.put_all(writes).await? {
            AllWritten::Done if missing.len() <= LEAVES_AT_ONCE => Appended::All,
            AllWritten::Done => Appended::Some,
            AllWritten::Refused { .. } | AllWritten::Contended => Appended::None,
        })
    }

    /// The leaves of a session's records, of those that `wanted` accepts, that the log lacks.
    async fn missing(
        &self,
        session: &SessionId,
        wanted: impl Fn(&Leaf) -> bool,
    ) -> Result<Vec<Leaf>, Error> {
        let events = Query::prefix(key::session(session), key::EVENT_PREFIX);
        let (known, events) = join(self.known(session), query_all(&self.store, events)).await;
        let (known, events) = (known?, events?);
        let leaves = events.iter().filter_map(Leaf::of).filter(wanted);
        Ok(leaves.filter(|leaf| !is_known(&known, leaf)).collect())
    }

    /// A leaf, after those of its session's start, as far as the log lacks them.
    async fn missing_with(&self, leaf: &Leaf) -> Result<Vec<Leaf>, Error> {
        let known = self.known(&leaf.session).await?;
        let is_start = |found: &items::Found| found.status == Some(EventStatus::SessionInitiated);
        let mut missing = Vec::new();
        if leaf.stage() == Stage::Ended && !known.iter().any(is_start) {
            missing = self.missing(&leaf.session, |leaf| leaf.stage() == Stage::Started).await?;
            missing.truncate(LEAVES_AT_ONCE - 1);
        }
        if !is_known(&known, leaf) {
            missing.push(leaf.clone());
        }
        Ok(missing)
    }

    async fn known(&self, session: &SessionId) -> Result<Vec<items::Found>, Error> {
        self.found(Tree::Shard(Shard::of(session)), &items::of_session(session)).await
    }

    /// The items that append leaves to a shard as it is now.
    async fn appended(
        &self,
        shard: Shard,
        leaves: &[Leaf],
    ) -> Result<Vec<(Item, Condition)>, Error> {
        if leaves.is_empty() {
            return Ok(Vec::new());
        }
        let tree = Tree::Shard(shard);
        let mut frontier = self.frontier(tree, self.size(tree).await?).await?;
        let mut writes = Vec::new();
        for leaf in leaves.iter().take(LEAVES_AT_ONCE) {
            let (bytes, index) = (leaf.to_bytes(), frontier.size());
            writes.push(append(&mut frontier, tree, &bytes)?);
            writes.push((items::found_leaf(tree, leaf, &bytes, index), Condition::Absent));
        }
        Ok(writes)
    }

    /// Adds to the root log the head of each shard that has grown since its last one, and returns the head of the root
    /// log, for the caller to sign. Idempotent.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a shard does not continue the last head that the root log states: then nothing is added,
    /// and the log must not be signed.
    pub async fn advance(&self) -> Result<TreeHead, Error> {
        for attempt in 1..=ATTEMPTS_MAX {
            // In this order: a shard's head that is read later never has fewer leaves than the root log states.
            let mut frontier = self.frontier(Tree::Signed, self.size(Tree::Signed).await?).await?;
            let Some(last) = self.last_heads(&frontier.head()).await? else {
                pause(attempt).await;
                continue;
            };
            let grown = SHARDS.iter().zip(last).map(|(shard, last)| self.grown(*shard, last));
            let grown = try_join_all(grown).await?;
            let mut writes = Vec::new();
            for head in grown.into_iter().flatten() {
                let index = frontier.size();
                writes.push(append(&mut frontier, Tree::Signed, &head.to_bytes())?);
                writes.push((items::found_head(&head, index), Condition::Absent));
            }
            if writes.is_empty() {
                return Ok(frontier.head());
            }
            match self.store.put_all(writes).await? {
                AllWritten::Done => return Ok(frontier.head()),
                AllWritten::Refused { .. } | AllWritten::Contended => pause(attempt).await,
            }
        }
        Err(contended(Tree::Signed))
    }

    /// The head of a shard, if it continues the last one that the root log states and has grown.
    async fn grown(&self, shard: Shard, last: TreeHead) -> Result<Option<ShardHead>, Error> {
        let tree = Tree::Shard(shard);
        let size = self.size(tree).await?;
        if size < last.size {
            return Err(Damaged::SetBack { shard, old: last.size, new: size }.into());
        }
        let head = self.head(tree, size).await?;
        let proof = self.consistency(tree, last.size, size).await?;
        verify_consistency(&last, &head, &proof)
            .map_err(|source| Damaged::OtherHistory { shard, source })?;
        Ok((size > last.size).then_some(ShardHead { shard, head }))
    }

    /// The last head of each shard that a root log states. The items under which they are found are not signed, so each is
    /// proven to be in the tree, and the leaves after it to be of other shards. `None` if the root log has grown meanwhile.
    async fn last_heads(&self, root: &TreeHead) -> Result<Option<Vec<TreeHead>>, Error> {
        let found = try_join_all(SHARDS.iter().map(|shard| self.last_head(*shard, root))).await?;
        if found.iter().flatten().any(|(index, _)| *index >= root.size) {
            return Ok(None);
        }
        let next = |found: &Option<(u64, TreeHead)>| found.map_or(0, |(index, _)| index + 1);
        let mut from = found.iter().map(next).min().unwrap_or(0);
        while from < root.size {
            let page = self.store.query(items::leaves_from(Tree::Signed, from)).await?;
            if page.items.is_empty() {
                return Err(
                    Damaged::Leaf { tree: items::partition(Tree::Signed), index: from }.into()
                );
            }
            for item in &page.items {
                let index = items::index_of(item).ok_or_else(|| items::malformed(item))?;
                let stated = items::leaf_of(item).and_then(|leaf| ShardHead::parse(&leaf));
                let stated = stated.ok_or_else(|| items::malformed(item))?;
                if index < root.size && index >= next(&found[stated.shard.number()]) {
                    return Err(Damaged::NotFound { shard: stated.shard, index }.into());
                }
                from = index + 1;
            }
        }
        let head = |found: Option<(u64, TreeHead)>| found.map_or_else(TreeHead::empty, |it| it.1);
        Ok(Some(found.into_iter().map(head).collect()))
    }

    /// The last head of a shard that is found, and its place in the root log. The head is empty if its place is beyond
    /// the root log.
    async fn last_head(
        &self,
        shard: Shard,
        root: &TreeHead,
    ) -> Result<Option<(u64, TreeHead)>, Error> {
        let newest = items::heads_over(shard, 0).reversed().limited(1);
        let page = self.store.query(newest).await?;
        let Some(item) = page.items.first() else { return Ok(None) };
        let index = items::Found::read(item)?.index;
        if index >= root.size {
            return Ok(Some((index, TreeHead::empty())));
        }
        let leaf = self.leaf(Tree::Signed, index).await?;
        let path = self.inclusion(Tree::Signed, index, root.size).await?;
        verify_inclusion(&Hash::leaf(&leaf), index, root, &path)
            .map_err(|_| items::malformed(item))?;
        match ShardHead::parse(&leaf) {
            Some(stated) if stated.shard == shard => Ok(Some((index, stated.head))),
            _ => Err(items::malformed(item).into()),
        }
    }
}

/// Of the leaves that were missing.
enum Appended {
    All,
    Some,
    /// Another writer was faster.
    None,
}

/// The item of a tree's next leaf, on the condition that it is the next one.
fn append(frontier: &mut Frontier, tree: Tree, bytes: &[u8]) -> Result<(Item, Condition), Error> {
    let index = frontier.size();
    let nodes = frontier.append(Hash::leaf(bytes)).map_err(|full| Error::Refused(full.into()))?;
    Ok((items::leaf(tree, index, bytes, &nodes), Condition::Absent))
}

fn is_known(known: &[items::Found], leaf: &Leaf) -> bool {
    let sk = items::of_leaf(&leaf.session, &leaf.to_bytes());
    known.iter().any(|found| found.sk == sk)
}

fn contended(tree: Tree) -> Error {
    let tree = items::partition(tree);
    Error::Unavailable(format!("others were faster in {ATTEMPTS_MAX} appends to {tree}").into())
}

/// Pauses for a random time, so that writers that collided do not collide again.
async fn pause(attempt: u32) {
    let [random, ..] = *uuid::Uuid::new_v4().as_bytes();
    let longest = (PAUSE * attempt).min(PAUSE_MAX);
    tokio::time::sleep(longest * u32::from(random) / u32::from(u8::MAX)).await;
}
