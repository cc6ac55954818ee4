//! A remote server: Streamable HTTP, which `rmcp` implements, or the older HTTP with server-sent events
//! (`sse`).
//!
//! Neither follows redirects to another origin, uses a proxy from the environment, or retries: a
//! `Mishap` says what a failed request may have done, and the graph decides.

pub(super) mod sse;
mod traced;

use std::error::Error as _;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use graph::outcome::FailureKind;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, StatusCode, Url};
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::transport::{DynamicTransportError, StreamableHttpClientTransport};

use self::sse::Events;
use self::traced::Traced;
use super::answer::cut;
use super::stdout::{MESSAGE_BYTES_MAX, Oddities};
use super::text::Text;
use super::{CATEGORY_CONNECTION, CATEGORY_INIT};

/// Most redirects of one request, all within the server's origin.
pub const REDIRECTS_MAX: usize = 3;

/// Most concurrent requests of one connection; further calls wait, within their own timeouts.
pub const REQUESTS_MAX: usize = 64;

/// Most consecutive failed attempts to resume an interrupted stream. Resuming sends no call again.
pub const STREAM_RETRIES_MAX: usize = 3;

/// Longest quote from a server about a failed request, in characters.
const SAID_CHARS_MAX: usize = 300;

/// Headers of the protocol and of tracing, which cannot be configured.
///
/// Source: MCP specification 2025-11-25, "Transports"; RFC 9110; W3C, "Trace Context".
const RESERVED_HEADERS: [&str; 9] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "traceparent",
];

/// The protocol of a remote server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http,
    /// HTTP with server-sent events, the predecessor of Streamable HTTP.
    Sse,
}

/// A server's address and headers. `Display` shows the address as configured, without secrets.
#[derive(Clone)]
pub(super) struct Remote {
    /// As written.
    shown: String,
    url: Url,
    protocol: Protocol,
    headers: HeaderMap,
    secrets: Vec<String>,
}

impl Remote {
    /// # Errors
    /// What is wrong with the address.
    pub(super) fn new(address: Text, protocol: Protocol) -> Result<Self, &'static str> {
        let expected = "must be an address such as https://tools.example/mcp";
        let url = Url::parse(&address.value).map_err(|_| expected)?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(expected);
        }
        // They would show in every message about the server.
        if !url.username().is_empty() || url.password().is_some() {
            return Err("must not contain a user name or password: use `headers`");
        }
        let Text { shown, secrets, .. } = address;
        Ok(Self { shown, url, protocol, headers: HeaderMap::new(), secrets })
    }

    /// Adds a header to every request.
    ///
    /// # Errors
    /// What is wrong with the header.
    pub(super) fn add_header(&mut self, name: &str, value: Text) -> Result<(), &'static str> {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| "is not a header name")?;
        if RESERVED_HEADERS.contains(&name.as_str()) {
            return Err("is set by the protocol");
        }
        let mut header = HeaderValue::from_str(&value.value)
            .map_err(|_| "contains a line break or a control character")?;
        header.set_sensitive(true);
        // Treats every header value as a secret, literal or referenced. A server may echo only the
        // `x` of `Bearer x`.
        let token = value.value.split_once(' ').map(|(_, token)| token.trim().to_owned());
        self.secrets.extend(token);
        self.secrets.extend(value.secrets);
        self.secrets.push(value.value);
        self.headers.insert(name, header);
        Ok(())
    }

    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.secrets.iter().map(String::as_str)
    }

    /// Prepares the handshake. Only the older protocol sends a request here.
    ///
    /// # Errors
    /// [`Mishap`]; no tool was called.
    pub(super) async fn open(
        &self,
        connect_within: Duration,
        oddities: &Arc<Oddities>,
    ) -> Result<Wire, Mishap> {
        let client = self.client(connect_within).map_err(|error| Mishap::of_request(&error))?;
        match self.protocol {
            Protocol::Http => {
                let transport =
                    StreamableHttpClientTransport::with_client(Traced(client), self.config());
                Ok(Wire::Http(Box::new(transport)))
            }
            Protocol::Sse => {
                let events = Events::open(client, self.url.clone(), Arc::clone(oddities)).await;
                events.map(|events| Wire::Sse(Box::new(events))).map_err(|e| Mishap::of_sse(&e))
            }
        }
    }

    fn client(&self, connect_within: Duration) -> Result<Client, reqwest::Error> {
        Client::builder()
            .user_agent(concat!("daybook/", env!("CARGO_PKG_VERSION")))
            .default_headers(self.headers.clone())
            .connect_timeout(connect_within)
            .redirect(Policy::custom(stay))
            .retry(reqwest::retry::never())
            // Only the servers file decides where calls and their secrets go.
            .no_proxy()
            .build()
    }

    fn config(&self) -> StreamableHttpClientTransportConfig {
        let mut retry = ExponentialBackoff::default();
        retry.max_times = Some(STREAM_RETRIES_MAX);
        let mut config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str())
            .max_concurrent_requests(REQUESTS_MAX)
            .max_sse_event_size(MESSAGE_BYTES_MAX)
            // Would send a call again without a record in the journal.
            .reinit_on_expired_session(false);
        config.retry_config = Arc::new(retry);
        config
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("Remote")
            .field("url", &self.shown)
            .field("protocol", &self.protocol)
            .field("headers", &headers)
            .finish()
    }
}

