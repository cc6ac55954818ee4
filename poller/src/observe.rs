//! What the poller sees of a session: two consistent reads.

use journal::clock::Hlc;
use journal::event::Event;
use journal::id::SessionId;
use journal::key;
use journal::lease::Lease;
use journal::read::newest_step;
use journal::step::Step;
use journal::store::{Error, Query, Store};

/// The newest events looked at, and the lease, which sorts behind them.
const NEWEST: usize = 21;

/// A session at one moment.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The newest step.
    pub step: Option<Step>,
    /// The newest events, newest first.
    pub events: Vec<Event>,
    /// The lease.
    pub lease: Option<Lease>,
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
}

/// Reads a session and lets the clock know of everything seen.
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
    let page = store.query(query.reversed().limited(NEWEST)).await?;
    let mut observed = Observed { step, ..Observed::default() };
    for item in &page.items {
        if item.sk == key::LEASE {
            observed.lease = Some(Lease::from_item(item)?);
        } else if let Ok(event) = Event::from_item(item) {
            observed.events.push(event);
        }
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
