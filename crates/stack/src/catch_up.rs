//! After a restart: wakes workflows whose session was answered before the stack was killed.
//!
//! An answer is durable before the workflow is woken. A kill between the two leaves the workflow parked
//! until its own next check, which may be hours later.

use journal::id::SessionId;
use journal::read::newest_step;
use journal::step::StepBody;
use journal::store::Error;
use journal::wait::Wait;
use serde_json::{Value, json};

use crate::executions::{Callback, ExecutionStore, Executions, RUNNING, Record};

/// Executions per read.
const PAGE: usize = 256;

/// Wakes every workflow whose session no longer waits.
pub(crate) async fn catch_up<S: ExecutionStore>(executions: Executions<S>) {
    if let Err(error) = wake_all(&executions).await {
        // They wake at their own next check.
        tracing::warn!(%error, "Cannot wake the workflows that were answered before the restart.");
    }
}

async fn wake_all<S: ExecutionStore>(executions: &Executions<S>) -> Result<(), Error> {
    let mut before = None;
    loop {
        let page = executions.list(Some(RUNNING), before, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        before = Some(last.id);
        for record in &page {
            wake(executions, record).await?;
        }
    }
}

async fn wake<S: ExecutionStore>(executions: &Executions<S>, record: &Record) -> Result<(), Error> {
    let store = executions.store();
    let input: Value = serde_json::from_str(&record.input).unwrap_or_default();
    let session = input["session_id"].as_str().and_then(|id| id.parse::<SessionId>().ok());
    let Some(session) = session else { return Ok(()) };
    let newest = newest_step(store, &session).await?.map(|step| step.body);
    if !matches!(newest, Some(StepBody::Answer { .. } | StepBody::End { .. })) {
        return Ok(());
    }
    if let Some(wait) = Wait::read(store, &session).await? {
        // An error means that it is not parked; then it checks by itself.
        let _ = executions.send(&wait.token, Callback::Success(json!({}))).await;
    }
    Ok(())
}
