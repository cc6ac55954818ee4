//! `POST /api/sessions/{id}/resume`: has a session's workflow look at it again, and gives the session
//! another execution when its last one is gone.
//!
//! The new execution is told where the journal stands ([`standing`]). Of several that resume at once
//! all compute the same name for it, so that there is one.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Response;
use journal::event::{Event, EventStatus};
use journal::id::SessionId;
use serde_json::{Map, Value, json};
use workflow::execution::{self, RESUMES_MAX};
use workflow::standing::standing;

use super::Endpoint;
use super::sessions::{Reply, existing, refuse_ended, wake};
use super::step_functions::not_started;
use super::wire::{self, Refusal};
use crate::executions::{RUNNING, Record, Request, StartError};
use crate::names;

/// `POST /api/sessions/{id}/resume`.
pub(super) async fn resume(
    State(endpoint): State<Endpoint>,
    Path(id): Path<String>,
) -> Response<Body> {
    wire::api(resume_session(&endpoint, &id).await)
}

async fn resume_session(endpoint: &Endpoint, id: &str) -> Reply {
    let records = existing(endpoint, id).await?;
    // What a verdict forbids here is what it forbids to somebody who cancels.
    refuse_ended(&records, EventStatus::CancelRequested)?;
    let no_execution = || {
        let message = "what the session was asked for is not known here: it has no execution";
        Refusal::new(409, "NoExecution", message)
    };
    let initiated = records.events.iter().find(|e| e.status == EventStatus::SessionInitiated);
    let initiated = initiated.ok_or_else(no_execution)?;
    let (resumes, newest) = newest(endpoint, initiated).await?.ok_or_else(no_execution)?;
    if newest.status == RUNNING {
        let woken = wake(endpoint, &records.id).await?;
        return Ok((202, json!({ "session_id": records.id, "woken": woken })));
    }
    if resumes >= RESUMES_MAX {
        let message = format!("the session was resumed {RESUMES_MAX} times");
        return Err(Refusal::new(409, "TooManyResumes", message));
    }
    // Verdicts are written before executions end, so that this look finds one that came meanwhile.
    let records = existing(endpoint, id).await?;
    refuse_ended(&records, EventStatus::CancelRequested)?;
    let mut input: Map<String, Value> = serde_json::from_str(&newest.input)
        .map_err(|error| Refusal::journal(&journal::store::Error::Corrupt(error.into())))?;
    let working = endpoint.agents.has(&records.id);
    let standing = standing(&records.events, &records.steps, initiated.expires_at, working);
    input.insert("resume".to_owned(), json!(standing));
    let name = execution::name(&records.id, resumes + 1);
    let request = Request { name, input: json!(input).to_string() };
    let arn = match endpoint.executions.start(request).await {
        Ok(started) => started.arn,
        // Somebody else resumed it between our look and our start.
        Err(StartError::AlreadyExists(arn)) => arn,
        Err(error) => return Err(not_started(error)),
    };
    Ok((202, json!({ "session_id": records.id, "woken": false, "execution_arn": arn })))
}

/// A session's newest execution, and how often the session was resumed.
async fn newest(endpoint: &Endpoint, initiated: &Event) -> Result<Option<(u32, Record)>, Refusal> {
    let mut all = executions_of(endpoint, initiated).await?;
    let newest = all.pop();
    Ok(newest.map(|newest| (u32::try_from(all.len()).unwrap_or(RESUMES_MAX), newest)))
}

/// A session's executions in their order: the one that it began with, and one each time that it was
/// resumed.
pub(super) async fn executions_of(
    endpoint: &Endpoint,
    initiated: &Event,
) -> Result<Vec<Record>, Refusal> {
    let session: &SessionId = &initiated.session;
    let arn_of =
        |resumes| names::execution_arn(names::STATE_MACHINE, &execution::name(session, resumes));
    let mut arn = initiated.execution_arn.clone().unwrap_or_else(|| arn_of(0));
    let mut executions = Vec::new();
    for resumes in 0..=RESUMES_MAX {
        let found = endpoint.executions.describe(&arn).await;
        let Some(record) = found.map_err(|error| Refusal::journal(&error))? else { break };
        executions.push(record);
        arn = arn_of(resumes + 1);
    }
    Ok(executions)
}
