//! Questions and sleeps.

use std::sync::Arc;
use std::time::Duration;

use graph::next::{Ask, Sleep};
use journal::clock::Stamp;
use journal::limits::DEADLINE_BEFORE_EXPIRY;
use journal::store::Store;

use super::{Driven, Driver};

/// A question expires at least this long before the session's deadline, so that the graph has time to
/// handle the expiry.
const ROUTE_AFTER_EXPIRY: Duration = Duration::from_secs(3_600);

impl<S: Store> Driver<S> {
    /// Journals a question. One about a call includes the tool as its server offers it now.
    pub(crate) async fn ask(&mut self, ask: Ask) -> Result<(), Driven> {
        let mut ask = self.within_the_session(ask);
        if let Some(call) = ask.question.call() {
            let offer = tokio::select! {
                offer = self.toolbox.offer(&call, self.tool_timeout) => offer,
                () = self.stop.cancelled() => return Ok(()),
            };
            if let Err(error) = &offer {
                let session_id = &self.session.author.session;
                tracing::warn!(%session_id, %error, "Asking about a tool without its schema.");
            }
            ask = ask.about(offer.ok());
        }
        self.record(ask.body()).await
    }

    /// Limits a question's expiry to leave [`ROUTE_AFTER_EXPIRY`]. A sleep does not end early.
    fn within_the_session(&self, mut ask: Ask) -> Ask {
        let records_end = Stamp::from_millis(self.session.author.expires_at.saturating_mul(1_000));
        let deadline = records_end.before(DEADLINE_BEFORE_EXPIRY);
        if !ask.question.is_sleep() {
            ask.expires_at = ask.expires_at.min(deadline.before(ROUTE_AFTER_EXPIRY));
        }
        ask
    }

    pub(super) async fn sleep(&mut self, sleep: Sleep) -> Result<(), Driven> {
        let hlc = Arc::clone(&self.session.hlc);
        let (clock, started_at) = (hlc.clock(), hlc.now());
        // A stop leaves the sleep open; the next runner continues it.
        tokio::select! {
            () = clock.sleep(sleep.until.since(started_at)) => self.record(sleep.body(started_at)).await,
            () = self.stop.cancelled() => Ok(()),
        }
    }
}
