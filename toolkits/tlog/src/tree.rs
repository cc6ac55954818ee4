//! A Merkle tree whose stored nodes are the roots of its complete subtrees.
//!
//! A complete subtree never changes, so each node is written once: appending leaf `n` adds one node
//! for each complete subtree that ends with it, two on average. Every root and every proof follows
//! from O(log n) of them. The functions `nodes_of_*` name those nodes before they are read, so that
//! a store can read them with one query; the functions that compute take a closure that reads a
//! node.

use crate::hash::Hash;
use std::ops::Range;

/// Most leaves of a tree: a size fits a signed 64-bit integer, which is what databases have.
pub const LEAVES_MAX: u64 = i64::MAX as u64;

/// The address of a stored node: `index` is its position among the nodes of its level, from the
/// left. The nodes of level 0 are the leaves; the node covers the `2^level` leaves from
/// `index << level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId {
    pub level: u8,
    pub index: u64,
}

impl NodeId {
    pub const fn leaf(index: u64) -> NodeId {
        NodeId { level: 0, index }
    }
}

/// The state of a log: its size in leaves, and the root of its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeHead {
    pub size: u64,
    pub root: Hash,
}

impl TreeHead {
    /// The log without leaves.
    pub fn empty() -> TreeHead {
        TreeHead { size: 0, root: Hash::of_empty_tree() }
    }
}

/// A request for a tree, leaf or proof that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutOfRange {
    #[error("there is no leaf {index} in a tree of {size} leaves")]
    Leaf { index: u64, size: u64 },
    #[error("a tree of {new} leaves does not continue a tree of {old}")]
    Older { old: u64, new: u64 },
    #[error("a tree of {size} leaves is too large: {LEAVES_MAX} leaves at most")]
    Size { size: u64 },
    #[error("a tree of {size} leaves has {expected} nodes on its right edge, not {given}")]
    Edge { size: u64, expected: usize, given: usize },
}

/// The right edge of a tree, which is all that appending and computing the root need: the roots of
/// its largest complete subtrees, from left to right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    edge: Vec<Hash>,
}

impl Default for Frontier {
    fn default() -> Frontier {
        Frontier::empty()
    }
}

impl Frontier {
    pub const fn empty() -> Frontier {
        Frontier { size: 0, edge: Vec::new() }
    }

    /// The frontier of a stored tree. `hashes` are those of [`nodes_of_root`], in that order.
    ///
    /// # Errors
    ///
    /// If there are more or fewer hashes than a tree of `size` leaves has there, or if `size`
    /// exceeds [`LEAVES_MAX`].
    pub fn new(size: u64, hashes: Vec<Hash>) -> Result<Frontier, OutOfRange> {
        let (expected, given) = (size.count_ones() as usize, hashes.len());
        if size > LEAVES_MAX {
            return Err(OutOfRange::Size { size });
        }
        if expected != given {
            return Err(OutOfRange::Edge { size, expected, given });
        }
        Ok(Frontier { size, edge: hashes })
    }

    /// The frontier of a stored tree, read node by node.
    ///
    /// # Errors
    ///
    /// The first error of `read`.
    pub fn read<E>(size: u64, read: impl FnMut(NodeId) -> Result<Hash, E>) -> Result<Frontier, E> {
        let edge = nodes_of_root(size).into_iter().map(read).collect::<Result<_, E>>()?;
        Ok(Frontier { size, edge })
    }

    /// The number of leaves, and so the index of the next one.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf, and returns the nodes to store: the leaf itself, then each larger complete
    /// subtree that it completes. Store them in the same transaction as the leaf.
    ///
    /// # Errors
    ///
    /// If the tree has [`LEAVES_MAX`] leaves; it is unchanged then.
    pub fn append(&mut self, leaf: Hash) -> Result<Vec<(NodeId, Hash)>, OutOfRange> {
        if self.size >= LEAVES_MAX {
            return Err(OutOfRange::Size { size: self.size.saturating_add(1) });
        }
        let index = self.size;
        let mut hash = leaf;
        let mut stored = vec![(NodeId::leaf(index), hash)];
        for level in 0..index.trailing_ones() as u8 {
            let Some(left) = self.edge.pop() else { break };
            hash = Hash::node(&left, &hash);
            stored.push((NodeId { level: level + 1, index: index >> (level + 1) }, hash));
        }
        self.edge.push(hash);
        self.size += 1;
        Ok(stored)
    }

    pub fn root(&self) -> Hash {
        fold_edge(&self.edge).unwrap_or_else(Hash::of_empty_tree)
    }

    pub fn head(&self) -> TreeHead {
        TreeHead { size: self.size, root: self.root() }
    }
}

/// The nodes from which the root of a tree of `size` leaves follows, from left to right; also those
/// of its [`Frontier`].
pub fn nodes_of_root(size: u64) -> Vec<NodeId> {
    complete_subtrees(&(0..size))
}

