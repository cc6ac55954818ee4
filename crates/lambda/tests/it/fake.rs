//! A fake of Lambda's Runtime API on loopback, which starts a finished function as Lambda does, and fakes
//! of AWS services.
//!
//! Source: AWS Lambda Developer Guide, "Using the Lambda runtime API for custom runtimes".

#![allow(dead_code, reason = "the tests and the bench each use a part")]

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path as Segment, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use axum::{Json, Router};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::{Mutex as Turn, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// Timeout of any wait for a function.
const WITHIN: Duration = Duration::from_secs(60);

/// The function's memory, in mebibytes: the stack's default.
const MEMORY_MIB: &str = "256";

/// A function that runs against the fake; killed when dropped.
#[derive(Debug)]
pub struct Function {
    child: Child,
    began: Instant,
    log: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
    server: JoinHandle<()>,
    asked: mpsc::Receiver<Instant>,
    events: mpsc::Sender<Event>,
    answers: mpsc::Receiver<Answer>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Response(Value),
    /// `errorType` and `errorMessage`.
    Error(Value),
}

impl Answer {
    /// The error's name, if it is one.
    pub fn error_name(&self) -> Option<&str> {
        match self {
            Self::Response(_) => None,
            Self::Error(error) => error["errorType"].as_str(),
        }
    }
}

#[derive(Debug)]
struct Event {
    number: u64,
    body: Bytes,
    deadline_ms: u128,
}

struct Api {
    asked: mpsc::Sender<Instant>,
    events: Turn<mpsc::Receiver<Event>>,
    answers: mpsc::Sender<Answer>,
}

impl Function {
    /// Starts a binary with the variables that Lambda sets and these.
    pub async fn start(program: &Path, environment: &[(&str, String)]) -> Self {
        let (asked_by, asked) = mpsc::channel(16);
        let (events, given) = mpsc::channel(16);
        let (answered_by, answers) = mpsc::channel(16);
        let api = Api { asked: asked_by, events: Turn::new(given), answers: answered_by };
        let (address, server) = serve(runtime_api(api)).await;
        let began = Instant::now();
        let mut child = Command::new(program)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (*name, value.as_str())))
            .env("AWS_LAMBDA_RUNTIME_API", &address)
            .env("AWS_LAMBDA_FUNCTION_NAME", "function")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", MEMORY_MIB)
            .env("AWS_LAMBDA_LOG_FORMAT", "JSON")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "fake")
            .env("AWS_SECRET_ACCESS_KEY", "fake")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let readers = vec![
            read(child.stdout.take().unwrap(), &log),
            read(child.stderr.take().unwrap(), &log),
        ];
        Self { child, began, log, readers, server, asked, events, answers }
    }

    /// Waits for the first request for an event. Returns the time from the start until then.
    pub async fn ready(&mut self) -> Duration {
        let asked = timeout(WITHIN, self.asked.recv()).await;
        match asked {
            Ok(Some(at)) => at - self.began,
            _ => panic!("the function asks for no event; its log: {}", self.log()),
        }
    }

    /// Sends an event with `time` until its deadline, without waiting for the answer.
    #[expect(clippy::disallowed_methods, reason = "Lambda gives the deadline in the system's time")]
    pub async fn give(&mut self, body: impl Into<Bytes>, time: Duration) {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let deadline_ms = (now + time).as_millis();
        let number = u64::try_from(now.as_nanos()).unwrap();
        self.events.send(Event { number, body: body.into(), deadline_ms }).await.unwrap();
    }

    /// Sends an event and waits for the answer.
    pub async fn send(&mut self, body: impl Into<Bytes>, time: Duration) -> Answer {
        self.give(body, time).await;
        match timeout(WITHIN, self.answers.recv()).await {
            Ok(Some(answer)) => answer,
            _ => panic!("an event was not answered; the function's log: {}", self.log()),
        }
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// The peak of its resident memory, in kibibytes.
    ///
    /// Source: Linux, proc(5), `VmHWM`.
    pub fn peak_memory_kib(&self) -> u64 {
        let pid = self.child.id().unwrap();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Sends SIGTERM, as Lambda does before it stops the environment.
    pub async fn terminate(&mut self) {
        let pid = self.child.id().unwrap().to_string();
        let status = Command::new("kill").args(["-TERM", &pid]).status().await.unwrap();
        assert!(status.success());
    }

    /// Waits for its end. Returns its exit status and its whole log.
    pub async fn ended(mut self) -> (ExitStatus, String) {
        let status = timeout(WITHIN, self.child.wait()).await;
        let Ok(status) = status else { panic!("it does not end; its log: {}", self.log()) };
        for reader in self.readers.drain(..) {
            reader.await.unwrap();
        }
        (status.unwrap(), self.log())
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn read(
    stream: impl AsyncRead + Unpin + Send + 'static,
    log: &Arc<Mutex<String>>,
) -> JoinHandle<()> {
    let log = Arc::clone(log);
    tokio::spawn(async move {
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let mut log = log.lock().unwrap();
            log.push_str(&line);
            log.push('\n');
        }
    })
}

async fn serve(router: Router) -> (String, JoinHandle<()>) {
    // With Nagle's algorithm, an answer waits 40 ms for an acknowledgement.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap());
    let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, server)
}

fn runtime_api(api: Api) -> Router {
    let invocation = "/2018-06-01/runtime/invocation";
    Router::new()
        .route(&format!("{invocation}/next"), get(next))
        .route(&format!("{invocation}/{{id}}/response"), post(response))
        .route(&format!("{invocation}/{{id}}/error"), post(error))
        .with_state(Arc::new(api))
}

async fn next(State(api): State<Arc<Api>>) -> Response {
    api.asked.try_send(Instant::now()).ok();
    let Some(event) = api.events.lock().await.recv().await else {
        return StatusCode::GONE.into_response();
    };
    let headers = [
        ("lambda-runtime-aws-request-id", event.number.to_string()),
        ("lambda-runtime-deadline-ms", event.deadline_ms.to_string()),
        ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:0:function:f".to_owned()),
        ("content-type", "application/json".to_owned()),
    ];
    (headers, event.body).into_response()
}

async fn response(State(api): State<Arc<Api>>, _: Segment<String>, body: Bytes) -> StatusCode {
    let answer = Answer::Response(serde_json::from_slice(&body).unwrap());
    api.answers.send(answer).await.unwrap();
    StatusCode::ACCEPTED
}

async fn error(State(api): State<Arc<Api>>, _: Segment<String>, body: Bytes) -> StatusCode {
    let answer = Answer::Error(serde_json::from_slice(&body).unwrap());
    api.answers.send(answer).await.unwrap();
    StatusCode::ACCEPTED
}

/// AWS services that answer every operation with a given value, or never.
#[derive(Debug)]
pub struct Services {
    pub endpoint: String,
    heard: Arc<Mutex<Vec<(String, Value)>>>,
    server: JoinHandle<()>,
}

/// The answer to an operation; `None` if the service never answers.
pub type Answering = fn(operation: &str) -> Option<Value>;

impl Services {
    pub async fn start(answering: Answering) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hear = Arc::clone(&heard);
        let answer = move |uri: Uri, headers: HeaderMap, body: Bytes| {
            let operation = operation(&uri, &headers);
            let request = serde_json::from_slice(&body).unwrap_or_default();
            hear.lock().unwrap().push((operation.clone(), request));
            async move {
                match answering(&operation) {
                    Some(answer) => Json(answer).into_response(),
                    None => std::future::pending().await,
                }
            }
        };
        let (address, server) = serve(Router::new().fallback(answer)).await;
        Self { endpoint: format!("http://{address}"), heard, server }
    }

    /// The operations that the function called, each with its request.
    pub fn heard(&self) -> Vec<(String, Value)> {
        self.heard.lock().unwrap().clone()
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// The operation's name in the JSON protocols, in REST the path's last segment.
fn operation(uri: &Uri, headers: &HeaderMap) -> String {
    let target = headers.get("x-amz-target").and_then(|value| value.to_str().ok());
    let (text, separator) = target.map_or((uri.path(), '/'), |target| (target, '.'));
    text.rsplit(separator).next().unwrap_or_default().to_owned()
}
