//! The log of sessions: a leaf for the start of each session and one for its verdict, in a Merkle tree.
//!
//! Records can prove that nothing was taken from the middle of a session, but not that a session existed, or that it
//! ended. A tree with a leaf for both can: whoever knows a [checkpoint](https://c2sp.org/tlog-checkpoint) of it finds
//! every session that was removed, added, reopened or set back. Each SESSION_INITIATED record and each verdict has
//! exactly one leaf, whatever the outcome. A leaf holds no content of the session.
//!
//! A journal in SQLite has one tree, which is signed. A table of DynamoDB has one tree for each [`Shard`], so that sixteen
//! writers append at once, and a root log whose leaves are the heads of those trees and whose checkpoints are signed.
//!
//! This module is pure. [`crate::sqlite`] appends a leaf in the commit of its record, and so does [`table`].

mod extract;
mod retention;
mod shard;
#[cfg(feature = "clock")]
pub mod table;
pub mod walk;

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::Sha256;

use crate::clock::Stamp;
use crate::event::EventStatus;
use crate::id::SessionId;
use crate::item::{Hash, Item};
use crate::key::{self, attribute};

use tlog::hash;
use tlog::tree::TreeHead;

use crate::store::Error;

pub(crate) use extract::Missing;
#[cfg(feature = "clock")]
pub(crate) use extract::too_many;
pub use extract::{ENTRIES_MAX, Entry, Extract, HeadEntry, Judged, Proof, PrunedBy, Trust};
pub use retention::{
    AnyLeaf, Decision, InvalidLabel, Keeping, LABEL_CHARS_MAX, Label, REASON_CHARS_MAX, Retention,
};
pub use shard::{SHARDS, Shard, ShardHead};

/// The first element of a leaf: what it is, and the version of its form.
const FORM: &str = "daybook session 1";

/// Longest leaf, in bytes: keys of at most a kilobyte, escaped.
///
/// Source: AWS, "Quotas in Amazon DynamoDB": sort keys have at most 1,024 bytes.
pub const LEAF_BYTES_MAX: usize = 8 * 1024;

/// A secret with which a writer marks the leaves that it appends.
///
/// A checkpoint is signed a moment after its leaves were committed. A writer that was killed in between signs them when
/// it starts again, and must not sign what somebody else wrote into the file meanwhile.
#[derive(Clone)]
pub struct LeafKey([u8; 32]);

impl LeafKey {
    pub const fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// The mark of a leaf at its place: HMAC-SHA256 of the index, as eight bytes from the highest, and the leaf.
    pub fn mark(&self, index: u64, leaf: &[u8]) -> Vec<u8> {
        self.hmac(index, leaf).finalize().into_bytes().to_vec()
    }

    /// Whether a mark is that of a leaf.
    pub fn has_marked(&self, index: u64, leaf: &[u8], mark: &[u8]) -> bool {
        self.hmac(index, leaf).verify_slice(mark).is_ok()
    }

    fn hmac(&self, index: u64, leaf: &[u8]) -> Hmac<Sha256> {
        let keyed = Hmac::<Sha256>::new_from_slice(&self.0);
        let mut hmac = keyed.unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        hmac.update(&index.to_be_bytes());
        hmac.update(leaf);
        hmac
    }
}

impl fmt::Debug for LeafKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeafKey")
    }
}

/// Whether a leaf is of the start of a session or of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Started,
    Ended,
}

/// The leaf of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    pub session: SessionId,
    /// The record's sort key.
    pub sk: String,
    /// SESSION_INITIATED or a verdict.
    pub status: EventStatus,
    pub hash: Hash,
    /// When the record expires, in seconds since 1970; 0 if it does not say.
    pub expires_at: i64,
}

impl Leaf {
    /// The leaf of a record; `None` if the log has none for records of its kind.
    pub fn of(item: &Item) -> Option<Self> {
        let session = item.pk.starts_with("SESSION#") && item.sk.starts_with(key::EVENT_PREFIX);
        let status = session.then(|| item.text_opt(attribute::STATUS)).flatten()?;
        let status = EventStatus::parse(status).filter(|status| stage(*status).is_some())?;
        Some(Self {
            session: key::session_of(&item.pk)?,
            sk: item.sk.clone(),
            status,
            hash: item.hash(),
            expires_at: item.number(attribute::EXPIRES_AT).unwrap_or(0),
        })
    }

    /// The contents of the leaf in the tree.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { session, sk, status, hash, expires_at } = self;
        let leaf = json!([FORM, session.as_str(), sk, status.as_str(), hash.as_str(), expires_at]);
        leaf.to_string().into_bytes()
    }

    /// Reads what [`Self::to_bytes`] writes; `None` for anything else.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > LEAF_BYTES_MAX {
            return None;
        }
        let (form, session, sk, status, hash, expires_at): (
            String,
            SessionId,
            String,
            EventStatus,
            String,
            i64,
        ) = serde_json::from_slice(bytes).ok()?;
        stage(status)?;
        let hash = Hash::from_record(&hash);
        let leaf = Self { session, sk, status, hash, expires_at };
        (form == FORM && leaf.to_bytes() == bytes).then_some(leaf)
    }

    pub fn stage(&self) -> Stage {
        stage(self.status).unwrap_or(Stage::Started)
    }

    /// When the record expires. `None` if the leaf names no time after that of its record: nothing expires before it is
    /// written, so such a time excuses nothing.
    pub fn expiry(&self) -> Option<i64> {
        let written = Stamp::parse(self.sk.strip_prefix(key::EVENT_PREFIX)?).ok()?;
        Some(self.expires_at).filter(|expires_at| *expires_at > written.seconds())
    }
}

