//! Serves a router over HTTP/1.1 with bounded connections.
//!
//! Each bound closes a connection and says why, if a response can still be sent: 408 for a request that
//! is not complete in time, 503 for a connection without a place. A response may take as long as it needs
//! while its client reads, so event streams stay open.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::{Request, StatusCode};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep, timeout};
use tower::ServiceExt as _;

use super::connections::{Connections, Place};
use super::stall::Stall;

/// Most open connections of a server. When all have a request, a further one gets 503; otherwise the one
/// that has waited longest for a request is closed for it.
pub const CONNECTIONS_MAX: usize = 512;

/// How long a connection may take to send a request's head, from its opening or from the previous
/// response. Then it is closed, with 408 if the head had begun.
///
/// More than a heartbeat's interval, so that an agent's connection stays open between two.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a request's body may take to arrive. Then its handler gets an error.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a client may read nothing of a response. Then its connection is closed.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a refusal may take.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Most refused connections that stay open until their clients have read the refusal. A further one is
/// closed once the refusal is sent.
const LINGERING_MAX: usize = 64;

/// Most bytes that are read from a refused client.
const UNREAD_BYTES_MAX: u64 = 64 * 1024;

/// Pause after an error that is not of one connection, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const FULL: &str = "this server has too many open connections; close some, or try again";
const EVICTED: &str =
    "this server has too many open connections, and this one had waited longest for a request";
const LATE: &str = "the request was not complete in time";

#[derive(Clone, Copy, Debug)]
struct Limits {
    connections: usize,
    head: Duration,
    body: Duration,
    stall: Duration,
}

const LIMITS: Limits = Limits {
    connections: CONNECTIONS_MAX,
    head: HEAD_TIMEOUT,
    body: BODY_TIMEOUT,
    stall: STALL_TIMEOUT,
};

/// Serves until `stop` is ready, then finishes the open requests. Dropping it closes all connections.
pub async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    serve_within(LIMITS, listener, router, stop).await;
}

async fn serve_within(
    limits: Limits,
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()>,
) {
    let connections = Connections::new(limits.connections);
    let lingering = Arc::new(Semaphore::new(LINGERING_MAX));
    let (stopping, _) = watch::channel(false);
    let mut tasks = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        while tasks.try_join_next().is_some() {}
        // The losing branches lose nothing: `accept` is cancel safe.
        let stream = tokio::select! {
            () = &mut stop => break,
            stream = accept(&listener) => stream,
        };
        let refusing = Arc::clone(&lingering);
        match connections.admit() {
            Some(place) => {
                let served = Served { limits, router: router.clone(), place, lingering: refusing };
                tasks.spawn(served.run(stream, stopping.subscribe()));
            }
            None => {
                tasks.spawn(refuse(stream, StatusCode::SERVICE_UNAVAILABLE, FULL, refusing));
            }
        }
    }
    drop(listener);
    stopping.send_replace(true);
    while tasks.join_next().await.is_some() {}
}

async fn accept(listener: &TcpListener) -> TcpStream {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Fails only if the connection is gone, which the first read reports.
                let _ = stream.set_nodelay(true);
                return stream;
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ConnectionAborted | ConnectionRefused | ConnectionReset
                ) => {}
            Err(error) => {
                tracing::error!(%error, "A connection was not accepted.");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// One connection.
struct Served {
    limits: Limits,
    router: Router,
    place: Arc<Place>,
    lingering: Arc<Semaphore>,
}

impl Served {
    async fn run(self, stream: TcpStream, mut stopping: watch::Receiver<bool>) {
        let Self { limits, router, place, lingering } = self;
        let worker = Arc::clone(&place);
        let service = service_fn(move |request: Request<Incoming>| {
            let working = Working::begin(&worker);
            let request = request.map(|body| Body::new(Late::new(body, limits.body)));
            let answering = router.clone().oneshot(request);
            async move {
                let response = answering.await.unwrap_or_else(|never| match never {});
                Ok::<_, Infallible>(response.map(|body| Answer { body, _working: working }))
            }
        });
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .serve_connection(TokioIo::new(Stall::new(stream, limits.stall)), service);
        let refusal = loop {
            // A losing branch loses nothing: the connection is polled again.
            tokio::select! {
                ended = &mut connection => match ended {
                    Err(error) if error.is_timeout() => break Some((StatusCode::REQUEST_TIMEOUT, LATE)),
                    _ => return,
                },
                () = place.evicted() => {
                    if !place.works() {
                        break Some((StatusCode::SERVICE_UNAVAILABLE, EVICTED));
                    }
                    // Its request came at the same time.
                    Pin::new(&mut connection).graceful_shutdown();
                }
                Ok(()) = stopping.changed() => {
                    if !place.works() {
                        break None;
                    }
                    Pin::new(&mut connection).graceful_shutdown();
                }
            }
        };
        let parts = connection.into_parts();
        drop(place);
        let Some((status, reason)) = refusal else { return };
        // A client that has sent nothing expects nothing: an idle connection just closes.
        let is_idle = parts.read_buf.is_empty() && status == StatusCode::REQUEST_TIMEOUT;
        if !is_idle {
            refuse(parts.io.into_inner().stream, status, reason, lingering).await;
        }
    }
}

/// Sends a response with the reason, and closes the connection.
async fn refuse(
    mut stream: TcpStream,
    status: StatusCode,
    reason: &str,
    lingering: Arc<Semaphore>,
) {
    let code = match status {
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        _ => "RequestTimeout",
    };
    // The fields that the clients of AWS and of Daybook's API read.
    let body =
        format!(r#"{{"__type":"{code}","code":"{code}","message":"{reason}","error":"{reason}"}}"#);
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    let sending = async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await?;
        if let Ok(_permit) = lingering.try_acquire() {
            // Closing with unread bytes could reset the connection before the client has read.
            let mut unread = stream.take(UNREAD_BYTES_MAX);
            tokio::io::copy(&mut unread, &mut tokio::io::sink()).await?;
        }
        std::io::Result::Ok(())
    };
    // A client that is gone needs no reason.
    let _ = timeout(REFUSAL_TIMEOUT, sending).await;
}

/// RAII guard of a request that is being answered.
struct Working(Arc<Place>);

impl Working {
    fn begin(place: &Arc<Place>) -> Self {
        place.work();
        Self(Arc::clone(place))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.wait();
    }
}

/// A response's body; its connection waits for the next request once it is sent.
struct Answer {
    body: Body,
    _working: Working,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A request's body that fails if it is not complete in time.
struct Late {
    body: Incoming,
    /// `None` if there is no body.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Late {
    fn new(body: Incoming, limit: Duration) -> Self {
        let deadline = (!body.is_end_stream()).then(|| Box::pin(sleep(limit)));
        Self { body, deadline }
    }
}

impl hyper::body::Body for Late {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(deadline) = &mut self.deadline
            && deadline.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Some(Err(axum::Error::new(std::io::Error::other(LATE)))));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(frame.map(|frame| frame.map_err(axum::Error::new)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
