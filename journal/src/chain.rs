//! Appends steps. The writer that gets number n + 1 decides what follows n.

use serde_json::Value;

use crate::cipher;
use crate::clock::{Hlc, Stamp};
use crate::error_message::ErrorMessage;
use crate::id::{Runner, SessionId};
use crate::item::{Hash, Item};
use crate::key;
use crate::limits::{END_COLLISIONS_MAX, STEPS_MAX, WRITE_ATTEMPTS_MAX};
use crate::payload::{Payload, TooLarge, part_items};
use crate::read;
use crate::receipt;
use crate::step::{Ending, Step, StepBody};
use crate::store::{Condition, Error, Key, Retry, Store, Written};

/// A step's content with its payload read.
pub type Body = StepBody<Value>;

/// The end of a session's step chain, as one writer knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The newest step's number, 0 before the first.
    pub seq: u32,
    pub hash: Hash,
    /// Its timestamp: the next step is later, whatever its writer's clock shows.
    pub stamp: Stamp,
}

impl Head {
    pub fn genesis() -> Self {
        Self { seq: 0, hash: Hash::genesis(), stamp: Stamp::default() }
    }

    pub fn after<P>(step: &Step<P>) -> Self {
        Self { seq: step.seq, hash: step.hash.clone(), stamp: step.stamp }
    }
}

/// The author of steps in one session.
#[derive(Clone, Debug)]
pub struct Author {
    pub session: SessionId,
    pub runner: Runner,
    /// When the session's records expire, in seconds since 1970.
    pub expires_at: i64,
}

/// Why a step was not written; each variant calls for a different reaction.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Another record has this number. Read it, then continue or stop, depending on its kind.
    #[error("step {} was decided by another writer", .0.seq)]
    Collision(Box<Step<Value>>),
    /// The payload is too large and can never be stored.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The session has reached [`STEPS_MAX`].
    #[error("the session has reached the limit of {STEPS_MAX} steps")]
    Full,
    #[error(transparent)]
    Store(#[from] Error),
}

/// Appends a step after `head`, under `epoch`.
///
/// Parts of a large payload are written first, so that no record names bytes that do not exist. If
/// the store's reply is lost, the same record is sent again; finding it stored means that the first
/// write succeeded.
///
/// # Errors
/// See [`AppendError`].
pub async fn append<S: Store>(
    store: &S,
    hlc: &Hlc,
    author: &Author,
    head: &Head,
    epoch: u32,
    body: Body,
) -> Result<Step<Value>, AppendError> {
    if head.seq >= STEPS_MAX {
        return Err(AppendError::Full);
    }
    let key = store.session_key(&author.session).await?.to_write()?;
    let of = Key::new(key::session(&author.session), key::step(head.seq + 1));
    let (mut content, mut parts) = (Value::Null, Vec::new());
    let body = body.try_map(|json| {
        let encoded = Payload::encode_for(&json, key.as_ref().map(|key| (key, &of)))?;
        parts = part_items(&author.session, author.expires_at, &encoded);
        content = json;
        Ok::<_, TooLarge>(encoded.payload)
    })?;
    for part in parts {
        // The address is the hash of the content, so another writer stored the same bytes.
        put_until_known(store, hlc, &part, &Condition::Absent).await?;
    }
    hlc.observe(head.stamp);
    let mut step = Step {
        session: author.session.clone(),
        seq: head.seq + 1,
        epoch,
        runner: author.runner.clone(),
        stamp: hlc.tick(),
        expires_at: author.expires_at,
        prev_hash: head.hash.clone(),
        hash: Hash::genesis(),
        body,
    };
    let item = step.to_item();
    let item = match &key {
        Some(key) => cipher::encrypt(item, key),
        None => item,
    };
    step.hash = item.hash();
    if store.has_receipts() && receipt::is_due(&step.body) {
        receipt::write(store, hlc, &author.session, &item, author.expires_at).await?;
    }
    match put_until_known(store, hlc, &item, &Condition::Absent).await? {
        Written::Refused(Some(there)) if there == item => {}
        Written::Done => {}
        Written::Refused(Some(there)) => {
            let winner = Step::from_item(&there).map_err(Error::from)?;
            hlc.observe(winner.stamp);
            return Err(AppendError::Collision(Box::new(read::resolve(store, winner).await?)));
        }
        Written::Refused(None) => {
            let lost = "the store rejected a record as existing, but has no such record";
            return Err(AppendError::Store(Error::Corrupt(lost.into())));
        }
    }
    Ok(step.try_map(|_| Ok::<_, TooLarge>(content))?)
}

/// Writes an item, and repeats the write until its result is known, at most [`WRITE_ATTEMPTS_MAX`]
/// times. If the same item already exists, an earlier attempt succeeded.
///
/// # Errors
/// The last attempt's error, or one that a retry cannot help.
pub async fn put_until_known<S: Store>(
    store: &S,
    hlc: &Hlc,
    item: &Item,
    condition: &Condition,
) -> Result<Written, Error> {
    let mut attempt = 1;
    loop {
        match store.put(item.clone(), condition.clone()).await {
            Err(error) if attempt < WRITE_ATTEMPTS_MAX => match error.retry() {
                // The caller compares what refuses the condition with the item.
                Retry::After(pause) | Retry::Unknown(pause) => {
                    pause_for(hlc, pause * attempt).await;
                }
                Retry::Never => return Err(error),
            },
            known => return known,
        }
        attempt += 1;
    }
}

#[cfg(feature = "clock")]
async fn pause_for(hlc: &Hlc, pause: std::time::Duration) {
    hlc.clock().sleep(pause).await;
}

#[cfg(not(feature = "clock"))]
async fn pause_for(_: &Hlc, _: std::time::Duration) {}

/// How a session ends.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    pub ending: Ending,
    pub error: Option<ErrorMessage>,
    pub category: Option<String>,
    /// The result, or what is known about the failure.
    pub result: Value,
}

/// Ends a session from outside its agent, unless it has ended. Returns its end step, of any
/// writer.
///
/// If another record takes the number first, the next number is tried. This decides between a
/// cancellation and a completion at the same time.
///
/// # Errors
/// The store cannot be read or written.
pub async fn end_session<S: Store>(
    store: &S,
    hlc: &Hlc,
    author: &Author,
    end: &End,
) -> Result<Step<Value>, AppendError> {
    let mut newest = match read::newest_step(store, &author.session).await? {
        Some(step) => Some(read::resolve(store, step).await?),
        None => None,
    };
    for _ in 0..END_COLLISIONS_MAX {
        let (head, epoch) = match &newest {
            Some(step) if matches!(step.body, StepBody::End { .. }) => {
                hlc.observe(step.stamp);
                return Ok(step.clone());
            }
            Some(step) => (Head::after(step), step.epoch),
            None => (Head::genesis(), 0),
        };
        let body = StepBody::End {
            answered_by: None,
            ending: end.ending,
            error: end.error.clone(),
            category: end.category.clone(),
            payload: end.result.clone(),
        };
        match append(store, hlc, author, &head, epoch, body).await {
            Err(AppendError::Collision(winner)) => newest = Some(*winner),
            decided => return decided,
        }
    }
    let busy = format!(
        "{END_COLLISIONS_MAX} other writers took the step's number while the session was being ended"
    );
    Err(AppendError::Store(Error::Unavailable(busy.into())))
}
