//! Sealing a session: its verdict holds the end of the step chain and a list of every event.

use serde_json::{Value, json};

use crate::announce::Announcer;
use crate::error_message::ErrorMessage;
use crate::event::{About, Draft, Event, EventStatus, Seal};
use crate::item::Item;
use crate::payload::{Payload, part_items};
use crate::read;
use crate::step::{Ending, Step, StepBody};
use crate::store::{Condition, Error, Store};

/// The verdict that an ending leads to.
pub const fn verdict(ending: Ending) -> EventStatus {
    match ending {
        Ending::Completed => EventStatus::SessionSucceeded,
        Ending::Failed => EventStatus::SessionFailed,
        Ending::Cancelled => EventStatus::SessionCancelled,
        Ending::TimedOut => EventStatus::SessionTimedOut,
        Ending::Rejected => EventStatus::SessionRejected,
    }
}

/// The list of (sort key, hash) of events, in order of sort key.
pub fn manifest<'a>(events: impl IntoIterator<Item = &'a Item>) -> Value {
    events.into_iter().map(|item| json!([item.sk, item.hash().as_str()])).collect()
}

/// Writes the verdict of a session whose end step is durable, unless it has one.
///
/// # Errors
/// When the store cannot be read or written.
pub async fn seal<S: Store>(
    store: &S,
    announcer: &Announcer<'_, S>,
    end: &Step<Value>,
) -> Result<Event, Error> {
    let StepBody::End { ending, error, category, .. } = &end.body else {
        return Err(Error::Refused("only an end step can be sealed".into()));
    };
    announcer.hlc.observe(end.stamp);
    let partition = read::partition(store, &end.session).await?;
    for item in partition.events.values() {
        let Ok(event) = Event::from_item(item) else { continue };
        announcer.hlc.observe(event.stamp);
        if event.status.is_verdict() {
            return Ok(event);
        }
    }
    let encoded = Payload::encode(&manifest(partition.events.values()))
        .map_err(|too_large| Error::Refused(too_large.into()))?;
    for part in part_items(&end.session, announcer.expires_at, &encoded) {
        store.put(part, Condition::Absent).await?;
    }
    let mut draft = Draft::new(verdict(*ending), About::Step(end.seq)).with_error(error.clone());
    if let Some(category) = category {
        draft = draft.with_detail(json!({ "category": category }));
    }
    draft.seal =
        Some(Seal { end_seq: end.seq, end_hash: end.hash.clone(), manifest: encoded.payload });
    announcer.announce(&draft).await
}

/// What is announced when a session's background task has ended, before the verdict; `None` for
/// endings that the task did not reach by itself.
pub fn task_announcement(seq: u32, ending: Ending, error: Option<&ErrorMessage>) -> Option<Draft> {
    let status = match ending {
        Ending::Completed => EventStatus::AgentBackgroundTaskCompleted,
        Ending::Failed => EventStatus::AgentBackgroundTaskFailed,
        Ending::Cancelled | Ending::TimedOut | Ending::Rejected => return None,
    };
    Some(Draft::new(status, About::Step(seq)).with_error(error.cloned()))
}
