//! Trees and proofs, against the definitions of RFC 6962.

use proptest::prelude::*;
use tlog::proof::{InvalidProof, verify_consistency, verify_inclusion};
use tlog::tree::{self, LEAVES_MAX, OutOfRange};
use tlog::{Frontier, Hash, NodeId, TreeHead};

use crate::log::{Error, Log, mth, path, sides, subproof};

/// Largest tree of the exhaustive tests, in leaves.
const SIZE_MAX: u64 = 300;

fn flipped(hash: &Hash, bit: usize) -> Hash {
    let mut bytes = *hash.as_bytes();
    bytes[bit / 8 % 32] ^= 1 << (bit % 8);
    Hash::new(bytes)
}

#[test]
fn stored_nodes_equal_recomputation() {
    let log = Log::numbered(SIZE_MAX);
    for size in 0..=SIZE_MAX {
        let expected = mth(&log.leaves[..size as usize]);
        assert_eq!(log.roots[size as usize], expected, "{size} leaves");
        assert_eq!(tree::root(size, |id| log.read(id)), Ok(expected), "{size} leaves");
    }
    for (id, hash) in &log.nodes {
        let start = (id.index << id.level) as usize;
        assert_eq!(*hash, mth(&log.leaves[start..start + (1 << id.level)]), "{id:?}");
    }
}

#[test]
fn appending_stores_two_nodes_a_leaf_on_average() {
    let log = Log::numbered(SIZE_MAX);
    assert_eq!(log.nodes.len() as u64, 2 * SIZE_MAX - u64::from(SIZE_MAX.count_ones()));
}

#[test]
fn a_stored_frontier_continues_the_tree() {
    let whole = Log::numbered(70);
    for size in 0..70 {
        let hashes = tree::nodes_of_root(size).iter().map(|id| whole.nodes[id]).collect();
        let mut frontier = Frontier::new(size, hashes).unwrap();
        for (id, hash) in frontier.append(whole.leaves[size as usize]).unwrap() {
            assert_eq!(whole.nodes[&id], hash);
        }
        assert_eq!(frontier.head(), whole.head(size + 1));
    }
}

#[test]
fn every_inclusion_proof_verifies() {
    let log = Log::numbered(SIZE_MAX);
    for size in 1..=SIZE_MAX {
        for index in 0..size {
            let proof = log.inclusion(index, size).unwrap();
            let leaf = &log.leaves[index as usize];
            assert_eq!(verify_inclusion(leaf, index, &log.head(size), &proof), Ok(()));
            let expected = || path(index as usize, &log.leaves[..size as usize]);
            assert!(size > 70 || proof == expected(), "leaf {index} of {size}");
        }
    }
}

#[test]
fn every_consistency_proof_verifies() {
    let log = Log::numbered(SIZE_MAX);
    for new in 0..=SIZE_MAX {
        for old in 0..=new {
            let proof = log.consistency(old, new).unwrap();
            assert_eq!(verify_consistency(&log.head(old), &log.head(new), &proof), Ok(()));
            let expected = || subproof(old as usize, &log.leaves[..new as usize], true);
            assert!(old == 0 || new > 70 || proof == expected(), "{old} of {new}");
        }
    }
}

#[test]
fn a_proof_reads_exactly_the_nodes_that_it_names() {
    let log = Log::numbered(100);
    let mut read = Vec::new();
    let mut reading = |id| {
        read.push(id);
        log.read(id)
    };
    tree::inclusion_proof(41, 99, &mut reading).unwrap();
    tree::consistency_proof(43, 99, &mut reading).unwrap();
    tree::root(99, &mut reading).unwrap();
    let mut named = tree::nodes_of_inclusion(41, 99).unwrap();
    named.extend(tree::nodes_of_consistency(43, 99).unwrap());
    named.extend(tree::nodes_of_root(99));
    assert_eq!(read, named);
}

