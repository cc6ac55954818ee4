//! An MCP server over HTTP that misbehaves on request. It does not use `rmcp`, which could not misbehave
//! in these ways.
//!
//! It serves Streamable HTTP at `/mcp` and the older HTTP with server-sent events at `/sse`. The name of
//! the called tool, or the path of the request, selects its behaviour.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::tool::{Servers, Timeouts};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::{get, post};
use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Barrier, Notify, mpsc};
use tokio::task::JoinHandle;

use super::fixture::{Bench, NAME, PATIENT, SECRET};

/// Both transports.
pub const BOTH: [&str; 2] = ["http", "sse"];

/// The tool `together` answers once this many calls are waiting.
pub const TOGETHER: usize = 20;

/// A running server; stopped on drop.
pub struct Web {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    /// The other origin to which bad redirects and endpoints point.
    elsewhere: String,
    log: Mutex<Vec<String>>,
    sessions: Mutex<Vec<String>>,
    /// Open event streams of the older transport.
    streams: Mutex<BTreeMap<usize, mpsc::UnboundedSender<Value>>>,
    together: Barrier,
    refused: Notify,
}

impl Web {
    pub async fn start() -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), "http://127.0.0.1:9").await
    }

    pub async fn at(address: SocketAddr, elsewhere: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            elsewhere: elsewhere.to_owned(),
            log: Mutex::default(),
            sessions: Mutex::default(),
            streams: Mutex::default(),
            together: Barrier::new(TOGETHER),
            refused: Notify::new(),
        });
        let router = Router::new()
            .route("/mcp", post(streamable).get(|| async { StatusCode::METHOD_NOT_ALLOWED }))
            .route("/mcp/{mode}", post(odd))
            .route("/sse", get(older))
            .route("/sse/{mode}", get(odd_older))
            .route("/messages/{stream}", post(message))
            .with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, shared, task }
    }

    /// The entry of the servers file for this transport, with the valid token.
    pub fn entry(&self, transport: &str) -> Value {
        self.entry_at(transport, "")
    }

    /// The same, at another path.
    pub fn entry_at(&self, transport: &str, mode: &str) -> Value {
        let path = if transport == "http" { "mcp" } else { "sse" };
        let slash = if mode.is_empty() { "" } else { "/" };
        json!({
            "url": format!("http://{}/{path}{slash}{mode}", self.address), "transport": transport,
            "headers": {"Authorization": "Bearer ${env:SECRET}"},
        })
    }

    pub fn bench(&self, transport: &str) -> Bench {
        bench(self.entry(transport), PATIENT)
    }

    /// The log, in order: methods, and `call TOOL`.
    pub fn log(&self) -> Vec<String> {
        self.shared.log.lock().unwrap().clone()
    }

    /// How often this is in the log.
    pub fn count(&self, what: &str) -> usize {
        self.log().iter().filter(|line| *line == what).count()
    }

    /// Makes the server forget all MCP sessions.
    pub fn forget(&self) {
        self.shared.sessions.lock().unwrap().clear();
    }

    /// Stops the server. Open responses break off.
    pub async fn stop(self) -> SocketAddr {
        self.task.abort();
        let _ = tokio::time::timeout(PATIENT.init, async {
            while !self.task.is_finished() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        self.address
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A toolbox with this entry's server.
pub fn bench(entry: Value, timeouts: Timeouts) -> Bench {
    let file = json!({"mcpServers": {NAME: entry}}).to_string();
    let environment = |name: &str| (name == "SECRET").then(|| SECRET.to_owned());
    let servers = Servers::parse(&file, environment).unwrap();
    Bench::of(tempfile::tempdir().unwrap(), servers, timeouts)
}

impl Shared {
    fn note(&self, line: impl Into<String>) {
        self.log.lock().unwrap().push(line.into());
    }
}

type Reply = Response<Body>;

fn status(status: u16) -> Reply {
    Response::builder().status(status).body(Body::from("the body of a refusal")).unwrap()
}

fn typed(kind: &str, body: Body) -> Reply {
    Response::builder().header("Content-Type", kind).body(body).unwrap()
}

fn event(message: &Value) -> String {
    format!("event: message\r\ndata: {message}\r\n\r\n")
}

fn authorized(headers: &HeaderMap) -> bool {
    headers.get("Authorization").is_some_and(|value| *value == *format!("Bearer {SECRET}"))
}

/// The answer to a request over either transport, if any.
fn answer(shared: &Shared, headers: &HeaderMap, message: &Value) -> Option<Value> {
    if message["method"].is_null() {
        shared.note(format!("answered {}", message["error"]["code"]));
        shared.refused.notify_one();
        return None;
    }
    let (method, params) = (message["method"].as_str().unwrap_or_default(), &message["params"]);
    shared.note(if method == "tools/call" {
        format!("call {}", params["name"].as_str().unwrap())
    } else {
        method.to_owned()
    });
    let text = |text: String| json!({"content": [{"type": "text", "text": text}]});
    let result = match method {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": NAME, "version": "0"},
        }),
        "tools/list" => {
            let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
            json!({"tools": NAMES.map(tool)})
        }
        "tools/call" => match params["name"].as_str().unwrap() {
            "echo" => json!({"structuredContent": params["arguments"], "content": []}),
            "span" => json!({"content": [], "structuredContent": {
                "header": headers.get("traceparent").map(|value| value.to_str().unwrap()),
                "message": params["_meta"]["traceparent"],
            }}),
            "headers" => text(format!("you sent {:?}", headers.get("Authorization").unwrap())),
            "bytes" => {
                let bytes = usize::try_from(params["arguments"]["n"].as_u64().unwrap()).unwrap();
                text("x".repeat(bytes))
            }
            "asks" => text("asked".to_owned()),
            "together" => json!({"structuredContent": {"n": params["arguments"]["n"]}}),
            _ => return None,
        },
        "ping" => json!({}),
        _ => return None,
    };
    Some(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

const NAMES: [&str; 13] = [
    "echo",
    "span",
    "headers",
    "bytes",
    "together",
    "hangs",
    "cut",
    "endless",
    "babbles",
    "forbidden",
    "throttled",
    "broken",
    "asks",
];

async fn streamable(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Reply {
    if !authorized(&headers) {
        return status(401);
    }
    let message: Value = serde_json::from_slice(&body).unwrap();
    let session = headers.get("Mcp-Session-Id").map(|id| id.to_str().unwrap().to_owned());
    let is_known = |id: &String| shared.sessions.lock().unwrap().contains(id);
    if message["method"] != "initialize" && !session.as_ref().is_some_and(is_known) {
        shared.note("unknown session");
        return status(404);
    }
    let tool = message["params"]["name"].as_str().unwrap_or_default().to_owned();
    let answered = answer(&shared, &headers, &message);
    match tool.as_str() {
        "together" => {
            shared.together.wait().await;
        }
        "hangs" => return std::future::pending().await,
        "asks" => {
            let asked = event(&sampling());
            let answered = event(&answered.unwrap());
            let rest = stream::once(async move {
                shared.refused.notified().await;
                Ok(answered)
            });
            let all = stream::iter([Ok::<_, Infallible>(asked)]).chain(rest);
            return typed("text/event-stream", Body::from_stream(all));
        }
        "cut" => {
            let log = json!({"jsonrpc": "2.0", "method": "notifications/message",
                "params": {"level": "info", "data": "soon"}});
            return typed("text/event-stream", Body::from(event(&log)));
        }
        "endless" => return typed("text/event-stream", endless()),
        "babbles" => {
            return typed("text/event-stream", Body::from("data: hello\n\n".repeat(1_000)));
        }
        "forbidden" => return status(403),
        "throttled" => return status(429),
        "broken" => return status(500),
        _ => {}
    }
    let Some(answered) = answered else { return status(202) };
    let mut reply = if tool == "echo" {
        typed("text/event-stream", Body::from(event(&answered)))
    } else {
        typed("application/json", Body::from(answered.to_string()))
    };
    if message["method"] == "initialize" {
        let mut sessions = shared.sessions.lock().unwrap();
        let id = format!("session-{}", shared.log.lock().unwrap().len());
        reply.headers_mut().insert("Mcp-Session-Id", id.parse().unwrap());
        sessions.push(id);
    }
    reply
}

/// A request to the client that ours does not support.
fn sampling() -> Value {
    json!({"jsonrpc": "2.0", "id": 900, "method": "sampling/createMessage", "params": {
        "maxTokens": 10,
        "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}],
    }})
}

fn endless() -> Body {
    let log = event(&json!({"jsonrpc": "2.0", "method": "notifications/message",
        "params": {"level": "info", "data": "x".repeat(1_000)}}));
    let pause = || tokio::time::sleep(Duration::from_millis(1));
    Body::from_stream(stream::repeat(log).then(move |log| async move {
        pause().await;
        Ok::<_, Infallible>(log)
    }))
}

/// Streamable HTTP at paths with odd behaviour.
async fn odd(
    State(shared): State<Arc<Shared>>,
    Path(mode): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Reply {
    let redirect = |to: String| {
        Response::builder().status(307).header("Location", to).body(Body::empty()).unwrap()
    };
    match mode.as_str() {
        "astray" => redirect(format!("{}/mcp", shared.elsewhere)),
        "moved" => redirect("/mcp".to_owned()),
        "round" => redirect("/mcp/round".to_owned()),
        "page" => typed("text/html", Body::from("<html>")),
        "empty" => typed("application/json", Body::from("{}")),
        "challenge" => {
            let mut reply = status(401);
            reply.headers_mut().insert("WWW-Authenticate", "Bearer".parse().unwrap());
            reply
        }
        "black-hole" => std::future::pending().await,
        "flood" => typed(
            "application/json",
            Body::from_stream(stream::repeat(Ok::<_, Infallible>(Bytes::from_static(
                &[b' '; 65_536],
            )))),
        ),
        _ => streamable(State(shared), headers, body).await,
    }
}

/// The older transport: the event stream.
async fn older(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Reply {
    if !authorized(&headers) {
        return status(401);
    }
    let (sender, receiver) = mpsc::unbounded_channel();
    let mut streams = shared.streams.lock().unwrap();
    let id = streams.len();
    streams.insert(id, sender);
    let messages = stream::unfold(receiver, |mut receiver| async move {
        let message: Value = receiver.recv().await?;
        let text = match message.as_str() {
            Some(raw) => raw.to_owned(),
            None => event(&message),
        };
        Some((text, receiver))
    });
    let first = format!(": hello\n\nevent: endpoint\ndata: /messages/{id}\n\n");
    let events = stream::iter([first]).chain(messages).map(Ok::<_, Infallible>);
    typed("text/event-stream", Body::from_stream(events))
}

async fn odd_older(State(shared): State<Arc<Shared>>, Path(mode): Path<String>) -> Reply {
    let first = match mode.as_str() {
        "astray" => format!("event: endpoint\ndata: {}/messages\n\n", shared.elsewhere),
        "page" => return typed("text/html", Body::from("<html>")),
        "ends" => "event: hello\ndata: x\n\n".to_owned(),
        "challenge" => return status(401),
        "black-hole" => return std::future::pending().await,
        _ => {
            let flood = stream::repeat(Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 65_536])));
            return typed("text/event-stream", Body::from_stream(flood));
        }
    };
    typed("text/event-stream", Body::from(first))
}

/// The older transport: a message from the client.
async fn message(
    State(shared): State<Arc<Shared>>,
    Path(stream): Path<usize>,
    headers: HeaderMap,
    body: Bytes,
) -> Reply {
    if !authorized(&headers) {
        return status(401);
    }
    let message: Value = serde_json::from_slice(&body).unwrap();
    let sender = shared.streams.lock().unwrap().get(&stream).cloned();
    let Some(sender) = sender.filter(|sender| !sender.is_closed()) else { return status(404) };
    let answered = answer(&shared, &headers, &message);
    match message["params"]["name"].as_str().unwrap_or_default() {
        "forbidden" => return status(403),
        "throttled" => return status(429),
        "broken" => return status(500),
        "cut" => drop(shared.streams.lock().unwrap().remove(&stream)),
        "babbles" => {
            let _ = sender.send(json!("data: hello\n\n".repeat(1_000)));
        }
        "endless" => {
            tokio::spawn(async move {
                let log = json!({"jsonrpc": "2.0", "method": "notifications/message",
                    "params": {"level": "info", "data": "x".repeat(1_000)}});
                while sender.send(log.clone()).is_ok() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
        }
        "asks" => {
            let _ = sender.send(sampling());
            tokio::spawn(async move {
                shared.refused.notified().await;
                let _ = sender.send(answered.unwrap());
            });
        }
        "together" => {
            tokio::spawn(async move {
                shared.together.wait().await;
                let _ = sender.send(answered.unwrap());
            });
        }
        _ => {
            if let Some(answered) = answered {
                let _ = sender.send(answered);
            }
        }
    }
    status(202)
}
