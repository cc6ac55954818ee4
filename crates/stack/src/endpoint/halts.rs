//! `GET /api/halts`, `POST /api/halt` and `POST /api/unhalt`: agents that begin nothing new.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use control::Control;
use control::halt::HaltRequest;
use graph::agent::Agent;
use journal::halt::{Change, Halts};
use journal::principal::Principal;
use serde_json::json;

use super::Aws;
use super::sessions::Reply;
use super::wire::{self, Refusal};
use crate::store::Journal;

#[derive(Clone)]
struct Halting {
    control: Control<Journal, Aws>,
    agents: Arc<[Agent]>,
}

pub(super) fn router(control: Control<Journal, Aws>, agents: Arc<[Agent]>) -> Router {
    Router::new()
        .route("/api/halts", get(list))
        .route("/api/halt", post(halt))
        .route("/api/unhalt", post(unhalt))
        .with_state(Halting { control, agents })
}

async fn list(State(halting): State<Halting>) -> Response<Body> {
    let halts = Halts::read(&halting.control.store).await;
    let reply = halts.map(|halts| (200, json!({ "halts": halts.in_force })));
    wire::api(reply.map_err(|error| Refusal::journal(&error)))
}

async fn halt(
    State(halting): State<Halting>,
    Extension(by): Extension<Principal>,
    body: Bytes,
) -> Response<Body> {
    wire::api(change(&halting, Change::Halt, &body, &by).await)
}

async fn unhalt(
    State(halting): State<Halting>,
    Extension(by): Extension<Principal>,
    body: Bytes,
) -> Response<Body> {
    wire::api(change(&halting, Change::Unhalt, &body, &by).await)
}

async fn change(halting: &Halting, change: Change, body: &[u8], by: &Principal) -> Reply {
    let request: HaltRequest = serde_json::from_slice(body)
        .map_err(|error| Refusal::bad("InvalidBody", error.to_string()))?;
    let known: Vec<&str> = halting.agents.iter().map(Agent::name).collect();
    let changed = halting.control.change_halts(change, &request, by, &known).await?;
    Ok((202, json!(changed)))
}
