//! Writes events, each once and with a timestamp after that of its cause.

use crate::chain::put_until_known;
use crate::cipher;
use crate::clock::{Hlc, Stamp};
use crate::event::{Draft, Event, EventStatus, Writer};
use crate::id::SessionId;
use crate::item::Item;
use crate::key;
use crate::limits::{EVENTS_MAX, SKEW_NOTED, STAMP_COLLISIONS_MAX};
use crate::store::{Condition, Error, Query, Store, Written, query_all};

/// Writes the events of one component to one session.
#[derive(Debug)]
pub struct Announcer<'a, S> {
    pub store: &'a S,
    pub hlc: &'a Hlc,
    pub session: &'a SessionId,
    pub writer: Writer,
    /// When the session's records expire, in seconds since 1970.
    pub expires_at: i64,
}

impl<S: Store> Announcer<'_, S> {
    /// Writes an event and returns it as stored.
    ///
    /// If another event has the same nanosecond, the next free one is used: a conditional put only
    /// prevents overwriting.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn announce(&self, draft: &Draft) -> Result<Event, Error> {
        for _ in 0..STAMP_COLLISIONS_MAX {
            let item = self.item(draft, self.hlc.tick()).await?;
            match put_until_known(self.store, self.hlc, &item, &Condition::Absent).await? {
                Written::Done => return Ok(Event::from_item(&item)?),
                Written::Refused(Some(there)) if there == item => {
                    return Ok(Event::from_item(&item)?);
                }
                Written::Refused(_) => {}
            }
        }
        Err(Error::Unavailable(
            format!("{STAMP_COLLISIONS_MAX} consecutive timestamps are taken").into(),
        ))
    }

    /// The item of an event with this timestamp, with the writer's clock if they differ much. Its contents are
    /// encrypted if the session has a key, except those of the event that says that the key was destroyed.
    pub(crate) async fn item(&self, draft: &Draft, stamp: Stamp) -> Result<Item, Error> {
        let wall = self.hlc.clock().wall();
        let apart = stamp.since(wall).max(wall.since(stamp));
        let noted = (apart > SKEW_NOTED).then_some(wall);
        let item = draft.to_item(self.session, self.writer, stamp, noted, self.expires_at);
        if draft.status == EventStatus::SessionErased {
            return Ok(item);
        }
        Ok(match self.store.session_key(self.session).await?.to_write()? {
            Some(key) => cipher::encrypt(item, &key),
            None => item,
        })
    }

    /// Writes an event unless it has been written already; for writers that may be a second
    /// attempt.
    ///
    /// # Errors
    /// The store cannot be read or written. [`Error::Refused`] if an event that follows from this
    /// one is already written, or if the session has room for its verdict only ([`EVENTS_MAX`]).
    pub async fn announce_once(&self, draft: &Draft) -> Result<Event, Error> {
        let id = draft.status.id(self.session, self.writer, draft.about);
        let query = Query::prefix(key::session(self.session), key::EVENT_PREFIX);
        let items = query_all(self.store, query).await?;
        let mut is_late = false;
        for item in &items {
            if let Ok(event) = Event::from_item(item) {
                self.hlc.observe(event.stamp);
                if event.id == id {
                    return Ok(event);
                }
                is_late |= event.about == draft.about && draft.status.leads_to(event.status);
            }
        }
        if is_late {
            // Written now, it would sort after its own effect. The caller logs the gap.
            let late = format!("an event that follows {} is already written", draft.status);
            return Err(Error::Refused(late.into()));
        }
        if items.len() + 1 >= EVENTS_MAX {
            let full =
                format!("the session has {} events and accepts only its verdict", items.len());
            return Err(Error::Refused(full.into()));
        }
        self.announce(draft).await
    }

    /// Like [`Self::announce_once`], for at most `timeout`: for events that must not delay the
    /// work. The caller logs an event that could not be written.
    ///
    /// # Errors
    /// The last error of the store.
    #[cfg(feature = "clock")]
    pub async fn announce_within(
        &self,
        draft: &Draft,
        timeout: std::time::Duration,
    ) -> Result<Event, Error> {
        let late = || Error::Unknown(format!("no reply within {timeout:?}").into());
        self.hlc
            .clock()
            .timeout(timeout, self.announce_once(draft))
            .await
            .unwrap_or_else(|| Err(late()))
    }
}
