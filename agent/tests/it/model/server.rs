//! A scripted loopback server for both wire formats.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode, Uri};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Tokens of every reply: input, cached part of the input, output.
pub const TOKENS: (u32, u32, u32) = (1_000, 400, 50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    Bedrock,
    OpenAi,
}

impl Wire {
    pub const ALL: &[Self] = &[Self::Bedrock, Self::OpenAi];

    /// The model's name in a trigger.
    pub fn model(self) -> &'static str {
        match self {
            Self::Bedrock => "bedrock:test.model-v1:0",
            Self::OpenAi => "openai:test-model",
        }
    }

    /// The prefix of its failures' categories.
    pub fn category(self, kind: &str) -> String {
        match self {
            Self::Bedrock => format!("bedrock_{kind}"),
            Self::OpenAi => format!("openai_{kind}"),
        }
    }
}

/// A tool call as the model writes it: the name and the text of the arguments.
pub type Call = (String, String);

/// How the server handles a request.
#[derive(Clone, Debug)]
pub enum Say {
    Reply(Option<String>, Vec<Call>),
    /// Starts a text and drops the connection.
    Cut,
    /// Answers that the request is throttled.
    Throttled,
    /// Answers with a server error.
    Down,
    /// Rejects the credentials, and echoes them.
    Denied,
    /// Rejects the request as invalid.
    Refused,
    /// Never answers.
    Hang,
    /// Replies with this text, repeated to this many bytes.
    Large(usize),
    /// Answers with a web page.
    Page,
}

impl Say {
    pub fn text(text: &str) -> Self {
        Self::Reply(Some(text.to_owned()), vec![])
    }