/// Refuses redirects to another origin, since the headers with their secrets would go along.
fn stay(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let origin = attempt.previous().first().map(Url::origin);
    if origin != Some(attempt.url().origin()) {
        let to = attempt.url().origin().ascii_serialization();
        return attempt.error(Astray(format!("to another origin, {to}, which is not followed")));
    }
    if attempt.previous().len() > REDIRECTS_MAX {
        return attempt.error(Astray(format!("more than {REDIRECTS_MAX} times")));
    }
    attempt.follow()
}

#[derive(Debug, thiserror::Error)]
#[error("it redirects {0}")]
struct Astray(String);

/// The transport to a remote server.
pub(super) enum Wire {
    Http(Box<StreamableHttpClientTransport<Traced>>),
    Sse(Box<Events>),
}

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mishap {
    /// What the request may have done.
    pub(super) kind: FailureKind,
    /// Whether the server is reachable and accepts our credentials, but does not answer as an MCP server.
    pub(super) answers: bool,
    /// What the server did, as the predicate of a sentence.
    pub(super) problem: String,
    pub(super) hint: &'static str,
    /// Whether the server needs a new connection.
    pub(super) is_over: bool,
}

impl Mishap {
    /// Classifies an error of either protocol's transport; `None` for any other error.
    pub(super) fn of(error: &DynamicTransportError) -> Option<Self> {
        let error = error.error.as_ref();
        if let Some(error) = error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            return Some(Self::of_streamable(error));
        }
        error.downcast_ref::<sse::Error>().map(Self::of_sse)
    }

    /// The category when a connection cannot be opened. Refused credentials count as a failure to connect.
    pub(super) fn category(&self) -> &'static str {
        if self.answers { CATEGORY_INIT } else { CATEGORY_CONNECTION }
    }

    fn of_streamable(error: &StreamableHttpError<reqwest::Error>) -> Self {
        use StreamableHttpError as E;
        match error {
            E::Client(error) => Self::of_request(error),
            E::HttpStatus(error) => Self::of_status(error.status, ""),
            E::AuthRequired(_) => Self::of_status(401, ""),
            E::InsufficientScope(_) => Self::of_status(403, ""),
            E::SessionExpired => Self {
                kind: FailureKind::NotSent,
                is_over: true,
                ..Self::unknown("has no record of our MCP session (HTTP 404)".to_owned())
            },
            E::UnexpectedServerResponse(text) => match status_of(text) {
                Some((status, said)) => Self::of_status(status, said),
                None => Self::no_mcp(&format!("does not answer with MCP: {text}")),
            },
            E::UnexpectedContentType(kind) => {
                let kind = kind.as_deref().unwrap_or("no content type");
                Self::no_mcp(&format!("answers with {kind}, expected JSON or an event stream"))
            }
            E::ResponseBodyTooLarge { max_size } => {
                Self::unknown(format!("sent an answer of more than {max_size} bytes"))
            }
            other => Self::unknown(format!("broke off: {other}")),
        }
    }

    fn of_sse(error: &sse::Error) -> Self {
        match error {
            sse::Error::Request(error) => Self::of_request(error),
            sse::Error::Status(status) => Self::of_status(status.as_u16(), ""),
            sse::Error::NoMcp(problem) => Self::no_mcp(problem),
            sse::Error::TooLong | sse::Error::Broken(_) => Self::unknown(error.to_string()),
        }
    }

    /// Uses the root cause: the error's own text names the address, which may contain a secret.
    fn of_request(error: &reqwest::Error) -> Self {
        let mut root = error.source();
        while let Some(cause) = root.and_then(std::error::Error::source) {
            root = Some(cause);
        }
        let root = root.map_or_else(|| "the request failed".to_owned(), |e| e.to_string());
        let root = cut(&root, SAID_CHARS_MAX);
        if error.is_connect() {
            let mishap = Self::unknown(format!("cannot be reached: {root}"));
            return Self { kind: FailureKind::NotSent, is_over: true, ..mishap };
        }
        if error.is_redirect() {
            return Self::refused(format!("cannot be used: {root}"), "check its url");
        }
        Self::unknown(format!("broke off: {root}"))
    }

    /// Source: RFC 9110, section 15; RFC 6585, section 4.
    fn of_status(status: u16, said: &str) -> Self {
        let name = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        let said = match cut(said.trim(), SAID_CHARS_MAX) {
            said if said.is_empty() => said,
            said => format!(": {said}"),
        };
        let status_line = format!("HTTP {status} {}", name.unwrap_or_default());
        let status_line = status_line.trim_end();
        match status {
            401 | 403 => Self {
                answers: false,
                ..Self::refused(
                    format!("refuses our credentials ({status_line})"),
                    "check its headers",
                )
            },
            429 => Self {
                kind: FailureKind::NotSent,
                ..Self::unknown(format!("throttles requests ({status_line})"))
            },
            408 | 500.. => Self::unknown(format!("failed: {status_line}{said}")),
            _ => Self::refused(format!("answers {status_line}{said}"), "check its url"),
        }
    }

    fn unknown(problem: String) -> Self {
        let (kind, hint) = (FailureKind::Unknown, "check that it runs, and its url");
        Self { kind, answers: false, problem, hint, is_over: false }
    }

    fn refused(problem: String, hint: &'static str) -> Self {
        Self { kind: FailureKind::Refused, answers: true, hint, ..Self::unknown(problem) }
    }

    fn no_mcp(problem: &str) -> Self {
        let problem = cut(problem, SAID_CHARS_MAX);
        Self { answers: true, hint: "check its url and transport", ..Self::unknown(problem) }
    }
}

