//! The packaged Lambda functions, against a fake of Lambda's runtime API and a local stack's journal.
//!
//! Source of the API: AWS Lambda Developer Guide, "Using the Lambda runtime API".

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use journal::clock::Stamp;
use journal::id::SessionId;
use journal::item::Item;
use journal::key;
use journal::sqlite::{Durability, SqliteStore};
use journal::store::{Condition, Store as _};
use serde_json::{Value, json};
use stack::dynamodb;
use stack::stack::JOURNAL_FILE;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use crate::harness::{DEADLINE, Dev};

/// Requests of a function and its responses.
struct Calls {
    waiting: Mutex<mpsc::Receiver<Value>>,
    answered: mpsc::Sender<Value>,
}

async fn next(State(calls): State<Arc<Calls>>) -> impl IntoResponse {
    let mut headers = HeaderMap::new();
    let mut header = |name: &'static str, value: &'static str| {
        headers.insert(name, value.parse().unwrap());
    };
    header("lambda-runtime-aws-request-id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd");
    header("lambda-runtime-deadline-ms", "4102444800000");
    header(
        "lambda-runtime-invoked-function-arn",
        "arn:aws:lambda:us-east-1:000000000000:function:f",
    );
    // When nothing is left to do, a function is frozen while it waits.
    let call = calls.waiting.lock().await.recv().await;
    match call {
        Some(call) => (headers, call.to_string()).into_response(),
        None => std::future::pending().await,
    }
}

async fn answered(State(calls): State<Arc<Calls>>, body: Bytes) -> StatusCode {
    let answer = serde_json::from_slice(&body).unwrap();
    calls.answered.send(answer).await.unwrap();
    StatusCode::ACCEPTED
}

/// The table of a stack that is running, for programs that write to it: the stack itself takes records from its agents
/// alone.
async fn table(data: &Path, serving: &mut JoinSet<()>) -> String {
    let store = SqliteStore::open(&data.join(JOURNAL_FILE), Durability::Relaxed).unwrap();
    let handled = async |State(store): State<SqliteStore>, headers: HeaderMap, body: Bytes| {
        let target = headers["x-amz-target"].to_str().unwrap();
        let action = target.strip_prefix(dynamodb::TARGET_PREFIX).unwrap();
        let (status, body) = match dynamodb::handle(&store, action, &body).await {
            Ok(body) => (StatusCode::OK, body),
            Err(error) => (StatusCode::from_u16(error.status).unwrap(), error.body()),
        };
        (status, [("content-type", "application/x-amz-json-1.0")], body.to_string())
    };
    let router = Router::new().route("/", post(handled)).with_state(store);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
    format!("http://{address}")
}

/// A running function.
struct Lambda {
    child: Child,
    calls: mpsc::Sender<Value>,
    answers: mpsc::Receiver<Value>,
    _serving: JoinSet<()>,
}

impl Lambda {
    /// Starts the program of a function with a stack behind it; `None`, with the reason said, where it is
    /// not built.
    async fn start(
        name: &str,
        stack: &Dev,
        data: &Path,
        environment: &[(&str, &str)],
    ) -> Option<Self> {
        let program = Path::new(env!("CARGO_BIN_EXE_daybook")).with_file_name(name);
        if !program.exists() {
            eprintln!("skipped: build it with `cargo build -p {name} --features lambda`");
            return None;
        }
        let (calls, waiting) = mpsc::channel(8);
        let (told, answers) = mpsc::channel(8);
        let state = Arc::new(Calls { waiting: Mutex::new(waiting), answered: told });
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(answered))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(answered))
            .with_state(state);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = listener.local_addr().unwrap().to_string();
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        let table = table(data, &mut serving).await;
        let child = Command::new(program)
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", api)
            .env("AWS_LAMBDA_FUNCTION_NAME", name)
            .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
            .env("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/f")
            .env("AWS_LAMBDA_LOG_STREAM_NAME", "1")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "local")
            .env("AWS_SECRET_ACCESS_KEY", "local")
            .env("AWS_ENDPOINT_URL", &stack.endpoint)
            .env("AWS_ENDPOINT_URL_DYNAMODB", table)
            .env("JOURNAL_TABLE_NAME", "daybook-journal")
            .env(
                "AGENT_RUNTIME_ARN",
                "arn:aws:bedrock-agentcore:us-east-1:000000000000:runtime/daybook-local",
            )
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Some(Self { child, calls, answers, _serving: serving })
    }

    /// Calls the function; what it answers.
    async fn call(&mut self, event: Value) -> Value {
        self.calls.send(event).await.unwrap();
        let answer = tokio::time::timeout(DEADLINE, self.answers.recv()).await;
        answer.expect("the function answers in time").unwrap()
    }

    /// Ends the program; the lines that it has written, which are all JSON.
    fn lines(mut self) -> Vec<Value> {
        self.child.kill().unwrap();
        let mut text = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let lines = text.lines();
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{text}"))).collect()
    }
}

