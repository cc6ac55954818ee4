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
use crate::stack::chain;

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

/// What a session's executions have recorded of its verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heads {
    /// Each head once: one that was forged contradicts the others.
    pub found: Vec<Hash>,
    /// The executions that cannot be read, and why. What they recorded is unknown.
    pub unreadable: Vec<String>,
}

/// All heads that the session's executions have recorded, in outputs and in replies of the poller. `named` are the ARNs
/// that its records name: a trigger may have named the first.
///
/// # Errors
/// If the store cannot be read. A damaged execution is no error.
pub async fn heads<S: ExecutionStore>(
    store: &S,
    session: &SessionId,
    named: BTreeSet<String>,
) -> Result<Heads, Error> {
    // The file of an imported session has no executions.
    if !store.holds_executions().await? {
        return Ok(Heads::default());
    }
    let (mut heads, mut unreadable) = (BTreeSet::new(), Vec::new());
    let arn =
        |resumes| names::execution_arn(names::STATE_MACHINE, &execution::name(session, resumes));
    for arn in named.into_iter().chain((0..=RESUMES_MAX).map(arn)).collect::<BTreeSet<_>>() {
        match heads_of(store, session, &arn).await {
            Ok(found) => heads.extend(found),
            Err(Error::Corrupt(why)) => {
                unreadable.push(format!("execution {arn} cannot be read: {}", chain(&*why)));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Heads { found: heads.into_iter().collect(), unreadable })
}

async fn heads_of<S: ExecutionStore>(
    store: &S,
    session: &SessionId,
    arn: &str,
) -> Result<Vec<Hash>, Error> {
    let Some(found) = store.find(arn).await? else { return Ok(Vec::new()) };
    let events = store.history(found.id, i64::MAX, true, EVENTS_MAX).await?;
    let history = events.iter().map(|event| past(event)).collect::<Result<Vec<_>, _>>()?;
    let mut heads = heads_in_history(session, &history);
    if let Some(output) = found.output {
        let output: Value = serde_json::from_str(&output).map_err(no_json)?;
        heads.extend(head_in_output(session, &output));
    }
    Ok(heads)
}

fn no_json(error: serde_json::Error) -> Error {
    Error::Corrupt(error.into())
}

fn past(event: &str) -> Result<Past, Error> {
    let event: Value = serde_json::from_str(event).map_err(no_json)?;
    let text = |pointer: &str| Some(event.pointer(pointer)?.as_str()?.to_owned());
    let entered = || text("/stateEnteredEventDetails/name").map(What::Entered);
    let succeeded = || text("/taskSucceededEventDetails/output").map(What::Succeeded);
    let number = |name: &str| {
        let number = event.get(name).and_then(Value::as_i64);
        number.ok_or_else(|| Error::Corrupt(format!("an event of it has no `{name}`").into()))
    };
    Ok(Past {
        id: number("id")?,
        previous: number("previousEventId")?,
        what: entered().or_else(succeeded).unwrap_or(What::Other),
    })
}
