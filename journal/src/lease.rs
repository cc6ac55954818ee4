//! The lease: shows that a runner is alive. It decides nothing.

use crate::clock::Stamp;
use crate::id::{Runner, SessionId};
use crate::item::{Item, ItemError};
use crate::key::{self, attribute};
use crate::store::{Condition, Error, Key, Store, Written};

/// The attribute that keeps an open lease in the index of open leases.
///
/// A lease is open until its session is sealed or waits for a person: while a runner should be
/// working, or the watchdog should check.
pub const OPEN: &str = "OpenLease";

/// The attribute with the time of the last heartbeat, the sort key of the index.
pub const HEARTBEAT_AT: &str = "BeatAt";

const EPOCH: &str = "Epoch";
const RUNNER: &str = "Runner";
const HEARTBEAT: &str = "Beat";

/// The last known state of a session's runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Epoch of the runner; if heartbeats stop, the epoch to supersede.
    pub epoch: u32,
    /// The runner; `None` before the first heartbeat and after release.
    pub runner: Option<Runner>,
    /// Incremented with every heartbeat. Only a change is meaningful.
    pub heartbeat: u32,
    /// Time of the heartbeat by its writer's clock; informational.
    pub heartbeat_at: Stamp,
}

impl Lease {
    /// A lease without a runner, as the invoker creates it.
    pub fn unclaimed(epoch: u32, at: Stamp) -> Self {
        Self { epoch, runner: None, heartbeat: 0, heartbeat_at: at }
    }

    /// A text that changes with every heartbeat.
    pub fn pulse(&self) -> String {
        let runner = self.runner.as_ref().map_or("", Runner::as_str);
        format!("{}/{runner}/{}", self.epoch, self.heartbeat)
    }

    pub fn to_item(&self, session: &SessionId, expires_at: i64) -> Item {
        let shard = shard(session.shard());
        self.closed_item(session, expires_at).with(OPEN, shard.as_str())
    }

    fn closed_item(&self, session: &SessionId, expires_at: i64) -> Item {
        Item::new(key::session(session), key::LEASE)
            .with(attribute::EXPIRES_AT, expires_at)
            .with(EPOCH, self.epoch)
            .with(HEARTBEAT, self.heartbeat)
            .with(HEARTBEAT_AT, self.heartbeat_at.to_string())
            .with_some(RUNNER, self.runner.as_ref().map(Runner::as_str))
    }

    /// Parses a lease.
    ///
    /// # Errors
    /// The item is not a lease.
    pub fn from_item(item: &Item) -> Result<Self, ItemError> {
        Ok(Self {
            epoch: item.small(EPOCH)?,
            runner: item.text_opt(RUNNER).map(Runner::named),
            heartbeat: item.small(HEARTBEAT)?,
            heartbeat_at: Stamp::parse(item.text(HEARTBEAT_AT)?)
                .map_err(|_| item.malformed(HEARTBEAT_AT, "a time"))?,
        })
    }

    /// Writes the lease unless a later epoch holds it. Returns whether it was written.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn write<S: Store>(
        &self,
        store: &S,
        session: &SessionId,
        expires_at: i64,
    ) -> Result<bool, Error> {
        let written = store.put(self.to_item(session, expires_at), self.not_later()).await?;
        Ok(written == Written::Done)
    }

    /// Closes the lease unless a later epoch holds it, so that the watchdog ignores it. Returns
    /// whether it was written.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn close<S: Store>(
        &self,
        store: &S,
        session: &SessionId,
        expires_at: i64,
    ) -> Result<bool, Error> {
        let released = Self { runner: None, heartbeat: self.heartbeat.max(1), ..self.clone() };
        let written =
            store.put(released.closed_item(session, expires_at), self.not_later()).await?;
        Ok(written == Written::Done)
    }

    fn not_later(&self) -> Condition {
        Condition::Any(vec![Condition::Absent, Condition::at_most(EPOCH, self.epoch)])
    }

    /// Writes the lease unless one of this or a later epoch exists: a second invoker must not reset
    /// a running agent's lease.
    ///
    /// # Errors
    /// The store cannot be written.
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
    /// The store cannot be read, or the item is not a lease.
    pub async fn read<S: Store>(store: &S, session: &SessionId) -> Result<Option<Self>, Error> {
        let item = store.get(Key::new(key::session(session), key::LEASE)).await?;
        Ok(item.as_ref().map(Self::from_item).transpose()?)
    }
}

pub fn shard(digit: char) -> String {
    format!("LEASE#{digit}")
}

/// Closes a session's lease if it has an open one.
///
/// # Errors
/// The store does not reply.
pub async fn close<S: Store>(store: &S, session: &SessionId, expires_at: i64) -> Result<(), Error> {
    let Some(item) = store.get(Key::new(key::session(session), key::LEASE)).await? else {
        return Ok(());
    };
    if item.get(OPEN).is_some() {
        Lease::from_item(&item)?.close(store, session, expires_at).await?;
    }
    Ok(())
}
