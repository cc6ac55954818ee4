//! A session's server-sent events: a client that reconnects misses nothing, streams end, and progress
//! arrives while a tool runs.

use std::sync::Arc;
use std::time::Duration;

use agent::tool::Servers;
use graph::agent::Agent;
use graph::budget::Budget;
use graph::definition::{Attempts, Finish, Graph, Node, Route, Scope};
use graph::effect::{Effect, Reply, ToolCall};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ServerHandler, ServiceExt as _};
use serde_json::{Value, json};
use stack::stack::{Config, Stack};
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::people::{answer, asked, asker, begin};
use crate::stack::{Client, config};
use crate::world::TIMEOUT;

/// One server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub kind: String,
    id: Option<String>,
    pub data: Value,
}

fn sent(text: &str) -> Option<Sent> {
    let field = |name: &str| {
        let lines = text.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(field, _)| *field == name).map(|(_, value)| value.to_owned()).next()
    };
    let data = serde_json::from_str(&field("data")?).unwrap();
    Some(Sent { kind: field("event")?, id: field("id"), data })
}

async fn open(client: &Client, session: &str, last: Option<&str>) -> reqwest::Response {
    let path = format!("/api/sessions/{session}/events");
    let request = client.request(reqwest::Method::GET, &path);
    let request = match last {
        Some(last) => request.header("Last-Event-ID", last),
        None => request,
    };
    request.send().await.unwrap()
}

/// Reads a stream until an event matches or the stream ends.
async fn read(response: reqwest::Response, until: impl Fn(&Sent) -> bool) -> Vec<Sent> {
    read_to(response, until).await.0
}

/// The same, and the stream after that event.
pub async fn read_to(
    mut response: reqwest::Response,
    until: impl Fn(&Sent) -> bool,
) -> (Vec<Sent>, reqwest::Response) {
    let (mut text, mut events) = (String::new(), Vec::new());
    let reading = async {
        while let Some(bytes) = response.chunk().await.unwrap() {
            text.push_str(std::str::from_utf8(&bytes).unwrap());
            while let Some((one, rest)) = text.split_once("\n\n") {
                let event = sent(one);
                text = rest.to_owned();
                let found = event.as_ref().is_some_and(&until);
                events.extend(event);
                if found {
                    return;
                }
            }
        }
    };
    tokio::time::timeout(TIMEOUT, reading).await.expect("the stream continues or ends");
    (events, response)
}

