//! The page, and what it asks for besides the API that the command line shares: a session's timeline
//! drawn up, and one record of it whole.

use std::sync::Arc;

use agents::named;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::Response;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue};
use axum::routing::get;
use serde_json::json;
use timeline::drawing::Drawing;
use timeline::page::{FILES, File, POLICY};
use timeline::waterfall::Waterfall;

use super::Endpoint;
use super::sessions::{Reply, existing};
use super::wire::{self, Refusal};
use crate::view;

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

fn serve(file: &File) -> Response<Body> {
    let mut response = wire::respond(200, file.content_type, file.text, None);
    response.headers_mut().extend(HEADERS);
    response
}

/// `GET /api/sessions/{id}/timeline`: the session, its records on one axis, its agent's graph with
/// the path that it took (null when this program has no such agent, or another version of it).
pub(super) async fn timeline(
    State(endpoint): State<Endpoint>,
    Path(id): Path<String>,
) -> Response<Body> {
    wire::api(draw(&endpoint, &id).await)
}

/// `GET /api/sessions/{id}/record?sk=…`: one event or step, whole.
pub(super) async fn record(
    State(endpoint): State<Endpoint>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    wire::api(find(&endpoint, &id, query.as_deref().unwrap_or_default()).await)
}

async fn draw(endpoint: &Endpoint, id: &str) -> Reply {
    let records = existing(endpoint, id).await?;
    let now = endpoint.clock.now();
    let session = view::Session::of(&records.id, &records.events, &records.steps, now);
    let mut calls = view::Calls::new(Arc::clone(&endpoint.graphs));
    let steps = records.steps.iter().map(|step| (step, calls.of(step)));
    let waterfall = Waterfall::of(&records.events, steps, !session.status.is_terminal(), now);
    let agent = session.agent.as_deref().and_then(|agent| named(&endpoint.graphs, agent));
    let graph = agent.map(|agent| Drawing::of(&agent.outline(), &records.steps));
    Ok((200, json!({ "session": session, "waterfall": waterfall, "graph": graph })))
}

async fn find(endpoint: &Endpoint, id: &str, query: &str) -> Reply {
    let records = existing(endpoint, id).await?;
    let sk = query.split('&').find_map(|pair| pair.strip_prefix("sk="));
    let sk = sk.unwrap_or_default().replace("%23", "#").replace("%3A", ":");
    if let Some(event) = records.events.iter().find(|event| event.sk == sk) {
        return Ok((200, json!(view::Event::of(event))));
    }
    let mut calls = view::Calls::new(Arc::clone(&endpoint.graphs));
    for step in &records.steps {
        let call = calls.of(step);
        if journal::key::step(step.seq) == sk {
            return Ok((200, json!(view::Step::of(step, call))));
        }
    }
    Err(Refusal::new(404, "NoRecord", "the session has no record with this sort key"))
}
