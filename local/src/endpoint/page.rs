//! The page, and what it asks for besides the API that the command line shares: a session's timeline
//! drawn up, one record of it whole, and whether its records are what was written.

use std::sync::Arc;

use agents::incident::field_path::FieldPath;
use agents::named;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::Response;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue};
use axum::routing::get;
use graph::effect::ToolCall;
use journal::lease::Lease;
use journal::step::{Step, StepBody};
use journal::{export, verify};
use serde_json::{Value, json};
use timeline::conclusion::{Conclusion, Known};
use timeline::drawing::Drawing;
use timeline::evidence::{Seen, citations};
use timeline::ledger::Ledger;
use timeline::page::{FILES, File, POLICY};
use timeline::runs::runs;
use timeline::waterfall::Waterfall;

use super::Endpoint;
use super::sessions::{Reply, existing};
use super::wire::{self, Refusal};
use super::{compare, health, machine};
use crate::view;

/// Most lines about damage that are listed; `daybook verify` has all of them.
const DAMAGE_MAX: usize = 50;

/// What else keeps a browser from making more of our answers than they are.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    // Another version of the program has other files under the same names.
    (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    (HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff")),
    (HeaderName::from_static("referrer-policy"), HeaderValue::from_static("no-referrer")),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// The page's files.
pub(super) fn files() -> Router<Endpoint> {
    FILES.iter().fold(Router::new(), |router, file| {
        router.route(file.path, get(|| std::future::ready(serve(file))))
    })
}

/// What the page reads beside the API that the command line shares.
pub(super) fn views() -> Router<Endpoint> {
    Router::new()
        .route("/api/sessions/{id}/timeline", get(timeline))
        .route("/api/sessions/{id}/record", get(record))
        .route("/api/sessions/{id}/verify", get(verification))
        .route("/api/compare", get(compare::compare))
        .route("/api/health", get(health::health))
}

fn serve(file: &File) -> Response<Body> {
    let mut response = wire::respond(200, file.content_type, file.text, None);
    response.headers_mut().extend(HEADERS);
    response
}

/// `GET /api/sessions/{id}/timeline`: the session, its records on one axis, its agent's graph with
/// the path that it took (null when this program has no such agent, or another version of it), its
/// state machine with the same, who worked when, what was spent, and what came of it.
async fn timeline(State(endpoint): State<Endpoint>, Path(id): Path<String>) -> Response<Body> {
    wire::api(draw(&endpoint, &id).await)
}

/// `GET /api/sessions/{id}/record?sk=…`: one event or step, whole.
async fn record(
    State(endpoint): State<Endpoint>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    wire::api(find(&endpoint, &id, query.as_deref().unwrap_or_default()).await)
}

/// `GET /api/sessions/{id}/verify`: whether the session's records are what was written.
async fn verification(State(endpoint): State<Endpoint>, Path(id): Path<String>) -> Response<Body> {
    wire::api(check(&endpoint, &id).await)
}

async fn draw(endpoint: &Endpoint, id: &str) -> Reply {
    let records = existing(endpoint, id).await?;
    let now = endpoint.clock.now();
    let session = view::Session::of(&records.id, &records.events, &records.steps, now);
    let is_open = !session.status.is_terminal();
    let calls = calls(endpoint, &records.steps);
    let with_calls = || records.steps.iter().zip(&calls);
    let waterfall = Waterfall::of(
        &records.events,
        with_calls().map(|(step, call)| (step, call.clone())),
        is_open,
        now,
    );
    let agent = session.agent.as_deref().and_then(|agent| named(&endpoint.graphs, agent));
    let graph = agent.map(|agent| Drawing::of(&agent.outline(), &records.steps));
    let machine = machine::walked(endpoint, &records.events).await?;
    let ledger = Ledger::of(with_calls().map(|(step, call)| (step, call.as_ref())));
    let began = waterfall.began.unwrap_or_default();
    let runs = runs(&records.events, &records.steps, began, is_open);
    let lease = Lease::read(&endpoint.store, &records.id).await;
    let lease = lease.map_err(|error| Refusal::journal(&error))?.filter(|_| is_open);
    let lease = lease.map(|lease| json!({ "epoch": lease.epoch, "beat_at": lease.beat_at }));
    let conclusion = Conclusion::of(&Known {
        status: session.status,
        agent: session.agent.as_deref(),
        error: session.error.as_deref(),
        category: session.error_category.as_deref(),
        result: session.result.as_ref(),
        waterfall: &waterfall,
    });
    let citations = session.result.as_ref().map(|result| {
        let seen: Vec<_> = with_calls().filter_map(|(step, call)| seen(step, call)).collect();
        citations(result, &seen, locate)
    });
    Ok((
        200,
        json!({
            "session": session, "waterfall": waterfall, "graph": graph, "machine": machine,
            "ledger": ledger, "runs": runs, "lease": lease, "conclusion": conclusion,
            "citations": citations,
        }),
    ))
}

/// The tool call that each step is about.
pub(super) fn calls(endpoint: &Endpoint, steps: &[Step<Value>]) -> Vec<Option<ToolCall>> {
    let mut calls = view::Calls::new(Arc::clone(&endpoint.graphs));
    steps.iter().map(|step| calls.of(step)).collect()
}

fn seen<'a>(step: &'a Step<Value>, call: &Option<ToolCall>) -> Option<Seen<'a>> {
    let StepBody::Outcome { payload, .. } = &step.body else { return None };
    Some(Seen { seq: step.seq, tool: call.as_ref()?.tool.clone(), payload })
}

fn locate(field: &str, content: &Value) -> Option<String> {
    FieldPath::parse(field).ok()?.pointer(content)
}

async fn find(endpoint: &Endpoint, id: &str, query: &str) -> Reply {
    let records = existing(endpoint, id).await?;
    let sk = wire::parameter(query, "sk").unwrap_or_default();
    if let Some(event) = records.events.iter().find(|event| event.sk == sk) {
        return Ok((200, json!(view::Event::of(event))));
    }
    let calls = calls(endpoint, &records.steps);
    let found = records.steps.iter().zip(calls).find(|(s, _)| journal::key::step(s.seq) == sk);
    let (step, call) = found.ok_or_else(|| {
        Refusal::new(404, "NoRecord", "the session has no record with this sort key")
    })?;
    let mut record = json!(view::Step::of(step, call));
    record["prev_hash"] = json!(step.prev_hash.to_string());
    record["runner"] = json!(step.runner.as_str());
    Ok((200, record))
}

async fn check(endpoint: &Endpoint, id: &str) -> Reply {
    let records = existing(endpoint, id).await?;
    let items = export::records(&endpoint.store, &records.id).await;
    let items = items.map_err(|error| Refusal::journal(&error))?;
    let now = endpoint.clock.now();
    let report = verify::verify(&records.id, &items, &verify::Anchors::default(), now);
    let damage: Vec<_> = report.damage.iter().take(DAMAGE_MAX).map(ToString::to_string).collect();
    Ok((
        200,
        json!({
            "sound": report.is_sound(), "state": report.state.to_string(), "records": items.len(),
            "damage": damage, "unsealed": report.unsealed,
        }),
    ))
}
