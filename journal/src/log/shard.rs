//! The shards of a log, and the leaves of its root log.

use std::fmt;

use serde_json::json;
use sha2::{Digest as _, Sha256};
use tlog::hash::Hash;
use tlog::tree::{LEAVES_MAX, TreeHead};

use crate::id::SessionId;

/// The first element of a leaf of the root log: what it is, and the version of its form.
const FORM: &str = "daybook shard 1";

/// Longest leaf of the root log, in bytes: the form, a digit, a size of 19 digits and 44 of base64.
const LEAF_BYTES_MAX: usize = 128;

/// All shards of a log. Their number is part of the format: a session's shard follows from its id.
pub const SHARDS: &[Shard] = &{
    let mut shards = [Shard(0); 16];
    let mut n = 0;
    while n < 16 {
        shards[n as usize] = Shard(n);
        n += 1;
    }
    shards
};

/// A part of a log with a tree of its own, written as a hexadecimal digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(u8);

impl Shard {
    /// The shard of a session: the first hexadecimal digit of the SHA-256 of its id. The id's own digits would not do:
    /// callers choose ids.
    pub fn of(session: &SessionId) -> Self {
        Self(Sha256::digest(session.as_str())[0] >> 4)
    }

    /// Reads what `Display` writes; `None` for anything else.
    pub fn parse(digit: &str) -> Option<Self> {
        SHARDS.iter().copied().find(|shard| shard.to_string() == digit)
    }

    /// Its place in [`SHARDS`].
    pub fn number(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// A leaf of the root log: a shard had this tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardHead {
    pub shard: Shard,
    /// Of at least one leaf.
    pub head: TreeHead,
}

impl ShardHead {
    /// The contents of the leaf in the root log.
    pub fn to_bytes(&self) -> Vec<u8> {
        let TreeHead { size, root } = self.head;
        json!([FORM, self.shard.to_string(), size, root.to_string()]).to_string().into_bytes()
    }

    /// Reads what [`Self::to_bytes`] writes; `None` for anything else.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > LEAF_BYTES_MAX {
            return None;
        }
        let (form, shard, size, root): (String, String, u64, String) =
            serde_json::from_slice(bytes).ok()?;
        let root: Hash = root.parse().ok()?;
        let read = Self { shard: Shard::parse(&shard)?, head: TreeHead { size, root } };
        let is_head = form == FORM && (1..=LEAVES_MAX).contains(&size);
        (is_head && read.to_bytes() == bytes).then_some(read)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_session_has_the_shard_of_its_hash() {
        let id: SessionId = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap();
        assert_eq!(Shard::of(&id).to_string(), "7");
        let named = |n: u32| format!("order-{n:030}").parse::<SessionId>().unwrap();
        let shards: BTreeSet<_> = (0..200).map(|n| Shard::of(&named(n))).collect();
        assert_eq!(shards, SHARDS.iter().copied().collect(), "ids that start alike are spread");
        assert_eq!(Shard::parse("A"), None);
        assert_eq!(Shard::parse("10"), None);
    }

    #[test]
    fn a_head_is_read_from_its_own_bytes_alone() {
        let head = TreeHead { size: 12, root: Hash::leaf(b"twelve") };
        let of_shard = ShardHead { shard: SHARDS[10], head };
        let bytes = of_shard.to_bytes();
        assert_eq!(
            String::from_utf8_lossy(&bytes),
            r#"["daybook shard 1","a",12,"8G4UD1KsAAsZ+y//NTSU82HC2IfspiU/FGeUjadq1Qs="]"#
        );
        assert_eq!(ShardHead::parse(&bytes), Some(of_shard));
        let text = String::from_utf8(bytes).unwrap();
        for (old, new) in [
            ("12", "0"),
            ("12", "12.0"),
            ("12", "9223372036854775808"),
            (",", ", "),
            ("a\"", "A\""),
        ] {
            assert_eq!(ShardHead::parse(text.replacen(old, new, 1).as_bytes()), None, "{new}");
        }
    }
}
