//! Cancelling announces a request; the next judgement of the session ends it.

use journal::event::{About, Draft, EventStatus};
use journal::id::SessionId;
use journal::store::Store;
use serde_json::json;

use crate::error::Error;
use crate::executions::Workflow;
use crate::records::{Records, announcer};
use crate::{Cancelled, Control};

impl<S: Store, E: Workflow> Control<S, E> {
    /// Requests the session's end.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn cancel(
        &self,
        session: &SessionId,
        reason: Option<&str>,
    ) -> Result<Cancelled, Error> {
        let records = Records::read(&self.store, session).await?;
        records.refuse_ended()?;
        let mut draft = Draft::new(EventStatus::CancelRequested, About::Session);
        if let Some(reason) = reason {
            draft = draft.with_detail(json!({ "reason": reason }));
        }
        let hlc = records.hlc(&self.clock);
        let expires_at = records.events.first().map_or(0, |event| event.expires_at);
        announcer(&self.store, &hlc, session, expires_at).announce_once(&draft).await?;
        let woken = self.wake(session).await?;
        Ok(Cancelled { session_id: session.clone(), woken })
    }
}
