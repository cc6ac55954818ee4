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
const HOST_END: &str = "HostEnd";
const HOST_ENDED_AT: &str = "HostEndedAt";
const HELD: &str = "Held";
const HELD_AGENT: &str = "HeldAgent";
const HELD_INVOCATION: &str = "HeldInvocation";

/// The last known state of a session's runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Epoch of the runner; if heartbeats stop, the epoch to supersede.
    pub epoch: u32,
    pub holder: Holder,
    /// Incremented with every heartbeat. Only a change is meaningful.
    pub heartbeat: u32,
    /// Time of the heartbeat by its writer's clock; informational.
    pub heartbeat_at: Stamp,
}

/// Who holds a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// No runner: before the first heartbeat and after release.
    None,
    Runner(Runner),
    /// No runner that was invoked before this is alive, whether it had claimed the session or not.
    Ended(HostEnd),
    /// No runner: the session waits until its agent may begin.
    Held(Hold),
}

/// Why a session that could go on does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    pub why: WhyHeld,
    /// The agent's name.
    pub agent: String,
    /// The invocation that was declined. `None` if a runner left the session while it worked.
    pub invocation: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyHeld {
    /// Its agent is halted.
    Halted,
    /// As many agents are at work as may be.
    Queued,
    /// It was queued, and it is its turn.
    Released,
    /// The agent runtime has no place for it. The time of the lease's last heartbeat is when it first asked.
    Capacity,
}

impl WhyHeld {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Halted => "halted",
            Self::Queued => "queued",
            Self::Released => "released",
            Self::Capacity => "capacity",
        }
    }
}

/// The end of a runner's host, as the stack that ran the host knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostEnd {
    pub how: HowHostEnded,
    /// Different for each end of a session's host.
    pub at: Stamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HowHostEnded {
    /// The process of this session alone exited.
    Exited,
    /// The whole stack was started again. That tells nothing about the session.
    Restarted,
    /// It came near the end of its lifetime, and left the session to the next host.
    HandedOver,
}

impl HowHostEnded {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Restarted => "restarted",
            Self::HandedOver => "handed_over",
        }
    }
}

impl Holder {
    fn from_item(item: &Item) -> Result<Self, ItemError> {
        if let Some(runner) = item.text_opt(RUNNER) {
            return Ok(Self::Runner(Runner::named(runner)));
        }
        if let Some(held) = item.text_opt(HELD) {
            return Ok(Self::Held(Hold::from_item(held, item)?));
        }
        let how = match item.text_opt(HOST_END) {
            None => return Ok(Self::None),
            Some("exited") => HowHostEnded::Exited,
            Some("restarted") => HowHostEnded::Restarted,
            Some("handed_over") => HowHostEnded::HandedOver,
            Some(_) => {
                return Err(item.malformed(HOST_END, "`exited`, `restarted` or `handed_over`"));
            }
        };
        let at = Stamp::parse(item.text(HOST_ENDED_AT)?)
            .map_err(|_| item.malformed(HOST_ENDED_AT, "a time"))?;
        Ok(Self::Ended(HostEnd { how, at }))
    }
}

impl Hold {
    fn from_item(held: &str, item: &Item) -> Result<Self, ItemError> {
        let why = match held {
            "halted" => WhyHeld::Halted,
            "queued" => WhyHeld::Queued,
            "released" => WhyHeld::Released,
            "capacity" => WhyHeld::Capacity,
            _ => {
                let expected = "`halted`, `queued`, `released` or `capacity`";
                return Err(item.malformed(HELD, expected));
            }
        };
        let is_declined = item.get(HELD_INVOCATION).is_some();
        let invocation = is_declined.then(|| item.small(HELD_INVOCATION)).transpose()?;
        Ok(Self { why, agent: item.text(HELD_AGENT)?.to_owned(), invocation })
    }
}

impl Lease {
    /// A lease without a runner, as the invoker creates it.
    pub fn unclaimed(epoch: u32, at: Stamp) -> Self {
        Self { epoch, holder: Holder::None, heartbeat: 0, heartbeat_at: at }
    }

    pub fn runner(&self) -> Option<&Runner> {
        match &self.holder {
            Holder::Runner(runner) => Some(runner),
            Holder::None | Holder::Ended(_) | Holder::Held(_) => None,
        }
    }

