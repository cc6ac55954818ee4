//! Our MCP server with independent clients: the reference client (PyPI `mcp`) and the MCP Inspector (npm
//! `@modelcontextprotocol/inspector`), over stdio and HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{DEADLINE, Ran, daybook, incident, run, run_in, tool};

const TOOLS: [&str; 5] = [
    "get_iam_state",
    "get_lambda_config",
    "get_recent_changes",
    "get_recent_logs",
    "get_security_group_rules",
];

/// The function of the incident that is served.
const FUNCTION: &str = "inventory-sync";

/// The server over HTTP; killed on drop.
pub struct Served {
    child: Child,
    pub url: String,
}

impl Served {
    /// Serves a bundled incident, with a token.
    pub fn start(folder: &Path, incident: &str, token: &str) -> Self {
        let mut command = daybook(folder);
        command.env("DAYBOOK_TOKEN", token).args(arguments(incident));
        command.args(["--http", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let url = ready.strip_prefix("ready ").unwrap_or_else(|| panic!("{ready:?}"));
        Self { child, url: url.trim().to_owned() }
    }

    /// Its host and port.
    pub fn address(&self) -> String {
        self.url.split('/').nth(2).unwrap().to_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn arguments(name: &str) -> Vec<String> {
    let folder = incident(name).to_str().unwrap().to_owned();
    ["mcp", "aws-diagnostics", "--snapshot"]
        .map(str::to_owned)
        .into_iter()
        .chain([folder])
        .collect()
}

/// Runs the reference client against a server, as `scripts/mcp-client.py` takes it.
fn reference_client(python: &Path, server: &[&str]) -> Ran {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/mcp-client.py");
    run(Command::new(python).arg(script).arg(FUNCTION).args(server).stdin(Stdio::null()))
}

fn check_reference_client(ran: &Ran) {
    assert_eq!(ran.exit, 0, "{ran:#?}");
    let [tools, answer, refusal] = &ran.json()[..] else { panic!("{ran:#?}") };
    assert_eq!(*tools, json!(TOOLS));
    assert_eq!((&answer[0], &answer[1]["FunctionName"]), (&json!(false), &json!(FUNCTION)));
    let said = "no function named nobody in this incident folder, which holds inventory-sync";
    assert_eq!(*refusal, json!([true, null, said]));
}

#[test]
fn the_reference_client_works_over_stdio() {
    let Some(python) = tool("DAYBOOK_TEST_MCP") else { return };
    let arguments = arguments("network-blocked");
    let mut server = vec![env!("CARGO_BIN_EXE_daybook")];
    server.extend(arguments.iter().map(String::as_str));
    check_reference_client(&reference_client(&python, &server));
}

#[test]
fn the_reference_client_needs_the_token_over_http() {
    let Some(python) = tool("DAYBOOK_TEST_MCP") else { return };
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "network-blocked", "secret");
    check_reference_client(&reference_client(&python, &[&served.url, "secret"]));
    let ran = reference_client(&python, &[&served.url, "another"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""), "{ran:#?}");
}

/// Runs the Inspector's command line against a server.
fn inspector(server: &[&str], arguments: &[&str]) -> Option<Value> {
    let (node, inspector) = (tool("DAYBOOK_TEST_NODE")?, tool("DAYBOOK_TEST_MCP_INSPECTOR")?);
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(node);
    command.arg(inspector).arg("--cli").args(server).args(arguments);
    let ran = run(command.env("HOME", folder.path()).stdin(Stdio::null()));
    assert_eq!(ran.exit, 0, "{ran:#?}");
    assert_eq!(ran.stderr, "", "the Inspector has nothing to complain of");
    Some(serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:#?}")))
}

fn check_inspector(server: &[&str], options: &[&str]) {
    let with = |arguments: &[&'static str]| {
        let arguments: Vec<&str> =
            options.iter().copied().chain(arguments.iter().copied()).collect();
        inspector(server, &arguments)
    };
    let Some(listed) = with(&["--method", "tools/list"]) else { return };
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, TOOLS);
    let call = ["--method", "tools/call", "--tool-name", "get_lambda_config", "--tool-arg"];
    let called = with(&[&call[..], &["lambda_name=inventory-sync"]].concat()).unwrap();
    assert_eq!(called["structuredContent"]["FunctionName"], FUNCTION);
}

#[test]
fn the_inspector_works_over_stdio() {
    let arguments = arguments("network-blocked");
    let mut server = vec![env!("CARGO_BIN_EXE_daybook")];
    server.extend(arguments.iter().map(String::as_str));
    check_inspector(&server, &[]);
}

#[test]
fn the_inspector_works_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "network-blocked", "secret");
    let bearer = ["--transport", "http", "--header", "Authorization: Bearer secret"];
    check_inspector(&[&served.url], &bearer);
}

/// The status of a request with these headers, and the whole answer.
fn status(url: &str, start: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let mut request = format!("{start} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        request.push_str(&format!("{name}: {}\r\n", value.replace("OURS", address)));
    }
    request.push_str("connection: close\r\n\r\n");
    request.push_str(body);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    // A server that refuses need not read to the end.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("{answer:?}")), answer)
}

#[test]
fn http_clients_need_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "network-blocked", "secret");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let large = format!("{{\"jsonrpc\": \"{}\"}}", "x".repeat(1 << 20));
    let (host, token) = (("host", "OURS"), ("authorization", "Bearer secret"));
    let kinds =
        [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    for (start, headers, body, expected) in [
        ("POST /mcp", &[host, token][..], &list, 200),
        ("POST /mcp", &[host, token, ("origin", "http://OURS")], &list, 200),
        ("POST /mcp", &[host], &list, 401),
        ("POST /mcp", &[host, ("authorization", "Bearer secreT")], &list, 401),
        ("POST /mcp", &[host, ("authorization", "Basic secret")], &list, 401),
        ("POST /mcp", &[("host", "evil.example"), token], &list, 403),
        ("POST /mcp", &[host, token, ("origin", "https://evil.example")], &list, 403),
        ("POST /mcp", &[host, token, ("origin", "null")], &list, 403),
        ("POST /mcp", &[host, token], &large, 413),
        ("POST /elsewhere", &[host, token], &list, 404),
        ("POST /elsewhere", &[host], &list, 401),
        ("GET /mcp", &[host, token], &String::new(), 405),
    ] {
        let headers = [headers, &kinds[..]].concat();
        let (status, answer) = status(&served.url, start, &headers, body);
        assert_eq!(status, expected, "{start} {headers:?}: {answer}");
        assert_eq!(status == 401, answer.contains("www-authenticate: Bearer"), "{answer}");
        assert_eq!(status == 200, answer.contains("get_lambda_config"), "{answer}");
    }
}

#[test]
fn a_server_over_http_stops_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    let mut served = Served::start(folder.path(), "network-blocked", "");
    let id = served.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
}

#[test]
fn listening_beyond_loopback_requires_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = arguments("network-blocked");
    let mut line: Vec<&str> = arguments.iter().map(String::as_str).collect();
    line.extend(["--http", "0.0.0.0:0"]);
    let ran = run_in(folder.path(), &line);
    assert_eq!((ran.exit, ran.stdout.as_str()), (2, ""), "{ran:#?}");
    assert!(ran.stderr.contains("needs DAYBOOK_TOKEN to be set"), "{}", ran.stderr);
}
