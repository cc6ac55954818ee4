//! Seals a session: its verdict holds the end of the step chain and a list of all events.

use serde_json::{Map, Value, json};

use crate::announce::Announcer;
use crate::chain::put_until_known;
use crate::clock::Stamp;
use crate::error_message::ErrorMessage;
use crate::event::{About, Draft, Event, EventStatus, Seal};
use crate::item::Item;
use crate::key;
use crate::limits::STAMP_COLLISIONS_MAX;
use crate::payload::{Encoded, Payload, part_items};
use crate::step::{AnsweredBy, Ending, Step, StepBody};
use crate::store::{Condition, Error, Query, Store, Written, query_all};

/// The verdict of an ending.
pub const fn verdict(ending: Ending) -> EventStatus {
    match ending {
        Ending::Completed => EventStatus::SessionSucceeded,
        Ending::Failed => EventStatus::SessionFailed,
        Ending::Cancelled => EventStatus::SessionCancelled,
        Ending::TimedOut => EventStatus::SessionTimedOut,
        Ending::Rejected => EventStatus::SessionRejected,
    }
}

/// Sort keys and hashes of events, in order of sort key.
pub fn manifest<'a>(events: impl IntoIterator<Item = &'a Item>) -> Value {
    events.into_iter().map(|item| json!([item.sk, item.hash().as_str()])).collect()
}

/// Writes the verdict of a session whose end step is durable, unless it has one.
///
/// The verdict's timestamp is one nanosecond after the newest record that it seals, not the time of
/// sealing. An announcement written meanwhile sorts after it and is *unsealed*, not reported as
/// forged. If two sealers run concurrently, the earliest verdict counts, and both return it.
///
/// # Errors
/// The store cannot be read or written.
pub async fn seal<S: Store>(
    store: &S,
    announcer: &Announcer<'_, S>,
    end: &Step<Value>,
) -> Result<Event, Error> {
    let partition = key::session(&end.session);
    let sealed = query_all(store, Query::prefix(&partition, key::EVENT_PREFIX)).await?;
    if let Some(verdict) = verdict_in(&sealed) {
        announcer.hlc.observe(verdict.stamp);
        return Ok(verdict);
    }
    let (draft, parts) = draft(&sealed, end)?;
    for part in part_items(&end.session, announcer.expires_at, &parts) {
        put_until_known(store, announcer.hlc, &part, &Condition::Absent).await?;
    }
    let events = sealed.iter().filter_map(|item| Event::from_item(item).ok());
    let mut stamp = events.map(|event| event.stamp).fold(end.stamp, Stamp::max);
    for _ in 0..STAMP_COLLISIONS_MAX {
        stamp = stamp.next();
        let item = announcer.item(&draft, stamp).await?;
        match put_until_known(store, announcer.hlc, &item, &Condition::Absent).await? {
            Written::Done | Written::Refused(None) => break,
            Written::Refused(Some(there)) if is_verdict(&there) => break,
            Written::Refused(Some(_)) => {}
        }
    }
    // A concurrent sealer's earlier verdict lies between the end step and this one.
    let (from, to) = (key::event(end.stamp), key::event(stamp));
    let verdict = verdict_in(&query_all(store, Query::between(partition, &from, &to)).await?)
        .ok_or_else(|| Error::Unavailable("no free timestamp for the verdict".into()))?;
    announcer.hlc.observe(verdict.stamp);
    Ok(verdict)
}

/// The earliest verdict, which counts.
fn verdict_in(events: &[Item]) -> Option<Event> {
    let events = events.iter().filter_map(|item| Event::from_item(item).ok());
    events.filter(|event| event.status.is_verdict()).min_by_key(|event| event.stamp)
}

fn is_verdict(item: &Item) -> bool {
    Event::from_item(item).is_ok_and(|event| event.status.is_verdict())
}

fn draft(events: &[Item], end: &Step<Value>) -> Result<(Draft, Encoded), Error> {
    let StepBody::End { ending, error, category, answered_by, payload } = &end.body else {
        return Err(Error::Refused("the step is not an end step".into()));
    };
    let encoded =
        Payload::encode(&manifest(events)).map_err(|too_large| Error::Refused(too_large.into()))?;
    let mut draft = Draft::new(verdict(*ending), About::Step(end.seq)).with_error(error.clone());
    let mut detail = Map::new();
    // A rejected session has no claim: lists read what was rejected from its verdict.
    if let (Ending::Rejected, Value::Object(rejected)) = (ending, payload) {
        detail.clone_from(rejected);
    }
    let said =
        [("category", category.as_deref()), ("answered_by", answered_by.map(AnsweredBy::as_str))];
    detail
        .extend(said.into_iter().filter_map(|(name, word)| Some((name.to_owned(), json!(word?)))));
    if !detail.is_empty() {
        draft = draft.with_detail(detail.into());
    }
    draft.seal = Some(Seal {
        end_seq: end.seq,
        end_hash: end.hash.clone(),
        manifest: encoded.payload.clone(),
    });
    Ok((draft, encoded))
}

/// The announcement of a durable step, complete but for writer and time; `None` for kinds of steps
/// without an announcement, or whose announcement contains more than the step.
pub fn announcement<P>(step: &Step<P>) -> Option<Draft> {
    match &step.body {
        StepBody::Ask { .. } => Some(suspension(step.seq)),
        StepBody::Answer { .. } => {
            Some(Draft::new(EventStatus::InputReceived, About::Step(step.seq)))
        }
        StepBody::End { ending, error, .. } => task_announcement(step.seq, *ending, error.as_ref()),
        _ => None,
    }
}

/// The announcement that a session waits for the answer to a question.
pub fn suspension(question: u32) -> Draft {
    Draft::new(EventStatus::AgentBackgroundTaskSuspended, About::Step(question))
        .with_detail(json!({ "question_id": question }))
}

/// The announcement that a session's background task has ended, before the verdict; `None` for
/// endings that the task did not cause.
pub fn task_announcement(seq: u32, ending: Ending, error: Option<&ErrorMessage>) -> Option<Draft> {
    let status = match ending {
        Ending::Completed => EventStatus::AgentBackgroundTaskCompleted,
        Ending::Failed => EventStatus::AgentBackgroundTaskFailed,
        Ending::Cancelled | Ending::TimedOut | Ending::Rejected => return None,
    };
    Some(Draft::new(status, About::Step(seq)).with_error(error.cloned()))
}
