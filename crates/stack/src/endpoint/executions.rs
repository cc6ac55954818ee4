//! The executions of users' state machines, for the page.

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::Response;
use axum::routing::get;
use journal::store::Error;
use serde_json::{Value, json};

use super::Aws;
use super::sessions::Reply;
use super::wire::{self, Refusal};
use crate::executions::Record;
use crate::names;

/// Most executions in the list.
const LISTED_MAX: usize = 100;

/// Most executions that are looked at for the list, those of Daybook's workflow included.
const SEARCHED_MAX: usize = 2_000;

/// Executions read at once.
const PAGE: usize = 200;

/// Most events of a history.
const EVENTS_MAX: usize = 1_000;

pub(super) fn router(aws: Aws) -> Router {
    Router::new()
        .route("/api/executions", get(list))
        .route("/api/execution", get(show))
        .with_state(aws)
}

/// `GET /api/executions`: the state machines of users, and their newest executions.
async fn list(State(aws): State<Aws>) -> Response<Body> {
    wire::api(listed(&aws).await)
}

/// `GET /api/execution?arn=…`: one execution with its history, as `GetExecutionHistory` has it.
async fn show(State(aws): State<Aws>, RawQuery(query): RawQuery) -> Response<Body> {
    wire::api(shown(&aws, query.as_deref().unwrap_or_default()).await)
}

async fn listed(aws: &Aws) -> Reply {
    let journal = |error| Refusal::journal(&error);
    let machines = aws.executions.user_machines().await.map_err(journal)?;
    let machines: Vec<Value> = machines
        .iter()
        .map(|machine| json!({ "name": machine.name, "type": machine.machine_type }))
        .collect();
    let (mut found, mut searched, mut before) = (Vec::new(), 0, None);
    while searched < SEARCHED_MAX && found.len() < LISTED_MAX {
        let page = aws.executions.list(None, before, PAGE).await.map_err(journal)?;
        searched += page.len();
        before = page.last().map(|record| record.id);
        let is_last = page.len() < PAGE;
        found.extend(page.into_iter().filter(|it| it.machine_arn != names::STATE_MACHINE_ARN));
        if is_last {
            break;
        }
    }
    found.truncate(LISTED_MAX);
    let executions: Vec<Value> = found.iter().map(summary).collect();
    Ok((200, json!({ "machines": machines, "executions": executions, "searched": searched })))
}

async fn shown(aws: &Aws, query: &str) -> Reply {
    let arn = wire::parameter(query, "arn").unwrap_or_default();
    let journal = |error| Refusal::journal(&error);
    let Some(record) = aws.executions.describe(&arn).await.map_err(journal)? else {
        return Err(Refusal::new(404, "NotFound", format!("there is no execution {arn}")));
    };
    let events = aws.executions.history(record.id, None, false, EVENTS_MAX + 1).await;
    let events = events.map_err(journal)?;
    let events: Result<Vec<Value>, _> = events.iter().map(|it| serde_json::from_str(it)).collect();
    let mut events = events.map_err(|error| journal(Error::Corrupt(error.into())))?;
    let is_cut = events.len() > EVENTS_MAX;
    events.truncate(EVENTS_MAX);
    let mut execution = summary(&record);
    execution["input"] = json!(record.input);
    execution["output"] = json!(record.output);
    execution["cause"] = json!(record.cause);
    Ok((200, json!({ "execution": execution, "history": events, "is_cut": is_cut })))
}

fn summary(record: &Record) -> Value {
    json!({
        "arn": record.arn,
        "name": record.name,
        "machine": names::machine_name(&record.machine_arn),
        "status": record.status,
        "started_ms": record.started_at.as_millis(),
        "stopped_ms": record.stopped_at.map(|at| at.as_millis()),
        "error": record.error,
    })
}
