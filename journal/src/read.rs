//! Reads a session: its steps in sequence, its events in order of time, its payloads.

use crate::clock::Stamp;
use crate::event::Event;
use crate::id::SessionId;
use crate::item::{Hash, Item};
use crate::key;
use crate::limits::SKEW_REPORTED;
use crate::payload::{DecodeError, Payload, part_bytes};
use crate::step::Step;
use crate::store::{Error, Query, Store, query_all, take_all};

/// The step chain is damaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainDamage {
    #[error("step {missing} is missing; the next one is {found}")]
    Gap {
        missing: u32,
        /// The number found in its place.
        found: u32,
    },
    #[error(
        "step {seq} does not follow the previous step: it names the hash {named}, but that step's hash is {found}"
    )]
    Broken {
        seq: u32,
        /// The hash that it names.
        named: Hash,
        /// The hash of the previous step.
        found: Hash,
    },
}

/// All steps of a session, in sequence, verified to be a chain without gaps.
///
/// # Errors
/// [`Error::Corrupt`] with a [`ChainDamage`] if it is not.
pub async fn steps<S: Store>(store: &S, session: &SessionId) -> Result<Vec<Step>, Error> {
    let mut steps = Vec::new();
    let query = Query::prefix(key::session(session), key::STEP_PREFIX);
    take_all(store, query, |items| {
        for item in &items {
            steps.push(Step::from_item(item)?);
        }
        Ok(())
    })
    .await?;
    check_chain(&steps).map_err(|damage| Error::Corrupt(damage.into()))?;
    Ok(steps)
}

/// Checks that steps, sorted by number, form a chain from 1 without gaps.
///
/// # Errors
/// The first damage.
pub fn check_chain<'a, P: 'a>(
    steps: impl IntoIterator<Item = &'a Step<P>>,
) -> Result<(), ChainDamage> {
    let mut before = Hash::genesis();
    for (missing, step) in (1_u32..).zip(steps) {
        if step.seq != missing {
            return Err(ChainDamage::Gap { missing, found: step.seq });
        }
        if step.prev_hash != before {
            let named = step.prev_hash.clone();
            return Err(ChainDamage::Broken { seq: step.seq, named, found: before });
        }
        before = step.hash.clone();
    }
    Ok(())
}

/// The newest step, if any.
///
/// # Errors
/// The store or the step cannot be read.
pub async fn newest_step<S: Store>(store: &S, session: &SessionId) -> Result<Option<Step>, Error> {
    let query = Query::prefix(key::session(session), key::STEP_PREFIX).reversed().limited(1);
    let page = store.query(query).await?;
    Ok(page.items.first().map(Step::from_item).transpose()?)
}

/// All events of a session, in order of time, without duplicates.
///
/// # Errors
/// The store or an event cannot be read.
pub async fn events<S: Store>(store: &S, session: &SessionId) -> Result<Vec<Event>, Error> {
    let items = query_all(store, Query::prefix(key::session(session), key::EVENT_PREFIX)).await?;
    in_order(items.iter())
}

/// Parses events and sorts them by parsed time, since older writers used fewer digits. Of several
/// events with one id only the earliest is returned.
///
/// # Errors
/// An event cannot be read.
pub fn in_order<'a>(items: impl Iterator<Item = &'a Item>) -> Result<Vec<Event>, Error> {
    let mut events = items.map(Event::from_item).collect::<Result<Vec<_>, _>>()?;
    events.sort_by(|a, b| (a.stamp, &a.sk).cmp(&(b.stamp, &b.sk)));
    let mut seen = std::collections::BTreeSet::new();
    events.retain(|event| seen.insert(event.id.clone()));
    Ok(events)
}

/// Events with timestamps further ahead of the reader's clock than [`SKEW_REPORTED`]: some writer's
/// clock is wrong.
pub fn ahead(events: &[Event], now: Stamp) -> impl Iterator<Item = &Event> {
    events.iter().filter(move |event| event.stamp > now.after(SKEW_REPORTED))
}

