//! Writing steps: whoever gets number n + 1 has decided.

use serde_json::Value;

use crate::clock::{Hlc, Stamp};
use crate::error_message::ErrorMessage;
use crate::id::{Runner, SessionId};
use crate::item::{Hash, Item};
use crate::limits::{END_COLLISIONS_MAX, STEPS_MAX, WRITE_ATTEMPTS_MAX};
use crate::payload::{Payload, TooLarge, part_items};
use crate::read;
use crate::step::{Ending, Step, StepBody};
use crate::store::{Condition, Error, Retry, Store, Written};

/// What a step's content is once its payload is read.
pub type Body = StepBody<Value>;

/// The end of a session's step chain, as one writer knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The newest step's number, 0 before the first.
    pub seq: u32,
    /// Its hash.
    pub hash: Hash,
    /// Its time: the step after it is later, whatever its writer's clock says.
    pub stamp: Stamp,
}

impl Head {
    /// The head of a session without steps.
    pub fn genesis() -> Self {
        Self { seq: 0, hash: Hash::genesis(), stamp: Stamp::default() }
    }

    /// The head after this step.
    pub fn after<P>(step: &Step<P>) -> Self {
        Self { seq: step.seq, hash: step.hash.clone(), stamp: step.stamp }
    }
}

/// Who writes, and for which session.
#[derive(Clone, Debug)]
pub struct Author {
    /// The session.
    pub session: SessionId,
    /// The process.
    pub runner: Runner,
    /// When the session's records expire, in seconds since 1970.
    pub expires_at: i64,
}

/// Why a step was not written. The variants are what the writer does next.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Another record has this number: fold it or stop, as its kind demands.
    #[error("step {} was decided by another writer", .0.seq)]
    Collision(Box<Step<Value>>),
    /// The payload can never be stored.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The session has used up its numbers.
    #[error("the session has {STEPS_MAX} steps and takes no more")]
    Full,
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Writes the step after `head`, under `epoch`.
///
/// Large payloads are written first, so that no record ever names bytes that are not there. A lost
/// answer is resolved by sending the same record again: finding it there means that it had landed.
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
    let (mut content, mut parts) = (Value::Null, Vec::new());
    let body = body.try_map(|json| {
        let encoded = Payload::encode(&json)?;
        parts = part_items(&author.session, author.expires_at, &encoded);
        content = json;
        Ok::<_, TooLarge>(encoded.payload)
    })?;
    for part in parts {
        // The address is the content's hash: whoever was first wrote the same bytes.
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
    step.hash = item.hash();
    match put_until_known(store, hlc, &item, &Condition::Absent).await? {
        Written::Refused(Some(there)) if there == item => {}
        Written::Done => {}
        Written::Refused(Some(there)) => {
            let winner = Step::from_item(&there).map_err(Error::from)?;
            hlc.observe(winner.stamp);
            return Err(AppendError::Collision(Box::new(read::resolve(store, winner).await?)));
        }
        Written::Refused(None) => {
            let lost = "the store refused a record as present and then had none";
            return Err(AppendError::Store(Error::Corrupt(lost.into())));
        }
    }
    Ok(step.try_map(|_| Ok::<_, TooLarge>(content))?)
}

/// Writes an item as often as it takes to know what became of it, within
/// [`WRITE_ATTEMPTS_MAX`]. An item that is refused because it is there itself had landed before.
///
/// # Errors
/// The last try's error, or one that trying again cannot help.
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
                Retry::After(pause) => pause_for(hlc, pause * attempt).await,
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

/// How a session ends, and what is said about it.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// The way it ends.
    pub ending: Ending,
    /// What went wrong.
    pub error: Option<ErrorMessage>,
    /// The error's category.
    pub category: Option<String>,
    /// The result, or what is known of the failure.
    pub result: Value,
}

/// Ends a session from outside its agent, unless it has ended: returns the step that ended it,
/// whoever wrote it.
///
/// Records that come first are stepped over; that is how cancelling against completing is decided.
///
/// # Errors
/// When the store cannot be read or written.
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
    let busy = format!("{END_COLLISIONS_MAX} records came first while ending the session");
    Err(AppendError::Store(Error::Unavailable(busy.into())))
}
