//! What a log of sessions shows about one session.

use std::fmt;

use serde_json::{Value, json};
use tlog::checkpoint::SignedCheckpoint;
use tlog::hash::Hash;
use tlog::key::{Verifier as _, VerifierKey};
use tlog::proof::verify_inclusion;
use tlog::tree::TreeHead;

use super::{AnyLeaf, Keeping, Leaf, Retention, Shard, ShardHead, Stage};
use crate::id::SessionId;
use crate::item;
use crate::verify::Anchor;

/// Most leaves of a session. It has two, a third if two components sealed it at once, and one for each hold, release
/// and prune. Of a session with more, nothing is proven: the answer names it instead of judging a part of them.
pub const ENTRIES_MAX: usize = 1_000;

/// The error of a session with more than [`ENTRIES_MAX`] leaves.
#[cfg(feature = "clock")]
pub(crate) fn too_many(session: &SessionId) -> crate::store::Error {
    let problem =
        format!("session {session} has more than {ENTRIES_MAX} leaves in the log of sessions");
    crate::store::Error::Corrupt(problem.into())
}

/// A leaf of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number in the log, from 0.
    pub index: u64,
    /// Its contents.
    pub leaf: Vec<u8>,
    /// The proof that the checkpoint covers it; `None` if it is newer than the checkpoint.
    pub proof: Option<Proof>,
}

/// How a checkpoint covers a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The leaf is in the checkpoint's tree.
    Signed(Vec<Hash>),
    /// The leaf is in the tree of its shard, whose head is in the checkpoint's tree.
    Shard { path: Vec<Hash>, head: HeadEntry },
}

/// The leaf of a root log that states a shard's tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadEntry {
    /// Its number in the root log, from 0.
    pub index: u64,
    /// Its contents.
    pub leaf: Vec<u8>,
    /// The proof that it is in the checkpoint's tree.
    pub path: Vec<Hash>,
}

/// The leaves of a session, and the checkpoint in whose tree they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extract {
    pub checkpoint: Option<String>,
    pub entries: Vec<Entry>,
}

/// The keys that a reader trusts.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// The log's keys: one of them must have signed.
    pub log: Vec<VerifierKey>,
    /// The witnesses' keys: all of them must have cosigned.
    pub witnesses: Vec<VerifierKey>,
    /// Whether the reader asked for a signature: without one, nothing is proven.
    pub is_required: bool,
}

/// What an extract proves to a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// The leaves, and what vouches for each.
    leaves: Vec<(Leaf, Anchor)>,
    /// What contradicts itself.
    pub(crate) problems: Vec<String>,
    /// What the reader asked for and did not get.
    pub(crate) unmet: Vec<String>,
    /// How many leaves are newer than the checkpoint.
    pub(crate) unsigned: usize,
    /// Set if the session was pruned and not imported again.
    pruned: Option<PrunedBy>,
    asked: Asked,
    is_required: bool,
}

/// The leaf that says that the session was pruned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrunedBy {
    pub leaf: Retention,
    /// What vouches for the leaf.
    pub anchor: Anchor,
    /// Whether the leaf is newer than a checkpoint that the reader can check.
    pub is_unsigned: bool,
}

/// Where the leaves come from, which decides what a record without one is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Asked {
    /// A file, which may lack leaves.
    #[default]
    File,
    /// The log of a local journal, in which every leaf is as old as its record.
    Log,
    /// The log of an account, whose leaf of a session's start may be as late as that of its verdict, and which knows
    /// nothing of sessions that are older than itself.
    Account,
}

/// What a record is for which there is no leaf.
pub(crate) enum Missing {
    Added,
    Unmet(String),
    Unknown,
}

impl Judged {
    /// A log that cannot be read.
    pub fn unreadable(problem: String) -> Self {
        Self { problems: vec![problem], ..Self::default() }
    }

    /// Adds what is wrong with the whole log, from which these leaves were read.
    #[must_use]
    pub fn with_problems(mut self, problems: &[String]) -> Self {
        self.problems.extend(problems.iter().cloned());
        self.asked = Asked::Log;
        self
    }

    /// The same of the log of an account.
    #[must_use]
    pub fn in_account(self, problems: &[String]) -> Self {
        Self { asked: Asked::Account, ..self.with_problems(problems) }
    }

    /// What a record without a leaf is.
    pub(crate) fn missing(&self, record: &Leaf) -> Missing {
        let place = &record.sk;
        match (self.asked, self.is_required) {
            (Asked::Account, required) if self.leaves.is_empty() => match record.stage() {
                Stage::Started if !required => Missing::Unknown,
                Stage::Started | Stage::Ended => Missing::Unmet(format!(
                    "the log of sessions has no leaf for {place}: it is older than the log, or was written past it"
                )),
            },
            (Asked::Log | Asked::Account, _) => Missing::Added,
            (Asked::File, true) => Missing::Unmet(format!("the file has no leaf for {place}")),
            (Asked::File, false) => Missing::Unknown,
        }
    }