/// The JSON of a payload, including parts.
///
/// # Errors
/// The parts cannot be read, or differ from those that were stored.
pub async fn payload<S: Store>(
    store: &S,
    session: &SessionId,
    payload: &Payload,
) -> Result<serde_json::Value, Error> {
    let parts = match payload {
        Payload::Parts { sha256, parts, .. } => {
            let items = query_all(store, Query::all(key::blob(session, sha256.as_str()))).await?;
            part_bytes(&items, *parts)?
        }
        _ => Vec::new(),
    };
    let key = match payload {
        Payload::Parts { encrypted: Some(_), .. } => store.session_key(session).await?.to_read(),
        _ => None,
    };
    Ok(payload.decode_with(&parts, key.as_ref())?)
}

/// What is shown instead of contents whose key was destroyed or is not here.
pub const ENCRYPTED: &str = "encrypted";

fn placeholder() -> serde_json::Value {
    serde_json::json!({ ENCRYPTED: "the session's key was destroyed or is not here" })
}

/// Like [`payload`], for showing: a placeholder for contents that cannot be decrypted.
///
/// # Errors
/// As [`payload`], otherwise.
pub async fn shown_payload<S: Store>(
    store: &S,
    session: &SessionId,
    stored: &Payload,
) -> Result<serde_json::Value, Error> {
    match payload(store, session, stored).await {
        Err(Error::Corrupt(cause)) if is_encrypted(&*cause) => Ok(placeholder()),
        read => read,
    }
}

fn is_encrypted(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.downcast_ref() == Some(&DecodeError::Encrypted)
}

/// Like [`resolve`], for showing: a placeholder for contents that cannot be decrypted. Nothing may go on from it.
///
/// # Errors
/// As [`payload`], otherwise.
pub async fn shown<S: Store>(store: &S, step: Step) -> Result<Step<serde_json::Value>, Error> {
    let json = match step.body.payload() {
        Some(stored) => shown_payload(store, &step.session, stored).await?,
        None => serde_json::Value::Null,
    };
    step.try_map(|_| Ok(json))
}

/// Like [`resolved_steps`], for showing: a placeholder for contents that cannot be decrypted.
///
/// # Errors
/// As [`steps`] and [`payload`], otherwise.
pub async fn shown_steps<S: Store>(
    store: &S,
    session: &SessionId,
) -> Result<Vec<Step<serde_json::Value>>, Error> {
    match resolved_steps(store, session).await {
        Err(Error::Corrupt(cause)) if is_encrypted(&*cause) => {}
        read => return read,
    }
    let mut shown_steps = Vec::new();
    for step in steps(store, session).await? {
        shown_steps.push(shown(store, step).await?);
    }
    Ok(shown_steps)
}

/// A step with its payload.
///
/// # Errors
/// As [`payload`].
pub async fn resolve<S: Store>(store: &S, step: Step) -> Result<Step<serde_json::Value>, Error> {
    let json = match step.body.payload() {
        Some(stored) => payload(store, &step.session, stored).await?,
        None => serde_json::Value::Null,
    };
    step.try_map(|_| Ok(json))
}

/// The JSON of an inline payload; `None` if it has parts.
fn inline(step: &Step) -> Result<Option<serde_json::Value>, Error> {
    Ok(match step.body.payload() {
        Some(Payload::Parts { .. }) => None,
        Some(stored) => Some(stored.decode(&[])?),
        None => Some(serde_json::Value::Null),
    })
}

/// All steps of a session with their payloads.
///
/// # Errors
/// As [`steps`] and [`payload`].
pub async fn resolved_steps<S: Store>(
    store: &S,
    session: &SessionId,
) -> Result<Vec<Step<serde_json::Value>>, Error> {
    let mut read = Vec::new();
    let query = Query::prefix(key::session(session), key::STEP_PREFIX);
    take_all(store, query, |items| {
        for item in &items {
            let step = Step::from_item(item)?;
            let json = inline(&step)?;
            read.push((step, json));
        }
        Ok(())
    })
    .await?;
    check_chain(read.iter().map(|(step, _)| step))
        .map_err(|damage| Error::Corrupt(damage.into()))?;
    let mut resolved = Vec::with_capacity(read.len());
    for (step, json) in read {
        resolved.push(match json {
            Some(json) => step.try_map(|_| Ok::<_, Error>(json))?,
            None => resolve(store, step).await?,
        });
    }
    Ok(resolved)
}
