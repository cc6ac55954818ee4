//! The hashes of a session's verdict that its executions have recorded: an anchor outside its records.

use journal::id::SessionId;
use journal::item::Hash;
use journal::store::Error;
use serde_json::Value;
use workflow::execution::{self, RESUMES_MAX, head_in};

use super::store::ExecutionStore;
use crate::names;

/// How many of the newest events of a history are searched: the poller's last reply is among them.
const EVENTS_MAX: usize = 64;

/// All heads that the session's executions have recorded, in outputs and histories, each once: one that was forged
/// contradicts the others. `first` is the ARN of its first execution, if a record names it.
///
/// # Errors
/// If the store cannot be read.
pub async fn heads<S: ExecutionStore>(
    store: &S,
    session: &SessionId,
    first: Option<&str>,
) -> Result<Vec<Hash>, Error> {
    let mut heads = Vec::new();
    // The file of an imported session has no executions.
    if !store.holds_executions().await? {
        return Ok(heads);
    }
    let named =
        |resumes| names::execution_arn(names::STATE_MACHINE, &execution::name(session, resumes));
    // A trigger may have named the first execution.
    for arn in first.map(str::to_owned).into_iter().chain((0..=RESUMES_MAX).map(named)) {
        let Some(found) = store.find(&arn).await? else { continue };
        let events = store.history(found.id, i64::MAX, true, EVENTS_MAX).await?;
        let recorded = found.output.into_iter().chain(events);
        let recorded = recorded.filter_map(|text| serde_json::from_str::<Value>(&text).ok());
        heads.extend(recorded.filter_map(|recorded| head_in(session, &recorded)));
    }
    heads.sort();
    heads.dedup();
    Ok(heads)
}
