//! A person's decision to continue a session with another version of its agent: a step, like an answer.
//!
//! The next runner folds all steps by the rules of the new version. If these request another effect than the one that
//! a step records, the session fails and names both.

use journal::chain::{AppendError, Author, Head, append};
use journal::event::Writer;
use journal::id::{Runner, SessionId};
use journal::step::{Step, StepBody};
use journal::store::Store;
use journal::version::{self, Move, NOTE_VERSION, VERSION_BYTES_MAX};
use serde_json::{Value, json};

use crate::answer::CONFIRMED_WITHIN;
use crate::error::{Error, Refused};
use crate::executions::Workflow;
use crate::records::Records;
use crate::{AsVersion, Control};

/// Longest name of the person who decides, in characters. A longer one is truncated.
const BY_CHARS_MAX: usize = 128;

impl<S: Store, E: Workflow> Control<S, E> {
    /// Moves a session to another version; returns the number of the step. Wakes no workflow.
    ///
    /// A port that forwards decisions has another process write the step with this function.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn move_to(&self, session: &SessionId, to: &AsVersion) -> Result<u32, Error> {
        let records = Records::read(&self.store, session).await?;
        records.refuse_ended()?;
        let (newest, decision) = decide(&records.steps, to)?;
        if self.has_heartbeat(session).await? {
            return Err(Refused::AtWork.into());
        }
        let mut detail = json!(to);
        detail["session_id"] = json!(session);
        if self.executions.forward(&detail).await? {
            let written =
                self.clock.timeout(CONFIRMED_WITHIN, self.step_after(session, newest.seq));
            return written.await.unwrap_or(Err(Error::Unconfirmed));
        }
        let author = Author {
            session: session.clone(),
            runner: Runner::fresh(Writer::Person.as_str()),
            expires_at: newest.expires_at,
        };
        let body = StepBody::Note { subject: NOTE_VERSION.to_owned(), payload: json!(decision) };
        let (hlc, head) = (records.hlc(&self.clock), Head::after(newest));
        match append(&self.store, &hlc, &author, &head, newest.epoch, body).await {
            Ok(step) => Ok(step.seq),
            Err(AppendError::Collision(_)) => Err(Refused::GoneOn.into()),
            Err(AppendError::Store(error)) => Err(error.into()),
            Err(error) => Err(Refused::Unfit(error).into()),
        }
    }
}

/// The decision, and the step that it follows.
fn decide<'a>(
    steps: &'a [Step<Value>],
    to: &AsVersion,
) -> Result<(&'a Step<Value>, Move), Refused> {
    let is_name = (1..=VERSION_BYTES_MAX).contains(&to.version.len())
        && !to.version.chars().any(char::is_control);
    if !is_name {
        return Err(Refused::InvalidVersion);
    }
    let (newest, from) = steps.last().zip(version::of(steps)).ok_or(Refused::NotStarted)?;
    if let StepBody::Ask { .. } = &newest.body {
        return Err(Refused::QuestionOpen { question: newest.seq });
    }
    if from == to.version {
        return Err(Refused::SameVersion(from.to_owned()));
    }
    let by = to.by.as_ref().map(|by| by.chars().take(BY_CHARS_MAX).collect());
    Ok((newest, Move { from: from.to_owned(), to: to.version.clone(), by }))
}
