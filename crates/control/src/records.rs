//! Reads a session's records and announces a person's actions.

use journal::announce::Announcer;
use journal::clock::{Clock, Hlc, Stamp};
use journal::event::{Event, EventStatus, Writer};
use journal::id::SessionId;
use journal::read;
use journal::status::{admits, status};
use journal::step::Step;
use journal::store::Store;
use serde_json::Value;

use crate::error::{Error, Refused};

pub(crate) struct Records {
    pub(crate) events: Vec<Event>,
    pub(crate) steps: Vec<Step<Value>>,
}

impl Records {
    pub(crate) async fn read<S: Store>(store: &S, session: &SessionId) -> Result<Self, Error> {
        let events = read::events(store, session).await?;
        let steps = read::resolved_steps(store, session).await?;
        if events.is_empty() && steps.is_empty() {
            return Err(Refused::NoSession(session.clone()).into());
        }
        Ok(Self { events, steps })
    }

    /// Refuses a session with a verdict, which can be neither cancelled nor resumed.
    pub(crate) fn refuse_ended(&self) -> Result<(), Refused> {
        let status = status(&self.events);
        admits(status, EventStatus::CancelRequested).map_err(|_| Refused::Ended(status))
    }

    /// A clock that is later than every record of the session.
    pub(crate) fn hlc(&self, clock: &Clock) -> Hlc {
        let hlc = Hlc::new(clock.clone(), Stamp::default());
        self.events.iter().for_each(|event| hlc.observe(event.stamp));
        self.steps.iter().for_each(|step| hlc.observe(step.stamp));
        hlc
    }
}

/// The announcer of a person's actions.
pub(crate) fn announcer<'a, S>(
    store: &'a S,
    hlc: &'a Hlc,
    session: &'a SessionId,
    expires_at: i64,
) -> Announcer<'a, S> {
    Announcer { store, hlc, session, writer: Writer::Person, expires_at }
}