/// A tree of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tree {
    /// The tree that checkpoints are of: the root log if the log has shards, else the tree of the sessions' leaves.
    Signed,
    Shard(Shard),
}

/// A log, as far as it can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The head of [`Tree::Signed`].
    pub head: TreeHead,
    /// The newest checkpoint, a signed note.
    pub checkpoint: Option<String>,
}

/// A leaf as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub index: u64,
    /// Under what the leaf is found: the session, or the shard for a leaf of a root log. Empty if it is not found.
    pub session: String,
    pub bytes: Vec<u8>,
    /// The mark of its writer; empty if it had no key.
    pub mark: Vec<u8>,
}

/// A stored log of sessions, as its auditors and signers read it.
pub trait SessionLog: Send + Sync {
    /// The shards; empty if [`Tree::Signed`] holds the sessions' leaves itself.
    fn shards(&self) -> &'static [Shard];

    /// The state of the log; `None` in a journal without one.
    ///
    /// # Errors
    /// The journal cannot be read, or its log is damaged.
    fn log(&self) -> impl Future<Output = Result<Option<State>, Error>> + Send;

    /// A session's leaves with their proofs; `None` in a journal without a log.
    ///
    /// # Errors
    /// As [`Self::log`].
    fn log_of(
        &self,
        session: &SessionId,
    ) -> impl Future<Output = Result<Option<Extract>, Error>> + Send;

    /// Leaves of a tree from an index on, in order.
    ///
    /// # Errors
    /// As [`Self::log`].
    fn log_leaves(
        &self,
        tree: Tree,
        from: u64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Stored>, Error>> + Send;

    /// The number of leaves of a tree.
    ///
    /// # Errors
    /// As [`Self::log`].
    fn log_size(&self, tree: Tree) -> impl Future<Output = Result<u64, Error>> + Send;

    /// The head of a tree when it had this many leaves, from its stored nodes.
    ///
    /// # Errors
    /// As [`Self::log`], or if the tree has fewer.
    fn log_head(
        &self,
        tree: Tree,
        size: u64,
    ) -> impl Future<Output = Result<TreeHead, Error>> + Send;

    /// The proof, from its stored nodes, that the tree of `new` leaves continues that of `old`.
    ///
    /// # Errors
    /// As [`Self::log_head`].
    fn log_consistency(
        &self,
        tree: Tree,
        old: u64,
        new: u64,
    ) -> impl Future<Output = Result<Vec<hash::Hash>, Error>> + Send;

    /// Stores a checkpoint, in place of one of the same size with as many signatures or fewer.
    ///
    /// # Errors
    /// The journal cannot be written.
    fn put_checkpoint(
        &self,
        size: u64,
        note: String,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

fn stage(status: EventStatus) -> Option<Stage> {
    match status {
        EventStatus::SessionInitiated => Some(Stage::Started),
        verdict if verdict.is_verdict() => Some(Stage::Ended),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(status: &str) -> Item {
        let pk = format!("SESSION#{}", SessionId::fresh());
        Item::new(pk, "EVENT#2026-01-01T00:00:00.000000000Z")
            .with(attribute::STATUS, status)
            .with(attribute::EXPIRES_AT, 1_800_000_000_i64)
    }

    #[test]
    fn starts_and_all_verdicts_have_leaves_and_nothing_else_has() {
        for status in EventStatus::ALL {
            let leaf = Leaf::of(&record(status.as_str()));
            let expected = *status == EventStatus::SessionInitiated || status.is_verdict();
            assert_eq!(leaf.is_some(), expected, "{status}");
        }
        let mut step = record("SESSION_FAILED");
        step.sk = key::step(1);
        assert_eq!(Leaf::of(&step), None);
    }

    #[test]
    fn a_leaf_expires_only_after_its_record() {
        let leaf = Leaf::of(&record("SESSION_INITIATED")).unwrap();
        assert_eq!(leaf.expiry(), Some(1_800_000_000));
        for absurd in [0, 17, -17, i64::MIN, 1_767_225_600] {
            assert_eq!(Leaf { expires_at: absurd, ..leaf.clone() }.expiry(), None, "{absurd}");
        }
        let nowhere = Leaf { sk: "EVENT#never".to_owned(), ..leaf };
        assert_eq!(nowhere.expiry(), None);
    }

    #[test]
    fn a_leaf_is_read_from_its_own_bytes_alone() {
        let leaf = Leaf::of(&record("SESSION_FAILED")).unwrap();
        let bytes = leaf.to_bytes();
        assert_eq!(Leaf::parse(&bytes), Some(leaf));
        let mut spaced = bytes.clone();
        spaced.insert(1, b' ');
        assert_eq!(Leaf::parse(&spaced), None);
        assert_eq!(Leaf::parse(&bytes[..bytes.len() - 1]), None);
    }
}