    /// Whether a log that has a leaf for each session has none for this one.
    pub(crate) fn lacks_session(&self) -> bool {
        matches!(self.asked, Asked::Log) && self.leaves.is_empty()
    }

    /// What is not proven of a session without a leaf of a record, if a signature was asked for: not even that there was
    /// such a session, whatever its records are.
    pub(crate) fn unproven(&self) -> Option<String> {
        let unproven = self.is_required && self.leaves.is_empty() && self.asked != Asked::Log;
        unproven.then(|| "the log of sessions has no leaf of this session".to_owned())
    }

    pub fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        self.leaves.iter().map(|(leaf, _)| leaf)
    }

    pub(crate) fn pruned(&self) -> Option<&PrunedBy> {
        self.pruned.as_ref()
    }

    /// The hash of the session's verdict, and what vouches for it. If several components sealed it, the earliest verdict
    /// counts.
    pub(crate) fn head(&self) -> Option<(Anchor, item::Hash)> {
        let ends = self.leaves.iter().filter(|(leaf, _)| leaf.stage() == Stage::Ended);
        let (leaf, anchor) = ends.min_by_key(|(leaf, _)| &leaf.sk)?;
        Some((*anchor, leaf.hash.clone()))
    }
}

impl Extract {
    /// The size of the tree of a checkpoint, signed by whomever.
    pub fn size_of(note: &str) -> Option<u64> {
        Some(SignedCheckpoint::parse(note.as_bytes()).ok()?.checkpoint().head().size)
    }

    /// The number of signatures of a checkpoint, by whomever.
    pub fn signatures_of(note: &str) -> usize {
        SignedCheckpoint::parse(note.as_bytes()).map_or(0, |note| note.note().signatures().len())
    }

    /// Checks the checkpoint and every proof.
    pub fn judge(&self, session: &SessionId, trust: &Trust) -> Judged {
        let mut judged = Judged { is_required: trust.is_required, ..Judged::default() };
        let mut tree = None;
        if let Some(note) = &self.checkpoint {
            match signed(note, trust, &mut judged) {
                Ok(signed) => tree = Some(signed),
                Err(problem) => judged.problems.push(problem),
            }
        } else if trust.is_required {
            judged.unmet.push("there is no checkpoint".to_owned());
        }
        let mut keeping = Keeping::default();
        let mut in_order: Vec<_> = self.entries.iter().collect();
        in_order.sort_by_key(|entry| entry.index);
        for entry in in_order {
            match entry.judge(session, tree.as_ref()) {
                Ok((leaf, anchor)) => {
                    let problem = keeping.add(&leaf);
                    let problem = problem.map(|why| format!("leaf {}: {why}", entry.index));
                    judged.problems.extend(problem);
                    let newer = entry.proof.is_none();
                    judged.unsigned += usize::from(newer);
                    if newer && trust.is_required {
                        judged
                            .unmet
                            .push(format!("leaf {} is newer than the checkpoint", entry.index));
                    }
                    let is_unsigned = newer && !trust.log.is_empty();
                    match (&leaf, &keeping.pruned) {
                        (AnyLeaf::Retention(last), Some(pruned)) if last == pruned => {
                            let leaf = last.clone();
                            judged.pruned = Some(PrunedBy { leaf, anchor, is_unsigned });
                        }
                        (AnyLeaf::Retention(_), _) => {}
                        (AnyLeaf::Record(_), _) => judged.pruned = None,
                    }
                    if let AnyLeaf::Record(leaf) = leaf {
                        judged.leaves.push((leaf, anchor));
                    }
                }
                Err(problem) => judged.problems.push(format!("leaf {}: {problem}", entry.index)),
            }
        }
        judged
    }

    /// As an export has it.
    pub fn to_json(&self) -> Value {
        let entries = self.entries.iter().map(Entry::to_json);
        json!({ "checkpoint": self.checkpoint, "leaves": entries.collect::<Vec<_>>() })
    }

    /// Reads what [`Self::to_json`] writes; `None` for anything else.
    pub fn from_json(json: &Value) -> Option<Self> {
        let entries =
            json.get("leaves")?.as_array().filter(|leaves| leaves.len() <= ENTRIES_MAX)?;
        let extract = Self {
            checkpoint: json.get("checkpoint")?.as_str().map(str::to_owned),
            entries: entries.iter().map(Entry::from_json).collect::<Option<_>>()?,
        };
        (extract.to_json() == *json).then_some(extract)
    }
}

