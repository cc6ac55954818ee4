//! A person's answer, received as an event or as the output of the parked workflow's callback.
//! [`Control::answer`] handles both. An event may also move a session to another version.

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
        if request.answer.get("as_version").is_some() {
            return self.move_to(&session, request.answer).await;
        }
        self.take(&self.cloud, &session, &request.answer).await
    }

    /// Moves a session to another version of its agent. The command that put the event wakes the workflow.
    async fn move_to(&self, session: &SessionId, decision: Value) -> Result<AnswerReply, Error> {
        let moved = match serde_json::from_value(decision) {
            Ok(to) => self.control(&self.cloud).move_to(session, &to).await,
            Err(error) => Err(control::Refused::Malformed(error).into()),
        };
        told(session, moved)
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
        let answered = self.control(workflow).answer(session, said).await;
        told(session, answered.map(|answered| answered.step))
    }

    fn control<W: Workflow>(&self, executions: W) -> Control<S, W> {
        Control { store: self.store.clone(), clock: self.clock.clone(), executions }
    }
}

fn told(session: &SessionId, step: Result<u32, control::Error>) -> Result<AnswerReply, Error> {
    match step {
        Ok(step) => Ok(AnswerReply::Taken { step }),
        Err(control::Error::Refused(refused)) => {
            let reason = refused.to_string();
            tracing::warn!(session_id = %session, reason, "A decision was refused.");
            Ok(AnswerReply::Refused { reason })
        }
        Err(control::Error::Journal(error)) => Err(error.into()),
        Err(error) => Err(Error::Callback(error.to_string())),
    }
}
