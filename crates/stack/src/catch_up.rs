//! After a restart: wakes workflows for which the poller has something to do, or whose session waits for a version of its
//! agent that this stack has.
//!
//! An answer or a cancellation is durable before the workflow is woken, and a question before it is announced. A kill in
//! between leaves the workflow parked until its own next check, which may be hours later.

use std::sync::Arc;
use std::time::Duration;

use graph::agent::Agent;
use journal::event::{Event, EventStatus, Writer};
use journal::id::SessionId;
use journal::read::{events, newest_step};
use journal::seal::suspension;
use journal::step::StepBody;
use journal::store::{Error, Retry, Store};
use journal::version::{self, Missing};
use journal::wait::Wait;
use packs::named;
use serde_json::{Value, json};

use crate::executions::{Callback, ExecutionStore, Executions, RUNNING, Record};
use crate::load::Load;
use crate::names;

/// Executions per read.
const PAGE: usize = 256;

/// Delay before a failed read is repeated.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Wakes every workflow whose session no longer waits, or waits unannounced.
pub(crate) async fn catch_up<S: ExecutionStore>(
    executions: Executions<S>,
    agents: Arc<[Agent]>,
    load: Load,
) {
    while let Err(error) = wake_all(&executions, &agents, &load).await {
        tracing::warn!(%error, "Cannot wake the workflows that were answered before the restart.");
        if error.retry() == Retry::Never {
            // They wake at their own next check.
            return;
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

async fn wake_all<S: ExecutionStore>(
    executions: &Executions<S>,
    agents: &[Agent],
    load: &Load,
) -> Result<(), Error> {
    let mut before = None;
    loop {
        let page = executions.list(Some(RUNNING), before, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        before = Some(last.id);
        for record in &page {
            match wake(executions, agents, load, record).await {
                // A damaged session keeps no other asleep.
                Err(error @ Error::Corrupt(_)) => {
                    tracing::warn!(execution = %record.name, %error, "Cannot tell whether a workflow waits.");
                }
                woken => woken?,
            }
        }
    }
}

async fn wake<S: ExecutionStore>(
    executions: &Executions<S>,
    agents: &[Agent],
    load: &Load,
    record: &Record,
) -> Result<(), Error> {
    // A machine of a user may have the id of a session in its input.
    if record.machine_arn != names::STATE_MACHINE_ARN {
        return Ok(());
    }
    let store = executions.store();
    let input: Value = serde_json::from_str(&record.input).unwrap_or_default();
    let session = input["session_id"].as_str().and_then(|id| id.parse::<SessionId>().ok());
    let Some(session) = session else { return Ok(()) };
    load.waits(&session);
    if !is_due(store, agents, &session).await? {
        return Ok(());
    }
    if let Some(wait) = Wait::read(store, &session).await? {
        // An error means that it is not parked; then it checks by itself.
        let _ = executions.send(&wait.token, Callback::Success(json!({}))).await;
    }
    Ok(())
}

/// Whether the poller has something to do for a session that was left waiting.
async fn is_due<S: Store>(store: &S, agents: &[Agent], session: &SessionId) -> Result<bool, Error> {
    let Some(newest) = newest_step(store, session).await? else { return Ok(false) };
    let events = events(store, session).await?;
    if let StepBody::Ask { .. } = newest.body {
        return Ok(is_cancelled(&events) || !is_announced(&events, session, newest.seq));
    }
    let missing = version::missing(&events);
    Ok(match missing.filter(|missing| missing.step == newest.seq) {
        Some(Missing { agent, needs, .. }) => {
            named(agents, &agent).is_some_and(|agent| agent.at(&needs).is_some())
        }
        None => matches!(newest.body, StepBody::Answer { .. } | StepBody::End { .. }),
    })
}

fn is_cancelled(events: &[Event]) -> bool {
    events.iter().any(|event| event.status == EventStatus::CancelRequested)
}

fn is_announced(events: &[Event], session: &SessionId, question: u32) -> bool {
    let asked = suspension(question);
    let id = asked.status.id(session, Writer::Agent, asked.about);
    events.iter().any(|event| event.id == id)
}