impl Drop for Lambda {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The metrics that CloudWatch extracts from a function's lines, with unit, dimensions and values.
///
/// Source: Amazon CloudWatch User Guide, "Specification: Embedded metric format".
fn figures(lines: &[Value]) -> Vec<String> {
    let mut figures = Vec::new();
    for line in lines.iter().filter(|line| line.get("_aws").is_some()) {
        assert!(line["_aws"]["Timestamp"].is_u64(), "{line}");
        for directive in line["_aws"]["CloudWatchMetrics"].as_array().unwrap() {
            assert_eq!(directive["Namespace"], "Daybook");
            let sets = directive["Dimensions"].as_array().unwrap();
            for (set, metric) in sets.iter().flat_map(|set| {
                directive["Metrics"].as_array().unwrap().iter().map(move |metric| (set, metric))
            }) {
                let name = metric["Name"].as_str().unwrap();
                let text = |key: &Value| line[key.as_str().unwrap()].as_str().unwrap().to_owned();
                let dimensions: Vec<String> = set
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|key| format!("{}={}", key.as_str().unwrap(), text(key)))
                    .collect();
                let value = &line[name];
                let value = match metric["Unit"].as_str().unwrap() {
                    "Count" => value.to_string(),
                    unit => {
                        let values = value.as_array().unwrap();
                        assert!(values.iter().all(Value::is_number), "{line}");
                        format!("{} in {unit}", values.len())
                    }
                };
                figures.push(format!("{name} [{}] {value}", dimensions.join(",")));
            }
        }
    }
    figures.sort();
    figures
}

/// A session that has begun and that no workflow watches, in the journal of a stack to be started.
async fn abandoned(data: &Path) -> (SessionId, Stamp, i64) {
    std::fs::create_dir_all(data).unwrap();
    let store = SqliteStore::open(&data.join(JOURNAL_FILE), Durability::Relaxed).unwrap();
    let (id, began) = (SessionId::fresh(), journal::clock::Clock::system().now());
    let expires_at = began.seconds() + 90 * 86_400;
    let item = Item::new(key::session(&id), key::event(began))
        .with("V", 1_u32)
        .with("Status", "SESSION_INITIATED")
        .with("Timestamp", began.to_string())
        .with("EventId", "initiated")
        .with("Writer", "state-machine")
        .with("ExecutionArn", arn(&id))
        .with("ExpiresAt", expires_at);
    store.put(item, Condition::Absent).await.unwrap();
    (id, began, expires_at)
}

fn arn(id: &SessionId) -> String {
    format!("arn:aws:states:us-east-1:000000000000:execution:daybook:{id}")
}

fn invocation(id: &SessionId, detail: &Value, (began, expires_at): (Stamp, i64)) -> Value {
    json!({
        "session_id": id, "execution_arn": arn(id), "detail": detail, "expires_at": expires_at,
        "seen": began, "asked_at": began, "invocation": 1, "retry": 0, "supersedes": 0,
    })
}

