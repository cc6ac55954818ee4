//! After a restart: workflows that somebody had answered, but not woken, when the stack was killed.
//!
//! An answer is durable before the workflow is woken. A kill between the two would leave the workflow
//! parked until it looks by itself, which may be hours later.

use journal::id::SessionId;
use journal::read::newest_step;
use journal::sqlite::SqliteStore;
use journal::step::StepBody;
use journal::store::Error;
use journal::wait::Wait;
use serde_json::{Value, json};

use crate::executions::{Callback, Executions, RUNNING, Record};

/// Executions read at a time.
const PAGE: usize = 256;

/// Has every workflow look again whose session does not wait any more.
pub(crate) async fn catch_up(executions: Executions, store: SqliteStore) {
    if let Err(error) = wake_all(&executions, &store).await {
        // They look by themselves, later.
        tracing::warn!(%error, "Workflows that were answered before the restart were not woken.");
    }
}

async fn wake_all(executions: &Executions, store: &SqliteStore) -> Result<(), Error> {
    let mut before = None;
    loop {
        let page = executions.list(Some(RUNNING), before, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        before = Some(last.id);
        for record in &page {
            wake(executions, store, record).await?;
        }
    }
}

async fn wake(executions: &Executions, store: &SqliteStore, record: &Record) -> Result<(), Error> {
    let input: Value = serde_json::from_str(&record.input).unwrap_or_default();
    let session = input["session_id"].as_str().and_then(|id| id.parse::<SessionId>().ok());
    let Some(session) = session else { return Ok(()) };
    let newest = newest_step(store, &session).await?.map(|step| step.body);
    if !matches!(newest, Some(StepBody::Answer { .. } | StepBody::End { .. })) {
        return Ok(());
    }
    if let Some(wait) = Wait::read(store, &session).await? {
        // One that is not parked any more looks by itself.
        let _ = executions.send(&wait.token, Callback::Success(json!({}))).await;
    }
    Ok(())
}
