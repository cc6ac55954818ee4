//! A person's answer, received as an event or as the output of the parked workflow's callback.
//! [`Control::answer`] handles both.

use control::{Control, Workflow};
use journal::id::SessionId;
use journal::store::Store;
use serde_json::Value;
use workflow::contract::{AnswerReply, AnswerRequest};

use crate::Poller;
use crate::error::Error;

/// A workflow whose callback carried the answer. It no longer waits.
struct Awake;

impl Workflow for Awake {
    async fn wake(&self, _token: &str) -> Result<bool, control::Error> {
        Ok(false)
    }
}

impl<S: Store> Poller<S> {
    /// Handles an answer from an event, and wakes the workflow. Idempotent.
    ///
    /// # Errors
    /// If the journal or the state machine is unavailable: the event bus delivers the event again.
    pub async fn answer(&self, request: AnswerRequest) -> Result<AnswerReply, Error> {
        let session: SessionId = match serde_json::from_value(request.answer["session_id"].clone())
        {
            Ok(session) => session,
            Err(error) => {
                tracing::warn!(%error, "An answer without a valid session id was ignored.");
                return Ok(AnswerReply::Refused { reason: format!("detail.session_id: {error}") });
            }
        };
        self.take(&self.cloud, &session, &request.answer).await
    }

    /// Handles an answer from the callback's output.
    pub(crate) async fn answer_of_callback(
        &self,
        session: &SessionId,
        said: &Value,
    ) -> Result<(), Error> {
        self.take(&Awake, session, said).await.map(drop)
    }

    /// Logs a refusal, for which no caller waits. The question stays open.
    async fn take(
        &self,
        workflow: &impl Workflow,
        session: &SessionId,
        said: &Value,
    ) -> Result<AnswerReply, Error> {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let control = Control { store, clock, executions: workflow };
        match control.answer(session, said).await {
            Ok(answered) => Ok(AnswerReply::Taken { step: answered.step }),
            Err(control::Error::Refused(refused)) => {
                let reason = refused.to_string();
                tracing::warn!(session_id = %session, reason, "An answer was refused.");
                Ok(AnswerReply::Refused { reason })
            }
            Err(control::Error::Journal(error)) => Err(error.into()),
            Err(error) => Err(Error::Callback(error.to_string())),
        }
    }
}
