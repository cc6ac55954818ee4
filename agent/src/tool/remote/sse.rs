//! HTTP with server-sent events, MCP's transport before Streamable HTTP. The server's messages are the
//! events of one long response. The first event has the address to which the client posts.
//!
//! Source: MCP specification 2024-11-05, "Transports", HTTP with SSE.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Response, StatusCode, Url};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use sse_stream::{Sse, SseStream};

use super::super::stdout::{MESSAGE_BYTES_MAX, Oddities};
use super::traced;

const EVENT_STREAM: &str = "text/event-stream";

/// The event with the address for our messages.
const ENDPOINT: &str = "endpoint";

/// The event with a message; events without a name are messages too.
const MESSAGE: &str = "message";

/// An open event stream, with the address to post to.
pub(in crate::tool) struct Events {
    client: Client,
    endpoint: Url,
    events: BoxStream<'static, Result<Sse, sse_stream::Error>>,
    oddities: Arc<Oddities>,
}

/// A failure of the stream or of a message.
#[derive(Debug, thiserror::Error)]
pub(in crate::tool) enum Error {
    #[error(transparent)]
    Request(#[from] reqwest::Error),
    #[error("HTTP {0}")]
    Status(StatusCode),
    #[error("{0}")]
    NoMcp(String),
    #[error("sent a message of more than {MESSAGE_BYTES_MAX} bytes")]
    TooLong,
    #[error("broke off: {0}")]
    Broken(String),
}

impl Events {
    /// Opens the stream and waits for the address.
    ///
    /// # Errors
    /// [`Error`], also when the address has another origin than the stream: the server could send our
    /// headers anywhere.
    pub(super) async fn open(
        client: Client,
        url: Url,
        oddities: Arc<Oddities>,
    ) -> Result<Self, Error> {
        let response = client.get(url).header(ACCEPT, EVENT_STREAM).send().await?;
        let response = accepted(response)?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with(EVENT_STREAM)) {
            let kind = kind.unwrap_or("no content type");
            return Err(Error::NoMcp(format!("answers with {kind}, expected an event stream")));
        }
        // Relative addresses resolve against the address after redirects.
        let base = response.url().clone();
        let mut events = bounded(response);
        let data = loop {
            match events.next().await {
                Some(Ok(event)) if event.event.as_deref() == Some(ENDPOINT) => {
                    break event.data.unwrap_or_default();
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(broken(error)),
                None => return Err(Error::Broken("the stream of events ended".to_owned())),
            }
        };
        let endpoint = endpoint(&base, data.trim())?;
        Ok(Self { client, endpoint, events, oddities })
    }
}

impl Transport<RoleClient> for Events {
    type Error = Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let mut request = self.client.post(self.endpoint.clone()).json(&item);
        if let Some(span) = traced::traceparent(&item) {
            request = request.header(traced::TRACEPARENT, span);
        }
        // The answer comes as an event, so only the response's status counts.
        async move { accepted(request.send().await?).map(drop) }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let event = match self.events.next().await? {
                Ok(event) => event,
                Err(error) => {
                    if matches!(broken(error), Error::TooLong) {
                        self.oddities.note_oversized();
                    }
                    return None;
                }
            };
            if event.event.as_deref().is_some_and(|name| name != MESSAGE) {
                continue;
            }
            let data = event.data.unwrap_or_default();
            match serde_json::from_str(&data) {
                Ok(message) => return Some(message),
                Err(_) => self.oddities.note_chatter(&data),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.events = stream::empty().boxed();
        Ok(())
    }
}

fn accepted(response: Response) -> Result<Response, Error> {
    match response.status() {
        status if status.is_success() => Ok(response),
        status => Err(Error::Status(status)),
    }
}

fn endpoint(base: &Url, data: &str) -> Result<Url, Error> {
    let endpoint = base.join(data);
    let endpoint = endpoint.map_err(|_| Error::NoMcp("sent no valid post address".to_owned()))?;
    if endpoint.origin() == base.origin() {
        return Ok(endpoint);
    }
    let origin = endpoint.origin().ascii_serialization();
    Err(Error::NoMcp(format!("directs posts to another origin, {origin}")))
}

/// The events of a response, bounded in size. The parser buffers incomplete events, so this counts the
/// bytes since the last event before the parser gets them.
fn bounded(response: Response) -> BoxStream<'static, Result<Sse, sse_stream::Error>> {
    let pending = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&pending);
    let bytes = response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(Error::Request)?;
        let before = counter.fetch_add(chunk.len(), Ordering::Relaxed);
        if before + chunk.len() > MESSAGE_BYTES_MAX { Err(Error::TooLong) } else { Ok(chunk) }
    });
    let events = SseStream::from_bytes_stream(bytes);
    events.inspect(move |_| pending.store(0, Ordering::Relaxed)).boxed()
}

fn broken(error: sse_stream::Error) -> Error {
    match error {
        sse_stream::Error::Body(cause) => match cause.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(other) => Error::Broken(other.to_string()),
        },
        other => Error::NoMcp(format!("sent an invalid event: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_post_address_must_have_the_same_origin() {
        let base = Url::parse("http://127.0.0.1:8000/mcp/sse").unwrap();
        let check = |data: &str| endpoint(&base, data).map(String::from);
        for (data, expected) in [
            ("/messages?session=1", "http://127.0.0.1:8000/messages?session=1"),
            ("messages", "http://127.0.0.1:8000/mcp/messages"),
            ("http://127.0.0.1:8000/m", "http://127.0.0.1:8000/m"),
            ("", "http://127.0.0.1:8000/mcp/sse"),
        ] {
            assert_eq!(check(data).unwrap(), expected);
        }
        for data in [
            "http://127.0.0.1:9000/m",
            "https://127.0.0.1:8000/m",
            "//evil.example/m",
            "\\\\evil.example/m",
            "http://127.0.0.1:8000@evil.example/m",
            "file:///etc/passwd",
            "http://[",
        ] {
            assert!(check(data).is_err(), "{data}");
        }
    }
}
