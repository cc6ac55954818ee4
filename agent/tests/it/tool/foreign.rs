//! Our client with third-party servers: the protocol's own test server (npm
//! `@modelcontextprotocol/server-everything`) and one with the reference SDK (PyPI `mcp`,
//! `scripts/mcp-reference-server.py`), over all of their transports.

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use agent::tool::answer::RESULT_BYTES_MAX;
use agent::tool::{Servers, Timeouts};
use futures_util::future::join_all;
use graph::effect::{CATALOGUE, ToolSpec};
use graph::outcome::{FailureKind, ToolOutcome};
use serde_json::{Value, json};

use super::fixture::{Bench, DEADLINE, NAME, error, failed, until};

/// Interpreters start slowly on a loaded machine.
const PATIENT: Timeouts =
    Timeouts { connect: Duration::from_secs(60), init: Duration::from_secs(60) };

const TOKEN: &str = "open-sesame-7";

/// A server's process; killed on drop.
struct Foreign(Child);

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "how the test runner says where they are")]
fn installed(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    if path.is_none() {
        eprintln!("skipped: {variable} is not set (`make verify` sets it)");
    }
    path
}

fn bench(entry: Value) -> Bench {
    let servers = Servers::parse(&json!({"mcpServers": {NAME: entry}}).to_string(), |_| None);
    Bench::of(tempfile::tempdir().unwrap(), servers.unwrap(), PATIENT)
}

fn ok(outcome: ToolOutcome) -> Value {
    let ToolOutcome::Ok(value) = outcome else { panic!("{outcome:?}") };
    value
}

async fn tools(bench: &Bench) -> (Vec<String>, Value) {
    let content = ok(bench.call(CATALOGUE, json!({})).await);
    let names = ToolSpec::catalogue(&content).into_iter().map(|tool| tool.name).collect();
    (names, content)
}