    pub fn hold(&self) -> Option<&Hold> {
        match &self.holder {
            Holder::Held(hold) => Some(hold),
            Holder::None | Holder::Runner(_) | Holder::Ended(_) => None,
        }
    }

    /// A text that changes with every heartbeat.
    pub fn pulse(&self) -> String {
        let runner = self.runner().map_or("", Runner::as_str);
        format!("{}/{runner}/{}", self.epoch, self.heartbeat)
    }

    pub fn to_item(&self, session: &SessionId, expires_at: i64) -> Item {
        let shard = shard(session.shard());
        self.closed_item(session, expires_at).with(OPEN, shard.as_str())
    }

    fn closed_item(&self, session: &SessionId, expires_at: i64) -> Item {
        let ended = match &self.holder {
            Holder::Ended(end) => Some(end),
            Holder::None | Holder::Runner(_) | Holder::Held(_) => None,
        };
        let hold = self.hold();
        Item::new(key::session(session), key::LEASE)
            .with(attribute::EXPIRES_AT, expires_at)
            .with(EPOCH, self.epoch)
            .with(HEARTBEAT, self.heartbeat)
            .with(HEARTBEAT_AT, self.heartbeat_at.to_string())
            .with_some(RUNNER, self.runner().map(Runner::as_str))
            .with_some(HOST_END, ended.map(|end| end.how.as_str()))
            .with_some(HOST_ENDED_AT, ended.map(|end| end.at.to_string()))
            .with_some(HELD, hold.map(|hold| hold.why.as_str()))
            .with_some(HELD_AGENT, hold.map(|hold| hold.agent.as_str()))
            .with_some(HELD_INVOCATION, hold.and_then(|hold| hold.invocation))
    }

    /// Parses a lease.
    ///
    /// # Errors
    /// The item is not a lease.
    pub fn from_item(item: &Item) -> Result<Self, ItemError> {
        Ok(Self {
            epoch: item.small(EPOCH)?,
            holder: Holder::from_item(item)?,
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
        let released =
            Self { holder: Holder::None, heartbeat: self.heartbeat.max(1), ..self.clone() };
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

/// Records in a session's open lease that its host has ended. Only the program that ran the host may call this, and
/// only while no other host can claim the session. Keeps the time of the last heartbeat, by which the watchdog judges.
/// Returns whether the session has an open lease.
///
/// `claimed` is the epoch of the newest step: the runner may have died after its claim and before its first heartbeat.
///
/// # Errors
/// The store does not reply, or the item is not a lease.
pub async fn end_host<S: Store>(
    store: &S,
    session: &SessionId,
    claimed: u32,
    end: HostEnd,
) -> Result<bool, Error> {
    let key = Key::new(key::session(session), key::LEASE);
    let Some(item) = store.get(key).await?.filter(|item| item.get(OPEN).is_some()) else {
        return Ok(false);
    };
    let (lease, expires_at) = (Lease::from_item(&item)?, item.number(attribute::EXPIRES_AT)?);
    if lease.hold().is_some() && lease.epoch >= claimed {
        // It had no runner. The queue ended with the stack, so its workflow should look at it again.
        return Ok(end.how == HowHostEnded::Restarted);
    }
    let is_handed_over =
        matches!(lease.holder, Holder::Ended(HostEnd { how: HowHostEnded::HandedOver, .. }));
    if is_handed_over && lease.epoch >= claimed {
        // Its process ends afterwards, which tells nothing new.
        return Ok(end.how == HowHostEnded::Restarted);
    }
    let epoch = lease.epoch.max(claimed);
    let ended = Lease { epoch, holder: Holder::Ended(end), ..lease };
    ended.write(store, session, expires_at).await
}

/// Records that a session waits until its agent may begin, unless a runner holds a later epoch. The lease stays open, so
/// that the session is found when it may.
///
/// # Errors
/// The store cannot be written.
pub async fn hold<S: Store>(
    store: &S,
    session: &SessionId,
    epoch: u32,
    hold: Hold,
    at: Stamp,
    expires_at: i64,
) -> Result<bool, Error> {
    let lease = Lease { epoch, holder: Holder::Held(hold), heartbeat: 0, heartbeat_at: at };
    lease.write(store, session, expires_at).await
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
