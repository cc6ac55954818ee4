//! Transparency logs without IO.
//!
//! An append-only log whose readers can check that an entry is in it, and that it only grew: the
//! Merkle tree of RFC 6962 over SHA-256, and the text formats in which C2SP (c2sp.org) has logs
//! publish and witnesses confirm it.
//!
//! The crate performs no IO, reads no clock and draws no random numbers. It names the tree nodes to
//! read and to store; the caller owns the database, the secret keys and the HTTP client.
//!
//! The README has an example.
//!
//! - [`hash`] has the hashes of leaves and nodes.
//! - [`tree`] appends leaves, and computes roots and proofs from stored nodes.
//! - [`proof`] verifies inclusion and consistency proofs.
//! - [`note`] reads, writes and verifies signed notes; [`key`] has their keys.
//! - [`checkpoint`] has the size and root of a log as a signed note.
//! - [`cosignature`] lets a witness state that it saw a checkpoint.
//! - [`witness`] has the requests to a witness, and its decisions.

#![forbid(unsafe_code)]

pub mod checkpoint;
pub mod cosignature;
pub mod hash;
pub mod key;
pub mod note;
pub mod proof;
pub mod tree;
pub mod witness;

pub use checkpoint::{Checkpoint, Origin, SignedCheckpoint};
pub use cosignature::Cosigner;
pub use hash::Hash;
pub use key::{KeyName, SignerKey, Verifier, VerifierKey};
pub use note::{Note, Signature};
pub use tree::{Frontier, NodeId, TreeHead};
pub use witness::Witness;

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