/// A toolbox with the test server over this transport; `None` if the server is not installed.
async fn everything(transport: &str) -> Option<(Option<Foreign>, Bench)> {
    let node = installed("DAYBOOK_TEST_NODE")?;
    let script = installed("DAYBOOK_TEST_MCP_EVERYTHING")?;
    if transport == "stdio" {
        return Some((None, bench(json!({"command": node, "args": [script, "stdio"]}))));
    }
    // It takes a port and does not announce when it listens.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (word, path) = if transport == "sse" { ("sse", "sse") } else { ("streamableHttp", "mcp") };
    let child = Command::new(node)
        .args([script.as_os_str(), word.as_ref()])
        .env("PORT", port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let child = Foreign(child);
    until("the server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok()).await;
    let url = format!("http://127.0.0.1:{port}/{path}");
    Some((Some(child), bench(json!({"url": url, "transport": transport}))))
}

async fn check_everything(transport: &str) {
    let Some((_server, bench)) = everything(transport).await else { return };
    let (names, _) = tools(&bench).await;
    for name in ["echo", "get-sum", "trigger-long-running-operation"] {
        assert!(names.iter().any(|found| found == name), "{names:?}");
    }
    // It offers these tools only to clients that support its requests.
    assert!(!names.iter().any(|name| name.contains("sampling") || name.contains("elicit")));

    let echo = bench.call("echo", json!({"message": "häl\nlo"})).await;
    assert_eq!(ok(echo), "Echo: häl\nlo");
    let sum = ok(bench.call("get-sum", json!({"a": 2, "b": 40})).await);
    assert!(sum.as_str().unwrap().contains("42"), "{sum}");
    let wrong = error(bench.call("get-sum", json!({"a": "2"})).await);
    assert!(wrong.contains("nothing was called"), "{wrong}");
    let weather = bench.call("get-structured-content", json!({"location": "New York"})).await;
    assert!(ok(weather)["temperature"].is_number());
    let image = ok(bench.call("get-tiny-image", json!({})).await).to_string();
    assert!(image.contains("image/png") && image.contains("\"bytes\""), "{image}");
    let resource = json!({"resourceType": "Text", "resourceId": 1});
    let resource = ok(bench.call("get-resource-reference", resource).await).to_string();
    assert!(resource.contains("\"type\":\"resource\"") && resource.contains("uri"), "{resource}");
    let links = ok(bench.call("get-resource-links", json!({"count": 3})).await).to_string();
    assert!(links.contains("resource_link"), "{links}");
    // From now on it sends log messages between its answers.
    ok(bench.call("toggle-simulated-logging", json!({})).await);

    let long = json!({"duration": 0.3, "steps": 6});
    let calls = (0..4).map(|_| bench.call("trigger-long-running-operation", long.clone()));
    for outcome in join_all(calls).await {
        assert!(ok(outcome).as_str().unwrap().contains("completed"));
    }
    let endless = json!({"duration": 600, "steps": 600});
    let tool = "trigger-long-running-operation";
    let given_up = bench.call_within(tool, endless, Duration::from_millis(300)).await;
    failed(given_up, FailureKind::Unknown, "mcp_connection");
    ok(bench.call("echo", json!({"message": "still there"})).await);
    bench.toolbox.close().await;
}

#[tokio::test]
async fn the_test_server_is_understood_over_stdio() {
    check_everything("stdio").await;
}

#[tokio::test]
async fn the_test_server_is_understood_over_streamable_http() {
    check_everything("http").await;
}

#[tokio::test]
async fn the_test_server_is_understood_over_the_older_transport() {
    check_everything("sse").await;
}

/// The reference SDK's server over HTTP, with its address and stderr.
fn reference(python: &Path, transport: &str) -> (Foreign, String, BufReader<ChildStderr>) {
    let mut child = Command::new(python)
        .arg(script())
        .args([transport, TOKEN])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let url = ready.strip_prefix("ready ").unwrap_or_else(|| panic!("{ready:?}")).trim().to_owned();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    (Foreign(child), url, stderr)
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/mcp-reference-server.py")
}

async fn check_reference(bench: &Bench) {
    let (names, content) = tools(bench).await;
    assert_eq!(names.len(), 9, "{names:?}");
    assert_eq!(content["at_most_once"], json!(["wipe"]));
    assert_eq!(ok(bench.call("add", json!({"a": 2, "b": 40})).await), json!({"result": 42}));
    let failure = error(bench.call("fail", json!({})).await);
    assert!(failure.contains("Error executing tool fail"), "{failure}");
    let picture = ok(bench.call("picture", json!({})).await);
    assert_eq!(picture, json!({"type": "image", "mime_type": "image/png", "bytes": 8}));
    // It forwards our client's error: no such request.
    let refused = bench.call("ask_model", json!({})).await;
    let refused = failed(refused, FailureKind::Refused, "unknown");
    assert!(refused.contains("sampling/createMessage"), "{refused}");
    let three = 3 * 1024 * 1024;
    let whole = ok(bench.call("repeat", json!({"text": "x", "times": three})).await);
    assert_eq!(whole.as_str().unwrap().len(), three);
    let large = error(bench.call("repeat", json!({"text": "x", "times": 10_000_000})).await);
    assert!(large.contains(&RESULT_BYTES_MAX.to_string()), "{large}");
    let calls = (0..4).map(|_| bench.call("wait", json!({"seconds": 0.2})));
    for outcome in join_all(calls).await {
        assert_eq!(ok(outcome), json!({"result": "done"}));
    }
    let within = Duration::from_millis(500);
    let given_up = bench.call_within("wait", json!({"seconds": 600}), within).await;
    failed(given_up, FailureKind::Unknown, "mcp_connection");
    assert_eq!(ok(bench.call("look", json!({})).await), json!({"result": "seen"}));
    bench.toolbox.close().await;
}

#[tokio::test]
async fn the_reference_server_is_understood_over_stdio() {
    let Some(python) = installed("DAYBOOK_TEST_MCP") else { return };
    check_reference(&bench(json!({"command": python, "args": [script(), "stdio"]}))).await;
}

async fn check_reference_over(transport: &str) {
    let Some(python) = installed("DAYBOOK_TEST_MCP") else { return };
    let (_server, url, mut stderr) = reference(&python, transport);
    let entry = |headers: Value| json!({"url": url, "transport": transport, "headers": headers});
    for headers in [json!({}), json!({"Authorization": "Bearer another-token"})] {
        let outcome = bench(entry(headers)).call("look", json!({})).await;
        let message = failed(outcome, FailureKind::Refused, "mcp_connection");
        assert!(message.contains("refuses our credentials (HTTP 401 Unauthorized)"), "{message}");
    }
    check_reference(&bench(entry(json!({"Authorization": format!("Bearer {TOKEN}")})))).await;
    // The server also cancelled the call that timed out.
    let said = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        while stderr.read_line(&mut line).unwrap() > 0 && !line.ends_with("cancelled\n") {}
        line
    });
    let said = tokio::time::timeout(DEADLINE, said).await.unwrap().unwrap();
    assert!(said.ends_with("cancelled\n"), "{said}");
}

#[tokio::test]
async fn the_reference_server_is_understood_over_streamable_http() {
    check_reference_over("http").await;
}

#[tokio::test]
async fn the_reference_server_is_understood_over_the_older_transport() {
    check_reference_over("sse").await;
}
