//! An MCP server that misbehaves on request, and a toolbox with it.
//!
//! The server is this test binary, started with the single test [`fixture_server`] and a variable that
//! sets its behaviour. It does not use `rmcp`, which could not misbehave in these ways.

use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agent::model::Models;
use agent::progress::Broadcast;
use agent::session::ClaimedSession;
use agent::tool::{Servers, Timeouts, Toolbox};
use graph::effect::ToolCall;
use graph::outcome::{Failure, FailureKind, ToolOutcome};
use journal::chain::Author;
use journal::clock::{Clock, Hlc};
use journal::id::{Runner, SessionId};
use journal::sqlite::{Durability, SqliteStore};
use serde_json::{Value, json};

/// The server's name in every test.
pub const NAME: &str = "fixture";

/// The value of the server's `FIXTURE_SECRET`, which must never show up in a message.
pub const SECRET: &str = "correct-horse-battery";

/// Generous timeout for a loaded machine.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Timeouts of tests in which only a loaded machine delays the server's start.
pub const PATIENT: Timeouts = Timeouts { connect: DEADLINE, init: DEADLINE };

/// A toolbox with one server, and the server's log.
pub struct Bench {
    dir: tempfile::TempDir,
    pub session: ClaimedSession<SqliteStore>,
    pub toolbox: Toolbox<SqliteStore>,
}

impl Bench {
    pub fn new(mode: &str) -> Self {
        Self::with(mode, PATIENT)
    }

    pub fn with(mode: &str, timeouts: Timeouts) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let servers = servers(mode, &dir.path().join("log"));
        Self::of(dir, servers, timeouts)
    }

    pub fn of(dir: tempfile::TempDir, servers: Servers, timeouts: Timeouts) -> Self {
        let (session, progress) = (session(dir.path()), Broadcast::default());
        let toolbox = Toolbox::new(
            session.clone(),
            servers,
            timeouts,
            Models::default(),
            &progress,
            &json!({}),
        );
        Self { dir, session, toolbox }
    }

    /// Calls a tool of the server, with a generous timeout.
    pub async fn call(&self, tool: &str, arguments: Value) -> ToolOutcome {
        self.call_within(tool, arguments, DEADLINE).await
    }

    pub async fn call_within(&self, tool: &str, arguments: Value, within: Duration) -> ToolOutcome {
        let call = ToolCall::new(NAME, tool, arguments);
        tokio::time::timeout(2 * DEADLINE, self.toolbox.call(&call, within)).await.unwrap()
    }

    /// The words after `what` in the server's log, one for each occurrence.
    pub fn logged(&self, what: &str) -> Vec<String> {
        logged(&self.dir.path().join("log"), what)
    }

    /// The process ids of the started servers.
    pub fn started(&self) -> Vec<u32> {
        self.logged("start").iter().map(|pid| pid.parse().unwrap()).collect()
    }
}

pub fn session(dir: &Path) -> ClaimedSession<SqliteStore> {
    ClaimedSession {
        store: SqliteStore::open(&dir.join("journal.sqlite"), Durability::Relaxed).unwrap(),
        hlc: Arc::new(Hlc::new(Clock::system(), Default::default())),
        author: Author {
            session: SessionId::fresh(),
            runner: Runner::fresh("agent"),
            expires_at: 4_000_000_000,
        },
        epoch: 1,
        agent: "test",
    }
}

/// The configuration of a server with this behaviour.
pub fn servers(mode: &str, log: &Path) -> Servers {
    servers_with(mode, log, false)
}

/// The configuration of a server with this behaviour, which sessions may share.
pub fn servers_with(mode: &str, log: &Path, shared: bool) -> Servers {
    let file = json!({"mcpServers": {NAME: {
        "command": std::env::current_exe().unwrap(),
        "args": ["tool::fixture::fixture_server", "--exact", "--nocapture"],
        "env": {
            "FIXTURE_MODE": mode,
            "FIXTURE_LOG": log,
            "FIXTURE_SECRET": "${env:SECRET}",
        },
        "shared": shared,
    }}});
    let environment = |name: &str| match name {
        "SECRET" => Some(SECRET.to_owned()),
        "HOME" => Some("/nonexistent".to_owned()),
        _ => None,
    };
    Servers::parse(&file.to_string(), environment).unwrap()
}

pub fn logged(log: &Path, what: &str) -> Vec<String> {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    let words = log.lines().filter_map(|line| line.split_once(' '));
    words.filter(|(verb, _)| *verb == what).map(|(_, rest)| rest.to_owned()).collect()
}

/// Expects a failure of this kind and category, and returns its message.
#[track_caller]
pub fn failed(outcome: ToolOutcome, kind: FailureKind, category: &str) -> String {
    let ToolOutcome::Failed(Failure { kind: found, category: named, message, .. }) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((found, named.as_str()), (kind, category), "{message}");
    assert!(!message.contains(SECRET), "{message}");
    message
}

/// Expects an error and returns its text.
#[track_caller]
pub fn error(outcome: ToolOutcome) -> String {
    let ToolOutcome::Error(text) = outcome else { panic!("{outcome:?}") };
    text
}

/// Whether a process still runs. A zombie does not.
pub fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(')').unwrap().1.trim_start();
    !state.starts_with(['Z', 'X'])
}

/// Waits until a condition holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let pause = Duration::from_millis(20);
    for _ in 0..DEADLINE.as_millis() / pause.as_millis() {
        if holds() {
            return;
        }
        tokio::time::sleep(pause).await;
    }
    panic!("not within {DEADLINE:?}: {what}");
}

