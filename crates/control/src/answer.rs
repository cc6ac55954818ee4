//! A person's answer to the open question: checked against the question, journaled, announced.
//!
//! The question is a step, and its answer is the next one. The writer that gets that number has
//! closed the question: of two answers, or of an answer, a cancellation and an expiry, one wins, and
//! the others learn that they came too late.

use graph::digest;
use graph::question::{Answer, OpenQuestion, Question};
use journal::chain::{AppendError, Author, Head, append};
use journal::clock::Hlc;
use journal::event::{About, Draft, EventStatus, Writer};
use journal::id::{Runner, SessionId};
use journal::principal::Principal;
use journal::read;
use journal::step::{Step, StepBody};
use journal::store::{self, Store};
use serde_json::{Value, json};

use crate::error::{Error, Refused};
use crate::executions::{Forwarded, Workflow};
use crate::records::{Records, announcer};
use crate::{Action, Answered, Control, LOOK};

impl<S: Store, E: Workflow> Control<S, E> {
    /// Answers a session's open question and wakes its workflow. `said` is an [`Answer`] as JSON.
    ///
    /// A port that forwards answers has another process write the step with this function. Invalid
    /// answers are refused here first, where the person sees the reason.
    ///
    /// # Errors
    /// See [`Error`]. [`Refused::NoQuestion`] and [`Refused::Closed`] wake the workflow too: the
    /// process that wrote the earlier answer may have died before it woke the workflow.
    pub async fn answer(
        &self,
        session: &SessionId,
        said: &Value,
        by: &Principal,
    ) -> Result<Answered, Error> {
        let session_id = session.clone();
        match self.write_answer(session, said, by).await {
            Ok(Written::Here(step)) => {
                let woken = Some(self.wake(session).await?);
                Ok(Answered { session_id, step, woken })
            }
            Ok(Written::Elsewhere(step)) => Ok(Answered { session_id, step, woken: None }),
            Err(late @ Error::Refused(Refused::NoQuestion | Refused::Closed)) => {
                self.wake(session).await?;
                Err(late)
            }
            Err(error) => Err(error),
        }
    }

    async fn write_answer(
        &self,
        session: &SessionId,
        said: &Value,
        by: &Principal,
    ) -> Result<Written, Error> {
        let records = Records::read(&self.store, session).await?;
        let answer: Answer = serde_json::from_value(said.clone()).map_err(Refused::Malformed)?;
        let (ask, open) = open_question(&records.steps)?;
        let answer = open.take(answer).map_err(Refused::Answer)?;
        // The poller counts the time of the state machine: a step forward takes no time from a person.
        if open.expires_at <= self.clock.now().min(self.clock.unstepped()) {
            return Err(Refused::Expired.into());
        }
        match self.executions.forward(session, &Action::Answer(json!(answer))).await? {
            Forwarded::No => {}
            Forwarded::Accepted => {
                let step = self.confirmed(self.step_after(session, ask.seq)).await?;
                return Ok(Written::Elsewhere(step));
            }
            Forwarded::Done(reply) => {
                let step = reply["step"].as_u64().and_then(|step| u32::try_from(step).ok());
                return step.map(Written::Elsewhere).ok_or(Error::Unconfirmed);
            }
        }
        let hlc = records.hlc(&self.clock);
        let author = Author {
            session: session.clone(),
            runner: Runner::fresh(Writer::Person.as_str()),
            expires_at: ask.expires_at,
        };
        let body = answer.body_by(by.clone());
        match append(&self.store, &hlc, &author, &Head::after(ask), ask.epoch, body).await {
            Ok(step) => {
                announce(&self.store, &hlc, &author, step.seq).await;
                Ok(Written::Here(step.seq))
            }
            Err(AppendError::Collision(_)) => Err(Refused::Closed.into()),
            Err(AppendError::Store(error)) => Err(error.into()),
            Err(error) => Err(Refused::Unfit(error).into()),
        }
    }

    pub(crate) async fn step_after(&self, session: &SessionId, seq: u32) -> Result<u32, Error> {
        loop {
            let newest = read::newest_step(&self.store, session).await?;
            if let Some(step) = newest.filter(|step| step.seq > seq) {
                return Ok(step.seq);
            }
            self.store.changed(LOOK).await;
        }
    }
}

/// The number of an answer's step, by the process that wrote it.
enum Written {
    Here(u32),
    Elsewhere(u32),
}

/// The open question of a session, with its step.
///
/// # Errors
/// [`Refused::NoQuestion`], and [`Error::Journal`] if the journaled question is malformed.
pub fn open_question(steps: &[Step<Value>]) -> Result<(&Step<Value>, OpenQuestion), Error> {
    let ask = steps.last().ok_or(Refused::NoQuestion)?;
    let StepBody::Ask { payload, expires_at, .. } = &ask.body else {
        return Err(Refused::NoQuestion.into());
    };
    let shown = &payload["question"];
    let question: Question = serde_json::from_value(shown.clone())
        .map_err(|error| store::Error::Corrupt(error.into()))?;
    let (question_id, digest) = (ask.seq, digest::question(ask.seq, shown));
    Ok((ask, OpenQuestion { question_id, question, digest, expires_at: *expires_at }))
}

/// Announces the answer. A failure is only logged: the step alone decides.
async fn announce<S: Store>(store: &S, hlc: &Hlc, author: &Author, seq: u32) {
    let received = Draft::new(EventStatus::InputReceived, About::Step(seq));
    let announcer = announcer(store, hlc, &author.session, author.expires_at);
    if let Err(error) = announcer.announce_once(&received).await {
        tracing::warn!(session_id = %author.session, %error, "An answer was not announced.");
    }
}
