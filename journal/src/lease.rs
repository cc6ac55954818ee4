//! The lease: who is alive. It never says what is true.

use crate::clock::Stamp;
use crate::id::{Runner, SessionId};
use crate::item::{Item, ItemError};
use crate::key::{self, attribute};
use crate::store::{Condition, Error, Key, Store, Written};

/// The attribute that keeps an open lease in the index of open leases.
pub const OPEN: &str = "OpenLease";

const EPOCH: &str = "Epoch";
const RUNNER: &str = "Runner";
const BEAT: &str = "Beat";
const BEAT_AT: &str = "BeatAt";

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

    /// The lease's item.
    pub fn to_item(&self, session: &SessionId, expires_at: i64) -> Item {
        let open = self.runner.is_some() || self.beat == 0;
        Item::new(key::session(session), key::LEASE)
            .with(attribute::EXPIRES_AT, expires_at)
            .with(EPOCH, self.epoch)
            .with(BEAT, self.beat)
            .with(BEAT_AT, self.beat_at.to_string())
            .with_some(RUNNER, self.runner.as_ref().map(Runner::as_str))
            .with_some(OPEN, open.then(|| format!("LEASE#{}", session.shard())))
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
        let not_later =
            Condition::Any(vec![Condition::Absent, Condition::at_most(EPOCH, self.epoch)]);
        let written = store.put(self.to_item(session, expires_at), not_later).await?;
        Ok(written == Written::Done)
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