#[expect(clippy::disallowed_methods, reason = "how the fixture is configured")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Not a test: the server. Does nothing in an ordinary test run.
#[test]
fn fixture_server() {
    let Some(mode) = variable("FIXTURE_MODE") else { return };
    let log = PathBuf::from(variable("FIXTURE_LOG").unwrap());
    note(&log, &format!("start {}", std::process::id()));
    // The test harness has started a line.
    say("\n");
    match mode.as_str() {
        "silent" => freeze(),
        "exits" => {
            eprintln!("cannot open the folder; my secret is {SECRET}");
            std::process::exit(3);
        }
        "babbles" => loop {
            say("Listening on port 8080\n");
            std::thread::sleep(Duration::from_millis(20));
        },
        "aws-diagnostics" => {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let folder = PathBuf::from(variable("FIXTURE_FOLDER").unwrap());
            runtime.block_on(aws_diagnostics::serve_stdio(folder)).unwrap();
            std::process::exit(0);
        }
        "parent" => be_the_parent(&log),
        _ => serve(&mode, &log),
    }
}

/// An agent that will be killed, with a server that does not exit by itself.
fn be_the_parent(log: &Path) {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let child = log.with_file_name("child");
        let bench = Bench::of(dir, servers("stubborn", &child), PATIENT);
        assert_eq!(bench.call("echo", json!({})).await, ToolOutcome::Ok(json!({})));
        note(&child, "ready 1");
        std::future::pending::<()>().await;
    });
}

fn serve(mode: &str, log: &Path) {
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line.unwrap()) else { continue };
        let (method, id) = (message["method"].as_str().unwrap_or_default(), &message["id"]);
        let params = &message["params"];
        match method {
            "initialize" => initialize(mode, id, params),
            "tools/list" => list(mode, id, params),
            "tools/call" => {
                note(log, &format!("call {}", params["name"].as_str().unwrap()));
                call(id, params);
            }
            "ping" => reply(id, &json!({})),
            "notifications/cancelled" => note(log, "cancelled 1"),
            _ => {}
        }
    }
    if mode == "stubborn" {
        freeze();
    }
    note(log, "stop 1");
    std::process::exit(0);
}

fn initialize(mode: &str, id: &Value, params: &Value) {
    match mode {
        "refuses" => refuse(id, -32_000, "no licence"),
        "misunderstands" => reply(id, &json!({"hello": "world"})),
        "dies-in-handshake" => std::process::exit(4),
        _ => reply(
            id,
            &json!({
                "protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": NAME, "version": "0"},
            }),
        ),
    }
}

/// How often the server has listed its tools.
static LISTED: AtomicU32 = AtomicU32::new(0);

fn list(mode: &str, id: &Value, params: &Value) {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    match (mode, params["cursor"].as_str()) {
        ("lists-for-ever", _) => reply(id, &json!({"tools": [], "nextCursor": "more"})),
        ("lists-nothing", _) => refuse(id, -32_601, "no such method"),
        ("silent-about-tools", _) => {}
        (_, None) => {
            let names = ["echo", "text", "empty", "fails", "large", "huge", "odd", "busy"];
            let mut tools: Vec<_> = names.map(tool).into();
            if mode == "changes" {
                tools[0]["description"] = json!(LISTED.fetch_add(1, Ordering::Relaxed).to_string());
            }
            reply(id, &json!({"tools": tools, "nextCursor": "2"}));
        }
        (_, Some(_)) => {
            let strict = json!({
                "name": "strict", "description": "Wants a whole number, promises one.",
                "inputSchema": {"type": "object", "required": ["n"], "additionalProperties": false,
                    "properties": {"n": {"type": "integer"}}},
                "outputSchema": {"type": "object", "required": ["n"],
                    "properties": {"n": {"type": "integer"}}},
            });
            let reaching = json!({"name": "reaching",
                "inputSchema": {"type": "object", "$ref": "http://127.0.0.1:9/schema.json"}});
            let mut tools: Vec<_> = ["dies", "hangs", "freezes", "slow", "env"].map(tool).into();
            tools.extend([strict, reaching]);
            reply(id, &json!({ "tools": tools }));
        }
    }
}

fn call(id: &Value, params: &Value) {
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let arguments = &params["arguments"];
    match params["name"].as_str().unwrap() {
        "echo" => reply(id, &json!({"content": [], "structuredContent": arguments})),
        "text" => reply(id, &text(arguments["text"].as_str().unwrap())),
        "empty" => reply(id, &json!({"content": []})),
        "fails" => {
            let mut result = text(&format!("access denied for {SECRET}"));
            result["isError"] = true.into();
            reply(id, &result);
        }
        "large" => reply(id, &text(&"x".repeat(10_000_000))),
        "huge" => reply(id, &text(&"x".repeat(20_000_000))),
        "odd" => reply(id, &json!({"hello": "world"})),
        "busy" => refuse(id, -32_603, "the database is down"),
        "strict" if arguments["n"] == 0 => reply(id, &json!({"structuredContent": {"n": "zero"}})),
        "strict" => reply(id, &json!({"structuredContent": {"n": arguments["n"]}})),
        "dies" => {
            eprintln!("thread panicked\nmy secret is {SECRET}");
            std::process::exit(9);
        }
        "hangs" => {}
        "freezes" => freeze(),
        "slow" => {
            let id = id.clone();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(500));
                reply(&id, &json!({"structuredContent": {"slept": true}}));
            });
        }
        "env" => {
            let names: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
            reply(id, &json!({"structuredContent": {"names": names}}));
        }
        other => refuse(id, -32_602, &format!("no tool {other}")),
    }
}

fn reply(id: &Value, result: &Value) {
    say(&format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "result": result})));
}

fn refuse(id: &Value, code: i64, message: &str) {
    let error = json!({"code": code, "message": message});
    say(&format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "error": error})));
}

fn say(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

fn note(log: &Path, line: &str) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn freeze() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3_600));
    }
}
