//! The hashes of a session's verdict that its executions have recorded: an anchor outside its records.

use std::collections::BTreeSet;

use journal::id::SessionId;
use journal::item::Hash;
use journal::key::{self, attribute};
use journal::store::{Error, Query, Store, query_all};
use serde_json::Value;
use workflow::execution::{self, Past, RESUMES_MAX, What, head_in_output, heads_in_history};

use super::store::ExecutionStore;
use crate::names;

/// How many of the newest events of a history are searched: the poller's last reply is among them.
const EVENTS_MAX: usize = 64;

/// The ARNs of all executions that a session's events name. A forged event may name another one.
///
/// # Errors
/// If the store cannot be read.
pub async fn named<S: Store>(store: &S, session: &SessionId) -> Result<BTreeSet<String>, Error> {
    let events = query_all(store, Query::prefix(key::session(session), key::EVENT_PREFIX)).await?;
    let arns = events.iter().filter_map(|item| item.text_opt(attribute::EXECUTION_ARN));
    Ok(arns.map(str::to_owned).collect())
}

/// All heads that the session's executions have recorded, in outputs and in replies of the poller, each once: one that
/// was forged contradicts the others. `named` are the ARNs that its records name: a trigger may have named the first.
///
/// # Errors
/// If the store cannot be read.
pub async fn heads<S: ExecutionStore>(
    store: &S,
    session: &SessionId,
    named: BTreeSet<String>,
) -> Result<Vec<Hash>, Error> {
    let mut heads = BTreeSet::new();
    // The file of an imported session has no executions.
    if !store.holds_executions().await? {
        return Ok(Vec::new());
    }
    let arn =
        |resumes| names::execution_arn(names::STATE_MACHINE, &execution::name(session, resumes));
    for arn in named.into_iter().chain((0..=RESUMES_MAX).map(arn)).collect::<BTreeSet<_>>() {
        let Some(found) = store.find(&arn).await? else { continue };
        let events = store.history(found.id, i64::MAX, true, EVENTS_MAX).await?;
        let history: Vec<_> = events.iter().filter_map(|event| past(event)).collect();
        heads.extend(heads_in_history(session, &history));
        let output = found.output.and_then(|output| serde_json::from_str(&output).ok());
        heads.extend(output.and_then(|output: Value| head_in_output(session, &output)));
    }
    Ok(heads.into_iter().collect())
}

fn past(event: &str) -> Option<Past> {
    let event: Value = serde_json::from_str(event).ok()?;
    let text = |pointer: &str| Some(event.pointer(pointer)?.as_str()?.to_owned());
    let entered = || text("/stateEnteredEventDetails/name").map(What::Entered);
    let succeeded = || text("/taskSucceededEventDetails/output").map(What::Succeeded);
    Some(Past {
        id: event.get("id")?.as_i64()?,
        previous: event.get("previousEventId")?.as_i64()?,
        what: entered().or_else(succeeded).unwrap_or(What::Other),
    })
}