fn check(id: &SessionId, (began, expires_at): (Stamp, i64)) -> Value {
    json!({
        "mode": "check", "session_id": id, "execution_arn": arn(id), "expires_at": expires_at,
        "seen": began, "now": began, "watch": {
            "invocation": 1, "epoch": 0, "seq": 0, "lost": 0, "lost_at_seq": 0, "running_ms": 0,
            "poll_ms": 5000, "timeout_s": 5, "heartbeat_s": 4,
        },
    })
}

fn ended(id: &SessionId) -> Value {
    let input = json!({ "session_id": id, "detail": {} }).to_string();
    json!({
        "detail-type": "Step Functions Execution Status Change", "source": "aws.states",
        "detail": { "status": "FAILED", "executionArn": arn(id), "input": input },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn each_lambda_writes_metrics_in_cloudwatch_s_format() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (id, began, expires_at) = abandoned(&data).await;
    let times = (began, expires_at);
    let stack = Dev::start(folder.path(), &data);

    let Some(mut watchdog) = Lambda::start("watchdog", &stack, &data, &[]).await else { return };
    let report = watchdog.call(ended(&id)).await;
    assert_eq!(report["closed"], json!([id]), "{report}");
    assert_eq!(figures(&watchdog.lines()), ["WatchdogClosed [] 1"]);

    let Some(mut poller) = Lambda::start("poller", &stack, &data, &[]).await else { return };
    let judged = poller.call(check(&id, times)).await;
    assert_eq!(judged["status"], "FAILED", "{judged}");
    let expected = [
        "Polls [status=FAILED] 1",
        "SessionSeconds [status=SESSION_FAILED] 1 in Seconds",
        "SessionsEnded [status=SESSION_FAILED,agent=none] 1",
    ];
    assert_eq!(figures(&poller.lines()), expected);

    let limit = [("MAX_INCIDENTS_PER_HOUR", "1")];
    let Some(mut invoker) = Lambda::start("invoker", &stack, &data, &limit).await else { return };
    for (function, outcome) in [("a", "accepted"), ("b", "rejected")] {
        let detail = json!({ "agent": "incident", "input": { "lambda_name": function } });
        let answer = invoker.call(invocation(&SessionId::fresh(), &detail, times)).await;
        assert!(answer.to_string().contains(outcome), "{answer}");
    }
    // The alarm of the stack that is deployed looks at the breaker of this agent.
    let expected = [
        "Admissions [outcome=admitted] 1",
        "Admissions [outcome=breaker_open] 1",
        "BreakerOpen [agent=incident] 1",
    ];
    assert_eq!(figures(&invoker.lines()), expected);
    assert_eq!(stack.stop("-TERM"), 0);
}

/// A collector that accepts connections and never responds; counts them.
pub async fn mute_collector() -> (String, Arc<AtomicUsize>, JoinSet<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (taken, mut listening) = (Arc::new(AtomicUsize::new(0)), JoinSet::new());
    let count = Arc::clone(&taken);
    listening.spawn(async move {
        let mut kept = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            kept.push(connection);
        }
    });
    (endpoint, taken, listening)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_never_answers_holds_no_lambda_up() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (id, began, expires_at) = abandoned(&data).await;
    let stack = Dev::start(folder.path(), &data);
    let detail = json!({ "traceparent": "00-broken" });
    let calls = [
        ("watchdog", ended(&id)),
        ("poller", check(&id, (began, expires_at))),
        ("invoker", invocation(&SessionId::fresh(), &detail, (began, expires_at))),
    ];
    for (name, call) in calls {
        let (endpoint, taken, _listening) = mute_collector().await;
        let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str())];
        let Some(mut lambda) = Lambda::start(name, &stack, &data, &environment).await else {
            return;
        };
        // Without a timeout, an unanswered export would never end.
        lambda.call(call).await;
        assert!(taken.load(Ordering::Relaxed) > 0, "{name} exported nothing");
        let lines = lambda.lines();
        let left_out = lines
            .iter()
            .any(|line| line["fields"]["message"] == "The trigger's traceparent was left out.");
        assert_eq!(left_out, name == "invoker", "{name}: {lines:#?}");
        assert!(!format!("{lines:?}").contains("00-broken"), "{name}: {lines:#?}");
    }
    assert_eq!(stack.stop("-TERM"), 0);
}
