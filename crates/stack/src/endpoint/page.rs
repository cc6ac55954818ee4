//! The web page and the API that only it uses: a session's timeline, single records, and verification.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::Response;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY,
};
use axum::middleware::from_fn;
use axum::routing::get;
use graph::effect::ToolCall;
use graph::presentation::Presentation;
use graph::request::Requests;
use journal::id::SessionId;
use journal::lease::Lease;
use journal::log::Trust;
use journal::step::{Step, StepBody};
use journal::{export, verify};
use packs::named;
use serde_json::{Value, json};
use views::drawing::Drawing;
use views::evidence::{Citation, Seen, citations};
use views::failure::{Failure, Known};
use views::ledger::Ledger;
use views::page::{FILES, File, POLICY};
use views::runs::runs;
use views::waterfall::Waterfall;

use super::sessions::{Records, Reply, known, session_id};
use super::wire::{self, Refusal};
use super::{Reader, compare, compression, health, machine};
use crate::stack::chain;
use crate::verifier::{Verified, Verifier};
use crate::view;

/// Most lines of damage in the response. `daybook verify` lists all.
const DAMAGE_MAX: usize = 50;

/// Headers that keep a browser from interpreting responses in other ways.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    // Another version of the program has other files under the same names.
    (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    (HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff")),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

pub(super) fn files() -> Router {
    let files = FILES.iter().fold(Router::new(), |router, file| {
        router.route(file.path, get(|| std::future::ready(serve(file))))
    });
    files.layer(from_fn(compression::compress))
}

/// The API that only the page uses.
pub(super) fn views() -> Router<Reader> {
    Router::new()
        .route("/api/sessions/{id}/timeline", get(timeline))
        .route("/api/sessions/{id}/record", get(record))
        .route("/api/sessions/{id}/verify", get(verification))
        .route("/api/compare", get(compare::compare))
        .route("/api/health", get(health::health))
}

/// Serves a file with the security headers.
fn serve(file: &File) -> Response<Body> {
    let mut response = wire::respond(200, file.content_type, file.text, None);
    response.headers_mut().extend(HEADERS);
    response
}

/// `GET /api/sessions/{id}/timeline`: the session, its records on one time axis, the path through its
/// agent's graph (null if this program lacks the agent or has another version), the path through its
/// state machine (likewise), its runs, usage, failure and conclusion, and the records that the
/// conclusion cites.
async fn timeline(State(reader): State<Reader>, Path(id): Path<String>) -> Response<Body> {
    wire::api(draw(&reader, &id).await)
}

/// `GET /api/sessions/{id}/record?sk=…`: one whole event or step.
async fn record(
    State(reader): State<Reader>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    wire::api(find(&reader, &id, query.as_deref().unwrap_or_default()).await)
}

/// `GET /api/sessions/{id}/verify`: whether the session's records are unchanged.
async fn verification(State(reader): State<Reader>, Path(id): Path<String>) -> Response<Body> {
    wire::api(check(&reader, &id).await)
}

/// A session, with the views that the page shows.
pub(super) struct Drawn {
    pub(super) records: Records,
    /// The tool call of each step.
    pub(super) calls: Vec<Option<ToolCall>>,
    pub(super) session: view::Session,
    pub(super) waterfall: Waterfall,
    pub(super) failure: Option<Failure>,
    /// The records that its findings cite, if it has a conclusion.
    pub(super) citations: Option<Vec<Citation>>,
}

impl Drawn {
    pub(super) async fn of(reader: &Reader, id: &str) -> Result<Self, Refusal> {
        let now = reader.clock.now();
        let (records, session) = known(reader, id, now).await?;
        let calls = calls(reader, &records.steps);
        let with_calls = || records.steps.iter().zip(&calls);
        let waterfall = Waterfall::of(
            &records.events,
            with_calls().map(|(step, call)| (step, call.clone())),
            !session.status.is_terminal(),
            now,
        );
        let failure = Failure::of(&Known {
            status: session.status,
            agent: session.agent.as_deref(),
            presentation: &Presentation::among(&reader.graphs, session.agent.as_deref()),
            error: session.error.as_deref(),
            category: session.error_category.as_deref(),
            waterfall: &waterfall,
        });
        let citations = session.conclusion.as_ref().map(|conclusion| {
            let seen: Vec<_> = with_calls().filter_map(|(step, call)| seen(step, call)).collect();
            citations(conclusion, &seen)
        });
        Ok(Self { records, calls, session, waterfall, failure, citations })
    }

    /// One whole record; null if no record has this sort key.
    pub(super) fn record(&self, sk: &str) -> Value {
        if let Some(event) = self.records.events.iter().find(|event| event.sk == sk) {
            return json!(view::Event::of(event));
        }
        let mut requests = Requests::default();
        let steps = self.records.steps.iter().zip(&self.calls);
        let mut steps = steps.map(|(step, call)| (step, call, requests.of(step)));
        let found = steps.find(|(step, ..)| journal::key::step(step.seq) == sk);
        let Some((step, call, request)) = found else { return Value::Null };
        let mut record = json!(
            view::Step::of(step, call.clone()).traced(&self.records.steps).with_request(request)
        );
        record["prev_hash"] = json!(step.prev_hash.to_string());
        record["runner"] = json!(step.runner.as_str());
        record
    }
}

async fn draw(reader: &Reader, id: &str) -> Reply {
    let drawn = Drawn::of(reader, id).await?;
    let Drawn { records, calls, session, waterfall, failure, citations } = &drawn;
    let is_open = !session.status.is_terminal();
    let agent = session.agent.as_deref().and_then(|agent| named(&reader.graphs, agent));
    let graph = agent.map(|agent| Drawing::of(&agent.outline(), &records.steps));
    let machine = machine::walked(reader, &records.events).await?;
    let with_calls = records.steps.iter().zip(calls);
    let ledger = Ledger::of(with_calls.map(|(step, call)| (step, call.as_ref())));
    let began = waterfall.began.unwrap_or_default();
    let runs = runs(&records.events, &records.steps, began, is_open);
    let lease = Lease::read(&reader.store, &records.id).await;
    let lease = lease.map_err(|error| Refusal::journal(&error))?.filter(|_| is_open);
    let lease = lease.map(|lease| json!({ "epoch": lease.epoch, "beat_at": lease.heartbeat_at }));
    Ok((
        200,
        json!({
            "session": session, "waterfall": waterfall, "graph": graph, "machine": machine,
            "ledger": ledger, "runs": runs, "lease": lease, "failure": failure,
            "conclusion": session.conclusion, "citations": citations,
        }),
    ))
}

/// The tool call of each step.
pub(super) fn calls(reader: &Reader, steps: &[Step<Value>]) -> Vec<Option<ToolCall>> {
    let mut calls = view::Calls::new(Arc::clone(&reader.graphs));
    steps.iter().map(|step| calls.of(step)).collect()
}

fn seen<'a>(step: &'a Step<Value>, call: &Option<ToolCall>) -> Option<Seen<'a>> {
    let StepBody::Outcome { payload, .. } = &step.body else { return None };
    Some(Seen { seq: step.seq, tool: call.as_ref()?.tool.clone(), payload })
}

