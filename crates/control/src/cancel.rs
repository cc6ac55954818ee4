//! Cancelling announces a request; the next judgement of the session ends it.

use journal::event::{About, Draft, EventStatus};
use journal::id::SessionId;
use journal::principal::Principal;
use journal::read;
use journal::store::Store;
use serde_json::json;

use crate::error::Error;
use crate::executions::{Forwarded, Workflow};
use crate::records::{Records, announcer};
use crate::{Action, Cancelled, Control, LOOK};

impl<S: Store, E: Workflow> Control<S, E> {
    /// Requests the session's end.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn cancel(
        &self,
        session: &SessionId,
        reason: Option<&str>,
        by: &Principal,
    ) -> Result<Cancelled, Error> {
        let records = Records::read(&self.store, session).await?;
        records.refuse_ended()?;
        let action = Action::Cancel { reason: reason.map(str::to_owned) };
        let session_id = session.clone();
        match self.executions.forward(session, &action).await? {
            Forwarded::No => {}
            Forwarded::Accepted => {
                self.confirmed(self.cancellation_of(session)).await?;
                return Ok(Cancelled { session_id, woken: false });
            }
            Forwarded::Done(reply) => {
                let woken = reply["woken"] == true;
                return Ok(Cancelled { session_id, woken });
            }
        }
        let mut draft = Draft::new(EventStatus::CancelRequested, About::Session).by(by.clone());
        if let Some(reason) = reason {
            draft = draft.with_detail(json!({ "reason": reason }));
        }
        let hlc = records.hlc(&self.clock);
        let expires_at = records.events.first().map_or(0, |event| event.expires_at);
        announcer(&self.store, &hlc, session, expires_at).announce_once(&draft).await?;
        let woken = self.wake(session).await?;
        Ok(Cancelled { session_id, woken })
    }

    async fn cancellation_of(&self, session: &SessionId) -> Result<(), Error> {
        loop {
            let events = read::events(&self.store, session).await?;
            if events.iter().any(|event| event.status == EventStatus::CancelRequested) {
                return Ok(());
            }
            self.store.changed(LOOK).await;
        }
    }
}
