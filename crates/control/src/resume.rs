//! Resuming wakes a session's workflow, or starts another execution if the last one has ended.
//!
//! The new execution receives the session's state ([`standing`]). Its name is computed from the
//! session, so that concurrent resumes start one execution.

use std::time::Duration;

use journal::event::{Event, EventStatus};
use journal::id::SessionId;
use journal::store::{self, Store};
use journal::version;
use serde_json::{Map, Value, json};
use workflow::execution::{self, RESUMES_MAX};
use workflow::standing::standing;

use crate::error::{Error, Refused};
use crate::executions::{Execution, Executions};
use crate::records::Records;
use crate::{Control, Resumed};

/// Most attempts to wake a workflow between two waits; then the caller learns that it was not woken.
const WAKE_ATTEMPTS_MAX: u32 = 30;

/// Pause between two such attempts.
const WAKE_PAUSE: Duration = Duration::from_secs(1);

impl<S: Store, E: Executions> Control<S, E> {
    /// Resumes a session.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn resume(&self, session: &SessionId) -> Result<Resumed, Error> {
        let records = Records::read(&self.store, session).await?;
        records.refuse_ended()?;
        let initiated = records.events.iter().find(|e| e.status == EventStatus::SessionInitiated);
        let initiated = initiated.ok_or(Refused::NoExecution)?;
        let (resumes, newest) = self.newest(initiated).await?.ok_or(Refused::NoExecution)?;
        if newest.is_running {
            let woken = self.wake_running(session, &records).await?;
            return Ok(Resumed {
                session_id: session.clone(),
                woken,
                execution_arn: None,
                step: None,
            });
        }
        if resumes >= RESUMES_MAX {
            return Err(Refused::TooManyResumes.into());
        }
        let expires_at = initiated.expires_at;
        // The poller writes a verdict before the execution ends: this second read finds a verdict
        // that was written since the first.
        let records = Records::read(&self.store, session).await?;
        records.refuse_ended()?;
        let mut input: Map<String, Value> = serde_json::from_str(&newest.input)
            .map_err(|error| store::Error::Corrupt(error.into()))?;
        let working = self.is_at_work(session).await?;
        let standing = standing(&records.events, &records.steps, expires_at, working);
        input.insert("resume".to_owned(), json!(standing));
        let name = execution::name(session, resumes + 1);
        let started = self.executions.start(&name, &json!(input).to_string()).await?;
        let (session_id, execution_arn) = (session.clone(), Some(started));
        Ok(Resumed { session_id, woken: false, execution_arn, step: None })
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
    async fn newest(&self, initiated: &Event) -> Result<Option<(u32, Execution)>, Error> {
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
