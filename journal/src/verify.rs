//! Verifies a session: names each record that was changed, removed, added, reordered or truncated.
//!
//! A hash of each record is kept elsewhere: a step's in the next step, the end step's in the
//! verdict's seal, an event's in the seal's manifest, a payload's in its address, and the verdict's
//! in a head stored outside the journal, at an [`Anchor`]. A record without such a hash is reported as unprotected
//! or unsealed, never as valid, and a session without an anchor proves only that its records fit together.

mod check;
mod order;
mod verdict;

use std::collections::BTreeSet;
use std::fmt;

use crate::cipher::Erasure;
use crate::clock::Stamp;
use crate::event::Event;
use crate::id::SessionId;
use crate::item::{Hash, Item};
use crate::log::{Decision, Judged, PrunedBy};
use crate::principal::Principal;
use crate::receipt::Receipts;
use crate::tally::erased_by;

/// Where a head is stored outside the records, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anchor {
    /// The last line of an export, which the writer of the file also writes.
    Witness,
    /// The log of sessions, without a signature that the reader trusts.
    Log,
    /// The output or history of the session's execution, in the file of the journal.
    LocalExecution,
    /// The output or history of the session's execution in an account.
    Execution,
    /// A checkpoint of the log of sessions that its key signed.
    Checkpoint,
    /// A checkpoint that a witness cosigned, too.
    Cosigned,
    /// The caller, who kept it.
    Given,
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Witness => "the file's witness",
            Self::Log => "the log of sessions",
            Self::LocalExecution | Self::Execution => "the execution",
            Self::Checkpoint => "a signed checkpoint",
            Self::Cosigned => "a cosigned checkpoint",
            Self::Given => "the given head",
        })
    }
}

/// What is known about a session from outside its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anchors {
    /// Hashes of the verdict event.
    pub heads: Vec<(Anchor, Hash)>,
    /// Number and hash of the newest step, from an export's witness. They protect the tail of a
    /// session without a verdict.
    pub last_step: Option<(u32, Hash)>,
    /// What the log of sessions shows; `None` if there is none.
    pub log: Option<Judged>,
    /// The receipts of people's steps, where there are any.
    pub receipts: Option<Receipts>,
    /// Anchors that the caller should have and could not read.
    pub unmet: Vec<String>,
}

impl Anchors {
    /// The caller's head, if any.
    pub fn of(head: Option<Hash>) -> Self {
        let heads = head.into_iter().map(|head| (Anchor::Given, head)).collect();
        Self { heads, ..Self::default() }
    }
}

/// The result of verifying a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How far the session is protected.
    pub state: State,
    /// The anchors that name the verdict, weakest first.
    pub anchors: Vec<Anchor>,
    /// All anchors that the verdict was held against, weakest first.
    pub consulted: Vec<Anchor>,
    /// All damage found, in no particular order; empty for a valid session.
    pub damage: Vec<Damage>,
    /// Sort keys of events after the verdict, which nothing protects.
    pub unsealed: Vec<String>,
    /// What the caller asked to be proven and is not.
    pub unmet: Vec<String>,
    /// What the log of sessions has of the session; `None` if there is no log.
    pub log: Option<InLog>,
    /// The destruction of the key of its contents, as an unsealed event says. Its records are there and verify.
    pub erased: Option<Erasure>,
}

/// What the log of sessions has of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InLog {
    pub leaves: usize,
    /// How many of them are newer than the newest checkpoint.
    pub unsigned: usize,
}

/// How far a session's records are protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// No verdict: removing the newest records leaves no trace.
    Open,
    Sealed {
        /// Hash of the verdict event. Stored elsewhere, it proves the whole session.
        head: Hash,
    },
    /// Past its expiry: records may have been deleted on schedule, and nothing can be proven.
    Expired,
    /// Removed as a whole, as the log of sessions says.
    Pruned {
        /// Hash of the verdict that it had.
        head: Hash,
        at: Stamp,
        by: Principal,
        reason: String,
    },
}

/// What a verification has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The records fit together and to every anchor.
    Sound,
    /// There are no records, and the log of sessions says who removed them and why.
    Pruned,
    Damaged,
    /// Records may have been deleted on schedule, or what the caller asked for cannot be proven.
    NotProvable,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("open, tail unprotected"),
            Self::Sealed { head } => write!(f, "sealed with {head}"),
            Self::Expired => f.write_str("expired, so missing records prove nothing"),
            Self::Pruned { at, by, reason, .. } => {
                write!(f, "pruned at {at} by {by}: {reason}")
            }
        }
    }
}

