//! Receipts: proof that the component that takes people's decisions wrote a step.
//!
//! In an account the agents' role may write steps of every session: IAM restricts a role to partitions, not to kinds of
//! records. So an answer, or another step with a person's decision, has a receipt in a partition that only the poller's
//! role may write. Without it an agent does not go on, and a verification names the step.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::chain::put_until_known;
use crate::clock::Hlc;
use crate::id::SessionId;
use crate::item::{Hash, Item};
use crate::key::{self, attribute};
use crate::step::{KIND, SUBJECT, Step, StepBody, StepKind};
use crate::store::{Condition, Error, Query, Store, query_all};
use crate::version::NOTE_VERSION;

/// The hashes of the steps that have a receipt.
pub type Receipts = BTreeSet<Hash>;

/// Whether a step with this content has a receipt.
pub fn is_due<P>(body: &StepBody<P>) -> bool {
    match body {
        StepBody::Answer { .. } => true,
        StepBody::Note { subject, principal, .. } => principal.is_some() || subject == NOTE_VERSION,
        _ => false,
    }
}

/// Whether a stored step has a receipt.
pub fn is_due_of(step: &Item) -> bool {
    let kind = step.text_opt(KIND).and_then(StepKind::parse);
    match kind {
        Some(StepKind::Answer) => true,
        Some(StepKind::Note) => {
            let is_move = step.text_opt(SUBJECT) == Some(NOTE_VERSION);
            is_move || step.attributes.contains_key(attribute::PRINCIPAL)
        }
        _ => false,
    }
}

/// Writes the receipt of a step, before the step: one of a step that was never written allows nothing.
///
/// # Errors
/// The store cannot be written.
pub(crate) async fn write<S: Store>(
    store: &S,
    hlc: &Hlc,
    session: &SessionId,
    step: &Item,
    expires_at: i64,
) -> Result<(), Error> {
    let receipt = Item::new(key::receipts(session), step.hash().to_string())
        .with(attribute::VERSION, 1_i64)
        .with(attribute::EXPIRES_AT, expires_at);
    put_until_known(store, hlc, &receipt, &Condition::Absent).await.map(drop)
}

/// Reads the receipts of a session.
///
/// # Errors
/// The store cannot be read.
pub async fn read<S: Store>(store: &S, session: &SessionId) -> Result<Receipts, Error> {
    let items = query_all(store, Query::all(key::receipts(session))).await?;
    Ok(items.iter().map(|item| Hash::from_record(&item.sk)).collect())
}

/// The number of the first of a session's steps that lacks its receipt, in a store that has them.
///
/// # Errors
/// The store cannot be read.
pub async fn missing<S: Store>(
    store: &S,
    session: &SessionId,
    steps: &[Step<Json>],
) -> Result<Option<u32>, Error> {
    let due = steps.iter().filter(|step| is_due(&step.body));
    let due: Vec<_> = due.map(|step| (step.seq, step.hash.clone())).collect();
    if !store.has_receipts() || due.is_empty() {
        return Ok(None);
    }
    let receipts = read(store, session).await?;
    Ok(due.into_iter().find(|(_, hash)| !receipts.contains(hash)).map(|(seq, _)| seq))
}