fn kinds(events: &[Sent]) -> Vec<String> {
    let name = |sent: &Sent| match sent.kind.as_str() {
        "event" => sent.data["status"].as_str().unwrap().to_owned(),
        "step" => sent.data["kind"].as_str().unwrap().to_owned(),
        other => other.to_owned(),
    };
    events.iter().map(name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconnecting_stream_client_gets_each_record_once() {
    let folder = TempDir::new().unwrap();
    let stack = asker(folder.path()).await;
    let client = Client::new(&stack);
    let session = begin(&client, json!({})).await;
    let id = asked(&stack, &client, &session, 0).await["question_id"].clone();
    let first = open(&client, &session, None).await;
    assert_eq!(first.headers()["content-type"], "text/event-stream");
    let suspended = |sent: &Sent| sent.data["status"] == "AGENT_BACKGROUND_TASK_SUSPENDED";
    let before = read(first, suspended).await;
    assert_eq!(before[0].data["status"], "SESSION_INITIATED");
    let resumed = open(&client, &session, before.last().unwrap().id.as_deref()).await;
    let reject = json!({ "question_id": id, "decision": "reject" });
    assert_eq!(answer(&client, &session, &reject).await.0, 202);
    let last = asked(&stack, &client, &session, id.as_u64().unwrap()).await["question_id"].clone();
    let words = json!({ "question_id": last, "decision": "say", "text": "enough" });
    assert_eq!(answer(&client, &session, &words).await.0, 202);
    let after = read(resumed, |_| false).await;
    assert_eq!(after.last().unwrap().kind, "session", "the last event: {after:#?}");
    assert_eq!(after.last().unwrap().data["status"], "SUCCEEDED");
    let whole = read(open(&client, &session, None).await, |_| false).await;
    assert_eq!(kinds(&[before, after].concat()), kinds(&whole));
    let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
    let records = ["events", "steps"].map(|name| shown[name].as_array().unwrap().len());
    assert_eq!(whole.len(), records[0] + records[1] + 1);
    let newest = whole.iter().rev().find_map(|sent| sent.id.clone()).unwrap();
    assert_eq!(open(&client, &session, Some(&newest)).await.status(), 204, "there is no more");
    assert_eq!(open(&client, &session, Some("x")).await.status(), 400);
    assert_eq!(open(&client, "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f", None).await.status(), 404);
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_the_stack() {
    let folder = TempDir::new().unwrap();
    let stack = asker(folder.path()).await;
    let client = Client::new(&stack);
    let session = begin(&client, json!({})).await;
    asked(&stack, &client, &session, 0).await;
    let stream = open(&client, &session, None).await;
    let reading = tokio::spawn(read(stream, |_| false));
    stack.shutdown().await;
    assert!(!reading.await.unwrap().is_empty());
}

/// Calls a slow tool.
static RUNNER: Graph<()> = Graph {
    name: "runner",
    version: "1",
    summary: "Runs something slow.",
    start: "run",
    nodes: &[Node {
        name: "run",
        to: &[],
        ask: |(), _| Effect::Tools(vec![ToolCall::new("slow", "run", json!({}))]),
        fold: |(), outcome| Route::End(Finish::Completed(json!(outcome.results()[0].ok()))),
    }],
    init: |_, _| Ok(()),
    budget: Budget::UNLIMITED,
    scope: Scope::Session,
    on_limit: |(), _| Route::End(Finish::Completed(Value::Null)),
    on_limit_to: &[],
    policy: |(), _| Reply::says(""),
    attempts: Attempts::DEFAULT,
    at_most_once: &[],
    critical: &[],
    servers: &["slow"],
    tool_timeout_s: 30,
};

/// Reports progress each time that it is nudged, and ends at the third time.
#[derive(Clone)]
struct Slow(Arc<Notify>);

impl ServerHandler for Slow {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let any = json!({ "type": "object" }).as_object().cloned().unwrap();
        Ok(ListToolsResult::with_all_items(vec![Tool::new("run", "Takes its time.", any)]))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let token = context.meta.get_progress_token().expect("a client that wants progress");
        for done in 1..=3_u8 {
            self.0.notified().await;
            let report = ProgressNotificationParam::new(token.clone(), f64::from(done))
                .with_total(3.0)
                .with_message(format!("part {done}"));
            context.peer.notify_progress(report).await.unwrap();
        }
        // A client handles a progress report and the response concurrently. A response right after
        // the last report would overtake it.
        for _ in 0..10 {
            self.0.notified().await;
        }
        Ok(CallToolResult::structured(json!({ "parts": 3 })).into())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_progress_is_streamed_and_never_journaled() {
    let (folder, nudge) = (TempDir::new().unwrap(), Arc::new(Notify::new()));
    let slow = Slow(Arc::clone(&nudge));
    let serve = move |_: &Value, stream: tokio::io::DuplexStream| {
        let slow = slow.clone();
        let serving = async move {
            if let Ok(running) = slow.serve(tokio::io::split(stream)).await {
                let _ = running.waiting().await;
            }
        };
        Box::pin(serving) as _
    };
    let servers = Servers::in_process("slow", Arc::new(serve));
    let agents: Arc<[Agent]> = Arc::new([Agent::of(&RUNNER)]);
    let config = Config { agents, servers, ..config(folder.path(), 1) };
    let stack = Stack::start(config).await.unwrap();
    let client = Client::new(&stack);
    let session = client.trigger(&json!({ "agent": "runner" })).await;
    let begun = async {
        while open(&client, &session, None).await.status() != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, begun).await.unwrap();
    let stream = open(&client, &session, None).await;
    let nudging = async {
        loop {
            nudge.notify_one();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let events = tokio::select! {
        events = read(stream, |_| false) => events,
        () = nudging => unreachable!("it never ends"),
    };
    let reports: Vec<&Sent> = events.iter().filter(|sent| sent.kind == "progress").collect();
    assert_eq!(reports.len(), 3, "{events:#?}");
    let last = json!({ "session_id": session, "server": "slow", "tool": "run", "progress": 3.0,
        "total": 3.0, "message": "part 3" });
    assert_eq!((&reports[2].data, &reports[2].id), (&last, &None));
    let result = events.last().unwrap().data["result"].clone();
    assert_eq!(result, json!({ "parts": 3 }));
    let file = std::fs::read(folder.path().join(stack::stack::JOURNAL_FILE)).unwrap();
    let wal = std::fs::read(folder.path().join("journal.db-wal")).unwrap_or_default();
    let holds = |bytes: &[u8]| bytes.windows(6).any(|window| window == b"part 3");
    assert!(!holds(&file) && !holds(&wal), "progress is in the journal's file");
    stack.shutdown().await;
}
