//! `POST /api/prune`, `POST /api/sessions/{id}/hold` and `release`.

use std::collections::BTreeSet;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::Response;
use axum::routing::post;
use axum::{Extension, Router};
use journal::id::SessionId;
use journal::log::{Decision, Label};
use journal::principal::Principal;
use serde_json::{Value, json};

use super::sessions::{Reply, session_id};
use super::wire::{self, Refusal};
use crate::keeping::{Fate, KeepError, Keeper, PRUNE_MAX};
use crate::stack::chain;

pub(super) const HOLD: &str = "/api/sessions/{id}/hold";
pub(super) const RELEASE: &str = "/api/sessions/{id}/release";

/// The label of a hold that gives none.
const LABEL: &str = "hold";

pub(super) fn router(keeper: Keeper) -> Router {
    Router::new()
        .route("/api/prune", post(prune))
        .route(HOLD, post(hold))
        .route(RELEASE, post(release))
        .with_state(keeper)
}

/// Takes `{"sessions", "keep_labels", "reason"}`, with at most [`PRUNE_MAX`] sessions.
async fn prune(
    State(keeper): State<Keeper>,
    Extension(by): Extension<Principal>,
    body: Bytes,
) -> Response<Body> {
    wire::api(prune_all(&keeper, &by, &body).await)
}

/// Takes `{"label", "reason"}`; the label is [`LABEL`] if none is given.
async fn hold(
    State(keeper): State<Keeper>,
    Extension(by): Extension<Principal>,
    Path(id): Path<String>,
    body: Bytes,
) -> Response<Body> {
    wire::api(decide(&keeper, &by, &id, &body, Decision::Hold).await)
}

async fn release(
    State(keeper): State<Keeper>,
    Extension(by): Extension<Principal>,
    Path(id): Path<String>,
    body: Bytes,
) -> Response<Body> {
    wire::api(decide(&keeper, &by, &id, &body, Decision::Release).await)
}

async fn decide(
    keeper: &Keeper,
    by: &Principal,
    id: &str,
    body: &[u8],
    decision: impl FnOnce(Label) -> Decision,
) -> Reply {
    let (id, body) = (session_id(id)?, parsed(body)?);
    let label = label(body["label"].as_str().unwrap_or(LABEL))?;
    let reason = body["reason"].as_str().unwrap_or_default();
    keeper.decide(&id, decision(label), by, reason).await?;
    Ok((200, json!({ "session_id": id })))
}

async fn prune_all(keeper: &Keeper, by: &Principal, body: &[u8]) -> Reply {
    let body = parsed(body)?;
    let texts = |name: &str| -> Vec<String> {
        serde_json::from_value(body[name].clone()).unwrap_or_default()
    };
    let sessions = texts("sessions");
    if sessions.is_empty() || sessions.len() > PRUNE_MAX {
        let problem = format!("sessions must be 1 to {PRUNE_MAX} ids");
        return Err(Refusal::bad("InvalidBody", problem));
    }
    let sessions: Vec<SessionId> =
        sessions.iter().map(|id| session_id(id)).collect::<Result<_, _>>()?;
    let keep = texts("keep_labels");
    let keep: BTreeSet<Label> = keep.iter().map(|text| label(text)).collect::<Result<_, _>>()?;
    let reason = body["reason"].as_str().unwrap_or_default();
    let fates = keeper.prune(&sessions, &keep, by, reason).await?;
    let fates: Vec<Value> = fates.iter().map(|(id, fate)| fate.to_json(id)).collect();
    Ok((200, json!({ "sessions": fates })))
}

impl Fate {
    fn to_json(&self, id: &SessionId) -> Value {
        match self {
            Self::Pruned => json!({ "session_id": id, "pruned": true }),
            Self::Kept(why) => json!({ "session_id": id, "pruned": false, "why": why }),
        }
    }
}

fn label(text: &str) -> Result<Label, Refusal> {
    text.parse().map_err(|error: journal::log::InvalidLabel| {
        Refusal::bad("InvalidLabel", error.to_string())
    })
}

fn parsed(body: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::bad("InvalidBody", error.to_string()))
}

impl From<KeepError> for Refusal {
    fn from(error: KeepError) -> Self {
        let message = chain(&error);
        match error {
            KeepError::NoSession(_) => Self::new(404, "NoSession", message),
            KeepError::NotHeld { .. } => Self::new(409, "NotHeld", message),
            KeepError::Log(_) => Self::new(409, "LogNotTrusted", message),
            KeepError::Reason => Self::bad("InvalidReason", message),
            KeepError::Store(error) => Self::journal(&error),
            KeepError::Keys(_) => Self::new(500, "InternalFailure", message),
        }
    }
}
