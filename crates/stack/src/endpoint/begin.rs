//! Starts sessions over HTTP: `POST /api/sessions`, and `GET /api/agents` for what can be started.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response};
use axum::routing::post;
use axum::{Extension, Router};
use graph::agent::Agent;
use journal::principal::Principal;
use packs::named;
use serde_json::{Value, json};
use uuid::Uuid;
use workflow::trigger::Trigger;

use super::Reader;
use super::sessions::Reply;
use super::wire::{self, Refusal};
use crate::bus::{Bus, NotStarted};

pub(super) const SESSIONS: &str = "/api/sessions";

/// The header that makes a repeated request start one session.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Longest idempotency key, in bytes.
const KEY_BYTES_MAX: usize = 255;

/// The namespace of ids that are derived from idempotency keys.
const KEYS: Uuid = Uuid::from_u128(0x6d1f_0c5b_6f0e_4d55_9d0e_5c53_8a1f_7e21);

#[derive(Clone)]
struct Starter {
    bus: Bus,
    agents: Arc<[Agent]>,
}

pub(super) fn routes(bus: Bus, agents: Arc<[Agent]>) -> Router {
    Router::new().route(SESSIONS, post(start)).with_state(Starter { bus, agents })
}

/// `POST /api/sessions` with the detail of a trigger: `{"agent", "input", "model", "budget", …}`. Returns 202
/// with the `session_id`. With `Idempotency-Key`, the same key of the same caller returns the same session: 200
/// if the body is the same, 409 if not. The key is remembered as long as the session is.
async fn start(
    State(starter): State<Starter>,
    Extension(by): Extension<Principal>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    wire::api(begin(&starter, &by, &headers, &body).await)
}

/// `GET /api/agents`: the agents with the JSON schemas of their inputs, and whether this stack can start sessions.
pub(super) async fn agents(State(reader): State<Reader>) -> Response<Body> {
    let agents = reader.graphs.iter().map(described).collect::<Vec<_>>();
    wire::api(Ok((200, json!({ "agents": agents, "can_start": reader.stack.is_some() }))))
}

fn described(agent: &Agent) -> Value {
    json!({
        "name": agent.name(), "version": agent.version(), "summary": agent.summary(),
        "is_default": agent.profile().is_default, "input_schema": agent.input_schema(),
        "servers": agent.servers(), "critical": agent.critical(), "budget": agent.budget(),
    })
}

async fn begin(starter: &Starter, by: &Principal, headers: &HeaderMap, body: &[u8]) -> Reply {
    let detail = detail(&starter.agents, body)?;
    let id = id(headers, by)?;
    let is_new = starter.bus.trigger(&id, &detail, by).await?;
    let status = if is_new { 202 } else { 200 };
    Ok((status, json!({ "session_id": id, "is_new": is_new })))
}

/// The trigger's detail. It is refused here if the session would be: a person waits for the answer.
fn detail(agents: &[Agent], body: &[u8]) -> Result<Value, Refusal> {
    let invalid = |why: String| Refusal::bad("InvalidTrigger", why);
    let detail: Value =
        serde_json::from_slice(body).map_err(|error| invalid(format!("the body: {error}")))?;
    let Value::Object(fields) = &detail else {
        return Err(invalid("the body is not a JSON object".to_owned()));
    };
    let mut whole = fields.clone();
    whole.entry("agent").or_insert_with(|| "default".into());
    serde_json::from_value::<Trigger>(whole.into()).map_err(|error| invalid(error.to_string()))?;
    match fields.get("agent").and_then(Value::as_str) {
        Some(agent) if named(agents, agent).is_none() => {
            let known: Vec<_> = agents.iter().map(Agent::name).collect();
            let why = format!("no agent is named `{agent}`; registered: {}", known.join(", "));
            Err(Refusal::bad("UnknownAgent", why))
        }
        _ => Ok(detail),
    }
}

/// The id of the session: derived from the caller and the key, if there is one.
fn id(headers: &HeaderMap, by: &Principal) -> Result<String, Refusal> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(Uuid::new_v4().to_string()) };
    let key = key.to_str().ok().filter(|key| (1..=KEY_BYTES_MAX).contains(&key.len()));
    let key = key.ok_or_else(|| {
        let why =
            format!("Idempotency-Key: expected 1 to {KEY_BYTES_MAX} visible ASCII characters");
        Refusal::bad("InvalidIdempotencyKey", why)
    })?;
    Ok(Uuid::new_v5(&KEYS, format!("{by}\n{key}").as_bytes()).to_string())
}

impl From<NotStarted> for Refusal {
    fn from(error: NotStarted) -> Self {
        match error {
            NotStarted::IdTaken(id) => {
                let why = format!("this idempotency key started session {id} with another body");
                Self::new(409, "IdempotencyKeyReused", why)
            }
            NotStarted::Unreadable(_) => Self::new(409, "IdempotencyKeyReused", error.to_string()),
            NotStarted::Refused { code: code @ "InternalFailure", message } => {
                Self::new(503, code, message)
            }
            NotStarted::Refused { code, message } => Self::bad(code, message),
            NotStarted::NotAdmitted(why) => Self::not_admitted(why),
            NotStarted::Store(error) => Self::journal(&error),
        }
    }
}