    pub fn call(tool: &str, arguments: &str) -> Self {
        Self::Reply(None, vec![(tool.to_owned(), arguments.to_owned())])
    }
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Heard {
    pub wire: Wire,
    pub body: Value,
}

impl Heard {
    /// The number of the model's earlier replies in this conversation.
    pub fn turn(&self) -> usize {
        let messages = self.body["messages"].as_array().unwrap();
        messages.iter().filter(|message| message["role"] == "assistant").count()
    }
}

type Script = Arc<dyn Fn(&Heard, usize) -> Say + Send + Sync>;

#[derive(Clone)]
struct Served {
    script: Script,
    heard: Arc<Mutex<Vec<Heard>>>,
}

/// The server. It stops on drop.
pub struct Server {
    pub url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
    _task: JoinSet<()>,
}

impl Server {
    /// Starts a server. `script` decides how to handle each request, by its number from 0.
    pub async fn start(script: impl Fn(&Heard, usize) -> Say + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::default();
        let served = Served { script: Arc::new(script), heard: Arc::clone(&heard) };
        let router = Router::new().fallback(answer).with_state(served);
        let mut task = JoinSet::new();
        task.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, heard, _task: task }
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

async fn answer(
    State(served): State<Served>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let wire = match uri.path() {
        "/v1/chat/completions" => Wire::OpenAi,
        path if path.ends_with("/converse-stream") => Wire::Bedrock,
        path => panic!("no handler for {path}"),
    };
    let heard = Heard { wire, body: serde_json::from_slice(&body).unwrap() };
    let number = {
        let mut all = served.heard.lock().unwrap();
        all.push(heard.clone());
        all.len() - 1
    };
    let shown = format!("{headers:?}");
    match (served.script)(&heard, number) {
        Say::Reply(text, calls) => whole(wire, reply(wire, text.as_deref(), &calls)),
        Say::Large(bytes) => {
            let piece = "all is well ".repeat(1_000);
            let pieces = (0..bytes.div_ceil(piece.len())).map(|_| said(wire, &piece));
            whole(wire, begun(wire).into_iter().chain(pieces).collect())
        }
        Say::Cut => {
            let pieces = begun(wire).into_iter().chain([said(wire, "Let me th")]);
            let broken = Err(std::io::Error::other("cut"));
            let chunks: Vec<_> = pieces.map(Ok).chain([broken]).collect();
            respond(wire, Body::from_stream(stream::iter(chunks)))
        }
        Say::Hang => std::future::pending().await,
        Say::Throttled => refuse(wire, 429, "ThrottlingException", "too many requests"),
        Say::Down => refuse(wire, 503, "ServiceUnavailableException", "come back later"),
        Say::Denied => refuse(wire, 403, "AccessDeniedException", &shown),
        Say::Refused => refuse(wire, 400, "ValidationException", "this model has no such field"),
        Say::Page => {
            let page = Response::builder().header("content-type", "text/html");
            page.body(Body::from("<html>Sign in</html>")).unwrap()
        }
    }
}

fn respond(wire: Wire, body: Body) -> Response<Body> {
    let kind = match wire {
        Wire::Bedrock => "application/vnd.amazon.eventstream",
        Wire::OpenAi => "text/event-stream",
    };
    Response::builder().header("content-type", kind).body(body).unwrap()
}

fn whole(wire: Wire, pieces: Vec<Vec<u8>>) -> Response<Body> {
    let pieces = pieces.into_iter().map(Ok::<_, std::io::Error>);
    respond(wire, Body::from_stream(stream::iter(pieces)))
}

fn refuse(wire: Wire, status: u16, code: &str, message: &str) -> Response<Body> {
    let body = match wire {
        Wire::Bedrock => json!({ "message": message }),
        Wire::OpenAi => json!({ "error": { "message": message, "type": "error" } }),
    };
    Response::builder()
        .status(StatusCode::from_u16(status).unwrap())
        .header("content-type", "application/json")
        .header("x-amzn-errortype", code)
        .body(Body::from(body.to_string()))
        .unwrap()
}

fn begun(wire: Wire) -> Vec<Vec<u8>> {
    match wire {
        Wire::Bedrock => vec![frame("messageStart", &json!({"role": "assistant"}))],
        Wire::OpenAi => vec![chunk(&json!({"role": "assistant", "content": ""}), None)],
    }
}

fn said(wire: Wire, text: &str) -> Vec<u8> {
    match wire {
        Wire::Bedrock => {
            let delta = json!({"contentBlockIndex": 0, "delta": {"text": text}});
            frame("contentBlockDelta", &delta)
        }
        Wire::OpenAi => chunk(&json!({ "content": text }), None),
    }
}

/// A complete reply, with each text and argument in two pieces.
fn reply(wire: Wire, text: Option<&str>, calls: &[Call]) -> Vec<Vec<u8>> {
    let mut pieces = begun(wire);
    for piece in text.into_iter().flat_map(halves) {
        pieces.push(said(wire, piece));
    }
    for (index, (tool, arguments)) in calls.iter().enumerate() {
        pieces.extend(called(wire, index, tool, arguments));
    }
    pieces.extend(ended(wire, !calls.is_empty()));
    pieces
}

fn called(wire: Wire, index: usize, tool: &str, arguments: &str) -> Vec<Vec<u8>> {
    match wire {
        Wire::Bedrock => {
            let place = index + 1;
            let id = format!("tooluse_{index}");
            let start = json!({"toolUse": {"toolUseId": id, "name": tool}});
            let mut pieces = vec![frame(
                "contentBlockStart",
                &json!({"contentBlockIndex": place, "start": start}),
            )];
            for piece in halves(arguments) {
                let delta = json!({"toolUse": {"input": piece}});
                let delta = json!({"contentBlockIndex": place, "delta": delta});
                pieces.push(frame("contentBlockDelta", &delta));
            }
            pieces.push(frame("contentBlockStop", &json!({"contentBlockIndex": place})));
            pieces
        }
        Wire::OpenAi => {
            let call = |function: Value, id: Option<String>| {
                let mut call = json!({"index": index, "function": function});
                if let Some(id) = id {
                    call["id"] = json!(id);
                    call["type"] = json!("function");
                }
                chunk(&json!({ "tool_calls": [call] }), None)
            };
            let begin = call(json!({"name": tool, "arguments": ""}), Some(format!("call_{index}")));
            let pieces = halves(arguments).map(|piece| call(json!({ "arguments": piece }), None));
            [begin].into_iter().chain(pieces).collect()
        }
    }
}

fn ended(wire: Wire, with_calls: bool) -> Vec<Vec<u8>> {
    let (sent, cached, received) = TOKENS;
    match wire {
        Wire::Bedrock => {
            let reason = if with_calls { "tool_use" } else { "end_turn" };
            let usage = json!({
                "inputTokens": sent - cached, "outputTokens": received,
                "totalTokens": sent + received, "cacheReadInputTokens": cached,
            });
            vec![
                frame("messageStop", &json!({ "stopReason": reason })),
                frame("metadata", &json!({"usage": usage, "metrics": {"latencyMs": 1}})),
            ]
        }
        Wire::OpenAi => {
            let reason = if with_calls { "tool_calls" } else { "stop" };
            let usage = json!({
                "prompt_tokens": sent, "completion_tokens": received,
                "total_tokens": sent + received,
                "prompt_tokens_details": {"cached_tokens": cached},
            });
            let last = json!({"choices": [], "usage": usage});
            vec![
                chunk(&json!({}), Some(reason)),
                format!("data: {last}\n\n").into_bytes(),
                b"data: [DONE]\n\n".to_vec(),
            ]
        }
    }
}

fn halves(text: &str) -> impl Iterator<Item = &str> {
    let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (one, other) = text.split_at(middle);
    [one, other].into_iter()
}

fn chunk(delta: &Value, finish_reason: Option<&str>) -> Vec<u8> {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
    let chunk = json!({"object": "chat.completion.chunk", "choices": [choice]});
    format!("data: {chunk}\n\n").into_bytes()
}

/// One event of Amazon's event stream.
fn frame(kind: &str, payload: &Value) -> Vec<u8> {
    use aws_smithy_types::event_stream::{Header, HeaderValue, Message};
    let header = |name: &'static str, value: &str| {
        Header::new(name, HeaderValue::String(value.to_owned().into()))
    };
    let message = Message::new(payload.to_string().into_bytes())
        .add_header(header(":message-type", "event"))
        .add_header(header(":event-type", kind))
        .add_header(header(":content-type", "application/json"));
    let mut bytes = Vec::new();
    aws_smithy_eventstream::frame::write_message_to(&message, &mut bytes).unwrap();
    bytes
}
