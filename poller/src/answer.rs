//! A person's answer, cancellation or resumption, received as an event, and an answer received as the
//! output of the parked workflow's callback. [`Control`] handles them.

use control::{AsVersion, Control, Refused, Workflow};
use journal::id::SessionId;
use journal::principal::Principal;
use journal::store::Store;
use serde_json::Value;
use workflow::contract::{ActionReply, AnswerRequest, CancelRequest, ResumeRequest};

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
    pub async fn answer(
        &self,
        request: AnswerRequest,
        by: &Principal,
    ) -> Result<ActionReply, Error> {
        match session_of(&request.answer) {
            Ok(session) => self.take(&self.cloud, &session, &request.answer, by).await,
            Err(refused) => Ok(refused),
        }
    }

    /// Handles a cancellation from an event, and wakes the workflow. Idempotent.
    ///
    /// # Errors
    /// As [`Self::answer`].
    pub async fn cancel(
        &self,
        request: CancelRequest,
        by: &Principal,
    ) -> Result<ActionReply, Error> {
        let session = match session_of(&request.cancel) {
            Ok(session) => session,
            Err(refused) => return Ok(refused),
        };
        let reason = request.cancel["reason"].as_str();
        let cancelled = self.control(&self.cloud).cancel(&session, reason, by).await;
        replied(&session, cancelled.map(|_| ActionReply::Cancelled {}))
    }

    /// Handles a request to resume from an event, with another version if it names one. Idempotent at
    /// one step of the session.
    ///
    /// # Errors
    /// As [`Self::answer`].
    pub async fn resume(
        &self,
        request: ResumeRequest,
        by: &Principal,
    ) -> Result<ActionReply, Error> {
        let session = match session_of(&request.resume) {
            Ok(session) => session,
            Err(refused) => return Ok(refused),
        };
        let to = match version_of(&request.resume) {
            Ok(to) => to,
            Err(error) => return replied(&session, Err(Refused::Malformed(error).into())),
        };
        let control = self.control(&self.cloud);
        let resumed = match control.resume(&session, to.as_ref(), by).await {
            // The bus delivers an event again if its first delivery failed after the move.
            Err(control::Error::Refused(Refused::SameVersion(_))) => {
                control.resume(&session, None, by).await
            }
            resumed => resumed,
        };
        replied(&session, resumed.map(|_| ActionReply::Resumed {}))
    }

    /// Handles an answer from the callback's output. Step Functions does not pass on who sent it.
    pub(crate) async fn answer_of_callback(
        &self,
        session: &SessionId,
        said: &Value,
    ) -> Result<(), Error> {
        self.take(&Awake, session, said, &Principal::Unknown).await.map(drop)
    }

    async fn take(
        &self,
        workflow: &impl Workflow,
        session: &SessionId,
        said: &Value,
        by: &Principal,
    ) -> Result<ActionReply, Error> {
        let answered = self.control(workflow).answer(session, said, by).await;
        replied(session, answered.map(|answered| ActionReply::Taken { step: answered.step }))
    }

    fn control<W>(&self, executions: W) -> Control<S, W> {
        Control { store: self.store.clone(), clock: self.clock.clone(), executions }
    }
}

fn session_of(detail: &Value) -> Result<SessionId, ActionReply> {
    serde_json::from_value(detail["session_id"].clone()).map_err(|error| {
        tracing::warn!(%error, "An event without a valid session id was ignored.");
        ActionReply::Refused { reason: format!("detail.session_id: {error}") }
    })
}

/// The version that the event names, if any.
fn version_of(detail: &Value) -> serde_json::Result<Option<AsVersion>> {
    let is_named = detail.get("as_version").is_some();
    is_named.then(|| serde_json::from_value(detail.clone())).transpose()
}

/// Logs a refusal, for which no caller waits. A question stays open.
fn replied(
    session: &SessionId,
    done: Result<ActionReply, control::Error>,
) -> Result<ActionReply, Error> {
    match done {
        Err(control::Error::Refused(refused)) => {
            let reason = refused.to_string();
            tracing::warn!(session_id = %session, reason, "A person's action was refused.");
            Ok(ActionReply::Refused { reason })
        }
        Err(control::Error::Journal(error)) => Err(error.into()),
        Err(error) => Err(Error::Callback(error.to_string())),
        Ok(reply) => Ok(reply),
    }
}
