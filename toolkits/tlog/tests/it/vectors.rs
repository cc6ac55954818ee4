//! Test vectors of other implementations; `tests/vectors/README.md` has their sources.

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use tlog::proof::{verify_consistency, verify_inclusion};
use tlog::{Hash, NodeId, TreeHead};

use crate::log::Log;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inclusion {
    file: String,
    leaf_idx: u64,
    tree_size: u64,
    root: String,
    leaf_hash: String,
    proof: Option<Vec<String>>,
    want_err: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Consistency {
    file: String,
    size1: u64,
    size2: u64,
    root1: String,
    root2: String,
    proof: Option<Vec<String>>,
    want_err: bool,
}

/// `None` for what is no hash, and so no proof either.
fn proof(lines: Option<&Vec<String>>) -> Option<Vec<Hash>> {
    lines.into_iter().flatten().map(|line| line.parse().ok()).collect()
}

#[test]
fn inclusion_proofs_agree_with_transparency_dev() {
    let vectors: Vec<Inclusion> =
        serde_json::from_str(include_str!("../vectors/inclusion.json")).unwrap();
    assert_eq!(vectors.len(), 98);
    for vector in vectors {
        let verified = || {
            let head = TreeHead { size: vector.tree_size, root: vector.root.parse().ok()? };
            let proof = proof(vector.proof.as_ref())?;
            let leaf = vector.leaf_hash.parse().ok()?;
            verify_inclusion(&leaf, vector.leaf_idx, &head, &proof).ok()
        };
        assert_eq!(verified().is_none(), vector.want_err, "{}", vector.file);
    }
}

/// C2SP's witnesses take every tree as a continuation of the empty one; transparency.dev calls
/// the question meaningless.
const FROM_THE_EMPTY_TREE: &str = "additional/size1-is-zero-and-size2-is-not-zero";

#[test]
fn consistency_proofs_agree_with_transparency_dev() {
    let vectors: Vec<Consistency> =
        serde_json::from_str(include_str!("../vectors/consistency.json")).unwrap();
    assert_eq!(vectors.len(), 98);
    for vector in vectors {
        // Some vectors have a text in place of a root, which matters only in being equal or not.
        let root = |text: &str| text.parse().unwrap_or_else(|_| Hash::leaf(text.as_bytes()));
        let verified = || {
            let old = TreeHead { size: vector.size1, root: root(&vector.root1) };
            let new = TreeHead { size: vector.size2, root: root(&vector.root2) };
            verify_consistency(&old, &new, &proof(vector.proof.as_ref())?).ok()
        };
        let expected = vector.want_err && vector.file != FROM_THE_EMPTY_TREE;
        assert_eq!(verified().is_none(), expected, "{}", vector.file);
    }
}

/// Leaves of the reference tree in Certificate Transparency's tests.
const CT_LEAVES: [&str; 8] = [
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
];

const CT_ROOTS: [&str; 9] = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];

