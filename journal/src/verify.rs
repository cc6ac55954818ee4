//! Verifying: naming each record that was changed, removed, added, reordered or cut off.
//!
//! A step is vouched for by the step after it, the end step by the verdict's seal, every event by
//! the seal's manifest, the bytes of a large payload by their address, and the verdict by a head
//! that somebody kept outside the journal. What nothing vouches for is said to be unprotected or
//! unsealed, never to be sound.

mod check;
mod order;

use std::fmt;

use crate::clock::Stamp;
use crate::id::SessionId;
use crate::item::{Hash, Item};

/// What is known of a session from outside its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anchors {
    /// The hash of the verdict event, as the execution's output or an export's witness states it.
    pub head: Option<Hash>,
    /// The newest step's number and hash, as an export's witness states them. It vouches for the
    /// tail of a session that has no verdict.
    pub last_step: Option<(u32, Hash)>,
}

/// What verifying a session found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How far the session is closed.
    pub state: State,
    /// What is wrong, in no particular order of weight; empty for a sound session.
    pub damage: Vec<Damage>,
    /// The sort keys of events that are later than the verdict, which nothing vouches for.
    pub unsealed: Vec<String>,
}

/// How far a session is closed, and with it what its records can prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Without a verdict: records cut off at the tail leave no trace.
    Open,
    /// With a verdict of this hash.
    Sealed {
        /// The hash of the verdict event: who keeps it elsewhere can prove the whole session.
        head: Hash,
    },
    /// Past its time: whatever is missing was deleted as agreed.
    Expired,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("open, tail unprotected"),
            Self::Sealed { head } => write!(f, "sealed with {head}"),
            Self::Expired => f.write_str("expired"),
        }
    }
}

/// One thing that is wrong with a session's records.
///
/// A record is named by its sort key, a payload's part by its partition and sort key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The record is not what was written.
    #[error("{place} was changed: {change}")]
    Changed {
        /// The record.
        place: String,
        /// What shows it.
        change: Change,
    },
    /// Records are missing.
    #[error("{} removed", span(first, last))]
    Removed {
        /// The first of them.
        first: String,
        /// The last of them.
        last: String,
    },
    /// The newest records are missing.
    #[error("the tail is cut off: {} missing", span(first, last))]
    CutOff {
        /// The first of them.
        first: String,
        /// The last of them.
        last: String,
    },
    /// No verdict is the one that the head was taken from.
    #[error("the verdict is missing: no verdict hashes to the head {head}")]
    VerdictMissing {
        /// The head.
        head: Hash,
    },
    /// The record was not there when the session was sealed, or belongs to no session.
    #[error("{place} was added: {reason}")]
    Added {
        /// The record.
        place: String,
        /// What shows it.
        reason: &'static str,
    },
    /// The record was written under another key.
    #[error("{place} was reordered: it was written as {belongs}")]
    Reordered {
        /// Where the record stands.
        place: String,
        /// Where it was written.
        belongs: String,
    },
    /// The record does not stand in the order of an export.
    #[error("{place} was reordered: it stands between records that it does not belong between")]
    Misplaced {
        /// The record.
        place: String,
    },
    /// Several records have one key.
    #[error("{place} is duplicated: several records have this key")]
    Duplicated {
        /// The key.
        place: String,
    },
    /// The record is what was written, and this version cannot read it.
    #[error("{place} cannot be read: {reason}")]
    Unreadable {
        /// The record.
        place: String,
        /// Why.
        reason: String,
    },
    /// A line of an export is not what was exported.
    #[error("line {line} was changed: {problem}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// An export's last line, the witness, does not fit the records before it.
    #[error("the witness does not fit the records: {problem}")]
    Witness {
        /// What does not fit.
        problem: String,
    },
}

fn span(first: &str, last: &str) -> String {
    if first == last { format!("{first} is") } else { format!("{first} to {last} are") }
}

/// What shows that a record was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Change {
    /// It does not hash to what it states itself.
    #[error("it hashes to {found} and states {stated}")]
    Stated {
        /// What it states.
        stated: String,
        /// What it hashes to.
        found: Hash,
    },
    /// It does not hash to what another record, or the head, names.
    #[error("it hashes to {found} and {by} names {named}")]
    Named {
        /// Who names it.
        by: String,
        /// The hash that is named.
        named: Hash,
        /// What it hashes to.
        found: Hash,
    },
    /// It states no hash, although its writer states one always.
    #[error("its own hash is missing")]
    HashMissing,
    /// It states a hash, although its writer never does.
    #[error("it states a hash, which its writer never does")]
    HashAdded,
    /// It is the first step and names one before it.
    #[error("it is the first step and names one before it")]
    NotFirst,
    /// It is a part of a payload and has other attributes than one.
    #[error("it has other attributes than a part")]
    Attributes,
    /// It expires at another time than the record that names it.
    #[error("it expires at another time than {by}")]
    Expiry {
        /// The record that names it.
        by: String,
    },
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

/// Judges a session by its items: steps, events and the parts of its payloads, in the order in
/// which they were read. Lease and wait items say nothing and are passed over.
///
/// Past the time at which its records expire a session is expired, and nothing more is said. Who
/// verifies a file that outlived the table passes a time before that.
pub fn verify(session: &SessionId, items: &[Item], anchors: &Anchors, now: Stamp) -> Report {
    let mut check = check::Check::of(session, items);
    if check.is_expired(now) {
        return Report { state: State::Expired, damage: Vec::new(), unsealed: Vec::new() };
    }
    for place in order::misplaced(session, items) {
        check.report(Damage::Misplaced { place });
    }
    let verdict = check.verdict(anchors.head.as_ref());
    let seal = verdict.as_ref().and_then(|verdict| verdict.seal.as_ref());
    let anchor = match (&verdict, seal, &anchors.last_step) {
        (Some(verdict), Some(seal), _) => {
            Some((verdict.sk.clone(), seal.end_seq, seal.end_hash.clone()))
        }
        (_, _, Some((seq, hash))) => Some(("the witness".to_owned(), *seq, hash.clone())),
        _ => None,
    };
    check.steps(anchor);
    check.payloads();
    let mut unsealed = Vec::new();
    if let Some(verdict) = &verdict {
        unsealed = check.events(verdict);
    }
    check.unnamed_parts();
    let state = match verdict {
        Some(verdict) => State::Sealed { head: verdict.hash },
        None => State::Open,
    };
    Report { state, damage: check.into_damage(), unsealed }
}