async fn find(reader: &Reader, id: &str, query: &str) -> Reply {
    let drawn = Drawn::of(reader, id).await?;
    match drawn.record(&wire::parameter(query, "sk").unwrap_or_default()) {
        Value::Null => {
            let why = "the session has no record with this sort key";
            Err(Refusal::new(404, "NoRecord", why))
        }
        record => Ok((200, record)),
    }
}

async fn check(reader: &Reader, id: &str) -> Reply {
    let id = session_id(id)?;
    let found = verified(reader, &id).await?;
    let Verified { report, records } =
        found.ok_or_else(|| Refusal::new(404, "NoSession", format!("there is no session {id}")))?;
    let damage: Vec<_> = report.damage.iter().take(DAMAGE_MAX).map(ToString::to_string).collect();
    Ok((
        200,
        json!({
            "sound": report.is_sound(), "word": report.word(), "state": report.state.to_string(), "records": records,
            "outcome": report.outcome().as_str(), "anchors": report.anchors.iter().map(|anchor| anchor.as_str()).collect::<Vec<_>>(),
            "damage": damage, "unsealed": report.unsealed, "unmet": report.unmet,
            "erased": report.erased.is_some(),
        }),
    ))
}

/// In an account the page does not ask Step Functions: `daybook verify` does.
async fn verified(reader: &Reader, id: &SessionId) -> Result<Option<Verified>, Refusal> {
    let now = reader.clock.now();
    let journal = |error| Refusal::journal(&error);
    let Some(database) = reader.store.here() else {
        let items = export::records(&reader.store, id).await.map_err(journal)?;
        let report = verify::verify(id, &items, &verify::Anchors::default(), now);
        return Ok((!items.is_empty()).then_some(Verified { report, records: items.len() }));
    };
    let (database, keys) = (database.clone(), reader.keys.as_ref());
    let verifier = Verifier::new(database, keys, Trust::default(), None).await;
    let verifier = verifier.map_err(|error| Refusal::new(500, "Keys", chain(&error)))?;
    verifier.report(id, &[], now).await.map_err(journal)
}
