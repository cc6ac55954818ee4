//! Draining a stack: `GET` and `POST /api/drain`.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::Response;
use axum::routing::get;
use axum::{Extension, Router};
use journal::principal::Principal;
use serde::Deserialize;

use super::wire::{self, Refusal};
use crate::load::Load;

/// Longest wait of `GET /api/drain` for progress.
const PROGRESS_WITHIN: Duration = Duration::from_secs(1);

/// Longest time limit of a drain.
const DRAIN_LONGEST: Duration = Duration::from_secs(86_400);

/// The body of `POST /api/drain`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Drain {
    within_s: u64,
}

pub(super) fn routes(load: Load) -> Router {
    Router::new().route("/api/drain", get(progress).post(drain)).with_state(load)
}

/// Replies at the next change of the load, at the latest after [`PROGRESS_WITHIN`].
async fn progress(State(load): State<Load>) -> Response<Body> {
    load.changed_within(PROGRESS_WITHIN).await;
    wire::api(Ok((200, load.drain_progress())))
}

async fn drain(
    State(load): State<Load>,
    Extension(by): Extension<Principal>,
    body: Bytes,
) -> Response<Body> {
    let within = match serde_json::from_slice(&body) {
        Ok(Drain { within_s }) => Duration::from_secs(within_s),
        Err(error) => return wire::api(Err(Refusal::bad("InvalidBody", error.to_string()))),
    };
    if within > DRAIN_LONGEST {
        let message = format!("within_s is at most {}", DRAIN_LONGEST.as_secs());
        return wire::api(Err(Refusal::bad("InvalidBody", message)));
    }
    tracing::info!(%by, within_s = within.as_secs(), "Draining the stack.");
    load.drain(within);
    wire::api(Ok((202, load.drain_progress())))
}
