//! Following a session live: each record once, as it is noticed.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use crate::clock::Stamp;
use crate::event::Event;
use crate::id::{EventId, SessionId};
use crate::key;
use crate::limits::STEPS_MAX;
use crate::read;
use crate::step::Step;
use crate::store::{Error, Query, Store, query_all};

/// A step or an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A step, its payload as it is stored.
    Step(Step),
    /// An event.
    Event(Event),
}

impl Record {
    /// When it was written.
    pub fn stamp(&self) -> Stamp {
        match self {
            Self::Step(step) => step.stamp,
            Self::Event(event) => event.stamp,
        }
    }
}

/// A view of one session that knows what it has shown.
#[derive(Debug)]
pub struct Follow<S> {
    store: S,
    session: SessionId,
    last_seq: u32,
    events: BTreeSet<EventId>,
}

impl<S: Store> Follow<S> {
    /// Follows a session from its first record on.
    pub fn new(store: S, session: SessionId) -> Self {
        Self { store, session, last_seq: 0, events: BTreeSet::new() }
    }

    /// The records that came since the last call, ordered by their stamps; waits for at most
    /// `patience` if there are none. May return empty earlier, when something else was written.
    ///
    /// Across calls records come in the order in which they were noticed: a writer that was held
    /// up may add an event with an earlier stamp than one shown before.
    ///
    /// # Errors
    /// When the store cannot be read. The next call shows what this one did not.
    pub async fn next(&mut self, patience: Duration) -> Result<Vec<Record>, Error> {
        let store = self.store.clone();
        let mut changed = pin!(store.changed(patience));
        // Waiting begins before reading: a record that lands between the two must not be slept over.
        let already = poll_fn(|context| Poll::Ready(changed.as_mut().poll(context))).await;
        let records = self.unseen().await?;
        if !records.is_empty() {
            return Ok(records);
        }
        if already.is_pending() {
            changed.await;
        }
        self.unseen().await
    }

    /// Reads what has not been shown.
    async fn unseen(&mut self) -> Result<Vec<Record>, Error> {
        let partition = key::session(&self.session);
        // Events first: what they announce is a step, and is then found in the same turn. All of
        // them, since an event may land late with an early stamp; there are at most a thousand.
        let query = Query::prefix(partition.as_str(), key::EVENT_PREFIX);
        let items = query_all(&self.store, query).await?;
        let mut events = read::in_order(items.iter())?;
        events.retain(|event| !self.events.contains(&event.id));
        let (from, to) = (key::step(self.last_seq.saturating_add(1)), key::step(STEPS_MAX));
        let items = query_all(&self.store, Query::between(partition, &from, &to)).await?;
        let steps = items.iter().map(Step::from_item).collect::<Result<Vec<_>, _>>()?;

        self.last_seq = steps.last().map_or(self.last_seq, |step| step.seq);
        self.events.extend(events.iter().map(|event| event.id.clone()));
        let steps = steps.into_iter().map(Record::Step);
        let mut records: Vec<_> = steps.chain(events.into_iter().map(Record::Event)).collect();
        records.sort_by_key(Record::stamp);
        Ok(records)
    }
}
