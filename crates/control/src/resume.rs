//! Resuming wakes a session's workflow, or starts another execution if the last one has ended.
//!
//! The new execution receives the session's state ([`standing`]). Its name is computed from the
//! session, so that concurrent resumes start one execution.

use std::time::Duration;

use journal::cipher::{KeyRefused, KeyState};
use journal::event::{About, Draft, Event, EventStatus};
use journal::id::SessionId;
use journal::principal::Principal;
use journal::read;
use journal::store::{self, Store};
use journal::version;
use serde_json::{Map, Value, json};
use workflow::execution::{self, RESUMES_MAX};
use workflow::standing::standing;

use crate::error::{Error, Refused};
use crate::executions::{Execution, Executions, Forwarded};
use crate::records::{Records, announcer};
use crate::{Action, AsVersion, Control, LOOK, Resumed};

/// Most attempts to wake a workflow between two waits; then the caller learns that it was not woken.
const WAKE_ATTEMPTS_MAX: u32 = 30;

/// Pause between two such attempts.
const WAKE_PAUSE: Duration = Duration::from_secs(1);

impl<S: Store, E: Executions> Control<S, E> {
    /// Resumes a session, with another version of its agent if one is given. The request is journaled
    /// first, once for each step at which it is made.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn resume(
        &self,
        session: &SessionId,
        to: Option<&AsVersion>,
        by: &Principal,
    ) -> Result<Resumed, Error> {
        if let KeyState::Erased(erasure) = self.store.session_key(session).await? {
            return Err(Refused::Key(KeyRefused::Erased(erasure)).into());
        }
        let first = Records::read(&self.store, session).await?;
        first.refuse_ended()?;
        if let Some(to) = to {
            self.check_move(session, &first, to).await?;
        }
        let initiated = first.events.iter().find(|e| e.status == EventStatus::SessionInitiated);
        let initiated = initiated.ok_or(Refused::NoExecution)?;
        let (resumes, newest) = self.newest(initiated).await?.ok_or(Refused::NoExecution)?;
        if !newest.is_running && resumes >= RESUMES_MAX {
            return Err(Refused::TooManyResumes.into());
        }
        let name = execution::name(session, resumes + 1);
        let next = Some(name.as_str()).filter(|_| !newest.is_running);
        if let Some(resumed) = self.forwarded(session, &first, to, next).await? {
            return Ok(resumed);
        }
        let step = match to {
            Some(to) => Some(self.move_to(session, to, by).await?),
            None => None,
        };
        // The poller writes a verdict before the execution ends: this second read finds a verdict
        // that was written since the first.
        let records = Records::read(&self.store, session).await?;
        records.refuse_ended()?;
        self.announce_resume(&records, initiated, by).await?;
        if newest.is_running {
            let woken = self.wake_running(session, &records).await?;
            return Ok(Resumed { step, ..resumed(session, woken, None) });
        }
        let mut input: Map<String, Value> = serde_json::from_str(&newest.input)
            .map_err(|error| store::Error::Corrupt(error.into()))?;
        let working = self.is_at_work(session).await?;
        let Records { events, steps, .. } = &records;
        let standing = standing(events, steps, initiated.expires_at, working, resumes + 1);
        input.insert("resume".to_owned(), json!(standing));
        let started = self.executions.start(&name, &json!(input).to_string()).await?;
        Ok(Resumed { step, ..resumed(session, false, Some(started)) })
    }

    /// Has another process resume the session; `None` if this one has to. `next` is the name of the
    /// execution that it starts.
    async fn forwarded(
        &self,
        session: &SessionId,
        records: &Records,
        to: Option<&AsVersion>,
        next: Option<&str>,
    ) -> Result<Option<Resumed>, Error> {
        let action = Action::Resume { as_version: to.cloned() };
        Ok(match self.executions.forward(session, &action).await? {
            Forwarded::No => None,
            Forwarded::Accepted => {
                let next = next.map(|name| self.executions.arn(name)).transpose()?;
                let newest = records.steps.last().map_or(0, |step| step.seq);
                let step = match to {
                    Some(_) => Some(self.confirmed(self.step_after(session, newest)).await?),
                    None => None,
                };
                let at = About::Step(step.unwrap_or(newest));
                self.confirmed(self.requested(session, at, next.as_deref())).await?;
                Some(Resumed { step, ..resumed(session, false, next) })
            }
            Forwarded::Done(reply) => {
                let started = reply["execution_arn"].as_str().map(str::to_owned);
                let step = reply["step"].as_u64().and_then(|step| u32::try_from(step).ok());
                Some(Resumed { step, ..resumed(session, reply["woken"] == true, started) })
            }
        })
    }

    /// Waits for another process to journal the request and to start this execution.
    async fn requested(
        &self,
        session: &SessionId,
        at: About,
        next: Option<&str>,
    ) -> Result<(), Error> {
        loop {
            let events = read::events(&self.store, session).await?;
            let is_request =
                |it: &Event| it.status == EventStatus::ResumeRequested && it.about == at;
            let has_started = match next {
                Some(arn) => self.executions.describe(arn).await?.is_some(),
                None => true,
            };
            if has_started && events.iter().any(is_request) {
                return Ok(());
            }
            self.store.changed(LOOK).await;
        }
    }

    async fn announce_resume(
        &self,
        records: &Records,
        initiated: &Event,
        by: &Principal,
    ) -> Result<(), Error> {
        let newest = records.steps.last().map_or(0, |step| step.seq);
        let draft = Draft::new(EventStatus::ResumeRequested, About::Step(newest)).by(by.clone());
        let (hlc, session) = (records.hlc(&self.clock), &initiated.session);
        announcer(&self.store, &hlc, session, initiated.expires_at).announce_once(&draft).await?;
        Ok(())
    }

    /// Wakes a running workflow. Where the session waits for a version, only the callback makes the workflow invoke the
    /// agent again, and between two waits there is no token.
    async fn wake_running(&self, session: &SessionId, records: &Records) -> Result<bool, Error> {
        let attempts =
            if version::missing(&records.events).is_some() { WAKE_ATTEMPTS_MAX } else { 1 };
        for attempt in 1..=attempts {
            if self.wake(session).await? {
                return Ok(true);
            }
            if attempt < attempts {
                self.clock.sleep(WAKE_PAUSE).await;
            }
        }
        Ok(false)
    }

    /// The session's newest execution, and the number of resumes. The trigger's sender may have named
    /// the first execution, so its ARN is in the session's first record.
    pub(crate) async fn newest(
        &self,
        initiated: &Event,
    ) -> Result<Option<(u32, Execution)>, Error> {
        let arn_of = |resumes| self.executions.arn(&execution::name(&initiated.session, resumes));
        let mut newest = None;
        for resumes in 0..=RESUMES_MAX {
            let arn = match &initiated.execution_arn {
                Some(first) if resumes == 0 => first.clone(),
                _ => arn_of(resumes)?,
            };
            match self.executions.describe(&arn).await? {
                Some(execution) => newest = Some((resumes, execution)),
                None => break,
            }
        }
        Ok(newest)
    }

    /// Whether the agent is running: stopping an execution does not stop its agent, which keeps
    /// writing heartbeats.
    async fn is_at_work(&self, session: &SessionId) -> Result<bool, Error> {
        if let Some(has_agent) = self.executions.has_agent(session) {
            return Ok(has_agent);
        }
        self.has_heartbeat(session).await
    }
}

fn resumed(session: &SessionId, woken: bool, execution_arn: Option<String>) -> Resumed {
    Resumed { session_id: session.clone(), woken, execution_arn, step: None }
}
