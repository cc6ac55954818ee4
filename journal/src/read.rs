//! Reading a session: its steps in sequence, its events in time, a payload's bytes.

use crate::clock::Stamp;
use crate::event::Event;
use crate::id::SessionId;
use crate::item::{Hash, Item};
use crate::key;
use crate::limits::SKEW_REPORTED;
use crate::payload::{Payload, part_bytes};
use crate::step::Step;
use crate::store::{Error, Query, Store, query_all, take_all};

/// The step chain is damaged: a record is missing, or does not follow the one before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainDamage {
    /// A number is missing.
    #[error("step {missing} is missing: the next one there is {found}")]
    Gap {
        /// The missing number.
        missing: u32,
        /// The number found in its place.
        found: u32,
    },
    /// A step names another hash than the step before it has.
    #[error(
        "step {seq} does not follow the step before it: it names {named}, that one hashes to {found}"
    )]
    Broken {
        /// The step's number.
        seq: u32,
        /// The hash that it names.
        named: Hash,
        /// The hash of the step before.
        found: Hash,
    },
}

/// All steps of a session, in sequence, checked to be a chain without gaps.
///
/// # Errors
/// [`Error::Corrupt`] with a [`ChainDamage`] when they are not.
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

/// Whether steps, in order of number, are a chain from 1 without gaps.
///
/// # Errors
/// The first damage found.
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

/// The newest step, if there is one.
///
/// # Errors
/// When the store or the step cannot be read.
pub async fn newest_step<S: Store>(store: &S, session: &SessionId) -> Result<Option<Step>, Error> {
    let query = Query::prefix(key::session(session), key::STEP_PREFIX).reversed().limited(1);
    let page = store.query(query).await?;
    Ok(page.items.first().map(Step::from_item).transpose()?)
}

/// All events of a session, in order of time, each shown once.
///
/// # Errors
/// When the store or an event cannot be read.
pub async fn events<S: Store>(store: &S, session: &SessionId) -> Result<Vec<Event>, Error> {
    let items = query_all(store, Query::prefix(key::session(session), key::EVENT_PREFIX)).await?;
    in_order(items.iter())
}

/// Reads events and lists them as people see them: by parsed time, since older writers used fewer
/// digits, and of several with one id only the earliest.
///
/// # Errors
/// When an event cannot be read.
pub fn in_order<'a>(items: impl Iterator<Item = &'a Item>) -> Result<Vec<Event>, Error> {
    let mut events = items.map(Event::from_item).collect::<Result<Vec<_>, _>>()?;
    events.sort_by(|a, b| (a.stamp, &a.sk).cmp(&(b.stamp, &b.sk)));
    let mut seen = std::collections::BTreeSet::new();
    events.retain(|event| seen.insert(event.id.clone()));
    Ok(events)
}

/// The events stamped further ahead of the reader's clock than clocks that are kept right ever
/// are: some writer's clock is wrong, and what it wrote seems to lie in the future.
pub fn ahead(events: &[Event], now: Stamp) -> impl Iterator<Item = &Event> {
    events.iter().filter(move |event| event.stamp > now.after(SKEW_REPORTED))
}

/// The JSON of a payload; reads its parts if it is set apart.
///
/// # Errors
/// When the parts cannot be read, or are not those that were stored.
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
    Ok(payload.decode(&parts)?)
}

/// A step with its payload read.
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

/// The JSON of a step whose payload is in its record; nothing if it is set apart.
fn inline(step: &Step) -> Result<Option<serde_json::Value>, Error> {
    Ok(match step.body.payload() {
        Some(Payload::Parts { .. }) => None,
        Some(stored) => Some(stored.decode(&[])?),
        None => Some(serde_json::Value::Null),
    })
}

/// All steps of a session with their payloads read.
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
