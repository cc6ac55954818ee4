//! One tree of spans from the trigger to each tool call, received by a collector in the test, including
//! isolated agents and killed processes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use journal::event::EventStatus;
use journal::id::SessionId;
use journal::read;
use journal::sqlite::SqliteStore;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::json;
use stack::stack::JOURNAL_FILE;
use tokio::task::JoinSet;

use crate::harness::{DEADLINE, Dev, daybook, incident, run};
use crate::kills::{agent_of, signal};
use crate::lambdas::mute_collector;

/// How long a collector waits for spans that are on their way: batches leave twice a second.
const QUIET: Duration = Duration::from_secs(3);

/// A span with the service that sent it and its tracer.
#[derive(Clone, Debug)]
struct Told {
    service: String,
    tracer: String,
    span: Span,
}

type Received = Arc<Mutex<Vec<Told>>>;

/// An OTLP collector on loopback.
struct Collector {
    endpoint: String,
    received: Received,
    _serving: JoinSet<()>,
}

impl Collector {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let received = Received::default();
        let router = axum::Router::new()
            .route("/v1/traces", axum::routing::post(take))
            .with_state(received.clone());
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { endpoint, received, _serving: serving }
    }

    /// A command that sends its spans here.
    fn heard(&self, command: &mut Command) {
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &self.endpoint);
    }

    fn all(&self) -> Vec<Told> {
        self.received.lock().unwrap().clone()
    }

    /// The spans of a session's trace, once it has all that it will have.
    async fn trace_of(&self, session: &str) -> Trace {
        let has_session = || {
            let root = self.all().into_iter().find(|told| {
                told.span.name == "session" && text(&told.span, "session.id") == Some(session)
            });
            root.map(|told| told.span.trace_id)
        };
        let waiting = async {
            loop {
                match has_session() {
                    Some(trace_id) => return trace_id,
                    None => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        };
        let waited = tokio::time::timeout(DEADLINE, waiting).await;
        let trace_id = waited.unwrap_or_else(|_| panic!("no session's span: {:#?}", self.all()));
        tokio::time::sleep(QUIET).await;
        let told = self.all().into_iter().filter(|told| told.span.trace_id == trace_id);
        Trace(told.collect())
    }
}

async fn take(State(received): State<Received>, body: Bytes) {
    let request = ExportTraceServiceRequest::decode(body).expect("OTLP as protobuf");
    for resource in request.resource_spans {
        let attributes = resource.resource.unwrap_or_default().attributes;
        let service = attributes.iter().find(|pair| pair.key == "service.name");
        let service = service.and_then(|pair| match pair.value.as_ref()?.value.as_ref()? {
            Value::StringValue(text) => Some(text.clone()),
            _ => None,
        });
        for scope in resource.scope_spans {
            let tracer = scope.scope.unwrap_or_default().name;
            let service = service.clone().unwrap_or_default();
            let told = |span| Told { service: service.clone(), tracer: tracer.clone(), span };
            received.lock().unwrap().extend(scope.spans.into_iter().map(told));
        }
    }
}

fn text<'a>(span: &'a Span, name: &str) -> Option<&'a str> {
    let pair = span.attributes.iter().find(|pair| pair.key == name)?;
    match pair.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

fn number(span: &Span, name: &str) -> Option<i64> {
    let pair = span.attributes.iter().find(|pair| pair.key == name)?;
    match pair.value.as_ref()?.value.as_ref()? {
        Value::IntValue(number) => Some(*number),
        _ => None,
    }
}

/// All spans of one trace.
struct Trace(Vec<Told>);

impl Trace {
    /// Asserts one tree: one root, and a parent for every other span.
    #[track_caller]
    fn is_a_tree(&self) {
        let ids: BTreeSet<_> = self.0.iter().map(|told| told.span.span_id.clone()).collect();
        let mut roots = BTreeSet::new();
        for told in &self.0 {
            if told.span.parent_span_id.is_empty() {
                roots.insert(told.span.name.clone());
            } else {
                assert!(ids.contains(&told.span.parent_span_id), "an orphan: {told:#?}\n{self}");
            }
        }
        assert_eq!(roots.len(), 1, "{self}");
    }

    fn named(&self, name: &str) -> Vec<&Told> {
        self.0.iter().filter(|told| told.span.name == name).collect()
    }

    /// The names from the root to a span.
    fn path(&self, told: &Told) -> String {
        let parent = self.0.iter().find(|t| t.span.span_id == told.span.parent_span_id);
        match parent {
            Some(parent) => format!("{} > {}", self.path(parent), told.span.name),
            None => told.span.name.clone(),
        }
    }

    /// Which paths there are, each with the services that told of it.
    fn paths(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut paths: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for told in &self.0 {
            paths.entry(self.path(told)).or_default().insert(told.service.clone());
        }
        paths
    }
}

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (path, services) in self.paths() {
            writeln!(f, "{path} {services:?}")?;
        }
        Ok(())
    }
}

