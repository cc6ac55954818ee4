//! Further initiations of a session, which a forger or a second execution wrote.

use std::collections::{HashMap, HashSet};

use super::Listed;
use crate::id::SessionId;

/// Most copies that one list passes over. A search then returns a cursor.
pub const COPIES_MAX: usize = 10_000;

/// Tells a session's first entry in the index from its copies, given what a reader of sessions learns.
#[derive(Debug, Default)]
pub struct Copies {
    /// The sort key of each session's first event.
    firsts: HashMap<SessionId, String>,
    /// Sessions with an entry that was passed over unread.
    unread: HashSet<SessionId>,
    passed_over: usize,
}

impl Copies {
    /// Whether this entry is known not to be the session's first.
    pub fn knows(&mut self, listed: &Listed) -> bool {
        let known = self.firsts.get(&listed.session);
        let is_known = known.is_some_and(|first| *first != listed.initiated.sk);
        self.passed_over += usize::from(is_known);
        is_known
    }

    /// Remembers a session's first event. Returns whether the entry is a copy of it.
    pub fn learn(&mut self, listed: &Listed, first: Option<&str>) -> bool {
        let Some(first) = first else { return false };
        self.firsts.insert(listed.session.clone(), first.to_owned());
        first != listed.initiated.sk
    }

    /// Counts an entry that is passed over unread. Returns whether the session had one before.
    pub(super) fn pass_over(&mut self, session: &SessionId) -> bool {
        let is_copy = !self.unread.insert(session.clone());
        self.passed_over += usize::from(is_copy);
        is_copy
    }

    /// Whether [`COPIES_MAX`] is reached.
    pub fn are_too_many(&self) -> bool {
        self.passed_over >= COPIES_MAX
    }
}
