//! The wait item: the callback token of the waiting workflow. It decides nothing.

use crate::clock::Stamp;
use crate::id::SessionId;
use crate::item::{Item, ItemError};
use crate::key::{self, attribute};
use crate::store::{Condition, Error, Key, Store, Written};

const TOKEN: &str = "Token";
const PARKED_AT: &str = "ParkedAt";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The task token that resumes it.
    pub token: String,
    /// Start of the wait, by the state machine's clock: a later wait replaces an earlier one.
    pub parked_at: Stamp,
}

impl Wait {
    /// Writes the item unless a later one exists. Returns whether it was written.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn write<S: Store>(
        &self,
        store: &S,
        session: &SessionId,
        expires_at: i64,
    ) -> Result<bool, Error> {
        let item = Item::new(key::session(session), key::WAIT)
            .with(attribute::EXPIRES_AT, expires_at)
            .with(TOKEN, self.token.as_str())
            .with(PARKED_AT, self.parked_at.to_string());
        let not_later = Condition::Any(vec![
            Condition::Absent,
            Condition::at_most(PARKED_AT, self.parked_at.to_string()),
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
        Ok(Self {
            token: item.text(TOKEN)?.to_owned(),
            parked_at: Stamp::parse(item.text(PARKED_AT)?)
                .map_err(|_| item.malformed(PARKED_AT, "a time"))?,
        })
    }
}
