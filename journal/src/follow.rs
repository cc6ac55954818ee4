//! Follows a running session and returns each record once.

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
    /// A step with its payload as stored.
    Step(Step),
    Event(Event),
}

impl Record {
    pub fn stamp(&self) -> Stamp {
        match self {
            Self::Step(step) => step.stamp,
            Self::Event(event) => event.stamp,
        }
    }
}

/// A reader of one session that remembers what it has returned.
#[derive(Debug)]
pub struct Follow<S> {
    store: S,
    session: SessionId,
    last_seq: u32,
    events: BTreeSet<EventId>,
}

impl<S: Store> Follow<S> {
    /// Follows a session from its first record.
    pub fn new(store: S, session: SessionId) -> Self {
        Self { store, session, last_seq: 0, events: BTreeSet::new() }
    }

    /// The records since the last call, ordered by timestamp. Waits for at most `timeout` if there
    /// are none. May return an empty list earlier, when another record was written.
    ///
    /// Later calls can return earlier timestamps: a delayed writer may add an event with an earlier
    /// timestamp than one already returned.
    ///
    /// # Errors
    /// The store cannot be read. The next call returns what this one did not.
    pub async fn next(&mut self, timeout: Duration) -> Result<Vec<Record>, Error> {
        let store = self.store.clone();
        let mut changed = pin!(store.changed(timeout));
        // Subscribe before reading, so that a record written in between is not missed.
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

    async fn unseen(&mut self) -> Result<Vec<Record>, Error> {
        let partition = key::session(&self.session);
        // Read events before steps, so that a step is found in the same turn as the event that
        // announces it. Read all events, at most a thousand, because one may arrive late with an
        // early timestamp.
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
