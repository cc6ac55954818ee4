//! Writing events: told once each, at a time that sorts after what caused them.

use crate::chain::put_until_known;
use crate::clock::{Hlc, Stamp};
use crate::event::{Draft, Event, Writer};
use crate::id::SessionId;
use crate::item::Item;
use crate::key;
use crate::limits::{EVENTS_MAX, SKEW_NOTED, STAMP_COLLISIONS_MAX};
use crate::store::{Condition, Error, Query, Store, Written, query_all};

/// One writer's voice in a session.
#[derive(Debug)]
pub struct Announcer<'a, S> {
    /// Where the records go.
    pub store: &'a S,
    /// The session's clock.
    pub hlc: &'a Hlc,
    /// The session.
    pub session: &'a SessionId,
    /// Who speaks.
    pub writer: Writer,
    /// When the session's records expire, in seconds since 1970.
    pub expires_at: i64,
}

impl<S: Store> Announcer<'_, S> {
    /// Writes an event and returns it as it stands.
    ///
    /// A conditional put only prevents overwriting: when another event has this nanosecond, the next
    /// one is taken.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn announce(&self, draft: &Draft) -> Result<Event, Error> {
        for _ in 0..STAMP_COLLISIONS_MAX {
            let item = self.item(draft, self.hlc.tick());
            match put_until_known(self.store, self.hlc, &item, &Condition::Absent).await? {
                Written::Done => return Ok(Event::from_item(&item)?),
                Written::Refused(Some(there)) if there == item => {
                    return Ok(Event::from_item(&item)?);
                }
                Written::Refused(_) => {}
            }
        }
        Err(Error::Unavailable(
            format!("{STAMP_COLLISIONS_MAX} nanoseconds in a row were taken").into(),
        ))
    }

    /// The item of an event at a stamp, with the writer's clock if that is far from it.
    pub(crate) fn item(&self, draft: &Draft, stamp: Stamp) -> Item {
        let wall = self.hlc.clock().now();
        let apart = stamp.since(wall).max(wall.since(stamp));
        let noted = (apart > SKEW_NOTED).then_some(wall);
        draft.to_item(self.session, self.writer, stamp, noted, self.expires_at)
    }

    /// Writes an event unless it has been told already; for writers that may be a second attempt.
    ///
    /// # Errors
    /// When the store cannot be read or written, and [`Error::Refused`] when what the event leads to
    /// is told already, or the session has [`EVENTS_MAX`] events but one: the last place is the
    /// verdict's.
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
            // Told now it would sort behind its own effect. The gap is the caller's to log.
            let late = format!("what {} leads to is told already", draft.status);
            return Err(Error::Refused(late.into()));
        }
        if items.len() + 1 >= EVENTS_MAX {
            let full = format!("the session has {} events and takes only its verdict", items.len());
            return Err(Error::Refused(full.into()));
        }
        self.announce(draft).await
    }

    /// As [`Self::announce_once`], trying for `patience` and no longer: for events whose absence must
    /// not hold up the work. What could not be written is the caller's to log.
    ///
    /// # Errors
    /// The last error of the store.
    #[cfg(feature = "clock")]
    pub async fn announce_within(
        &self,
        draft: &Draft,
        patience: std::time::Duration,
    ) -> Result<Event, Error> {
        let late = || Error::Unknown(format!("no answer within {patience:?}").into());
        self.hlc
            .clock()
            .timeout(patience, self.announce_once(draft))
            .await
            .unwrap_or_else(|| Err(late()))
    }
}
