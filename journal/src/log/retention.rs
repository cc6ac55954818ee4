//! Leaves that say what a person, or the expiry, decided about keeping a session.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde_json::json;

use super::{LEAF_BYTES_MAX, Leaf, Stage};
use crate::clock::Stamp;
use crate::id::SessionId;
use crate::item::Hash;
use crate::principal::Principal;

/// The first element of such a leaf: what it is, and the version of its form.
const FORM: &str = "daybook retention 1";

/// Longest label, in characters.
pub const LABEL_CHARS_MAX: usize = 64;

/// Longest reason, in characters. A longer one is refused.
pub const REASON_CHARS_MAX: usize = 500;

/// The label of a hold: 1 to [`LABEL_CHARS_MAX`] of `A`–`Z`, `a`–`z`, `0`–`9`, `.`, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid label `{0}`: expected 1 to {LABEL_CHARS_MAX} letters, digits, `.`, `_` or `-`")]
pub struct InvalidLabel(String);

impl FromStr for Label {
    type Err = InvalidLabel;

    fn from_str(text: &str) -> Result<Self, InvalidLabel> {
        let is_char = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let fits = (1..=LABEL_CHARS_MAX).contains(&text.len()) && text.bytes().all(is_char);
        if fits { Ok(Self(text.to_owned())) } else { Err(InvalidLabel(text.to_owned())) }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The session must be kept, until each of its labels is released.
    Hold(Label),
    Release(Label),
    /// The session with this verdict was removed.
    Prune(Hash),
}

/// The leaf of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    pub session: SessionId,
    pub decision: Decision,
    pub at: Stamp,
    pub by: Principal,
    /// At most [`REASON_CHARS_MAX`] characters.
    pub reason: String,
}

impl Retention {
    /// The contents of the leaf in the tree.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (action, subject) = match &self.decision {
            Decision::Hold(label) => ("hold", label.to_string()),
            Decision::Release(label) => ("release", label.to_string()),
            Decision::Prune(head) => ("prune", head.to_string()),
        };
        let (session, at, by) = (self.session.as_str(), self.at.to_string(), self.by.to_string());
        json!([FORM, session, action, subject, at, by, self.reason]).to_string().into_bytes()
    }

    /// Reads what [`Self::to_bytes`] writes; `None` for anything else.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > LEAF_BYTES_MAX {
            return None;
        }
        let (form, session, action, subject, at, by, reason): (
            String,
            SessionId,
            String,
            String,
            String,
            String,
            String,
        ) = serde_json::from_slice(bytes).ok()?;
        let decision = match action.as_str() {
            "hold" => Decision::Hold(subject.parse().ok()?),
            "release" => Decision::Release(subject.parse().ok()?),
            "prune" => Decision::Prune(Hash::from_record(&subject)),
            _ => return None,
        };
        let (at, by) = (Stamp::parse(&at).ok()?, by.parse().ok()?);
        let leaf = Self { session, decision, at, by, reason };
        let fits = leaf.reason.chars().count() <= REASON_CHARS_MAX;
        (form == FORM && fits && leaf.to_bytes() == bytes).then_some(leaf)
    }
}

/// A leaf below a session: of a record, or of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnyLeaf {
    Record(Leaf),
    Retention(Retention),
}

impl AnyLeaf {
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let record = Leaf::parse(bytes).map(Self::Record);
        record.or_else(|| Retention::parse(bytes).map(Self::Retention))
    }

    pub fn session(&self) -> &SessionId {
        match self {
            Self::Record(leaf) => &leaf.session,
            Self::Retention(leaf) => &leaf.session,
        }
    }
}

/// What the leaves of one session say about keeping it, read in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keeping {
    /// The labels that hold it.
    pub held: BTreeSet<Label>,
    /// All labels that it ever had.
    pub labels: BTreeSet<Label>,
    /// The prune after which no record of it was written.
    pub pruned: Option<Retention>,
    verdicts: Vec<Hash>,
}

impl Keeping {
    /// Adds the next leaf. Returns why it may not follow those before.
    pub fn add(&mut self, leaf: &AnyLeaf) -> Option<String> {
        match leaf {
            AnyLeaf::Record(leaf) => {
                // A session may be imported again after its pruning.
                self.pruned = None;
                if leaf.stage() == Stage::Ended {
                    self.verdicts.push(leaf.hash.clone());
                }
                None
            }
            AnyLeaf::Retention(leaf) => self.decide(leaf),
        }
    }

    fn decide(&mut self, leaf: &Retention) -> Option<String> {
        match &leaf.decision {
            Decision::Hold(label) => {
                self.labels.insert(label.clone());
                self.held.insert(label.clone());
                None
            }
            Decision::Release(label) => {
                self.held.remove(label);
                None
            }
            Decision::Prune(head) => {
                self.pruned = Some(leaf.clone());
                if let Some(label) = self.held.first() {
                    return Some(format!(
                        "it says that the session was pruned, which `{label}` holds"
                    ));
                }
                let known = self.verdicts.contains(head);
                (!known).then(|| {
                    format!(
                        "it says that a verdict was pruned that no leaf before it names, {head}"
                    )
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retention(session: &SessionId, decision: Decision) -> Retention {
        let at = Stamp::parse("2026-11-21T10:30:00Z").unwrap();
        let reason = "case 7: \"ü\"".to_owned();
        Retention { session: session.clone(), decision, at, by: Principal::Unknown, reason }
    }

    #[test]
    fn a_decision_is_read_from_its_own_bytes_alone() {
        let session = SessionId::fresh();
        let label: Label = "case-7".parse().unwrap();
        let head = Hash::of(b"verdict");
        for decision in
            [Decision::Hold(label.clone()), Decision::Release(label), Decision::Prune(head)]
        {
            let leaf = retention(&session, decision);
            let bytes = leaf.to_bytes();
            assert_eq!(Retention::parse(&bytes), Some(leaf));
            assert_eq!(Leaf::parse(&bytes), None);
            assert_eq!(Retention::parse(&[&bytes[..], b" "].concat()), None);
        }
        for label in ["", "a b", "ü", &"x".repeat(LABEL_CHARS_MAX + 1)] {
            assert!(label.parse::<Label>().is_err(), "{label}");
        }
    }

    #[test]
    fn a_held_or_unknown_session_is_not_pruned() {
        let (session, label) = (SessionId::fresh(), "case-7".parse::<Label>().unwrap());
        let leaf = |decision| AnyLeaf::Retention(retention(&session, decision));
        let head = Hash::of(b"verdict");
        let mut keeping = Keeping::default();
        let problem = keeping.add(&leaf(Decision::Prune(head.clone()))).unwrap();
        assert!(problem.contains("no leaf before it names"), "{problem}");
        assert_eq!(keeping.add(&leaf(Decision::Hold(label.clone()))), None);
        let problem = keeping.add(&leaf(Decision::Prune(head))).unwrap();
        assert!(problem.contains("`case-7` holds"), "{problem}");
        assert_eq!(keeping.add(&leaf(Decision::Release(label.clone()))), None);
        assert!(keeping.held.is_empty() && keeping.labels.contains(&label));
    }
}
