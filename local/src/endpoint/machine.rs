//! A session's way through its state machine, as the histories of its executions tell it.

use journal::event::{Event, EventStatus};
use serde_json::{Value, json};
use states::history::{self, EventKind};
use timeline::drawing::Drawing;

use super::Endpoint;
use super::resume::executions_of;
use super::wire::Refusal;

/// Newest events of an execution's history that are looked at: a session of hours goes round in
/// circles, and the last of them show where it stands.
const HISTORY_EVENTS_MAX: usize = 2_000;

/// The state machine with the path that the session's executions took; null when they are not known
/// here, as those of an imported session.
pub(super) async fn walked(endpoint: &Endpoint, events: &[Event]) -> Result<Value, Refusal> {
    let initiated = events.iter().find(|event| event.status == EventStatus::SessionInitiated);
    let Some(initiated) = initiated else { return Ok(Value::Null) };
    let executions = executions_of(endpoint, initiated).await?;
    let Some(newest) = executions.last() else { return Ok(Value::Null) };
    let journal = |error: journal::store::Error| Refusal::journal(&error);
    let definition = endpoint.executions.definition(newest.machine).await.map_err(journal)?;
    let (mut entered, mut is_cut) = (Vec::new(), false);
    for execution in &executions {
        let mut newest_first = endpoint
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

fn state_entered(body: &str) -> Option<String> {
    match serde_json::from_str::<history::Event>(body).ok()?.kind {
        EventKind::StateEntered { name, .. } => Some(name),
        _ => None,
    }
}
