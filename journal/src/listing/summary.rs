//! What a list shows of a session.

use super::Listed;
use crate::cipher;
use crate::error_message::ErrorMessage;
use crate::id::SessionId;
use crate::key;
use crate::limits::STEPS_MAX;
use crate::payload::Payload;
use crate::read;
use crate::step::Step;
use crate::store::{Error, Query, Store};
use crate::tally::{Reported, Tally};

#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub session: SessionId,
    pub reported: Reported,
    /// What its steps add up to.
    pub tally: Tally<Payload>,
    /// Whether its contents are encrypted. Then they are not kept in memory, or an erasure would not reach them.
    pub is_encrypted: bool,
}

impl Summary {
    /// Its agent, from the first claim or else from an event.
    pub fn agent(&self) -> Option<&str> {
        self.tally.agent.as_deref().or(self.reported.agent.as_deref())
    }

    /// Reads what is new since the steps counted so far; also returns the number of records read.
    pub(super) async fn read<S: Store>(
        store: &S,
        session: &SessionId,
        mut tally: Tally<Payload>,
    ) -> Result<(Option<Self>, usize), Error> {
        let pk = key::session(session);
        let mut events = Vec::new();
        // Before the first step is known, one query for the whole session replaces two.
        let from_the_first = tally.steps == 0;
        let to = if from_the_first { key::STEP_PREFIX } else { key::EVENT_PREFIX };
        let mut queries = vec![Query::between(&pk, key::EVENT_PREFIX, &format!("{to}\u{10ffff}"))];
        if !from_the_first && tally.end.is_none() {
            let next = key::step(tally.steps.saturating_add(1));
            queries.push(Query::between(&pk, &next, &key::step(STEPS_MAX)));
        }
        let (mut read, mut is_encrypted) = (0, false);
        for mut query in queries {
            loop {
                let page = store.query(query.clone()).await?;
                read += page.items.len();
                for item in page.items {
                    is_encrypted |= cipher::is_encrypted(&item);
                    if item.sk.starts_with(key::EVENT_PREFIX) {
                        events.push(item);
                    } else if item.sk.starts_with(key::STEP_PREFIX) {
                        tally.count(&Step::from_item(&item)?);
                    }
                }
                match page.next {
                    Some(next) => query.after = Some(next),
                    None => break,
                }
            }
        }
        if events.is_empty() && tally.steps == 0 {
            return Ok((None, read));
        }
        let reported = Reported::of(&read::in_order(events.iter())?).corrected_by(&tally);
        Ok((Some(Self { session: session.clone(), reported, tally, is_encrypted }), read))
    }

    /// A session with unreadable records, as the index shows it. It must not hide other sessions.
    pub(super) fn unreadable(listed: &Listed, error: &Error) -> Self {
        let events: Vec<_> =
            [&listed.initiated].into_iter().chain(&listed.verdict).cloned().collect();
        let mut reported = Reported::of(&events);
        let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
        reported.error = Some(ErrorMessage::new("Journal", "Unreadable", &cause));
        reported.is_damaged = true;
        Self {
            session: listed.session.clone(),
            reported,
            tally: Tally::default(),
            is_encrypted: false,
        }
    }
}
