//! A person's decision to continue a session with another version of its agent: a step, like an answer.
//!
//! The next runner folds all steps by the rules of the new version. If these request another effect than the one that
//! a step records, the session fails and names both.

use journal::chain::{AppendError, Author, Head, append};
use journal::event::Writer;
use journal::id::{Runner, SessionId};
use journal::principal::Principal;
use journal::step::{Step, StepBody};
use journal::store::Store;
use journal::version::{self, Move, NOTE_VERSION, VERSION_BYTES_MAX};
use serde_json::{Value, json};

use crate::error::{Error, Refused};
use crate::executions::Workflow;
use crate::records::Records;
use crate::{AsVersion, Control};

impl<S: Store, E: Workflow> Control<S, E> {
    /// Moves a session to another version; returns the number of the step, which names the principal.
    /// Wakes no workflow.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn move_to(
        &self,
        session: &SessionId,
        to: &AsVersion,
        by: &Principal,
    ) -> Result<u32, Error> {
        let records = Records::read(&self.store, session).await?;
        records.refuse_ended()?;
        let (newest, decision) = self.check_move(session, &records, to).await?;
        let author = Author {
            session: session.clone(),
            runner: Runner::fresh(Writer::Person.as_str()),
            expires_at: newest.expires_at,
        };
        let (subject, principal) = (NOTE_VERSION.to_owned(), Some(by.clone()));
        let body = StepBody::Note { subject, principal, payload: json!(decision) };
        let (hlc, head) = (records.hlc(&self.clock), Head::after(newest));
        match append(&self.store, &hlc, &author, &head, newest.epoch, body).await {
            Ok(step) => Ok(step.seq),
            Err(AppendError::Collision(_)) => Err(Refused::GoneOn.into()),
            Err(AppendError::Store(error)) => Err(error.into()),
            Err(error) => Err(Refused::Unfit(error).into()),
        }
    }

    /// The decision, and the step that it follows.
    pub(crate) async fn check_move<'a>(
        &self,
        session: &SessionId,
        records: &'a Records,
        to: &AsVersion,
    ) -> Result<(&'a Step<Value>, Move), Error> {
        let decided = decide(&records.steps, to)?;
        if self.has_heartbeat(session).await? {
            return Err(Refused::AtWork.into());
        }
        Ok(decided)
    }
}

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
    Ok((newest, Move { from: from.to_owned(), to: to.version.clone() }))
}
