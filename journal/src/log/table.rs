//! The log of sessions in a table: a tree for each shard, and a root log whose leaves are the heads of those trees.
//!
//! Each tree has a partition, and all its items but checkpoints are written once. A leaf's item holds the nodes that the
//! leaf completes, so a leaf never lacks its nodes, and one conditional item decides what follows leaf n: as with steps,
//! the writer that gets number n + 1. There is no item with the size that could disagree with the leaves.
//!
//! A record, its leaf and the item under which the leaf is found are one transaction. A leaf of the root log is written
//! when a checkpoint is due ([`TableLog::advance`]), so the sixteen shards never wait for one another.

mod append;
mod items;
mod proofs;

use std::collections::HashMap;

use futures_util::future::{join_all, try_join_all};
use tlog::hash::Hash;
use tlog::tree::{self, Frontier, NodeId, TreeHead};

use super::{Extract, SHARDS, SessionLog, Shard, State, Stored, Tree};
use crate::id::SessionId;
use crate::store::{Condition, Error, Query, Transact, query_all};

/// Most reads that are sent at once.
const READS_AT_ONCE: usize = 64;

/// The log of sessions in a table.
#[derive(Clone, Debug)]
pub struct TableLog<S> {
    store: S,
}

/// Why a tree cannot be read.
#[derive(Debug, thiserror::Error)]
enum Damaged {
    #[error("the log of sessions lacks node {} of level {} in {tree}", .node.index, .node.level)]
    Node { tree: String, node: NodeId },
    #[error("the log of sessions lacks leaf {index} of {tree}")]
    Leaf { tree: String, index: u64 },
    #[error("the log of sessions has an item of another form: {tree} {sk}")]
    Malformed { tree: String, sk: String },
    #[error(
        "shard {shard} of the log of sessions was set back: it has {new} leaves, but its root log states {old}"
    )]
    SetBack { shard: Shard, old: u64, new: u64 },
    #[error(
        "leaf {index} of the root log states shard {shard}, but is not found under it: the log was tampered with"
    )]
    NotFound { shard: Shard, index: u64 },
    #[error("shard {shard} of the log of sessions has another history than its root log states")]
    OtherHistory {
        shard: Shard,
        #[source]
        source: tlog::proof::InvalidProof,
    },
}

impl From<Damaged> for Error {
    fn from(damaged: Damaged) -> Self {
        Self::Corrupt(damaged.into())
    }
}

impl<S: Transact> TableLog<S> {
    pub fn new(store: S) -> Self {
        Self { store }
    }

    /// The number of leaves of a tree.
    async fn size(&self, tree: Tree) -> Result<u64, Error> {
        let newest = items::leaves(tree).reversed().limited(1);
        let page = self.store.query(newest).await?;
        match page.items.first() {
            None => Ok(0),
            Some(item) => match items::index_of(item) {
                Some(index) => Ok(index + 1),
                None => Err(items::malformed(item).into()),
            },
        }
    }

    /// The state of a tree to which leaves can be appended.
    async fn frontier(&self, tree: Tree, size: u64) -> Result<Frontier, Error> {
        let nodes = self.nodes(tree, tree::nodes_of_root(size)).await?;
        Frontier::read(size, |id| nodes.get(id))
    }

    async fn head(&self, tree: Tree, size: u64) -> Result<TreeHead, Error> {
        Ok(self.frontier(tree, size).await?.head())
    }

    async fn consistency(&self, tree: Tree, old: u64, new: u64) -> Result<Vec<Hash>, Error> {
        let nodes = self.nodes(tree, tree::nodes_of_consistency(old, new)?).await?;
        tree::consistency_proof(old, new, |id| nodes.get(id))
    }

    async fn inclusion(&self, tree: Tree, index: u64, size: u64) -> Result<Vec<Hash>, Error> {
        let nodes = self.nodes(tree, tree::nodes_of_inclusion(index, size)?).await?;
        tree::inclusion_proof(index, size, |id| nodes.get(id))
    }

    /// Reads nodes from the leaves that completed them.
    async fn nodes(&self, tree: Tree, ids: Vec<NodeId>) -> Result<Nodes, Error> {
        let mut hashes = HashMap::new();
        for some in ids.chunks(READS_AT_ONCE) {
            let read = some.iter().map(|id| self.store.get(items::leaf_key(tree, last_leaf(*id))));
            for (id, item) in some.iter().zip(try_join_all(read).await?) {
                let item = item.ok_or_else(|| lacks(tree, *id))?;
                hashes.insert(*id, items::node(&item, id.level).ok_or_else(|| lacks(tree, *id))?);
            }
        }
        Ok(Nodes { tree, hashes })
    }

