//! Models behind an OpenAI-compatible server: `POST {base}/chat/completions`, streamed.
//!
//! A reply comes as a stream of events, or as one JSON body from servers that do not stream. A stream
//! that ends before the model reports a finish reason is a failure, whatever arrived before.

mod events;
mod wire;

use std::fmt;

use futures_util::StreamExt as _;
use graph::effect::Chat;
use graph::outcome::Failure;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::Value;
use workflow::env::{self, Invalid, Lookup};

use self::events::Events;
use self::wire::Piece;
use super::assembly::Heard;
use super::{
    Attempt, CONNECT_WITHIN, INVALID, Model, OPENAI_AUTH, OPENAI_TRANSIENT, UNKNOWN,
    WIRE_BYTES_MAX, chain,
};

/// Default address: Ollama's.
const BASE_URL: &str = "http://127.0.0.1:11434/v1";

/// OpenAI's own server, which renamed the field `max_tokens`.
const OPENAI_HOST: &str = "api.openai.com";

/// Longest body of a refusal that is read, in bytes.
const REFUSAL_BYTES_MAX: usize = 16 * 1024;

/// The server and its key.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Such as `http://127.0.0.1:11434/v1`.
    pub base_url: Url,
    /// Sent with every request.
    pub key: Option<Key>,
}

/// An API key. `Debug` redacts it.
#[derive(Clone)]
pub struct Key(String);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key([hidden])")
    }
}

impl Key {
    /// A key of printable ASCII; `None` for any other text.
    pub fn new(text: &str) -> Option<Self> {
        let printable = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        printable.then(|| Self(text.to_owned()))
    }
}

impl Default for Settings {
    fn default() -> Self {
        let base_url = Url::parse(BASE_URL).unwrap_or_else(|_| unreachable!("a valid URL"));
        Self { base_url, key: None }
    }
}

impl Settings {
    /// # Errors
    /// When a variable is invalid. The error does not repeat the key.
    pub fn read(lookup: &impl Lookup) -> Result<Self, Invalid> {
        let (name, expected) = (env::OPENAI_BASE_URL, "a URL such as http://127.0.0.1:11434/v1");
        let base_url = match env::text(lookup, name) {
            None => Self::default().base_url,
            Some(value) => base_url(&value).ok_or(Invalid::Malformed { name, value, expected })?,
        };
        let (name, expected) = (env::OPENAI_API_KEY, "a key of printable ASCII");
        let key = env::text(lookup, name)
            .map(|text| {
                let value = "[hidden]".to_owned();
                Key::new(text.trim()).ok_or(Invalid::Malformed { name, value, expected })
            })
            .transpose()?;
        Ok(Self { base_url, key })
    }

    /// The text with the key redacted.
    pub(super) fn without_key(&self, text: &str) -> String {
        match &self.key {
            Some(Key(key)) => {
                // In JSON, a key may be escaped.
                let escaped = Value::from(key.as_str()).to_string();
                let escaped = escaped.trim_matches('"');
                text.replace(key.as_str(), "[hidden]").replace(escaped, "[hidden]")
            }
            None => text.to_owned(),
        }
    }

    fn is_loopback(&self) -> bool {
        let host = self.base_url.host_str().unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

fn base_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let usable = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    usable.then_some(url)
}

/// The HTTP client, or why it cannot be built.
pub(super) fn client(settings: &Settings) -> Result<Client, String> {
    // No redirects: the request contains the conversation.
    let builder = Client::builder()
        .connect_timeout(CONNECT_WITHIN)
        .redirect(reqwest::redirect::Policy::none());
    let builder = if settings.is_loopback() { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| chain(&error))
}

#[derive(Debug)]
pub(super) struct Completions<'a> {
    pub(super) client: &'a Client,
    pub(super) settings: &'a Settings,
    pub(super) model: String,
}

impl Model for Completions<'_> {
    async fn attempt(&self, chat: &Chat) -> Attempt {
        let mut heard = Heard::default();
        let listened = match self.send(chat).await {
            Ok(response) => heard.listen(response).await,
            Err(failure) => Err(failure),
        };
        heard.attempt(listened, chat, &self.model, OPENAI_TRANSIENT)
    }

    fn late(&self, seconds: u64) -> Failure {
        Failure::unknown(OPENAI_TRANSIENT, format!("no reply within {seconds} s"))
    }
}

impl Completions<'_> {
    async fn send(&self, chat: &Chat) -> Result<Response, Failure> {
        let base = &self.settings.base_url;
        let url = format!("{}/chat/completions", base.as_str().trim_end_matches('/'));
        let body = wire::request(&self.model, chat, base.host_str() == Some(OPENAI_HOST));
        let mut request = self.client.post(url).header(ACCEPT, "text/event-stream").json(&body);
        if let Some(Key(key)) = &self.settings.key {
            request = request.bearer_auth(key);
        }
        let response = request.send().await.map_err(|error| not_answered(&error))?;
        match response.status() {
            StatusCode::OK => Ok(response),
            status => Err(refused(status, &body_of(response).await)),
        }
    }
}

