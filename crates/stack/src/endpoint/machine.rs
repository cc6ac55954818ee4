//! A session's path through its state machine, from the histories of its executions.

use asl::history::{self, EventKind};
use journal::event::{Event, EventStatus};
use serde_json::{Value, json};
use views::drawing::Drawing;
use workflow::execution::{self, RESUMES_MAX};

use super::Reader;
use super::wire::Refusal;
use crate::executions::{Executions, Record};
use crate::names;

/// Most events to read of an execution's history, newest first. A long session repeats the same states,
/// and the newest events show its current one.
const HISTORY_EVENTS_MAX: usize = 2_000;

/// The state machine with the path of the session's executions; null if they are not in this stack, as
/// for an imported session.
pub(super) async fn walked(reader: &Reader, events: &[Event]) -> Result<Value, Refusal> {
    let Some(stack) = &reader.stack else { return Ok(Value::Null) };
    let initiated = events.iter().find(|event| event.status == EventStatus::SessionInitiated);
    let Some(initiated) = initiated else { return Ok(Value::Null) };
    let journal = |error: journal::store::Error| Refusal::journal(&error);
    let executions = executions_of(&stack.executions, initiated).await.map_err(journal)?;
    let Some(newest) = executions.last() else { return Ok(Value::Null) };
    let definition = stack.executions.definition(newest.machine).await.map_err(journal)?;
    let (mut entered, mut is_cut) = (Vec::new(), false);
    for execution in &executions {
        let mut newest_first = stack
            .executions
            .history(execution.id, None, true, HISTORY_EVENTS_MAX + 1)
            .await
            .map_err(journal)?;
        is_cut |= newest_first.len() > HISTORY_EVENTS_MAX;
        newest_first.truncate(HISTORY_EVENTS_MAX);
        entered.extend(newest_first.iter().rev().filter_map(|body| state_entered(body)));
    }
    let drawing = Drawing::of_machine(&definition, entered.iter().map(String::as_str));
    Ok(json!({
        "drawing": drawing, "executions": executions.len(), "status": newest.status, "is_cut": is_cut,
    }))
}

/// A session's executions in order: the first one, and one per resume.
async fn executions_of(
    executions: &Executions,
    initiated: &Event,
) -> Result<Vec<Record>, journal::store::Error> {
    let arn_of = |resumes| {
        names::execution_arn(names::STATE_MACHINE, &execution::name(&initiated.session, resumes))
    };
    let mut arn = initiated.execution_arn.clone().unwrap_or_else(|| arn_of(0));
    let mut found = Vec::new();
    for resumes in 0..=RESUMES_MAX {
        let Some(record) = executions.describe(&arn).await? else { break };
        found.push(record);
        arn = arn_of(resumes + 1);
    }
    Ok(found)
}

fn state_entered(body: &str) -> Option<String> {
    match serde_json::from_str::<history::Event>(body).ok()?.kind {
        EventKind::StateEntered { name, .. } => Some(name),
        _ => None,
    }
}
