//! The `AgentCore` contract over HTTP: `POST /invocations` and `GET /ping`.
//!
//! The server has a thread and a runtime of its own, so that `/ping` answers while the sessions'
//! runtime is busy or blocked.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::HOST;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use journal::store::Store;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::host::{Host, Ping, Pulse};

/// Largest invocation, in bytes: a trigger's detail with room for what surrounds it.
const BODY_BYTES_MAX: usize = 1024 * 1024;

struct Served<S> {
    host: Host<S>,
    pulse: Arc<Pulse>,
    sessions: Handle,
}

impl<S: Clone> Clone for Served<S> {
    fn clone(&self) -> Self {
        let (pulse, sessions) = (Arc::clone(&self.pulse), self.sessions.clone());
        Self { host: self.host.clone(), pulse, sessions }
    }
}

/// Serves the contract on a thread of its own until `stop`; sessions run on the current runtime.
///
/// # Errors
/// When the thread or its runtime cannot be started.
pub fn serve<S: Store>(
    host: Host<S>,
    listener: std::net::TcpListener,
    stop: CancellationToken,
) -> std::io::Result<std::thread::JoinHandle<std::io::Result<()>>> {
    listener.set_nonblocking(true)?;
    let served = Served { pulse: host.pulse(), host, sessions: Handle::current() };
    std::thread::Builder::new().name("agent-http".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let router = Router::new()
                .route("/invocations", post(invocations::<S>))
                .route("/ping", get(ping::<S>))
                .route("/metrics", get(metrics))
                .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
                .with_state(served);
            axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
        })
    })
}

async fn ping<S: Store>(State(served): State<Served<S>>) -> Json<Ping> {
    Json(served.pulse.ping())
}

/// What this process has counted. A page in a browser that made a name of its own point here is told by
/// the name: only addresses and `localhost` are answered.
async fn metrics(headers: HeaderMap) -> Result<String, StatusCode> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let name = host.map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
    let is_ours = name.is_some_and(|name| {
        let name = name.trim_matches(['[', ']']);
        name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok()
    });
    if is_ours { Ok(telemetry::figures::render()) } else { Err(StatusCode::FORBIDDEN) }
}

async fn invocations<S: Store>(
    State(served): State<Served<S>>,
    body: Bytes,
) -> (StatusCode, Json<Value>) {
    let host = served.host.clone();
    let answered = served.sessions.spawn(async move { host.invoke(&body).await }).await;
    match answered {
        Ok(response) => {
            let status =
                StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, Json(response.body))
        }
        Err(error) => {
            tracing::error!(%error, "An invocation did not finish.");
            let body = json!({ "message": "the invocation did not finish" });
            (StatusCode::INTERNAL_SERVER_ERROR, Json(body))
        }
    }
}