impl Heard {
    async fn listen(&mut self, response: Response) -> Result<(), Failure> {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_owned();
        let is_whole = kind.starts_with("application/json");
        if !is_whole && !kind.starts_with("text/event-stream") {
            let message = format!("the server answers `{kind}`, not an event stream or JSON");
            return Err(Failure::unknown(INVALID, message));
        }
        let (mut events, mut whole, mut bytes) = (Events::default(), Vec::new(), 0);
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| {
                Failure::unknown(
                    OPENAI_TRANSIENT,
                    format!("the reply broke off: {}", chain(&error)),
                )
            })?;
            bytes += chunk.len();
            if bytes > WIRE_BYTES_MAX {
                let message = format!("the reply takes more than {WIRE_BYTES_MAX} bytes");
                return Err(Failure::unknown(INVALID, message));
            }
            if is_whole {
                whole.extend_from_slice(&chunk);
                continue;
            }
            events.take(&chunk);
            while let Some(event) = events.next() {
                if event == b"[DONE]" {
                    return Ok(());
                }
                self.piece(&event)?;
            }
        }
        if is_whole { self.piece(&whole) } else { Ok(()) }
    }

    fn piece(&mut self, json: &[u8]) -> Result<(), Failure> {
        let piece: Piece = serde_json::from_slice(json).map_err(|error| {
            Failure::unknown(INVALID, format!("invalid JSON in the reply: {error}"))
        })?;
        if let Some(error) = piece.error {
            let message = format!("the server failed within its reply: {}", said(&error));
            return Err(Failure::unknown(OPENAI_TRANSIENT, message));
        }
        if let Some(usage) = piece.usage {
            self.usage = Some(usage.into());
        }
        for choice in piece.choices.into_iter().filter(|choice| choice.index == 0) {
            for delta in choice.delta.into_iter().chain(choice.message) {
                self.reply.text(&delta.content.unwrap_or_default())?;
                for call in delta.tool_calls.unwrap_or_default() {
                    let function = call.function.unwrap_or_default();
                    let place = call.index.unwrap_or_else(|| self.reply.next_place());
                    let id = call.id.unwrap_or_default();
                    let name = function.name.unwrap_or_default();
                    let arguments = match function.arguments {
                        None | Some(Value::Null) => String::new(),
                        Some(Value::String(text)) => text,
                        Some(other) => other.to_string(),
                    };
                    self.reply.call(place, &id, &name, &arguments)?;
                }
            }
            if choice.finish_reason.is_some() {
                self.reply.end();
            }
        }
        Ok(())
    }
}

/// Without a connection the request was not sent; otherwise it may have arrived.
fn not_answered(error: &reqwest::Error) -> Failure {
    // The address may contain secrets; the cause is enough.
    let message = chain(&std::io::Error::other(error_without_url(error)));
    if error.is_connect() {
        return Failure::not_sent(OPENAI_TRANSIENT, message);
    }
    Failure::unknown(OPENAI_TRANSIENT, message)
}

fn error_without_url(error: &reqwest::Error) -> String {
    let mut text = chain(error);
    if let Some(url) = error.url() {
        text = text.replace(url.as_str(), "the server");
    }
    text
}

fn refused(status: StatusCode, body: &[u8]) -> Failure {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let error = json.as_ref().map(|json| json.get("error").unwrap_or(json));
    let code = error.and_then(|error| error.get("code")).and_then(Value::as_str);
    let said = match error {
        Some(error) => said(error),
        None => String::from_utf8_lossy(body).trim().to_owned(),
    };
    let message = format!("the server answers {status}: {said}");
    let failure = match status.as_u16() {
        401 | 403 => Failure::refused(OPENAI_AUTH, message),
        // A retry does not help without credit.
        429 if code == Some("insufficient_quota") => Failure::refused(OPENAI_AUTH, message),
        429 | 503 => Failure::not_sent(OPENAI_TRANSIENT, message),
        408 | 500.. => Failure::unknown(OPENAI_TRANSIENT, message),
        _ => Failure::refused(UNKNOWN, message),
    };
    match code {
        Some(code) => failure.with_code(code),
        None => failure,
    }
}

/// The message of an error object.
fn said(error: &Value) -> String {
    let message = error.get("message").and_then(Value::as_str).or_else(|| error.as_str());
    message.map_or_else(|| error.to_string(), str::to_owned)
}

/// The beginning of a refusal's body, which may be truncated.
async fn body_of(response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(Ok(chunk)) = chunks.next().await {
        let room = REFUSAL_BYTES_MAX - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == REFUSAL_BYTES_MAX {
            break;
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use graph::outcome::FailureKind;

    use super::*;

    #[test]
    fn a_refusal_says_whether_to_try_again() {
        use FailureKind as K;
        for (status, body, category, kind) in [
            (401, r#"{"error": {"message": "no"}}"#, OPENAI_AUTH, K::Refused),
            (403, "forbidden", OPENAI_AUTH, K::Refused),
            (429, r#"{"error": {"message": "slow down"}}"#, OPENAI_TRANSIENT, K::NotSent),
            (429, r#"{"error": {"code": "insufficient_quota"}}"#, OPENAI_AUTH, K::Refused),
            (503, "", OPENAI_TRANSIENT, K::NotSent),
            (500, "", OPENAI_TRANSIENT, K::Unknown),
            (504, "", OPENAI_TRANSIENT, K::Unknown),
            (404, r#"{"error": "model not found"}"#, UNKNOWN, K::Refused),
            (302, "", UNKNOWN, K::Refused),
        ] {
            let failure = refused(StatusCode::from_u16(status).unwrap(), body.as_bytes());
            assert_eq!((failure.category.as_str(), failure.kind), (category, kind), "{status}");
        }
    }

    #[test]
    fn a_base_url_is_an_http_address_without_secrets() {
        for (text, usable) in [
            ("http://127.0.0.1:11434/v1", true),
            ("https://api.openai.com/v1/", true),
            ("localhost:11434", false),
            ("https://me:key@host/v1", false),
            ("https://host/v1?key=1", false),
        ] {
            assert_eq!(base_url(text).is_some(), usable, "{text}");
        }
    }
}
