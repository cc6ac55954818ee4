//! The drain before a stop: nothing begins any more, and what is at work ends or pauses within a time limit.

use std::sync::MutexGuard;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Load, unpoisoned};

/// Most sessions that the progress of a drain names.
const NAMED_MAX: usize = 10;

/// A drain that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Draining {
    /// When the stack stops even if sessions are at work.
    until: Instant,
    has_ended: bool,
}

impl Load {
    /// Begins a drain, or gives the one that has begun another time limit, by the machine's clock.
    pub fn drain(&self, within: Duration) {
        let until = Instant::now() + within;
        let mut drain = self.draining();
        let has_ended = drain.is_some_and(|drain| drain.has_ended);
        *drain = Some(Draining { until, has_ended });
        drop(drain);
        self.ledger().is_draining = true;
        self.0.changes.send_replace(());
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.ledger().is_draining
    }

    /// Waits for a drain, and for its end. Returns the number of sessions that are still at work then.
    pub async fn drained(&self) -> usize {
        let mut changes = self.0.changes.subscribe();
        loop {
            let until = self.draining().map(|drain| drain.until);
            let at_work = self.ledger().begun().count();
            match until {
                Some(until) if at_work == 0 || until <= Instant::now() => {
                    if let Some(drain) = self.draining().as_mut() {
                        drain.has_ended = true;
                    }
                    self.0.changes.send_replace(());
                    return at_work;
                }
                Some(until) => {
                    let _ = timeout_at(until, changes.changed()).await;
                }
                None => {
                    let _ = changes.changed().await;
                }
            }
        }
    }

    /// Waits for a change of the load, at most this long.
    pub(crate) async fn changed_within(&self, longest: Duration) {
        let mut changes = self.0.changes.subscribe();
        let _ = timeout(longest, changes.changed()).await;
    }

    /// Why the stack is not ready, if it drains.
    pub(crate) fn drain_problem(&self) -> Option<String> {
        let Draining { until, .. } = (*self.draining())?;
        let at_work = self.ledger().begun().count();
        let left = left(until);
        Some(format!(
            "no new sessions are admitted; the stack stops when {at_work} sessions at work have ended or paused, within {left} s"
        ))
    }

    /// The progress of a drain, for `daybook drain`.
    pub(crate) fn drain_progress(&self) -> Value {
        let drain = *self.draining();
        let ledger = self.ledger();
        let first: Vec<_> = ledger.begun().take(NAMED_MAX).collect();
        json!({
            "draining": drain.is_some(),
            "ended": drain.is_some_and(|drain| drain.has_ended),
            "seconds_left": drain.map(|drain| left(drain.until)),
            "at_work": ledger.begun().count(),
            "queued": ledger.queued(),
            "first": first,
        })
    }

    fn draining(&self) -> MutexGuard<'_, Option<Draining>> {
        unpoisoned(&self.0.drain)
    }
}

/// In whole seconds.
fn left(until: Instant) -> u64 {
    until.saturating_duration_since(Instant::now()).as_secs()
}