#[test]
fn a_proof_needs_few_nodes_of_a_large_tree() {
    let size = LEAVES_MAX;
    assert_eq!(tree::nodes_of_root(size).len(), 63);
    for index in [0, 1, size / 3, size - 1] {
        assert!(tree::nodes_of_inclusion(index, size).unwrap().len() <= 125);
    }
    for old in [1, 2, size / 3, size - 1, size] {
        assert!(tree::nodes_of_consistency(old, size).unwrap().len() <= 125);
    }
    // No size overflows, however absurd.
    tree::nodes_of_root(u64::MAX);
    tree::nodes_of_inclusion(u64::MAX - 1, u64::MAX).unwrap();
    tree::nodes_of_consistency(u64::MAX - 1, u64::MAX).unwrap();
}

#[test]
fn a_missing_node_is_an_error() {
    let mut log = Log::numbered(8);
    let id = NodeId { level: 2, index: 1 };
    log.nodes.remove(&id);
    assert_eq!(log.inclusion(0, 8), Err(Error::Missing(id)));
    assert_eq!(log.consistency(4, 8), Err(Error::Missing(id)));
}

#[test]
fn what_does_not_exist_has_no_proof() {
    let log = Log::numbered(8);
    let out_of_range = |error| Err(Error::OutOfRange(error));
    assert_eq!(log.inclusion(8, 8), out_of_range(OutOfRange::Leaf { index: 8, size: 8 }));
    assert_eq!(log.inclusion(0, 0), out_of_range(OutOfRange::Leaf { index: 0, size: 0 }));
    assert_eq!(log.consistency(8, 7), out_of_range(OutOfRange::Older { old: 8, new: 7 }));
    let expected = OutOfRange::Edge { size: 7, expected: 3, given: 1 };
    assert_eq!(Frontier::new(7, vec![log.leaves[0]]), Err(expected));
    let expected = OutOfRange::Size { size: u64::MAX };
    assert_eq!(Frontier::new(u64::MAX, vec![]), Err(expected));
}

#[test]
fn a_full_tree_refuses_a_leaf_and_stays() {
    let leaf = Hash::leaf(b"");
    let mut frontier = Frontier::new(LEAVES_MAX, vec![leaf; 63]).unwrap();
    let before = frontier.clone();
    assert_eq!(frontier.append(leaf), Err(OutOfRange::Size { size: LEAVES_MAX + 1 }));
    assert_eq!(frontier, before);
}

#[test]
fn a_log_of_size_zero_must_have_the_empty_root() {
    let log = Log::numbered(3);
    let forged = TreeHead { size: 0, root: log.leaves[0] };
    let error = verify_consistency(&forged, &log.head(3), &[]).unwrap_err();
    assert!(matches!(error, InvalidProof::WrongOldRoot { .. }), "{error}");
    assert!(verify_consistency(&TreeHead::empty(), &forged, &[]).is_err());
    assert!(verify_consistency(&TreeHead::empty(), &log.head(3), &[log.leaves[0]]).is_err());
    assert!(verify_inclusion(&log.leaves[0], 0, &forged, &[]).is_err());
}

