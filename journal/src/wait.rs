//! The wait item: the callback token of the waiting workflow. It decides nothing.

use crate::id::SessionId;
use crate::item::{Item, ItemError};
use crate::key::{self, attribute};
use crate::store::{Condition, Error, Key, Store, Written};

const TOKEN: &str = "Token";
const TURN: &str = "Turn";

/// In items of earlier versions, instead of [`TURN`]: the start of the wait by a wall clock, which
/// may have been wrong. Every wait that has a turn is later.
const PARKED_AT: &str = "ParkedAt";

/// A text after every time.
const AFTER_EVERY_TIME: &str = "~";

/// The position of a wait among all waits of a session. It only grows, whatever the clocks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    /// The number of resumes before the waiting execution.
    pub resumes: u32,
    /// The number of checks in that execution.
    pub checks: u32,
    /// The number of retries of this wait.
    pub retry: u32,
}

impl Turn {
    /// Fixed widths, so that text order is the order of turns.
    fn text(self) -> String {
        format!("{:010}.{:010}.{:010}", self.resumes, self.checks, self.retry)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(|part| part.parse().ok());
        let (resumes, checks, retry) = (parts.next()??, parts.next()??, parts.next()??);
        parts.next().is_none().then_some(Self { resumes, checks, retry })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The task token that resumes it.
    pub token: String,
    /// A later wait replaces an earlier one. `None` in items of earlier versions.
    pub turn: Option<Turn>,
}

impl Wait {
    /// Writes the item unless a later one exists. Returns whether it was written.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn write<S: Store>(
        store: &S,
        session: &SessionId,
        token: &str,
        turn: Turn,
        expires_at: i64,
    ) -> Result<bool, Error> {
        let item = Item::new(key::session(session), key::WAIT)
            .with(attribute::EXPIRES_AT, expires_at)
            .with(TOKEN, token)
            .with(TURN, turn.text());
        let not_later = Condition::Any(vec![
            Condition::Absent,
            Condition::at_most(TURN, turn.text()),
            Condition::at_most(PARKED_AT, AFTER_EVERY_TIME),
        ]);
        Ok(store.put(item, not_later).await? == Written::Done)
    }

    /// Reads a session's wait item.
    ///
    /// # Errors
    /// The store cannot be read, or the item is invalid.
    pub async fn read<S: Store>(store: &S, session: &SessionId) -> Result<Option<Self>, Error> {
        let item = store.get(Key::new(key::session(session), key::WAIT)).await?;
        Ok(item.as_ref().map(Self::from_item).transpose()?)
    }

    fn from_item(item: &Item) -> Result<Self, ItemError> {
        let turn = match item.text_opt(TURN) {
            Some(text) => Some(Turn::parse(text).ok_or_else(|| item.malformed(TURN, "a turn"))?),
            None => None,
        };
        Ok(Self { token: item.text(TOKEN)?.to_owned(), turn })
    }
}
