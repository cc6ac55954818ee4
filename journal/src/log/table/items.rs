//! The items of a log in a table.
//!
//! | partition key | sort key | attributes |
//! |---|---|---|
//! | `LOG#{shard}` | `LEAF#{index}` | `Leaf`, and `Nodes`: the nodes that the leaf completes, from level 0 up |
//! | `LOG#{shard}` | `OF#{session}#{hash of the leaf}` | `Index` and `Status` of the leaf |
//! | `LOG#root` | `LEAF#{index}` | as above |
//! | `LOG#root` | `SHARD#{shard}#{size}` | `Index` of the leaf with this head |
//! | `LOG#root` | `CHECKPOINT#{size}` | `Note`, and the number of its `Signatures` |
//!
//! Numbers in keys have 19 digits, so that their order is that of numbers. No item has an `ExpiresAt`: a proof of the
//! newest leaf needs nodes of the oldest. A leaf has about half a kilobyte.

use tlog::hash::{HASH_BYTES, Hash};
use tlog::tree::NodeId;

use super::super::{Leaf, Shard, ShardHead, Tree};
use super::Damaged;
use crate::event::EventStatus;
use crate::id::SessionId;
use crate::item::{Item, Value};
use crate::key::attribute;
use crate::store::{Key, Query};

const LEAF: &str = "Leaf";
const NODES: &str = "Nodes";
const INDEX: &str = "Index";
const NOTE: &str = "Note";

/// The number of signatures of a checkpoint.
pub(super) const SIGNATURES: &str = "Signatures";

const LEAF_PREFIX: &str = "LEAF#";
const CHECKPOINT_PREFIX: &str = "CHECKPOINT#";

const SCHEMA_VERSION: i64 = 1;

/// Where a leaf is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) sk: String,
    pub(super) index: u64,
    /// The event of a session's leaf.
    pub(super) status: Option<EventStatus>,
}

impl Found {
    pub(super) fn read(item: &Item) -> Result<Self, Damaged> {
        let index = points_to(item).ok_or_else(|| malformed(item))?;
        let status = item.text_opt(attribute::STATUS).and_then(EventStatus::parse);
        Ok(Self { sk: item.sk.clone(), index, status })
    }
}

pub(super) fn partition(tree: Tree) -> String {
    match tree {
        Tree::Signed => "LOG#root".to_owned(),
        Tree::Shard(shard) => format!("LOG#{shard}"),
    }
}

pub(super) fn leaf_key(tree: Tree, index: u64) -> Key {
    Key::new(partition(tree), format!("{LEAF_PREFIX}{index:019}"))
}

/// All leaves of a tree.
pub(super) fn leaves(tree: Tree) -> Query {
    Query::prefix(partition(tree), LEAF_PREFIX)
}

/// The leaves of a tree from an index on.
pub(super) fn leaves_from(tree: Tree, index: u64) -> Query {
    Query { from: Some(leaf_key(tree, index).sk), ..leaves(tree) }
}

/// The item of a leaf, with the nodes that it completes.
pub(super) fn leaf(tree: Tree, index: u64, bytes: &[u8], nodes: &[(NodeId, Hash)]) -> Item {
    let Key { pk, sk } = leaf_key(tree, index);
    let hashes: Vec<u8> = nodes.iter().flat_map(|(_, hash)| *hash.as_bytes()).collect();
    Item::new(pk, sk)
        .with(attribute::VERSION, SCHEMA_VERSION)
        // Leaves are JSON.
        .with(LEAF, String::from_utf8_lossy(bytes).into_owned())
        .with(NODES, Value::B(hashes))
}

pub(super) fn index_of(item: &Item) -> Option<u64> {
    let digits = item.sk.strip_prefix(LEAF_PREFIX)?;
    let index: u64 = digits.parse().ok()?;
    (format!("{index:019}") == digits && index < tlog::tree::LEAVES_MAX).then_some(index)
}