/// The servers' spans, which nothing hangs on, and what they hang on: the tool, from the trigger.
fn leaves(root: &str) -> Vec<String> {
    let run = format!("{root} > session > invoke_agent > agent.run");
    ["get_iam_state", "get_lambda_config", "get_recent_logs"]
        .iter()
        .map(|tool| format!("{run} > execute_tool {tool} > tools/call {tool}"))
        .collect()
}

/// Has a session triggered by the command line; its id.
fn triggered(collector: &Collector, folder: &Path, endpoint: &str) -> String {
    let input = incident("s3-permission-revoked");
    let of_incident = ["--agent", "incident", "--input", input.to_str().unwrap()];
    triggered_with(collector, folder, endpoint, &of_incident)
}

fn triggered_with(
    collector: &Collector,
    folder: &Path,
    endpoint: &str,
    arguments: &[&str],
) -> String {
    let mut command = daybook(folder);
    collector.heard(&mut command);
    command.args(["--endpoint", endpoint, "trigger"]).args(arguments);
    let ran = run(&mut command);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    ran.stdout.trim().to_owned()
}

async fn a_session_is_one_tree(arguments: &[&str], of_agent: &str) {
    let (collector, folder) = (Collector::start().await, tempfile::tempdir().unwrap());
    let mut command = daybook(folder.path());
    collector.heard(&mut command);
    let data = folder.path().join("data");
    let dev = Dev::listening_with(&mut command, &data, "127.0.0.1:0", arguments);
    let session = triggered(&collector, folder.path(), &dev.endpoint);
    let trace = collector.trace_of(&session).await;
    trace.is_a_tree();
    let paths = trace.paths();
    let root = "send manual-trigger";
    for leaf in leaves(root) {
        let services = paths.get(&leaf).unwrap_or_else(|| panic!("no {leaf}:\n{trace}"));
        assert_eq!(services, &BTreeSet::from(["daybook-mcp".to_owned()]), "{leaf}");
    }
    let run = format!("{root} > session > invoke_agent > agent.run");
    let chat = &paths[&format!("{run} > chat policy")];
    assert_eq!(chat, &BTreeSet::from([of_agent.to_owned()]), "{trace}");
    for leaf in ["invoke_agent > agent.entrypoint", "poller.check", "poller.park", "invoker.invoke"]
    {
        assert!(paths.contains_key(&format!("{root} > session > {leaf}")), "no {leaf}:\n{trace}");
    }
    // No span is duplicated or contains payloads.
    let ids: BTreeSet<_> = trace.0.iter().map(|told| told.span.span_id.clone()).collect();
    assert_eq!(ids.len(), trace.0.len(), "{trace}");
    let all = format!("{:?}", trace.0);
    for secret in ["data-processor", "AccessDenied", "arn:aws:iam"] {
        assert!(!all.contains(secret), "{secret} is in a span");
    }
    for told in trace.named("chat policy") {
        assert_eq!(text(&told.span, "session.id"), Some(session.as_str()));
        assert_eq!(text(&told.span, "gen_ai.operation.name"), Some("chat"));
        assert_eq!(text(&told.span, "gen_ai.request.model"), Some("policy"));
        assert_eq!(text(&told.span, "gen_ai.agent.name"), Some("incident"));
        assert_eq!(number(&told.span, "gen_ai.usage.input_tokens"), Some(0));
        assert_eq!(number(&told.span, "daybook.epoch"), Some(1));
        assert!(number(&told.span, "daybook.step").is_some_and(|step| step > 1));
        assert_eq!(told.tracer, "daybook");
    }
    assert_eq!(dev.stop("-TERM"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_one_tree_from_its_trigger_to_each_tool_call() {
    a_session_is_one_tree(&[], "daybook").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_one_tree_with_an_isolated_agent() {
    let agent = Path::new(env!("CARGO_BIN_EXE_daybook")).with_file_name("agent");
    if !agent.exists() {
        eprintln!("skipped: build it with `cargo build -p agent --features container`");
        return;
    }
    a_session_is_one_tree(&["--isolate"], "daybook-agent").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_without_a_trace_context_starts_a_trace() {
    let (collector, folder) = (Collector::start().await, tempfile::tempdir().unwrap());
    let mut command = daybook(folder.path());
    collector.heard(&mut command);
    let dev = Dev::listening(&mut command, &folder.path().join("data"), "127.0.0.1:0");
    // A trigger that exports nothing, and one whose context is broken.
    for detail in ["{}", r#"{"traceparent": ["00-broken"]}"#] {
        let arguments = ["--endpoint", &dev.endpoint, "trigger", "--detail", detail, "--wait"];
        let ran = run(daybook(folder.path()).args(["--data", "data"]).args(arguments));
        assert_eq!(ran.exit, 0, "{ran:#?}");
        let session = ran.stdout.lines().next().unwrap().to_owned();
        let trace = collector.trace_of(&session).await;
        trace.is_a_tree();
        let id: String =
            trace.0[0].span.trace_id.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(id, session.replace('-', ""));
        assert_eq!(trace.named("session").len(), 1);
    }
    assert_eq!(dev.stop("-TERM"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_collector_delays_no_session() {
    sessions_are_not_disturbed_by(&crate::harness::free_endpoint());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unresponsive_collector_delays_no_session() {
    let (endpoint, taken, _listening) = mute_collector().await;
    sessions_are_not_disturbed_by(&endpoint);
    assert!(taken.load(std::sync::atomic::Ordering::Relaxed) > 0, "nothing was exported");
}

fn sessions_are_not_disturbed_by(collector: &str) {
    let folder = tempfile::tempdir().unwrap();
    let exporting = || {
        let mut command = daybook(folder.path());
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
        command
    };
    let dev = Dev::listening(&mut exporting(), &folder.path().join("data"), "127.0.0.1:0");
    for _ in 0..2 {
        let arguments = ["--data", "data", "--endpoint", &dev.endpoint, "trigger", "--wait"];
        assert_eq!(run(exporting().args(arguments)).exit, 0);
    }
    assert_eq!(dev.stop("-TERM"), 0);
}

#[test]
fn an_invalid_trace_endpoint_stops_the_program_at_start() {
    let folder = tempfile::tempdir().unwrap();
    for value in ["127.0.0.1:4318", "ftp://127.0.0.1", "http://"] {
        let mut command = daybook(folder.path());
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", value).args(["dev"]);
        let ran = run(&mut command);
        assert_eq!(ran.exit, 64, "{ran:#?}");
        assert!(ran.stderr.contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{ran:#?}");
        assert!(ran.stderr.contains("http://127.0.0.1:4318"), "{ran:#?}");
    }
}

/// A stack whose server takes its time, so that a kill meets a session at work. Its clock is the real one: a hurried
/// one makes a lease lapse in three seconds, which a busy machine can take from an agent that is well.
fn slow_stack(collector: &Collector, folder: &Path, data: &Path, arguments: &[&str]) -> Dev {
    let script = r#"sleep 1; exec "$0" mcp aws-diagnostics --snapshot "$1""#;
    let server = json!({
        "command": "sh",
        "args": ["-c", script, env!("CARGO_BIN_EXE_daybook"), incident("s3-permission-revoked")],
        "env": { "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint },
    });
    let servers = json!({ "mcpServers": { "aws-diagnostics": server } });
    std::fs::write(folder.join("servers.json"), servers.to_string()).unwrap();
    let mut command = daybook(folder);
    collector.heard(&mut command);
    command.env("DAYBOOK_MCP_SERVERS", folder.join("servers.json"));
    Dev::listening_with(&mut command, data, "127.0.0.1:0", arguments)
}

/// The spans that a killed process did not send come from whoever seals the session, or from its
/// successor; whichever lives longest, no span waits for its parent.
async fn a_killed_session_is_one_tree(arguments: &[&str], kill_after: Duration) {
    let (collector, folder) = (Collector::start().await, tempfile::tempdir().unwrap());
    let data = folder.path().join("data");
    let start = || slow_stack(&collector, folder.path(), &data, arguments);
    let dev = start();
    let session = triggered(&collector, folder.path(), &dev.endpoint);
    tokio::time::sleep(kill_after).await;
    dev.kill();
    let dev = start();
    let trace = collector.trace_of(&session).await;
    trace.is_a_tree();
    let paths = trace.paths();
    for leaf in leaves("send manual-trigger") {
        let tool = leaf.rsplit_once(" > ").unwrap().0;
        let there = paths.contains_key(&leaf) || paths.contains_key(tool);
        let recovered = format!("{} > execute_tool", tool.rsplit_once(" > ").unwrap().0);
        assert!(there || paths.contains_key(&recovered), "no {tool}:\n{trace}");
    }
    eprintln!("{kill_after:?}\n{trace}");
    assert_eq!(dev.stop("-TERM"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_one_tree_whenever_its_stack_is_killed() {
    for millis in [900, 1_200, 1_300] {
        a_killed_session_is_one_tree(&[], Duration::from_millis(millis)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_one_tree_over_a_killed_isolated_agent() {
    let agent = Path::new(env!("CARGO_BIN_EXE_daybook")).with_file_name("agent");
    if !agent.exists() {
        eprintln!("skipped: build it with `cargo build -p agent --features container`");
        return;
    }
    let (collector, folder) = (Collector::start().await, tempfile::tempdir().unwrap());
    let data = folder.path().join("data");
    let dev = slow_stack(&collector, folder.path(), &data, &["--isolate"]);
    let session = triggered(&collector, folder.path(), &dev.endpoint);
    let id: SessionId = session.parse().unwrap();
    let journal = SqliteStore::open_read_only(&data.join(JOURNAL_FILE)).unwrap();
    let at_work = async {
        let started = EventStatus::AgentBackgroundTaskStarted;
        while !read::events(&journal, &id).await.unwrap().iter().any(|e| e.status == started) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(DEADLINE, at_work).await.expect("the agent starts to work");
    assert!(signal("-KILL", agent_of(&dev).await), "it had ended");
    let trace = collector.trace_of(&session).await;
    trace.is_a_tree();
    let epochs: BTreeSet<_> = trace
        .named("agent.run")
        .iter()
        .map(|told| (number(&told.span, "daybook.epoch"), text(&told.span, "error.type")))
        .collect();
    assert_eq!(epochs, BTreeSet::from([(Some(1), Some("unknown")), (Some(2), None)]), "{trace}");
    // What the second one did hangs on its own run, under the invocation that started it.
    let root = "send manual-trigger";
    for leaf in leaves(root) {
        assert!(trace.paths().contains_key(&leaf), "no {leaf}:\n{trace}");
    }
    assert_eq!(dev.stop("-TERM"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_spans_of_an_investigation_follow_its_specification() {
    let (collector, folder) = (Collector::start().await, tempfile::tempdir().unwrap());
    let mut command = daybook(folder.path());
    collector.heard(&mut command);
    let dev = Dev::listening(&mut command, &folder.path().join("data"), "127.0.0.1:0");
    let transactions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs/fraud/transactions");
    let input = transactions.join("card-testing.json").canonicalize().unwrap();
    let of_fraud = ["--agent", "fraud", "--input", input.to_str().unwrap()];
    let session = triggered_with(&collector, folder.path(), &dev.endpoint, &of_fraud);
    let trace = collector.trace_of(&session).await;
    trace.is_a_tree();
    let mut own: Vec<&Told> = trace.0.iter().filter(|told| told.tracer == "fraud-agent").collect();
    own.sort_by_key(|told| number(&told.span, "daybook.step"));
    let mut planned = 0;
    for pair in own.chunks(2) {
        let [decided, called] = pair else {
            assert_eq!(text(&pair[0].span, "selected_tool"), Some("COMPLETE"));
            continue;
        };
        assert_eq!(decided.span.name, "agent.planner");
        assert_eq!(number(&decided.span, "step_count"), Some(planned));
        let tool = text(&decided.span, "selected_tool").unwrap();
        assert_eq!(called.span.name, format!("agent.tool.{tool}"));
        assert!(number(&called.span, "execution_time_ms").is_some_and(|ms| ms >= 0));
        // The server's own span hangs on it.
        let path = format!("{} > tools/call {tool}", trace.path(called));
        assert!(trace.paths().contains_key(&path), "no {path}:\n{trace}");
        planned += 1;
    }
    assert!(planned >= 5 && own.len() as i64 == 2 * planned + 1, "{trace}");
    for told in own {
        assert_eq!(text(&told.span, "investigation_id"), Some(session.as_str()));
    }
    assert_eq!(dev.stop("-TERM"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_a_span_until_its_answer() {
    let (collector, folder) = (Collector::start().await, tempfile::tempdir().unwrap());
    let mut command = daybook(folder.path());
    collector.heard(&mut command);
    let dev = Dev::listening(&mut command, &folder.path().join("data"), "127.0.0.1:0");
    let assistant = ["--agent", "assistant"];
    let session = triggered_with(&collector, folder.path(), &dev.endpoint, &assistant);
    let answer = || {
        let mut command = daybook(folder.path());
        command.args(["--endpoint", &dev.endpoint, "answer", &session, "--say", "bye"]);
        run(&mut command)
    };
    let waiting = async {
        while answer().exit != 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("the assistant asks");
    let trace = collector.trace_of(&session).await;
    trace.is_a_tree();
    let asked = trace.named("ask");
    assert_eq!(asked.len(), 1, "{trace}");
    assert_eq!(trace.path(asked[0]), "send manual-trigger > session > ask");
    assert_eq!(text(&asked[0].span, "daybook.closed_by"), Some("person"));
    let runs = trace.named("agent.run");
    assert_eq!(runs.len(), 2, "{trace}");
    let (began, ended) = (asked[0].span.start_time_unix_nano, asked[0].span.end_time_unix_nano);
    let resumed = runs.iter().map(|told| told.span.start_time_unix_nano).max();
    assert!(began < ended && Some(ended) <= resumed, "{trace}");
    assert_eq!(dev.stop("-TERM"), 0);
}