/// Damage to a session's records.
///
/// A record is named by its sort key, a payload's part by its partition and sort key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The record differs from what was written.
    #[error("{place} was changed: {change}")]
    Changed { place: String, change: Change },
    #[error("{} removed", span(first, last))]
    Removed { first: String, last: String },
    /// The newest records are missing.
    #[error("the tail is truncated: {} missing", span(first, last))]
    CutOff { first: String, last: String },
    /// There is no verdict, but an anchor names one.
    #[error("the verdict is missing: {anchor} names its hash, {head}")]
    VerdictMissing { anchor: Anchor, head: Hash },
    /// A part of a payload that no record names.
    #[error("{place} was added: no record names this payload")]
    Unnamed { place: String },
    /// The record was added after sealing, or belongs to no session.
    #[error("{place} was added: {reason}")]
    Added { place: String, reason: &'static str },
    /// The record was written under another key.
    #[error("{place} was reordered: it was written as {belongs}")]
    Reordered { place: String, belongs: String },
    /// What a chat was sent cannot be shown: no earlier note holds this text of its request.
    #[error("{place} names the request text {sha256}, which no earlier step holds")]
    RequestMissing { place: String, sha256: String },
    /// The record is out of order in an export.
    #[error("{place} was reordered: it is out of order in the file")]
    Misplaced { place: String },
    #[error("{place} is duplicated: several records have this key")]
    Duplicated { place: String },
    /// The record is unchanged, but this version cannot read it.
    #[error("{place} cannot be read: {reason}")]
    Unreadable { place: String, reason: String },
    /// A line of an export was changed.
    #[error("line {line} was changed: {problem}")]
    Line {
        /// From 1.
        line: usize,
        problem: String,
    },
    /// A record whose kind has a leaf in the log of sessions, but that has none.
    #[error("{place} was added: the log of sessions has no leaf for it")]
    NotLogged { place: String },
    /// A step with a person's decision that the component for such decisions did not write.
    #[error("{place} was added: it says what a person decided, and has no receipt of the poller")]
    NoReceipt { place: String },
    /// The log of sessions, or its checkpoint, does not hold.
    #[error("the log of sessions does not hold: {problem}")]
    Log { problem: String },
    /// A session without a verdict begins with it.
    #[error("the first record is missing: there is no SESSION_INITIATED")]
    FirstMissing,
    /// The verdict seals something else than the session's end.
    #[error("{place} is not a verdict of this session: {problem}")]
    Verdict { place: String, problem: String },
    /// An export's last line, the witness, does not match the records.
    #[error("the witness does not match the records: {problem}")]
    Witness { problem: String },
}

fn span(first: &str, last: &str) -> String {
    if first == last { format!("{first} is") } else { format!("{first} to {last} are") }
}

/// How a record was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Change {
    /// Its hash differs from the one that it states.
    #[error("its hash is {found}, but it states {stated}")]
    Stated { stated: String, found: Hash },
    /// Its hash differs from the one in another record, or from the head.
    #[error("its hash is {found}, but {by} names {named}")]
    Named { by: String, named: Hash, found: Hash },
    /// It states no hash, although its writer always does.
    #[error("its own hash is missing")]
    HashMissing,
    #[error("it states a hash, which its writer never does")]
    HashAdded,
    #[error("it is the first step, but names a previous one")]
    NotFirst,
    #[error("it has attributes that a part does not have")]
    Attributes,
    #[error("it expires at another time than {by}")]
    Expiry { by: String },
}

impl Outcome {
    /// As `daybook verify --json` and the page's API have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Pruned => "pruned",
            Self::Damaged => "damaged",
            Self::NotProvable => "not_provable",
        }
    }
}

impl Anchor {
    /// As `daybook verify --json` and the page's API have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Witness => "witness_line",
            Self::Log => "log",
            Self::LocalExecution | Self::Execution => "execution",
            Self::Checkpoint => "checkpoint",
            Self::Cosigned => "witness",
            Self::Given => "head",
        }
    }
}

impl Damage {
    /// Whether the pruning of the session explains it: the verdict that is missing must be the one that was pruned.
    fn is_explained_by(&self, pruned: &PrunedBy) -> bool {
        match self {
            Self::VerdictMissing { head, .. } => {
                pruned.leaf.decision == Decision::Prune(head.clone())
            }
            damage => damage.is_absence(),
        }
    }

    /// Whether a scheduled deletion explains it.
    fn is_absence(&self) -> bool {
        matches!(
            self,
            Self::Removed { .. }
                | Self::CutOff { .. }
                | Self::VerdictMissing { .. }
                | Self::Unnamed { .. }
                | Self::RequestMissing { .. }
                | Self::NoReceipt { .. }
                | Self::FirstMissing
        )
    }
}

impl Report {
    pub fn outcome(&self) -> Outcome {
        match self.state {
            _ if !self.damage.is_empty() => Outcome::Damaged,
            State::Expired => Outcome::NotProvable,
            _ if !self.unmet.is_empty() => Outcome::NotProvable,
            State::Pruned { .. } => Outcome::Pruned,
            State::Open | State::Sealed { .. } => Outcome::Sound,
        }
    }

