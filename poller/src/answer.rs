//! A person's answer to the open question: held against the question, journaled, announced.
//!
//! The question is a step, and so is its answer, right after it. Whoever gets that number has closed
//! the question: of two answers, or of an answer, a cancellation and an expiry, one wins, and the
//! others learn that they came too late.

use graph::question::{Answer, AnswerRefused, OpenQuestion, Question};
use journal::announce::Announcer;
use journal::chain::{AppendError, Author, Head, append};
use journal::clock::{Clock, Hlc, Stamp};
use journal::event::{About, Draft, Event, EventStatus, Writer};
use journal::id::{Runner, SessionId};
use journal::read;
use journal::step::{Step, StepBody};
use journal::store::{self, Store};
use serde_json::Value;

/// Why an answer was not taken. Only [`Error::Journal`] may be tried again with the same answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The session waits for no answer.
    #[error("the session has no open question")]
    NoQuestion,
    /// It does not fit the question, which stays open.
    #[error(transparent)]
    Refused(#[from] AnswerRefused),
    /// It comes after the question's time.
    #[error("the question has expired")]
    Expired,
    /// Something else closed the question first.
    #[error("the question has been closed")]
    Closed,
    /// It cannot be journaled: it is too large, or the session has no room.
    #[error(transparent)]
    Unfit(AppendError),
    /// The journal did not answer; whether the answer stands is open.
    #[error(transparent)]
    Journal(#[from] store::Error),
}

/// The question that a session waits for, with its step.
///
/// # Errors
/// [`Error::NoQuestion`], and [`Error::Journal`] when what is journaled is no question.
pub fn open_question(steps: &[Step<Value>]) -> Result<(&Step<Value>, OpenQuestion), Error> {
    let ask = steps.last().ok_or(Error::NoQuestion)?;
    let StepBody::Ask { payload, expires_at, .. } = &ask.body else {
        return Err(Error::NoQuestion);
    };
    let question: Question = serde_json::from_value(payload["question"].clone())
        .map_err(|error| store::Error::Corrupt(error.into()))?;
    Ok((ask, OpenQuestion { question_id: ask.seq, question, expires_at: *expires_at }))
}

/// Answers a session's open question. Returns the number of the answer's step; whoever parked the
/// workflow is to be woken then.
///
/// # Errors
/// See [`Error`].
pub async fn answer<S: Store>(
    store: &S,
    clock: &Clock,
    session: &SessionId,
    answer: Answer,
) -> Result<u32, Error> {
    let events = read::events(store, session).await?;
    let steps = read::resolved_steps(store, session).await?;
    let (ask, open) = open_question(&steps)?;
    let answer = open.question.settle(answer);
    open.check(&answer)?;
    if open.expires_at <= clock.now() {
        return Err(Error::Expired);
    }
    let hlc = Hlc::new(clock.clone(), newest(&events, &steps));
    let author = Author {
        session: session.clone(),
        runner: Runner::fresh(Writer::Person.as_str()),
        expires_at: ask.expires_at,
    };
    match append(store, &hlc, &author, &Head::after(ask), ask.epoch, answer.body()).await {
        Ok(step) => {
            tell(store, &hlc, &author, step.seq).await;
            Ok(step.seq)
        }
        Err(AppendError::Collision(_)) => Err(Error::Closed),
        Err(AppendError::Store(error)) => Err(error.into()),
        Err(error) => Err(Error::Unfit(error)),
    }
}

/// What became of something that was said to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is the answer, at this step.
    Step(u32),
    /// No question is open that it could answer, for this reason.
    TooLate(String),
    /// It is no answer to the question, which stays open, for this reason.
    Refused(String),
}

/// Takes what somebody said where nobody waits for a reply: what is no answer to the open question
/// is logged with its reason, and the question stays open.
///
/// # Errors
/// When the journal did not answer; to be tried again.
pub async fn take<S: Store>(
    store: &S,
    clock: &Clock,
    session: &SessionId,
    said: &Value,
) -> Result<Taken, store::Error> {
    let answered = match serde_json::from_value::<Answer>(said.clone()) {
        Err(error) => Ok(Taken::Refused(format!("it is no answer: {error}"))),
        Ok(said) => match answer(store, clock, session, said).await {
            Ok(step) => return Ok(Taken::Step(step)),
            Err(Error::Journal(error)) => Err(error),
            Err(error @ (Error::NoQuestion | Error::Closed)) => {
                Ok(Taken::TooLate(error.to_string()))
            }
            Err(refusal) => Ok(Taken::Refused(refusal.to_string())),
        },
    };
    if let Ok(Taken::TooLate(reason) | Taken::Refused(reason)) = &answered {
        tracing::warn!(session_id = %session, reason, "An answer was not taken.");
    }
    answered
}

fn newest(events: &[Event], steps: &[Step<Value>]) -> Stamp {
    let stamps = events.iter().map(|event| event.stamp);
    stamps.chain(steps.iter().map(|step| step.stamp)).max().unwrap_or_default()
}

/// The step decides; anybody may write its announcement later.
async fn tell<S: Store>(store: &S, hlc: &Hlc, author: &Author, seq: u32) {
    let voice = Announcer {
        store,
        hlc,
        session: &author.session,
        writer: Writer::Person,
        expires_at: author.expires_at,
    };
    let told = Draft::new(EventStatus::InputReceived, About::Step(seq));
    if let Err(error) = voice.announce_once(&told).await {
        tracing::warn!(session_id = %author.session, %error, "An answer was not announced.");
    }
}