pub(super) fn leaf_of(item: &Item) -> Option<Vec<u8>> {
    item.text_opt(LEAF).map(|leaf| leaf.as_bytes().to_vec())
}

/// A node that the leaf of an item completes.
pub(super) fn node(item: &Item, level: u8) -> Option<Hash> {
    let Some(Value::B(hashes)) = item.get(NODES) else { return None };
    let hash = hashes.chunks(HASH_BYTES).nth(usize::from(level))?;
    Hash::from_slice(hash).ok()
}

/// The prefix under which a session's leaves are found. A session id has no `#`.
pub(super) fn of_session(session: &SessionId) -> String {
    format!("OF#{session}#")
}

/// The sort key under which a session's leaf is found. It names the leaf's contents, so a leaf is appended once.
pub(super) fn of_leaf(session: &SessionId, bytes: &[u8]) -> String {
    format!("{}{}", of_session(session), hex::encode(Hash::leaf(bytes).as_bytes()))
}

/// The prefix under which a shard's heads are found.
fn of_shard(shard: Shard) -> String {
    format!("SHARD#{shard}#")
}

fn of_head(shard: Shard, size: u64) -> String {
    format!("{}{size:019}", of_shard(shard))
}

/// The heads of a shard that cover a leaf.
pub(super) fn heads_over(shard: Shard, leaf: u64) -> Query {
    let from = Some(of_head(shard, leaf.saturating_add(1)));
    Query { from, ..Query::prefix(partition(Tree::Signed), &of_shard(shard)) }
}

/// The key under which a leaf is found, and the name of what it is of; `None` if it is not a leaf of such a tree.
pub(super) fn finder(tree: Tree, bytes: &[u8]) -> Option<(Key, String)> {
    let (sk, name) = match tree {
        Tree::Signed => {
            let ShardHead { shard, head } = ShardHead::parse(bytes)?;
            (of_head(shard, head.size), shard.to_string())
        }
        Tree::Shard(_) => {
            let leaf = Leaf::parse(bytes)?;
            (of_leaf(&leaf.session, bytes), leaf.session.to_string())
        }
    };
    Some((Key::new(partition(tree), sk), name))
}

/// The item under which a session's leaf is found.
pub(super) fn found_leaf(tree: Tree, leaf: &Leaf, bytes: &[u8], index: u64) -> Item {
    found(Key::new(partition(tree), of_leaf(&leaf.session, bytes)), index)
        .with(attribute::STATUS, leaf.status.as_str())
}

/// The item under which a shard's head is found.
pub(super) fn found_head(head: &ShardHead, index: u64) -> Item {
    found(Key::new(partition(Tree::Signed), of_head(head.shard, head.head.size)), index)
}

fn found(key: Key, index: u64) -> Item {
    Item::new(key.pk, key.sk).with(attribute::VERSION, SCHEMA_VERSION).with(INDEX, number(index))
}

pub(super) fn points_to(item: &Item) -> Option<u64> {
    u64::try_from(item.number(INDEX).ok()?).ok()
}

pub(super) fn checkpoint(size: u64, note: String, signatures: i64) -> Item {
    Item::new(partition(Tree::Signed), format!("{CHECKPOINT_PREFIX}{size:019}"))
        .with(attribute::VERSION, SCHEMA_VERSION)
        .with(NOTE, note)
        .with(SIGNATURES, signatures)
}

/// Checkpoints of at least this many leaves, newest first.
pub(super) fn checkpoints(size: u64) -> Query {
    let query = Query::prefix(partition(Tree::Signed), CHECKPOINT_PREFIX).reversed();
    Query { from: Some(format!("{CHECKPOINT_PREFIX}{size:019}")), ..query }
}

pub(super) fn note(item: &Item) -> Option<String> {
    item.text_opt(NOTE).map(str::to_owned)
}

pub(super) fn malformed(item: &Item) -> Damaged {
    Damaged::Malformed { tree: item.pk.clone(), sk: item.sk.clone() }
}

/// A number in an item; a tree has at most as many leaves as fit.
fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
