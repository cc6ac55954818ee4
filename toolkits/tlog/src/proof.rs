//! Verifies inclusion and consistency proofs with the algorithms of RFC 9162.

use crate::hash::Hash;
use crate::tree::TreeHead;

/// Why a proof proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProof {
    #[error("there is no leaf {index} in a tree of {size} leaves")]
    NoSuchLeaf { index: u64, size: u64 },
    #[error("a tree of {new} leaves does not continue a tree of {old}")]
    Shrunk { old: u64, new: u64 },
    #[error("the proof has {given} hashes, which is not the number for trees of this size")]
    WrongLength { given: usize },
    #[error("the leaf and the proof lead to the root {computed}, not to {expected}")]
    NotIncluded { computed: Hash, expected: Hash },
    #[error("the old tree has the root {expected}, but the proof leads to {computed}")]
    WrongOldRoot { computed: Hash, expected: Hash },
    #[error("the new tree has the root {expected}, but the proof leads to {computed}")]
    WrongNewRoot { computed: Hash, expected: Hash },
}

/// Verifies that the leaf with the hash `leaf` is number `index` of the log. RFC 9162, section
/// 2.1.3.2.
///
/// A proof binds the leaf to the root, and the sizes only so far as they shape the tree: take size
/// and root from one signed checkpoint.
///
/// # Errors
///
/// If the proof is of another length than the sizes require, or leads to another root.
pub fn verify_inclusion(
    leaf: &Hash,
    index: u64,
    head: &TreeHead,
    proof: &[Hash],
) -> Result<(), InvalidProof> {
    let TreeHead { size, root } = *head;
    if index >= size {
        return Err(InvalidProof::NoSuchLeaf { index, size });
    }
    let mut path = Path { node: index, last: size - 1 };
    let mut computed = *leaf;
    for sibling in proof {
        computed = match path.ascend().ok_or(wrong_length(proof))? {
            Side::Left => Hash::node(sibling, &computed),
            Side::Right => Hash::node(&computed, sibling),
        };
    }
    if path.last != 0 {
        return Err(wrong_length(proof));
    }
    if computed != root {
        return Err(InvalidProof::NotIncluded { computed, expected: root });
    }
    Ok(())
}

/// Verifies that the log `new` continues the log `old`: its first `old.size` leaves are the same.
/// RFC 9162, section 2.1.4.2. Every log continues the empty one, with an empty proof.
///
/// # Errors
///
/// If the proof is of another length than the sizes require, or leads to other roots; also if a
/// log of size 0 has a root other than that of the empty tree.
pub fn verify_consistency(
    old: &TreeHead,
    new: &TreeHead,
    proof: &[Hash],
) -> Result<(), InvalidProof> {
    if old.size > new.size {
        return Err(InvalidProof::Shrunk { old: old.size, new: new.size });
    }
    if old.size == 0 || old.size == new.size {
        return verify_without_hashes(old, new, proof);
    }
    let mut path = Path { node: old.size - 1, last: new.size - 1 };
    while path.node & 1 == 1 {
        path.up();
    }
    let (first, rest) = if old.size.is_power_of_two() {
        (&old.root, proof)
    } else {
        proof.split_first().ok_or(wrong_length(proof))?
    };
    let (mut old_root, mut new_root) = (*first, *first);
    for sibling in rest {
        match path.ascend().ok_or(wrong_length(proof))? {
            Side::Left => {
                old_root = Hash::node(sibling, &old_root);
                new_root = Hash::node(sibling, &new_root);
            }
            Side::Right => new_root = Hash::node(&new_root, sibling),
        }
    }
    if path.last != 0 {
        return Err(wrong_length(proof));
    }
    if old_root != old.root {
        return Err(InvalidProof::WrongOldRoot { computed: old_root, expected: old.root });
    }
    if new_root != new.root {
        return Err(InvalidProof::WrongNewRoot { computed: new_root, expected: new.root });
    }
    Ok(())
}

fn verify_without_hashes(
    old: &TreeHead,
    new: &TreeHead,
    proof: &[Hash],
) -> Result<(), InvalidProof> {
    let empty = Hash::of_empty_tree();
    if !proof.is_empty() {
        return Err(wrong_length(proof));
    }
    if old.size == 0 && old.root != empty {
        return Err(InvalidProof::WrongOldRoot { computed: empty, expected: old.root });
    }
    if old.size == new.size && old.root != new.root {
        return Err(InvalidProof::WrongNewRoot { computed: old.root, expected: new.root });
    }
    Ok(())
}

fn wrong_length(proof: &[Hash]) -> InvalidProof {
    InvalidProof::WrongLength { given: proof.len() }
}

/// Which side of its parent a sibling is on.
enum Side {
    Left,
    Right,
}

/// Where a verifier is on its way to the root: the index of the node, and of the last node of the
/// same level (`fn` and `sn` in RFC 9162).
struct Path {
    node: u64,
    last: u64,
}

impl Path {
    /// Goes up past the next sibling; `None` at the root.
    fn ascend(&mut self) -> Option<Side> {
        if self.last == 0 {
            return None;
        }
        let is_last = self.node == self.last;
        let side = if self.node & 1 == 1 || is_last { Side::Left } else { Side::Right };
        if is_last {
            // A last node that is a left child has no sibling and is its own parent.
            while self.node & 1 == 0 && self.node != 0 {
                self.up();
            }
        }
        self.up();
        Some(side)
    }

    fn up(&mut self) {
        self.node >>= 1;
        self.last >>= 1;
    }
}