    /// What the session is to a reader, in one word: `sound` only if an anchor that the writer of its records cannot
    /// write names its verdict.
    pub fn word(&self) -> &'static str {
        match (self.outcome(), &self.state) {
            (Outcome::Damaged, _) => "damaged",
            (Outcome::NotProvable, _) => "not provable",
            (Outcome::Pruned, _) => "pruned",
            (Outcome::Sound, State::Open) => "open",
            (Outcome::Sound, _) if self.is_anchored() => "sound",
            (Outcome::Sound, _) => "consistent",
        }
    }

    /// Whether there is no damage and nothing unproven that should be: [`Self::word`] says what that proves.
    pub fn is_sound(&self) -> bool {
        self.outcome() == Outcome::Sound
    }

    /// Whether an anchor beyond the session's records names the verdict. On one machine the executions and the log are
    /// in the journal's file: whoever writes the file can write all of them, but cannot sign.
    pub fn is_anchored(&self) -> bool {
        self.anchors.iter().any(|anchor| *anchor > Anchor::LocalExecution)
    }
}

/// Verifies a session's items: steps, events and the parts of its payloads, in the order read.
/// Lease and wait items are ignored.
///
/// After the expiry of its records a session's missing records are not damage, but what is left must still fit. To
/// verify a file that outlived the table, pass an earlier time.
pub fn verify(session: &SessionId, items: &[Item], anchors: &Anchors, now: Stamp) -> Report {
    let mut check = check::Check::of(session, items);
    let is_empty = check.is_empty();
    for place in order::misplaced(session, items) {
        check.report(Damage::Misplaced { place });
    }
    let mut heads = anchors.heads.clone();
    heads.extend(anchors.log.as_ref().and_then(Judged::head));
    check.unreadable_events();
    let verdict = check.verdict(&heads);
    let seal = verdict.as_ref().and_then(|verdict| verdict.seal.as_ref());
    check.steps(last_step(verdict.as_ref(), anchors));
    check.payloads();
    check.requests();
    anchors.receipts.iter().for_each(|receipts| check.receipts(receipts));
    let mut unsealed = Vec::new();
    if let Some(verdict) = &verdict {
        check.meaning(verdict);
        unsealed = check.events(verdict);
    }
    if seal.is_none() {
        check.first_event();
    }
    check.unnamed_parts();
    check.initiations();
    let log = anchors.log.as_ref();
    if log.is_some_and(Judged::lacks_session) && !is_empty {
        check.not_logged();
    }
    let mut unmet = log.map_or_else(Vec::new, |log| check.log(log));
    unmet.extend(anchors.unmet.iter().cloned());
    let leaves = anchors.log.iter().flat_map(Judged::leaves);
    let expired = check.is_expired(now, leaves, !heads.is_empty());
    let pruned = log.and_then(Judged::pruned).filter(|_| is_empty);
    if pruned.is_some_and(|pruned| pruned.is_unsigned) {
        unmet.push("the leaf that says that it was pruned is newer than the checkpoint".to_owned());
    }
    let mut damage = check.into_damage();
    damage.retain(|damage| match pruned {
        Some(pruned) => !damage.is_explained_by(pruned),
        None => !expired || !damage.is_absence(),
    });
    let naming = |hash: &Hash| {
        let mut naming: Vec<_> = heads.iter().filter(|(_, head)| head == hash).collect();
        naming.sort();
        naming.into_iter().map(|(anchor, _)| *anchor).collect()
    };
    // A verdict without a seal vouches for itself alone.
    let sealing = verdict.as_ref().filter(|verdict| verdict.seal.is_some());
    let by = match pruned {
        Some(pruned) => vec![pruned.anchor],
        None => sealing.map_or_else(Vec::new, |verdict| naming(&verdict.hash)),
    };
    let state = match sealing {
        _ if expired => State::Expired,
        Some(verdict) => State::Sealed { head: verdict.hash.clone() },
        None => State::Open,
    };
    // One before the verdict would be damage.
    let after = items.iter().filter(|item| unsealed.contains(&item.sk));
    let erased = after.filter_map(|item| Event::from_item(item).ok()).find_map(|it| erased_by(&it));
    let state = pruned.and_then(state_of).unwrap_or(state);
    Report {
        state,
        anchors: by,
        consulted: consulted(&heads),
        damage,
        unsealed,
        unmet,
        log: log.map(|log| InLog { leaves: log.leaves().count(), unsigned: log.unsigned }),
        erased,
    }
}

/// What protects the last step, its number and its hash.
fn last_step(verdict: Option<&Event>, anchors: &Anchors) -> Option<(String, u32, Hash)> {
    if let Some(verdict) = verdict
        && let Some(seal) = &verdict.seal
    {
        return Some((verdict.sk.clone(), seal.end_seq, seal.end_hash.clone()));
    }
    let (seq, hash) = anchors.last_step.as_ref()?;
    Some(("the witness".to_owned(), *seq, hash.clone()))
}

/// The anchors of some heads, each once, weakest first.
fn consulted(heads: &[(Anchor, Hash)]) -> Vec<Anchor> {
    let anchors: BTreeSet<_> = heads.iter().map(|(anchor, _)| *anchor).collect();
    anchors.into_iter().collect()
}

fn state_of(pruned: &PrunedBy) -> Option<State> {
    let leaf = pruned.leaf.clone();
    let Decision::Prune(head) = leaf.decision else { return None };
    Some(State::Pruned { head, at: leaf.at, by: leaf.by, reason: leaf.reason })
}
