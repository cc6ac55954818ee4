//! Isolated agents: the container binary over the table's protocol, and the life of its process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use stack::names::RUNTIME_ARN;
use stack::stack::{Config, Isolation, Stack};
use tempfile::TempDir;

use crate::stack::{Client, config};
use crate::world::{SESSION, TIMEOUT};

fn isolated(program: PathBuf, data: &Path, time_scale: u32) -> Config {
    let (arguments, environment) = (Vec::new(), Vec::new());
    let isolation = Isolation::Processes { program: Some(program), arguments, environment };
    Config { isolation, ..config(data, time_scale) }
}

/// The container binary, if it was built next to these tests.
fn agent() -> Option<PathBuf> {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent()?.parent()?.join("agent");
    program.exists().then_some(program)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkup_runs_in_a_process_of_its_own() {
    let Some(program) = agent() else {
        eprintln!("skipped: build it with `cargo build -p agent --features container`");
        return;
    };
    let folder = TempDir::new().unwrap();
    let stack = Stack::start(isolated(program, folder.path(), 1)).await.unwrap();
    let client = Client::new(&stack);
    let session = client.trigger(&json!({})).await;
    let execution = client.ended(&session).await;
    assert_eq!(execution["status"], "SUCCEEDED", "{execution:#}");
    let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
    assert_eq!(shown["session"]["status"], "SUCCEEDED", "{shown:#}");
    stack.shutdown().await;
}

/// A program that answers pings and invocations as configured, and writes a file on SIGTERM.
fn stub(folder: &Path, ping: &str, status: u16, body: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let program = folder.join("stub");
    let text = format!(
        r#"#!/usr/bin/env python3
import http.server, json, os, signal, sys, time
folder = {folder:?}
began = int(float(time.time()))
open(os.path.join(folder, "began-%d" % os.getpid()), "w").write(json.dumps(dict(os.environ)))
def end(*_):
    open(os.path.join(folder, "terminated-%d" % os.getpid()), "w").close()
    os._exit(0)
signal.signal(signal.SIGTERM, end)
class Agent(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def answer(self, status, body):
        body = body.encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.answer(200, json.dumps({{"status": "{ping}", "time_of_last_update": 0}}))
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.answer({status}, {body:?})
http.server.HTTPServer(("127.0.0.1", int(os.environ["DAYBOOK_AGENT_PORT"])), Agent).serve_forever()
"#
    );
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

fn marks(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(prefix);
    entries.filter(named).collect()
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

async fn call(client: &Client, what: &str) -> (u16, String) {
    let arn = RUNTIME_ARN.replace('/', "%2F");
    let response = client
        .request(Method::POST, &format!("/runtimes/{arn}/{what}"))
        .header("X-Amzn-Bedrock-AgentCore-Runtime-Session-Id", SESSION)
        .body("{}")
        .send()
        .await
        .unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_keeps_its_process_until_it_is_stopped() {
    let (folder, marked) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let program = stub(marked.path(), "HealthyBusy", 200, r#"{"done": true}"#);
    let stack = Stack::start(isolated(program, folder.path(), 1)).await.unwrap();
    let client = Client::new(&stack);
    assert_eq!(call(&client, "stopruntimesession").await.0, 404);
    for _ in 0..2 {
        assert_eq!(call(&client, "invocations").await, (200, r#"{"done": true}"#.to_owned()));
    }
    let began = marks(marked.path(), "began");
    assert_eq!(began.len(), 1);
    let environment = std::fs::read_to_string(&began[0]).unwrap();
    let environment: serde_json::Value = serde_json::from_str(&environment).unwrap();
    assert_ne!(environment["AWS_ENDPOINT_URL"], stack.url(), "agents have a port of their own");
    let state = folder.path().canonicalize().unwrap();
    assert_eq!(environment["DAYBOOK_STATE_FOLDER"], state.to_str().unwrap());
    assert_eq!(environment["JOURNAL_TABLE_NAME"], "daybook-journal");
    assert_eq!(environment["DAYBOOK_TIME_SCALE"], "1");
    assert!(environment.get("CARGO").is_none(), "the parent's environment is not handed on");
    assert_eq!(call(&client, "stopruntimesession").await.0, 200);
    // Waits for the old process to exit, then starts another.
    assert_eq!(call(&client, "invocations").await.0, 200);
    assert_eq!(marks(marked.path(), "terminated").len(), 1);
    assert_eq!(marks(marked.path(), "began").len(), 2);
    stack.shutdown().await;
    assert_eq!(marks(marked.path(), "terminated").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_agent_with_its_token_writes_to_the_table() {
    let (folder, marked) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let program = stub(marked.path(), "HealthyBusy", 200, "{}");
    let stack = Stack::start(isolated(program, folder.path(), 1)).await.unwrap();
    assert_eq!(call(&Client::new(&stack), "invocations").await.0, 200);
    let environment = std::fs::read_to_string(&marks(marked.path(), "began")[0]).unwrap();
    let environment: serde_json::Value = serde_json::from_str(&environment).unwrap();
    let token = environment["DAYBOOK_AGENT_TOKEN"].as_str().unwrap();
    assert!(token.len() >= 64, "{token}");
    let (agents, everyone) = (environment["AWS_ENDPOINT_URL"].as_str().unwrap(), stack.url());
    let put = json!({
        "TableName": "daybook-journal",
        "Item": { "PK": { "S": format!("SESSION#{SESSION}") }, "SK": { "S": "STEP#00000001" } },
        "ConditionExpression": "attribute_not_exists(PK)",
    });
    let (dynamodb, sfn) = ("DynamoDB_20120810", "AWSStepFunctions");
    let denied = "AccessDeniedException";
    let of_aws = ("x-amz-security-token", token);
    let bearer = format!("Bearer {token}");
    for (url, header, action, expected) in [
        (everyone.as_str(), of_aws, format!("{dynamodb}.PutItem"), denied),
        (&everyone, of_aws, format!("{dynamodb}.UpdateItem"), denied),
        (agents, ("x-amz-security-token", "wrong"), format!("{dynamodb}.PutItem"), "Unauthorized"),
        (agents, ("x-other", "none"), format!("{dynamodb}.PutItem"), "Unauthorized"),
        (agents, of_aws, format!("{sfn}.StartExecution"), denied),
        (agents, of_aws, "AWSEvents.PutEvents".to_owned(), denied),
        (agents, of_aws, format!("{dynamodb}.PutItem"), "{}"),
        (agents, ("authorization", &bearer), format!("{dynamodb}.PutItem"), "ConditionalCheck"),
    ] {
        let request = reqwest::Client::new().post(url).header("x-amz-target", &action);
        let response = request.header(header.0, header.1).body(put.to_string()).send().await;
        let answer = response.unwrap().text().await.unwrap();
        assert!(answer.contains(expected), "{url} {action}: {answer}");
    }
    let session = format!("SESSION#{SESSION}");
    let text = |text: &str| json!({ "S": text });
    for item in [
        json!({ "PK": text(&session), "SK": text("STEP#00000002"), "Kind": text("answer") }),
        json!({ "PK": text(&session), "SK": text("STEP#00000002"), "Kind": text("note"),
            "Principal": text("os-user:root") }),
        json!({ "PK": text(&format!("RECEIPT#{SESSION}")), "SK": text("00") }),
        json!({ "PK": text("HALT#"), "SK": text("HALT#00000001") }),
    ] {
        let mut put = put.clone();
        put["Item"] = item;
        let request = reqwest::Client::new().post(agents).header(of_aws.0, of_aws.1);
        let request = request.header("x-amz-target", format!("{dynamodb}.PutItem"));
        let answer = request.body(put.to_string()).send().await.unwrap().text().await.unwrap();
        assert!(answer.contains(denied) && answer.contains("what people decide"), "{answer}");
    }
    for (name, value) in [("host", "evil.example"), ("origin", "http://evil.example")] {
        let request = reqwest::Client::new().post(agents).header(of_aws.0, of_aws.1);
        assert_eq!(request.header(name, value).send().await.unwrap().status(), 403, "{name}");
    }
    let page = reqwest::Client::new().get(format!("{agents}/api/sessions"));
    assert_eq!(page.header(of_aws.0, of_aws.1).send().await.unwrap().status(), 404);
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_processes_end_and_busy_ones_at_their_maximum_lifetime() {
    for (ping, time_scale) in [("Healthy", 3_000), ("HealthyBusy", 30_000)] {
        let (folder, marked) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let program = stub(marked.path(), ping, 200, "{}");
        let stack = Stack::start(isolated(program, folder.path(), time_scale)).await.unwrap();
        let client = Client::new(&stack);
        assert_eq!(call(&client, "invocations").await.0, 200);
        until(ping, || marks(marked.path(), "terminated").len() == 1).await;
        let gone = async { while call(&client, "stopruntimesession").await.0 != 404 {} };
        tokio::time::timeout(TIMEOUT, gone).await.expect("the place is free again");
        stack.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_and_a_missing_process_are_different_errors() {
    let (folder, marked) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let program = stub(marked.path(), "Healthy", 400, r#"{"error":"no"}"#);
    let stack = Stack::start(isolated(program, folder.path(), 1)).await.unwrap();
    let (status, body) = call(&Client::new(&stack), "invocations").await;
    assert_eq!(status, 424);
    assert!(body.contains(r#"Received error (400) from runtime: {\"error\":\"no\"}"#), "{body}");
    stack.shutdown().await;
    let stack =
        Stack::start(isolated(marked.path().join("absent"), folder.path(), 1)).await.unwrap();
    let (status, body) = call(&Client::new(&stack), "invocations").await;
    assert_eq!(status, 500, "{body}");
    assert!(body.contains("cannot start the agent"), "{body}");
    stack.shutdown().await;
}