/// Parses status and body from `rmcp`'s text about an unexpected response.
fn status_of(text: &str) -> Option<(u16, &str)> {
    let (line, body) = text.strip_prefix("HTTP ")?.split_once(": ")?;
    let status = line.split(' ').next()?.parse().ok()?;
    Some((status, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(url: &str) -> Result<Remote, &'static str> {
        Remote::new(Text::plain(url), Protocol::Http)
    }

    #[test]
    fn an_address_is_an_http_url_without_a_user() {
        for url in ["http://127.0.0.1:1/mcp", "https://tools.example/a?b=c"] {
            assert!(remote(url).is_ok(), "{url}");
        }
        for url in ["", "tools.example", "file:///etc/passwd", "ftp://a/", "http://"] {
            assert!(remote(url).unwrap_err().starts_with("must be an address"), "{url}");
        }
        assert!(remote("http://me:sesame@a/").unwrap_err().contains("password"));
    }

    #[test]
    fn headers_are_checked_and_never_shown() {
        let mut remote = remote("http://a/").unwrap();
        let text = |value: &str| Text::plain(value);
        remote.add_header("Authorization", text("Bearer sesame-open")).unwrap();
        let shown = format!("{remote:?} {remote}");
        assert!(shown.contains("authorization") && !shown.contains("sesame"), "{shown}");
        assert!(remote.secrets().any(|secret| secret == "sesame-open"));
        assert_eq!(remote.add_header("Mcp-Session-Id", text("x")), Err("is set by the protocol"));
        assert_eq!(remote.add_header("a b", text("x")), Err("is not a header name"));
        assert!(remote.add_header("x", text("a\r\nb: c")).unwrap_err().contains("line break"));
    }

    #[test]
    fn a_status_says_what_may_have_happened() {
        use FailureKind as K;
        for (status, kind, answers, said) in [
            (401, K::Refused, false, "refuses our credentials (HTTP 401 Unauthorized)"),
            (403, K::Refused, false, "refuses our credentials (HTTP 403 Forbidden)"),
            (404, K::Refused, true, "answers HTTP 404 Not Found: gone"),
            (302, K::Refused, true, "answers HTTP 302 Found: gone"),
            (408, K::Unknown, false, "failed: HTTP 408 Request Timeout: gone"),
            (429, K::NotSent, false, "throttles requests (HTTP 429 Too Many Requests)"),
            (500, K::Unknown, false, "failed: HTTP 500 Internal Server Error: gone"),
            (503, K::Unknown, false, "failed: HTTP 503 Service Unavailable: gone"),
            (799, K::Unknown, false, "failed: HTTP 799: gone"),
        ] {
            let mishap = Mishap::of_status(status, "gone");
            assert_eq!((mishap.kind, mishap.answers), (kind, answers), "{status}");
            assert_eq!(mishap.problem, said);
        }
    }

    #[test]
    fn a_status_is_read_from_the_library_s_message() {
        let read = |text: &'static str| {
            Mishap::of_streamable(&StreamableHttpError::UnexpectedServerResponse(text.into()))
        };
        assert_eq!(read("HTTP 401 Unauthorized: no"), Mishap::of_status(401, "no"));
        assert_eq!(read("HTTP 418 I'm a teapot: a: b"), Mishap::of_status(418, "a: b"));
        assert!(read("HTTP over carrier pigeon").problem.contains("with MCP: HTTP over"));
    }

    #[test]
    fn a_call_in_an_expired_mcp_session_was_not_sent() {
        let mishap = Mishap::of_streamable(&StreamableHttpError::SessionExpired);
        assert_eq!((mishap.kind, mishap.is_over), (FailureKind::NotSent, true));
    }
}
