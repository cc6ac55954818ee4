//! The `AgentCore` contract over HTTP: `POST /invocations` and `GET /ping`. The local stack also reads
//! `GET /progress`, which streams the progress of running tools, and `GET /metrics`.
//!
//! In a process of the local stack, every request needs the stack's token. In a container, the network
//! belongs to `AgentCore`.
//!
//! The server has its own thread and runtime, so that `/ping` answers while the sessions' runtime is
//! busy or blocked.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream::unfold;
use guard::{Guard, bearer, is_address};
use journal::store::Store;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::host::{Host, Ping, Pulse};

/// Largest invocation, in bytes: a trigger's detail and its envelope.
const BODY_BYTES_MAX: usize = 1024 * 1024;

struct Served<S> {
    host: Host<S>,
    pulse: Arc<Pulse>,
    sessions: Handle,
    stop: CancellationToken,
}

impl<S: Clone> Clone for Served<S> {
    fn clone(&self) -> Self {
        let (pulse, sessions) = (Arc::clone(&self.pulse), self.sessions.clone());
        Self { host: self.host.clone(), pulse, sessions, stop: self.stop.clone() }
    }
}

/// Serves the contract on its own thread until `stop`; sessions run on the current runtime. A guard
/// checks the requests of a process on a shared machine.
///
/// # Errors
/// When the thread or its runtime cannot be started.
pub fn serve<S: Store>(
    host: Host<S>,
    listener: std::net::TcpListener,
    guard: Option<Guard>,
    stop: CancellationToken,
) -> std::io::Result<std::thread::JoinHandle<std::io::Result<()>>> {
    listener.set_nonblocking(true)?;
    let (pulse, sessions) = (host.pulse(), Handle::current());
    let served = Served { host, pulse, sessions, stop: stop.clone() };
    std::thread::Builder::new().name("agent-http".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let router = Router::new()
                .route("/invocations", post(invocations::<S>))
                .route("/ping", get(ping::<S>))
                .route("/progress", get(progress::<S>))
                .route("/metrics", get(metrics))
                .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
                .with_state(served);
            match guard {
                Some(guard) => {
                    let router = router.layer(from_fn_with_state(guard, check));
                    guard::serve(listener, router, stop.cancelled_owned()).await;
                    Ok(())
                }
                None => {
                    let stop = stop.cancelled_owned();
                    axum::serve(listener, router).with_graceful_shutdown(stop).await
                }
            }
        })
    })
}

async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let admitted = guard.admit_source(headers, request.uri());
    match admitted.and_then(|()| guard.admit_token(bearer(headers))) {
        Ok(()) => next.run(request).await,
        Err(refusal) => (refusal.status(), refusal.to_string()).into_response(),
    }
}

async fn ping<S: Store>(State(served): State<Served<S>>) -> Json<Ping> {
    Json(served.pulse.ping())
}

/// Streams the progress of this host's sessions as JSON Lines until the host stops.
async fn progress<S: Store>(
    State(served): State<Served<S>>,
    headers: HeaderMap,
) -> Result<Body, StatusCode> {
    // Guards against DNS rebinding.
    if !is_address(&headers) {
        return Err(StatusCode::FORBIDDEN);
    }
    let listening = (served.host.progress().listen(), served.stop);
    Ok(Body::from_stream(unfold(listening, |(mut reports, stop)| async move {
        loop {
            // Cancelling the losing branch loses nothing: the stream ends.
            let report = tokio::select! {
                report = reports.recv() => report,
                () = stop.cancelled() => return None,
            };
            match report {
                Ok(report) => {
                    let mut line = serde_json::to_vec(&*report).ok()?;
                    line.push(b'\n');
                    return Some((Ok::<_, Infallible>(line), (reports, stop)));
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    })))
}

async fn metrics(headers: HeaderMap) -> Result<String, StatusCode> {
    if is_address(&headers) { Ok(exporters::metrics::render()) } else { Err(StatusCode::FORBIDDEN) }
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
            tracing::error!(%error, "An invocation panicked or was cancelled.");
            let body = json!({ "message": "the invocation did not finish" });
            (StatusCode::INTERNAL_SERVER_ERROR, Json(body))
        }
    }
}