proptest! {
    #[test]
    fn no_flipped_bit_passes_for_an_inclusion_proof(
        size in 1..=SIZE_MAX, index: prop::sample::Index, bit: usize, place: prop::sample::Index,
    ) {
        let log = Log::numbered(size);
        let index = index.index(size as usize) as u64;
        let (leaf, head) = (log.leaves[index as usize], log.head(size));
        let mut proof = log.inclusion(index, size).unwrap();
        let root = TreeHead { root: flipped(&head.root, bit), ..head };
        prop_assert!(verify_inclusion(&leaf, index, &root, &proof).is_err());
        prop_assert!(verify_inclusion(&flipped(&leaf, bit), index, &head, &proof).is_err());
        let other = index ^ (1 << (bit % 64));
        prop_assert!(verify_inclusion(&leaf, other, &head, &proof).is_err());
        // A size is wrong without harm if the leaf has the same siblings in both trees.
        let size = head.size ^ (1 << (bit % 64));
        let resized = verify_inclusion(&leaf, index, &TreeHead { size, ..head }, &proof);
        let same = index < size && sides(index, 0..size) == sides(index, 0..head.size);
        prop_assert_eq!(resized.is_ok(), same);
        if !proof.is_empty() {
            let place = place.index(proof.len());
            proof[place] = flipped(&proof[place], bit);
            prop_assert!(verify_inclusion(&leaf, index, &head, &proof).is_err());
        }
    }

    #[test]
    fn no_flipped_bit_passes_for_a_consistency_proof(
        new in 2..=SIZE_MAX, old: prop::sample::Index, bit: usize, place: prop::sample::Index,
    ) {
        let log = Log::numbered(new);
        let old = 1 + old.index(new as usize - 1) as u64;
        let (old, new) = (log.head(old), log.head(new));
        let mut proof = log.consistency(old.size, new.size).unwrap();
        let changed = TreeHead { root: flipped(&old.root, bit), ..old };
        prop_assert!(verify_consistency(&changed, &new, &proof).is_err());
        let changed = TreeHead { root: flipped(&new.root, bit), ..new };
        prop_assert!(verify_consistency(&old, &changed, &proof).is_err());
        let changed = TreeHead { size: old.size ^ (1 << (bit % 64)), ..old };
        prop_assert!(verify_consistency(&changed, &new, &proof).is_err());
        let place = place.index(proof.len());
        proof[place] = flipped(&proof[place], bit);
        prop_assert!(verify_consistency(&old, &new, &proof).is_err());
    }

    #[test]
    fn a_proof_of_another_length_is_refused(
        new in 2..=SIZE_MAX, old: prop::sample::Index, place: prop::sample::Index,
    ) {
        let log = Log::numbered(new);
        let old = 1 + old.index(new as usize - 1) as u64;
        let (leaf, head) = (log.leaves[old as usize], log.head(new));
        let inclusion = log.inclusion(old, new).unwrap();
        let consistency = log.consistency(old, new).unwrap();
        let changes: [fn(&mut Vec<Hash>, usize); 3] = [
            |proof, at| _ = proof.remove(at % proof.len()),
            |proof, at| proof.insert(at % (proof.len() + 1), Hash::leaf(b"extra")),
            |proof, at| proof.insert(at % proof.len(), proof[at % proof.len()]),
        ];
        for change in changes {
            let (mut inclusion, mut consistency) = (inclusion.clone(), consistency.clone());
            change(&mut inclusion, place.index(1000));
            change(&mut consistency, place.index(1000));
            prop_assert!(verify_inclusion(&leaf, old, &head, &inclusion).is_err());
            prop_assert!(verify_consistency(&log.head(old), &head, &consistency).is_err());
        }
    }

    #[test]
    fn two_histories_have_no_consistency_proof(
        new in 2..=SIZE_MAX, old: prop::sample::Index, changed: prop::sample::Index,
    ) {
        let old = 1 + old.index(new as usize - 1) as u64;
        let changed = changed.index(old as usize) as u64;
        let honest = Log::numbered(new);
        let other = Log::new((0..new).map(|n| {
            if n == changed { b"other".to_vec() } else { n.to_be_bytes().to_vec() }
        }));
        for prover in [&honest, &other] {
            let proof = prover.consistency(old, new).unwrap();
            prop_assert!(verify_consistency(&honest.head(old), &other.head(new), &proof).is_err());
            prop_assert!(verify_consistency(&other.head(old), &honest.head(new), &proof).is_err());
        }
    }

    #[test]
    fn random_heads_and_proofs_are_refused_without_panic(
        old: u64, new: u64, index: u64, hashes in prop::collection::vec(any::<[u8; 32]>(), 2..70),
    ) {
        let hashes: Vec<Hash> = hashes.into_iter().map(Hash::new).collect();
        let (old, new) = (
            TreeHead { size: old, root: hashes[0] },
            TreeHead { size: new, root: hashes[1] },
        );
        prop_assert!(verify_inclusion(&hashes[0], index, &new, &hashes[2..]).is_err());
        prop_assert!(verify_consistency(&old, &new, &hashes[2..]).is_err());
    }
}
