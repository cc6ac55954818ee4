//! Where clients reach the stack: AWS's JSON protocol, `AgentCore`'s data plane, and our own API, on
//! one loopback port.

mod agentcore;
mod compare;
pub mod elsewhere;
mod guard;
mod health;
mod machine;
mod page;
mod plain;
mod resume;
mod sessions;
mod step_functions;
mod stream;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Response};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use graph::agent::Agent;
use journal::clock::Clock;
use journal::listing::Shelf;
use serde_json::{Value, json};
use workflow::admission::Limits;

use crate::bus::{Bus, Refused};
use crate::dynamodb;
use crate::executions::Executions;
use crate::host::Agents;
use crate::store::Journal;
use wire::Refusal;

pub use elsewhere::{Deed, Tell};
pub use guard::{Guard, TokenMissing};
pub use stream::Streams;

/// Largest request, in bytes: ten entries of an event bus.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

const EVENTS: &str = "AWSEvents.";
const STEP_FUNCTIONS: &str = "AWSStepFunctions.";

/// All that a request may reach.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The journal.
    pub store: Journal,
    /// The clock.
    pub clock: Clock,
    /// The executions.
    pub executions: Executions,
    /// The event bus.
    pub bus: Bus,
    /// The agents.
    pub agents: Agents,
    /// Their graphs, which name the calls of recorded sessions.
    pub graphs: Arc<[Agent]>,
    /// How many sessions of an agent may begin in an hour.
    pub admission: Limits,
    /// The streams of sessions' events.
    pub streams: Streams,
    /// What was listed before.
    pub shelf: Arc<Shelf>,
    /// The folder that holds the journal, absolute.
    pub data: PathBuf,
}

/// Whether the stack that runs the sessions serves a view of them, or a desk that only has their journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    Stack,
    Desk,
}

impl Endpoint {
    /// The routes, behind a guard.
    pub fn router(self, guard: Guard) -> Router {
        Router::new()
            .route("/", post(aws))
            .route("/runtimes/{arn}/invocations", post(agentcore::invoke))
            .route("/runtimes/{arn}/stopruntimesession", post(agentcore::stop))
            .route("/healthz", get(health))
            .route("/metrics", get(metrics))
            .route("/api/sessions", get(sessions::list))
            .route("/api/histogram", get(sessions::histogram))
            .route("/api/sessions/{id}", get(sessions::show))
            .merge(page::views(Server::Stack))
            .route("/api/sessions/{id}/events", get(stream::events))
            .route("/api/sessions/{id}/cancel", post(sessions::cancel))
            .route("/api/sessions/{id}/resume", post(resume::resume))
            .route("/api/sessions/{id}/answer", post(sessions::answer))
            .route("/login", post(guard::log_in))
            .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
            .layer(from_fn_with_state(guard.clone(), guard::check))
            .merge(plain::views(guard.clone(), Server::Stack))
            // They hold no secret: who has no token yet gets the page that asks for it.
            .merge(page::files().layer(from_fn_with_state(guard, guard::check_address)))
            .with_state(self)
    }
}

/// `POST /`: the service and the action are in `X-Amz-Target`.
async fn aws(
    State(endpoint): State<Endpoint>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response<Body> {
    let target = headers.get("x-amz-target").and_then(|value| value.to_str().ok());
    let answer = match body {
        Ok(body) => dispatch(&endpoint, target.unwrap_or_default(), &body).await,
        Err(rejection) => {
            Err(Refusal::new(rejection.status().as_u16(), SERIALIZATION, rejection.body_text()))
        }
    };
    wire::aws(answer, wire::protocol(&headers))
}

const SERIALIZATION: &str = "com.amazon.coral.service#SerializationException";

async fn dispatch(endpoint: &Endpoint, target: &str, body: &[u8]) -> Result<Value, Refusal> {
    if let Some(action) = target.strip_prefix(dynamodb::TARGET_PREFIX) {
        return Ok(dynamodb::handle(endpoint.executions.store(), action, body).await?);
    }
    let parsed = || match serde_json::from_slice::<Value>(body) {
        Ok(body @ Value::Object(_)) => Ok(body),
        Ok(_) => Err(Refusal::bad(SERIALIZATION, "the body is no JSON object")),
        Err(error) => Err(Refusal::bad(SERIALIZATION, error.to_string())),
    };
    if let Some(action) = target.strip_prefix(STEP_FUNCTIONS) {
        return step_functions::handle(&endpoint.executions, action, &parsed()?).await;
    }
    match target.strip_prefix(EVENTS) {
        Some("PutEvents") => {
            endpoint.bus.put_events(&parsed()?).await.map_err(|refused| match refused {
                Refused::Validation(message) => Refusal::bad("ValidationException", message),
                Refused::Serialization(message) => Refusal::bad(SERIALIZATION, message),
                Refused::NoSuchBus(_) => {
                    Refusal::bad("ResourceNotFoundException", refused.to_string())
                }
            })
        }
        _ => Err(Refusal::unknown_operation()),
    }
}

async fn health(State(endpoint): State<Endpoint>) -> Response<Body> {
    wire::api(Ok((
        200,
        json!({
            "status": "ok",
            "data": endpoint.data.display().to_string(),
            "version": env!("CARGO_PKG_VERSION"),
        }),
    )))
}

/// The counts that the file holds and what this process has counted, in Prometheus' text format.
async fn metrics(State(endpoint): State<Endpoint>) -> Response<Body> {
    match endpoint.executions.counts().await {
        Ok(counts) => {
            let mut text = String::from(
                "# HELP daybook_executions Executions in the journal's file, by status.\n\
                 # TYPE daybook_executions gauge\n",
            );
            for (status, count) in counts {
                text.push_str(&format!("daybook_executions{{status=\"{status}\"}} {count}\n"));
            }
            text.push_str(&telemetry::figures::render());
            wire::respond(200, "text/plain; version=0.0.4", text, None)
        }
        Err(error) => wire::api(Err(Refusal::journal(&error))),
    }
}