    /// Whether anything was ever logged. A table of a version without a log has none.
    async fn is_there(&self) -> Result<bool, Error> {
        for size in join_all(SHARDS.iter().map(|shard| self.size(Tree::Shard(*shard)))).await {
            if size? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Under what a leaf is found: see [`Stored::session`].
    async fn found_under(&self, tree: Tree, index: u64, bytes: &[u8]) -> Result<String, Error> {
        let Some((key, name)) = items::finder(tree, bytes) else { return Ok(String::new()) };
        let found = self.store.get(key).await?;
        let is_found = found.is_some_and(|item| items::points_to(&item) == Some(index));
        Ok(if is_found { name } else { String::new() })
    }
}

/// Nodes of a tree that were read.
struct Nodes {
    tree: Tree,
    hashes: HashMap<NodeId, Hash>,
}

impl Nodes {
    fn get(&self, id: NodeId) -> Result<Hash, Error> {
        self.hashes.get(&id).copied().ok_or_else(|| lacks(self.tree, id).into())
    }
}

fn lacks(tree: Tree, node: NodeId) -> Damaged {
    Damaged::Node { tree: items::partition(tree), node }
}

/// The leaf that completes a node: the last one below it.
const fn last_leaf(node: NodeId) -> u64 {
    ((node.index + 1) << node.level) - 1
}

impl<S: Transact> SessionLog for TableLog<S> {
    fn shards(&self) -> &'static [Shard] {
        SHARDS
    }

    async fn log(&self) -> Result<Option<State>, Error> {
        // Before the size: a checkpoint never covers more leaves than there are.
        let checkpoint = self.checkpoint().await?;
        let size = self.size(Tree::Signed).await?;
        if size == 0 && checkpoint.is_none() && !self.is_there().await? {
            return Ok(None);
        }
        Ok(Some(State { head: self.head(Tree::Signed, size).await?, checkpoint }))
    }

    async fn log_of(&self, session: &SessionId) -> Result<Option<Extract>, Error> {
        let extract = self.extract(session).await?;
        if extract == Extract::default() && !self.is_there().await? {
            return Ok(None);
        }
        Ok(Some(extract))
    }

    async fn log_leaves(&self, tree: Tree, from: u64, limit: usize) -> Result<Vec<Stored>, Error> {
        let mut leaves = Vec::new();
        let mut query = items::leaves_from(tree, from).limited(limit);
        while leaves.len() < limit {
            let page = self.store.query(query.clone()).await?;
            for some in page.items.chunks(READS_AT_ONCE) {
                leaves.extend(try_join_all(some.iter().map(|item| self.stored(tree, item))).await?);
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        leaves.truncate(limit);
        Ok(leaves)
    }

    async fn log_size(&self, tree: Tree) -> Result<u64, Error> {
        self.size(tree).await
    }

    async fn log_head(&self, tree: Tree, size: u64) -> Result<TreeHead, Error> {
        self.head(tree, size).await
    }

    async fn log_consistency(&self, tree: Tree, old: u64, new: u64) -> Result<Vec<Hash>, Error> {
        self.consistency(tree, old, new).await
    }

    /// A checkpoint of the same size with more signatures stays.
    async fn put_checkpoint(&self, size: u64, note: String) -> Result<(), Error> {
        let signatures = i64::try_from(Extract::signatures_of(&note)).unwrap_or(i64::MAX);
        let replaces = Condition::at_most(items::SIGNATURES, signatures);
        let item = items::checkpoint(size, note, signatures);
        // What is refused has more signatures.
        self.store.put(item, Condition::Any(vec![Condition::Absent, replaces])).await.map(|_| ())
    }
}

impl<S: Transact> TableLog<S> {
    /// A leaf as it is: a damaged log is read as far as it can be.
    async fn stored(&self, tree: Tree, item: &crate::item::Item) -> Result<Stored, Error> {
        let index = items::index_of(item).unwrap_or(u64::MAX);
        let bytes = items::leaf_of(item).unwrap_or_default();
        let session = self.found_under(tree, index, &bytes).await?;
        Ok(Stored { index, session, bytes, mark: Vec::new() })
    }

    /// The contents of a leaf.
    async fn leaf(&self, tree: Tree, index: u64) -> Result<Vec<u8>, Error> {
        let lacks = || Damaged::Leaf { tree: items::partition(tree), index };
        let item = self.store.get(items::leaf_key(tree, index)).await?.ok_or_else(lacks)?;
        items::leaf_of(&item).ok_or_else(|| items::malformed(&item).into())
    }

    /// All items that say where leaves are found, whose sort keys start with a prefix.
    async fn found(&self, tree: Tree, prefix: &str) -> Result<Vec<items::Found>, Error> {
        let items = query_all(&self.store, Query::prefix(items::partition(tree), prefix)).await?;
        items.iter().map(items::Found::read).collect::<Result<_, _>>().map_err(Error::from)
    }
}
