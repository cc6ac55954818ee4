//! The lease: who is alive. It never says what is true.

use crate::clock::Stamp;
use crate::id::{Runner, SessionId};
use crate::item::{Item, ItemError};
use crate::key::{self, attribute};
use crate::store::{Condition, Error, Key, Store, Written};

/// The attribute that keeps an open lease in the index of open leases.
///
/// A lease is open until its session is sealed or waits for a person: as long as somebody should be
/// at work, or look after it if nobody is.
pub const OPEN: &str = "OpenLease";

/// The attribute with the time of the last beat, by which the index is ordered.
pub const BEAT_AT: &str = "BeatAt";

const EPOCH: &str = "Epoch";
const RUNNER: &str = "Runner";
const BEAT: &str = "Beat";

/// A session's liveness as last written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The epoch of the runner that beats; the one to be superseded while none does.
    pub epoch: u32,
    /// The runner; `None` before the first beat and after release.
    pub runner: Option<Runner>,
    /// Counts up with every beat of a runner. Whether it changes is what matters.
    pub beat: u32,
    /// When it was written, by its writer's clock; for people.
    pub beat_at: Stamp,
}

impl Lease {
    /// A lease that nobody beats yet, as the invoker makes it.
    pub fn unclaimed(epoch: u32, at: Stamp) -> Self {
        Self { epoch, runner: None, beat: 0, beat_at: at }
    }

    /// A text that changes whenever somebody beats.
    pub fn pulse(&self) -> String {
        let runner = self.runner.as_ref().map_or("", Runner::as_str);
        format!("{}/{runner}/{}", self.epoch, self.beat)
    }

    /// The item of an open lease.
    pub fn to_item(&self, session: &SessionId, expires_at: i64) -> Item {
        let shard = shard(session.shard());
        self.closed_item(session, expires_at).with(OPEN, shard.as_str())
    }

    fn closed_item(&self, session: &SessionId, expires_at: i64) -> Item {
        Item::new(key::session(session), key::LEASE)
            .with(attribute::EXPIRES_AT, expires_at)
            .with(EPOCH, self.epoch)
            .with(BEAT, self.beat)
            .with(BEAT_AT, self.beat_at.to_string())
            .with_some(RUNNER, self.runner.as_ref().map(Runner::as_str))
    }

    /// Reads a lease.
    ///
    /// # Errors
    /// When the item is none.
    pub fn from_item(item: &Item) -> Result<Self, ItemError> {
        Ok(Self {
            epoch: item.small(EPOCH)?,
            runner: item.text_opt(RUNNER).map(Runner::named),
            beat: item.small(BEAT)?,
            beat_at: Stamp::parse(item.text(BEAT_AT)?)
                .map_err(|_| item.malformed(BEAT_AT, "a time"))?,
        })
    }

    /// Writes the lease unless a later epoch has it. Says whether it was written.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn write<S: Store>(
        &self,
        store: &S,
        session: &SessionId,
        expires_at: i64,
    ) -> Result<bool, Error> {
        let written = store.put(self.to_item(session, expires_at), self.not_later()).await?;
        Ok(written == Written::Done)
    }

    /// Writes the lease as one that nobody holds and nobody needs to look after, unless a later epoch
    /// has it. Says whether it was written.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn close<S: Store>(
        &self,
        store: &S,
        session: &SessionId,
        expires_at: i64,
    ) -> Result<bool, Error> {
        let nobodys = Self { runner: None, beat: self.beat.max(1), ..self.clone() };
        let written = store.put(nobodys.closed_item(session, expires_at), self.not_later()).await?;
        Ok(written == Written::Done)
    }

    fn not_later(&self) -> Condition {
        Condition::Any(vec![Condition::Absent, Condition::at_most(EPOCH, self.epoch)])
    }

    /// Writes the lease if nobody has one for this epoch or a later one: a second invoker must not
    /// set a beating runner's lease back.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn create<S: Store>(
        &self,
        store: &S,
        session: &SessionId,
        expires_at: i64,
    ) -> Result<bool, Error> {
        let older = match self.epoch.checked_sub(1) {
            Some(before) => {
                Condition::Any(vec![Condition::Absent, Condition::at_most(EPOCH, before)])
            }
            None => Condition::Absent,
        };
        let written = store.put(self.to_item(session, expires_at), older).await?;
        Ok(written == Written::Done)
    }

    /// Reads a session's lease.
    ///
    /// # Errors
    /// When the store cannot be read or the item is no lease.
    pub async fn read<S: Store>(store: &S, session: &SessionId) -> Result<Option<Self>, Error> {
        let item = store.get(Key::new(key::session(session), key::LEASE)).await?;
        Ok(item.as_ref().map(Self::from_item).transpose()?)
    }
}

/// A partition of the index of open leases.
pub fn shard(digit: char) -> String {
    format!("LEASE#{digit}")
}

/// Closes a session's lease, if it has one that is open.
///
/// # Errors
/// When the store does not answer.
pub async fn close<S: Store>(store: &S, session: &SessionId, expires_at: i64) -> Result<(), Error> {
    let Some(item) = store.get(Key::new(key::session(session), key::LEASE)).await? else {
        return Ok(());
    };
    if item.get(OPEN).is_some() {
        Lease::from_item(&item)?.close(store, session, expires_at).await?;
    }
    Ok(())
}
