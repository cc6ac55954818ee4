//! Follows the holds of all sessions through a log, wherever its leaves are filed.

use std::collections::{BTreeMap, BTreeSet};

use journal::id::SessionId;
use journal::log::{Decision, Label, Retention};

/// The labels that hold sessions, as far as the leaves were read.
#[derive(Clone, Debug, Default)]
pub(super) struct Holds(BTreeMap<SessionId, BTreeSet<Label>>);

impl Holds {
    /// Adds the next leaf. Returns why it may not follow those before.
    pub(super) fn add(&mut self, index: u64, leaf: &Retention) -> Option<String> {
        let held = self.0.entry(leaf.session.clone()).or_default();
        match &leaf.decision {
            Decision::Hold(label) => {
                held.insert(label.clone());
            }
            Decision::Release(label) => {
                held.remove(label);
            }
            Decision::Prune(_) => {}
        }
        let first = held.first().cloned();
        if first.is_none() {
            self.0.remove(&leaf.session);
        }
        let label = first.filter(|_| matches!(leaf.decision, Decision::Prune(_)))?;
        let session = &leaf.session;
        Some(format!("its leaf {index} says that {session} was pruned, which `{label}` holds"))
    }
}