/// Nodes above the leaves, by level and index.
const CT_NODES: [(u8, u64, &str); 7] = [
    (1, 0, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"),
    (1, 1, "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e"),
    (1, 2, "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a"),
    (1, 3, "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"),
    (2, 0, "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"),
    (2, 1, "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"),
    (3, 0, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"),
];

fn hex(hash: &Hash) -> String {
    hex::encode(hash.as_bytes())
}

#[test]
fn the_tree_agrees_with_certificate_transparency() {
    let log = Log::new(CT_LEAVES.iter().map(|leaf| hex::decode(leaf).unwrap()));
    assert_eq!(log.roots.iter().map(hex).collect::<Vec<_>>(), CT_ROOTS);
    assert_eq!(log.nodes.len(), CT_LEAVES.len() + CT_NODES.len());
    for (level, index, expected) in CT_NODES {
        assert_eq!(hex(&log.nodes[&NodeId { level, index }]), expected);
    }
}

#[test]
fn proofs_that_we_make_equal_those_of_transparency_dev() {
    let log = Log::new(CT_LEAVES.iter().map(|leaf| hex::decode(leaf).unwrap()));
    let inclusion: Vec<Inclusion> =
        serde_json::from_str(include_str!("../vectors/inclusion.json")).unwrap();
    for vector in inclusion.iter().filter(|v| v.file.ends_with("/happy-path")) {
        let made = log.inclusion(vector.leaf_idx, vector.tree_size).unwrap();
        assert_eq!(Some(made), proof(vector.proof.as_ref()), "{}", vector.file);
    }
    let consistency: Vec<Consistency> =
        serde_json::from_str(include_str!("../vectors/consistency.json")).unwrap();
    for vector in consistency.iter().filter(|v| v.file.ends_with("/happy-path")) {
        let made = log.consistency(vector.size1, vector.size2).unwrap();
        assert_eq!(Some(made), proof(vector.proof.as_ref()), "{}", vector.file);
    }
}

#[test]
fn large_roots_agree_with_transparency_dev() {
    let log = Log::new((0..65_535_u32).map(|n| n.to_le_bytes()[..2].to_vec()));
    for (size, root) in [
        (10, "VjWMPSYNtCuCNlF/RLnQy6HcwSk6CIipfxm+hettA+4="),
        (15, "j4SulYmocFuxdeyp12xXCIgK6PekBcxzAIj4zbQzNEI="),
        (16, "c+4Uc6BCMOZf/v3NZK1kqTUJe+bBoFtOhP+P3SayKRE="),
        (100, "dUh9hYH88p0CMoHkdr1wC2szbhcLAXOejWpINIooKUY="),
        (255, "SmdsuKUqiod3RX2jyF2M6JnbdE4QuTwwipfAowI4/i0="),
        (256, "qFI0t/tZ1MdOYgyPpPzHFiZVw86koScXy9q3FU5casA="),
        (1000, "RXrgb8xHd55Y48FbfotJwCbV82Kx22LZfEbmBGAvwlQ="),
        (4095, "cWRFdQhPcjn9WyBXE/r1f04ejxIm5lvg40DEpRBVS0w="),
        (4096, "6uU/phfHg1n/GksYT6TO9aN8EauMCCJRl3dIK0HDs2M="),
        (10000, "VZcav65F9haHVRk3wre2axFoBXRNeUh/1d9d5FQfxIg="),
        (65535, "iPuVYJhP6SEE4gUFp8qbafd2rYv9YTCDYqAxCj8HdLM="),
    ] {
        assert_eq!(log.roots[size].to_string(), root, "{size} leaves");
    }
}

/// Largest tree of the draft's vectors, in leaves.
const DRAFT_SIZE_MAX: u64 = 130;

/// The subtrees of the draft, each as a tree of its own, in the draft's order.
fn subtrees() -> impl Iterator<Item = (u64, u64, Log)> {
    (0..=DRAFT_SIZE_MAX).flat_map(|end| (0..=end).map(move |start| (start, end))).filter_map(
        |(start, end)| {
            let valid = start == end || start % (end - start).next_power_of_two() == 0;
            valid.then(|| (start, end, Log::new((start..end).map(|n| vec![n as u8]))))
        },
    )
}

#[test]
fn subtree_hashes_agree_with_the_draft() {
    let mut lines = String::new();
    for (start, end, log) in subtrees() {
        let root = hex(&log.roots[log.leaves.len()]);
        writeln!(lines, "[{start}, {end}) {root}").unwrap();
    }
    let expected = "b82806ad4265bb151c1119c0f4db437bb4d1a1f887b3a7fba1cd4ebf552e3e81";
    assert_eq!(hex::encode(Sha256::digest(lines)), expected);
}

#[test]
fn inclusion_proofs_agree_with_the_draft() {
    let mut lines = String::new();
    for (start, end, log) in subtrees() {
        for index in 0..log.size() {
            write!(lines, "{} [{start}, {end})", start + index).unwrap();
            for hash in log.inclusion(index, log.size()).unwrap() {
                write!(lines, " {}", hex(&hash)).unwrap();
            }
            lines.push('\n');
        }
    }
    let expected = "ac2a8f989e44d99e399db448050ff5f19757df53cfb716aa81015d3955d8163f";
    assert_eq!(hex::encode(Sha256::digest(lines)), expected);
}
