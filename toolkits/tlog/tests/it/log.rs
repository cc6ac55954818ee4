//! A log in memory, and the definitions of RFC 6962 written as they stand there.

use std::collections::HashMap;
use std::ops::Range;

use tlog::tree::{self, OutOfRange};
use tlog::{Frontier, Hash, NodeId, TreeHead};

/// A log with its leaves, its stored nodes and each of its roots.
pub(crate) struct Log {
    pub(crate) leaves: Vec<Hash>,
    pub(crate) nodes: HashMap<NodeId, Hash>,
    pub(crate) roots: Vec<Hash>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Error {
    Missing(NodeId),
    OutOfRange(OutOfRange),
}

impl From<OutOfRange> for Error {
    fn from(error: OutOfRange) -> Error {
        Error::OutOfRange(error)
    }
}

impl Log {
    pub(crate) fn new(contents: impl IntoIterator<Item = Vec<u8>>) -> Log {
        let mut frontier = Frontier::empty();
        let mut log = Log { leaves: vec![], nodes: HashMap::new(), roots: vec![frontier.root()] };
        for leaf in contents {
            let leaf = Hash::leaf(&leaf);
            log.leaves.push(leaf);
            for (id, hash) in frontier.append(leaf).unwrap() {
                assert_eq!(log.nodes.insert(id, hash), None, "{id:?} is stored once");
            }
            log.roots.push(frontier.root());
        }
        log
    }

    /// A log with `size` leaves, all different.
    pub(crate) fn numbered(size: u64) -> Log {
        Log::new((0..size).map(|n| n.to_be_bytes().to_vec()))
    }

    pub(crate) fn size(&self) -> u64 {
        self.leaves.len() as u64
    }

    pub(crate) fn head(&self, size: u64) -> TreeHead {
        TreeHead { size, root: self.roots[size as usize] }
    }

    pub(crate) fn read(&self, id: NodeId) -> Result<Hash, Error> {
        self.nodes.get(&id).copied().ok_or(Error::Missing(id))
    }

    pub(crate) fn inclusion(&self, index: u64, size: u64) -> Result<Vec<Hash>, Error> {
        tree::inclusion_proof(index, size, |id| self.read(id))
    }

    pub(crate) fn consistency(&self, old: u64, new: u64) -> Result<Vec<Hash>, Error> {
        tree::consistency_proof(old, new, |id| self.read(id))
    }
}

/// `MTH` of RFC 6962, section 2.1, over hashes of leaves.
pub(crate) fn mth(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => Hash::of_empty_tree(),
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(k(leaves.len()));
            Hash::node(&mth(left), &mth(right))
        }
    }
}

/// `PATH` of RFC 6962, section 2.1.1.
pub(crate) fn path(m: usize, leaves: &[Hash]) -> Vec<Hash> {
    if leaves.len() == 1 {
        return vec![];
    }
    let (left, right) = leaves.split_at(k(leaves.len()));
    let (mut path, sibling) = if m < left.len() {
        (path(m, left), mth(right))
    } else {
        (path(m - left.len(), right), mth(left))
    };
    path.push(sibling);
    path
}

/// `SUBPROOF` of RFC 6962, section 2.1.2.
pub(crate) fn subproof(m: usize, leaves: &[Hash], known: bool) -> Vec<Hash> {
    if m == leaves.len() {
        return if known { vec![] } else { vec![mth(leaves)] };
    }
    let (left, right) = leaves.split_at(k(leaves.len()));
    let (mut proof, sibling) = if m <= left.len() {
        (subproof(m, left, known), mth(right))
    } else {
        (subproof(m - left.len(), right, false), mth(left))
    };
    proof.push(sibling);
    proof
}

/// The sides on which the siblings are, from leaf `index` of a range to its root.
pub(crate) fn sides(index: u64, range: Range<u64>) -> Vec<bool> {
    let size = range.end - range.start;
    if size == 1 {
        return vec![];
    }
    let middle = range.start + k(size as usize) as u64;
    let is_left = index < middle;
    let half = if is_left { range.start..middle } else { middle..range.end };
    let mut sides = sides(index, half);
    sides.push(is_left);
    sides
}

fn k(n: usize) -> usize {
    1 << (n - 1).ilog2()
}