/// The nodes from which [`inclusion_proof`] follows.
///
/// # Errors
///
/// If the tree has no such leaf.
pub fn nodes_of_inclusion(index: u64, size: u64) -> Result<Vec<NodeId>, OutOfRange> {
    Ok(inclusion_ranges(index, size)?.iter().flat_map(complete_subtrees).collect())
}

/// The nodes from which [`consistency_proof`] follows.
///
/// # Errors
///
/// If `old` is larger than `new`.
pub fn nodes_of_consistency(old: u64, new: u64) -> Result<Vec<NodeId>, OutOfRange> {
    Ok(consistency_ranges(old, new)?.iter().flat_map(complete_subtrees).collect())
}

/// The root of a tree of `size` leaves.
///
/// # Errors
///
/// The first error of `read`.
pub fn root<E>(size: u64, read: impl FnMut(NodeId) -> Result<Hash, E>) -> Result<Hash, E> {
    Ok(Frontier::read(size, read)?.root())
}

/// The proof that leaf `index` is in the tree of `size` leaves: `PATH` of RFC 6962, section 2.1.1.
///
/// # Errors
///
/// If the tree has no such leaf, or the first error of `read`.
pub fn inclusion_proof<E: From<OutOfRange>>(
    index: u64,
    size: u64,
    read: impl FnMut(NodeId) -> Result<Hash, E>,
) -> Result<Vec<Hash>, E> {
    hashes(&inclusion_ranges(index, size)?, read)
}

/// The proof that the tree of `new` leaves continues the one of `old`: `PROOF` of RFC 6962,
/// section 2.1.2. It is empty if the two are equal, or if `old` is 0: every tree continues the
/// empty one.
///
/// # Errors
///
/// If `old` is larger than `new`, or the first error of `read`.
pub fn consistency_proof<E: From<OutOfRange>>(
    old: u64,
    new: u64,
    read: impl FnMut(NodeId) -> Result<Hash, E>,
) -> Result<Vec<Hash>, E> {
    hashes(&consistency_ranges(old, new)?, read)
}

/// The root of each range of leaves.
fn hashes<E>(
    ranges: &[Range<u64>],
    mut read: impl FnMut(NodeId) -> Result<Hash, E>,
) -> Result<Vec<Hash>, E> {
    let mut hash = |range| {
        let edge: Vec<Hash> =
            complete_subtrees(range).into_iter().map(&mut read).collect::<Result<_, E>>()?;
        Ok(fold_edge(&edge).unwrap_or_else(Hash::of_empty_tree))
    };
    ranges.iter().map(&mut hash).collect()
}

/// Combines the roots of adjacent complete subtrees, which become smaller to the right.
fn fold_edge(edge: &[Hash]) -> Option<Hash> {
    edge.iter().rev().copied().reduce(|right, left| Hash::node(&left, &right))
}

/// The largest complete subtrees that a range consists of. The range must be a subtree of a Merkle
/// tree: its start is a multiple of the smallest power of two that is not below its length.
fn complete_subtrees(range: &Range<u64>) -> Vec<NodeId> {
    let mut nodes = Vec::new();
    let mut start = range.start;
    while start < range.end {
        let level = (range.end - start).ilog2() as u8;
        nodes.push(NodeId { level, index: start >> level });
        start += 1u64 << level;
    }
    nodes
}

/// Leaves left of where a subtree splits: the largest power of two below its number of leaves,
/// which is at least 2.
fn split(leaves: u64) -> u64 {
    1u64 << (leaves - 1).ilog2()
}

/// The siblings on the path from leaf `index` to the root, lowest first.
fn inclusion_ranges(index: u64, size: u64) -> Result<Vec<Range<u64>>, OutOfRange> {
    if index >= size {
        return Err(OutOfRange::Leaf { index, size });
    }
    let mut siblings = Vec::new();
    let mut tree = 0..size;
    while tree.end - tree.start > 1 {
        let (inside, sibling) = descend(&tree, index);
        siblings.push(sibling);
        tree = inside;
    }
    siblings.reverse();
    Ok(siblings)
}

fn consistency_ranges(old: u64, new: u64) -> Result<Vec<Range<u64>>, OutOfRange> {
    if old > new {
        return Err(OutOfRange::Older { old, new });
    }
    if old == 0 || old == new {
        return Ok(Vec::new());
    }
    let mut ranges = Vec::new();
    let mut tree = 0..new;
    while tree.end != old {
        let (inside, sibling) = descend(&tree, old - 1);
        ranges.push(sibling);
        tree = inside;
    }
    // The verifier knows this subtree if it is the whole old tree.
    if tree.start != 0 {
        ranges.push(tree);
    }
    ranges.reverse();
    Ok(ranges)
}

/// The half of a subtree with this leaf, and the other half.
fn descend(tree: &Range<u64>, leaf: u64) -> (Range<u64>, Range<u64>) {
    let middle = tree.start + split(tree.end - tree.start);
    let (left, right) = (tree.start..middle, middle..tree.end);
    if leaf < middle { (left, right) } else { (right, left) }
}
