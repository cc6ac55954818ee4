//! Hashes of leaves and nodes, as RFC 6962 section 2.1 defines them over SHA-256.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// Bytes of a hash.
pub const HASH_BYTES: usize = 32;

/// Prefix of a leaf's hash input. Source: RFC 6962, section 2.1.
const LEAF_PREFIX: u8 = 0x00;

/// Prefix of a node's hash input. Source: RFC 6962, section 2.1.
const NODE_PREFIX: u8 = 0x01;

/// A SHA-256 hash of a leaf, a node or a tree. `Display` writes base64, as checkpoints do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash([u8; HASH_BYTES]);

/// A text that is not the base64 of 32 bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid hash: expected {HASH_BYTES} bytes in padded standard base64")]
pub struct InvalidHash;

impl Hash {
    pub const fn new(bytes: [u8; HASH_BYTES]) -> Hash {
        Hash(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; HASH_BYTES] {
        &self.0
    }

    /// The hash of a leaf with these contents.
    pub fn leaf(contents: &[u8]) -> Hash {
        Hash(Sha256::new().chain_update([LEAF_PREFIX]).chain_update(contents).finalize().into())
    }

    /// The hash of a node with these children.
    pub fn node(left: &Hash, right: &Hash) -> Hash {
        let input = Sha256::new().chain_update([NODE_PREFIX]).chain_update(left.0);
        Hash(input.chain_update(right.0).finalize().into())
    }

    /// The root of the tree without leaves: the hash of the empty string.
    pub fn of_empty_tree() -> Hash {
        Hash(Sha256::digest([]).into())
    }

    /// Reads 32 bytes.
    ///
    /// # Errors
    ///
    /// If there are more or fewer.
    pub fn from_slice(bytes: &[u8]) -> Result<Hash, InvalidHash> {
        bytes.try_into().map(Hash).map_err(|_| InvalidHash)
    }
}

impl std::str::FromStr for Hash {
    type Err = InvalidHash;

    /// Reads what `Display` writes, and no other encoding of the same bytes.
    fn from_str(text: &str) -> Result<Hash, InvalidHash> {
        Hash::from_slice(&STANDARD.decode(text).map_err(|_| InvalidHash)?)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Hash({self})")
    }
}
