//! The page, and what it asks for besides the API that the command line shares: a session's timeline
//! drawn up, one record of it whole, and whether its records are what was written.

use std::sync::Arc;

use agents::incident::field_path::FieldPath;
use agents::named;
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, State};
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
use timeline::evidence::{Citation, Seen, citations};
use timeline::ledger::Ledger;
use timeline::page::{FILES, File, POLICY};
use timeline::runs::runs;
use timeline::waterfall::Waterfall;

use super::sessions::{Records, Reply, existing};
use super::wire::{self, Refusal};
use super::{Endpoint, Server};
use super::{compare, health, machine};
use crate::view;

/// Most lines about damage that are listed; `daybook verify` has all of them.
const DAMAGE_MAX: usize = 50;

/// What else keeps a browser from making more of our answers than they are.
const HEADERS: [(HeaderName, HeaderValue); 3] = [
    // Another version of the program has other files under the same names.
    (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    (HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff")),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

const REFERRER_POLICY: HeaderName = HeaderName::from_static("referrer-policy");

/// The page's files.
pub(super) fn files() -> Router<Endpoint> {
    FILES.iter().fold(Router::new(), |router, file| {
        router.route(file.path, get(|| std::future::ready(serve(file))))
    })
}

/// What the page reads beside the API that the command line shares.
pub(super) fn views(server: Server) -> Router<Endpoint> {
    Router::new()
        .route("/api/sessions/{id}/timeline", get(timeline))
        .route("/api/sessions/{id}/record", get(record))
        .route("/api/sessions/{id}/verify", get(verification))
        .route("/api/compare", get(compare::compare))
        .route("/api/health", get(health::health).layer(Extension(server)))
}

fn serve(file: &File) -> Response<Body> {
    secured(wire::respond(200, file.content_type, file.text, None), POLICY, "no-referrer")
}

/// An answer that a browser does no more with than the policy says, nor tells others where it comes from.
pub(super) fn secured(
    mut response: Response<Body>,
    policy: &'static str,
    referrer: &'static str,
) -> Response<Body> {
    let headers = response.headers_mut();
    headers.extend(HEADERS);
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static(referrer));
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

/// A session, and what is made of its records to be looked at.
pub(super) struct Drawn {
    pub(super) records: Records,
    /// The tool call that each step is about.
    pub(super) calls: Vec<Option<ToolCall>>,
    pub(super) session: view::Session,
    pub(super) waterfall: Waterfall,
    pub(super) conclusion: Option<Conclusion>,
    /// What the claims of its result rest on, if it has one.
    pub(super) citations: Option<Vec<Citation>>,
}

impl Drawn {
    pub(super) async fn of(endpoint: &Endpoint, id: &str) -> Result<Self, Refusal> {
        let records = existing(endpoint, id).await?;
        let now = endpoint.clock.now();
        let session = view::Session::of(&records.id, &records.events, &records.steps, now);
        let calls = calls(endpoint, &records.steps);
        let with_calls = || records.steps.iter().zip(&calls);
        let waterfall = Waterfall::of(
            &records.events,
            with_calls().map(|(step, call)| (step, call.clone())),
            !session.status.is_terminal(),
            now,
        );
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
        Ok(Self { records, calls, session, waterfall, conclusion, citations })
    }

    /// One of its records, whole; null if it has none with this sort key.
    pub(super) fn record(&self, sk: &str) -> Value {
        if let Some(event) = self.records.events.iter().find(|event| event.sk == sk) {
            return json!(view::Event::of(event));
        }
        let mut steps = self.records.steps.iter().zip(&self.calls);
        let found = steps.find(|(step, _)| journal::key::step(step.seq) == sk);
        let Some((step, call)) = found else { return Value::Null };
        let mut record = json!(view::Step::of(step, call.clone()));
        record["prev_hash"] = json!(step.prev_hash.to_string());
        record["runner"] = json!(step.runner.as_str());
        record
    }
}

async fn draw(endpoint: &Endpoint, id: &str) -> Reply {
    let drawn = Drawn::of(endpoint, id).await?;
    let Drawn { records, calls, session, waterfall, conclusion, citations } = &drawn;
    let is_open = !session.status.is_terminal();
    let agent = session.agent.as_deref().and_then(|agent| named(&endpoint.graphs, agent));
    let graph = agent.map(|agent| Drawing::of(&agent.outline(), &records.steps));
    let machine = machine::walked(endpoint, &records.events).await?;
    let with_calls = records.steps.iter().zip(calls);
    let ledger = Ledger::of(with_calls.map(|(step, call)| (step, call.as_ref())));
    let began = waterfall.began.unwrap_or_default();
    let runs = runs(&records.events, &records.steps, began, is_open);
    let lease = Lease::read(&endpoint.store, &records.id).await;
    let lease = lease.map_err(|error| Refusal::journal(&error))?.filter(|_| is_open);
    let lease = lease.map(|lease| json!({ "epoch": lease.epoch, "beat_at": lease.beat_at }));
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
    let drawn = Drawn::of(endpoint, id).await?;
    match drawn.record(&wire::parameter(query, "sk").unwrap_or_default()) {
        Value::Null => {
            let why = "the session has no record with this sort key";
            Err(Refusal::new(404, "NoRecord", why))
        }
        record => Ok((200, record)),
    }
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
