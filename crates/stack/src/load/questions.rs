//! The open questions of the sessions that wait, for their oldest age.

use std::collections::BTreeMap;
use std::sync::MutexGuard;
use std::time::Duration;

use journal::clock::Stamp;
use journal::id::SessionId;
use journal::read::newest_step;
use journal::step::{EffectKind, Step, StepBody};
use journal::store::{Error, Store};

use super::{Load, unpoisoned};

/// What a waiting session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// Not read yet.
    Unknown,
    /// For a person, since this time.
    Asked(Stamp),
    /// For a time, a version, a halt or its turn.
    Otherwise,
}

impl Waits {
    fn of<P>(newest: Option<&Step<P>>) -> Self {
        match newest {
            Some(Step { stamp, body: StepBody::Ask { effect, .. }, .. })
                if effect.kind != EffectKind::Sleep =>
            {
                Self::Asked(*stamp)
            }
            _ => Self::Otherwise,
        }
    }
}

impl Load {
    /// Notes that a session waits. What for is read when somebody wants to know.
    pub(crate) fn waits(&self, session: &SessionId) {
        self.waiting().insert(session.clone(), Waits::Unknown);
    }

    pub(super) fn waits_no_more(&self, session: &SessionId) {
        self.waiting().remove(session);
    }

    /// How long the oldest open question has been open; zero without one.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) async fn oldest_question<S: Store>(
        &self,
        store: &S,
        now: Stamp,
    ) -> Result<Duration, Error> {
        let is_unknown = |(_, waits): &(&SessionId, &Waits)| **waits == Waits::Unknown;
        let unknown: Vec<SessionId> =
            self.waiting().iter().filter(is_unknown).map(|(session, _)| session.clone()).collect();
        for session in unknown {
            let waits = match newest_step(store, &session).await {
                Ok(newest) => Waits::of(newest.as_ref()),
                // A damaged session hides no other.
                Err(Error::Corrupt(_)) => Waits::Otherwise,
                Err(error) => return Err(error),
            };
            // It may have gone on meanwhile.
            if let Some(known) = self.waiting().get_mut(&session) {
                *known = waits;
            }
        }
        let asked = |waits: &Waits| match waits {
            Waits::Asked(at) => Some(*at),
            Waits::Unknown | Waits::Otherwise => None,
        };
        Ok(self
            .waiting()
            .values()
            .filter_map(asked)
            .min()
            .map_or(Duration::ZERO, |at| now.since(at)))
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<SessionId, Waits>> {
        unpoisoned(&self.0.waiting)
    }
}
