//! Reads a session for the poller: two consistent reads, and a third one for sessions with many events.

use journal::clock::{Hlc, Stamp};
use journal::event::{Event, EventStatus};
use journal::halt::Halts;
use journal::id::SessionId;
use journal::key;
use journal::lease::{Lease, WhyHeld};
use journal::read::newest_step;
use journal::step::Step;
use journal::store::{Error, Query, Store, query_all};
use journal::version;
use workflow::contract::Watch;

/// The number of newest items that are read: events, and the lease, which sorts after them.
const NEWEST: usize = 21;

/// A session at one moment.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    pub step: Option<Step>,
    /// The newest events, newest first, and a cancellation request of any age.
    pub events: Vec<Event>,
    pub lease: Option<Lease>,
    /// Whether a halt of its agent is in force. Read only if the lease says that one held the session.
    pub is_halted: bool,
    /// What the wall clock shows, if the state machine's clock does not follow it when it is set.
    pub wall: Option<Stamp>,
}

/// What a session waits for before its agent may be invoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// The end of a halt.
    Halt,
    /// Its turn.
    Queue,
    /// A place in the agent runtime.
    Capacity,
    /// Nothing any more.
    Nothing,
}

impl Observed {
    /// The newest step's number, 0 if there is none.
    pub fn seq(&self) -> u32 {
        self.step.as_ref().map_or(0, |step| step.seq)
    }

    /// The newest claim's epoch, 0 if there is none: every step carries it.
    pub fn epoch(&self) -> u32 {
        self.step.as_ref().map_or(0, |step| step.epoch)
    }

    /// What holds the session back, if the newest invocation or its runner left it for a halt or a queue.
    pub fn held(&self, watch: &Watch) -> Option<Held> {
        let lease = self.lease.as_ref().filter(|lease| lease.epoch >= self.epoch())?;
        let hold = lease.hold()?;
        let is_newest = match hold.invocation {
            Some(declined) => declined == watch.invocation,
            None => lease.epoch > watch.epoch,
        };
        let held = match hold.why {
            WhyHeld::Halted if self.is_halted => Held::Halt,
            WhyHeld::Queued => Held::Queue,
            WhyHeld::Capacity => Held::Capacity,
            WhyHeld::Halted | WhyHeld::Released => Held::Nothing,
        };
        is_newest.then_some(held)
    }

    /// Whether the agent, last invoked after the newest step, lacked the session's graph version.
    pub fn lacks_version(&self) -> bool {
        version::missing(&self.events).is_some_and(|missing| missing.step == self.seq())
    }
}

/// Reads a session and advances the clock past every record.
///
/// # Errors
/// When the journal cannot be read.
pub async fn observe<S: Store>(
    store: &S,
    hlc: &Hlc,
    session: &SessionId,
) -> Result<Observed, Error> {
    let step = newest_step(store, session).await?;
    let query = Query::between(key::session(session), key::EVENT_PREFIX, key::LEASE);
    let mut query = query.reversed().limited(NEWEST);
    let page = store.query(query.clone()).await?;
    let mut observed = Observed { step, ..Observed::default() };
    for item in &page.items {
        if item.sk == key::LEASE {
            observed.lease = Some(Lease::from_item(item)?);
        } else if let Ok(event) = Event::from_item(item) {
            observed.events.push(event);
        }
    }
    let cancelled = |event: &Event| event.status == EventStatus::CancelRequested;
    if let Some(hold) = observed.lease.as_ref().and_then(Lease::hold)
        && hold.why == WhyHeld::Halted
    {
        observed.is_halted = Halts::read(store).await?.covers(&hold.agent);
    }
    if page.next.is_some() && !observed.events.iter().any(cancelled) {
        // A cancellation request stays valid however many events follow, and is not repeated.
        (query.after, query.limit) = (page.next, None);
        let older = query_all(store, query).await?;
        let older = older.iter().filter_map(|item| Event::from_item(item).ok());
        observed.events.extend(older.filter(cancelled));
    }
    for stamp in observed
        .events
        .iter()
        .map(|event| event.stamp)
        .chain(observed.step.iter().map(|step| step.stamp))
    {
        hlc.observe(stamp);
    }
    Ok(observed)
}