impl Entry {
    fn to_json(&self) -> Value {
        let path = match &self.proof {
            None => Value::Null,
            Some(Proof::Signed(path) | Proof::Shard { path, .. }) => path_to_json(path),
        };
        let leaf = String::from_utf8_lossy(&self.leaf);
        let mut entry = json!({ "index": self.index, "leaf": leaf, "proof": path });
        if let Some(Proof::Shard { head, .. }) = &self.proof {
            let leaf = String::from_utf8_lossy(&head.leaf);
            entry["shard"] =
                json!({ "index": head.index, "leaf": leaf, "proof": path_to_json(&head.path) });
        }
        entry
    }

    fn from_json(json: &Value) -> Option<Self> {
        let number = |json: &Value| json.get("index")?.as_u64();
        let leaf = |json: &Value| Some(json.get("leaf")?.as_str()?.as_bytes().to_vec());
        let proof = match (json.get("proof")?, json.get("shard")) {
            (Value::Null, _) => None,
            (path, None) => Some(Proof::Signed(path_from_json(path)?)),
            (path, Some(head)) => Some(Proof::Shard {
                path: path_from_json(path)?,
                head: HeadEntry {
                    index: number(head)?,
                    leaf: leaf(head)?,
                    path: path_from_json(head.get("proof")?)?,
                },
            }),
        };
        Some(Self { index: number(json)?, leaf: leaf(json)?, proof })
    }

    fn judge(
        &self,
        session: &SessionId,
        tree: Option<&(TreeHead, Anchor)>,
    ) -> Result<(AnyLeaf, Anchor), String> {
        let leaf = AnyLeaf::parse(&self.leaf)
            .ok_or("it is neither the leaf of a record nor of a decision")?;
        if leaf.session() != session {
            return Err(format!("it is of session {}", leaf.session()));
        }
        let (Some(proof), Some((head, anchor))) = (&self.proof, tree) else {
            return Ok((leaf, Anchor::Log));
        };
        match proof {
            Proof::Signed(path) => {
                verify_inclusion(&Hash::leaf(&self.leaf), self.index, head, path)
            }
            Proof::Shard { path, head: stated } => {
                let shard = stated.of(Shard::of(session))?;
                verify_inclusion(&Hash::leaf(&stated.leaf), stated.index, head, &stated.path)
                    .map_err(|error| format!("the head of its shard: {error}"))?;
                verify_inclusion(&Hash::leaf(&self.leaf), self.index, &shard, path)
            }
        }
        .map_err(|error| error.to_string())?;
        Ok((leaf, *anchor))
    }
}

impl HeadEntry {
    /// The head that it states, which must be that of a shard.
    fn of(&self, shard: Shard) -> Result<TreeHead, String> {
        let stated =
            ShardHead::parse(&self.leaf).ok_or("what proves it is not the head of a shard")?;
        if stated.shard != shard {
            return Err(format!("it is in shard {}, but its session's is {shard}", stated.shard));
        }
        Ok(stated.head)
    }
}

fn path_to_json(path: &[Hash]) -> Value {
    path.iter().map(Hash::to_string).collect()
}

fn path_from_json(json: &Value) -> Option<Vec<Hash>> {
    json.as_array()?.iter().map(|hash| hash.as_str()?.parse().ok()).collect()
}

/// Reads a checkpoint and checks who signed it.
fn signed(note: &str, trust: &Trust, judged: &mut Judged) -> Result<(TreeHead, Anchor), String> {
    let unlike = |error: &dyn fmt::Display| format!("its checkpoint does not hold: {error}");
    let signed = SignedCheckpoint::parse(note.as_bytes()).map_err(|error| unlike(&error))?;
    let (origin, head) = (signed.checkpoint().origin(), signed.checkpoint().head());
    if trust.log.is_empty() {
        return Ok((head, Anchor::Log));
    }
    let by = signed.note().verify(&trust.log).map_err(|error| unlike(&error))?;
    if by.iter().all(|by| by.name.as_str() != origin.as_str()) {
        return Err(unlike(&format!("it is of the log {origin}, which its key does not name")));
    }
    let has_cosigned = |key: &&VerifierKey| signed.note().verify(&[*key]).is_ok();
    let missing: Vec<_> = trust.witnesses.iter().filter(|key| !has_cosigned(key)).collect();
    for key in &missing {
        judged.unmet.push(format!("witness {} did not cosign the checkpoint", key.name()));
    }
    let cosigned = !trust.witnesses.is_empty() && missing.is_empty();
    Ok((head, if cosigned { Anchor::Cosigned } else { Anchor::Checkpoint }))
}
