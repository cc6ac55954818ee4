//! Configured MCP servers in whole sessions: independent servers, and a key stored in SSM.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::account::Account;
use crate::harness::{Ran, daybook, free_endpoint, run, tool};

/// The key in SSM, which must not appear in output or files.
const KEY: &str = "correct-horse-battery";

/// The reference SDK's server over HTTP, which requires the key; killed on drop.
struct Reference {
    child: Child,
    url: String,
}

impl Reference {
    fn start(python: &Path, transport: &str) -> Self {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/mcp-reference-server.py");
        let mut child = Command::new(python)
            .arg(script)
            .args([transport, KEY])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let url = ready.strip_prefix("ready ").unwrap_or_else(|| panic!("{ready:?}"));
        Self { child, url: url.trim().to_owned() }
    }

    fn entry(&self, transport: &str) -> Value {
        json!({
            "url": self.url, "transport": transport,
            "headers": {"Authorization": "Bearer ${mcp-api-key}"},
        })
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `daybook` with these servers, and SSM at this endpoint.
fn with_servers(folder: &Path, servers: &Value, ssm: &str) -> Command {
    let file = folder.join("servers.json");
    fs::write(&file, json!({ "mcpServers": servers }).to_string()).unwrap();
    let mut command = daybook(folder);
    command.env("DAYBOOK_MCP_SERVERS", file).env("PATH", "/usr/bin:/bin");
    command.env("AWS_ENDPOINT_URL_SSM", ssm).env("AWS_REGION", "us-east-1");
    // Interpreters take their time to start on a loaded machine.
    command.env("MCP_CONNECT_TIMEOUT", "60").env("MCP_INIT_TIMEOUT", "60");
    command
}

/// Runs `checkup` over a stack of its own, saying all that there is to say.
fn checkup(command: &mut Command) -> Ran {
    command.args(["-vv", "--json", "--endpoint", &free_endpoint()]);
    run(command.args(["trigger", "--agent", "checkup", "--wait", "--with-stack"]))
}

/// All files below a folder that hold a text, whatever else they hold.
fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if fs::read(&path).unwrap().windows(text.len()).any(|part| part == text.as_bytes()) {
            found.push(path);
        }
    }
    found
}

#[test]
fn checkup_lists_configured_servers_and_hides_their_key() {
    let (Some(python), Some(node)) = (tool("DAYBOOK_TEST_MCP"), tool("DAYBOOK_TEST_NODE")) else {
        return;
    };
    let Some(everything) = tool("DAYBOOK_TEST_MCP_EVERYTHING") else { return };
    let Some(mut account) = Account::open() else { return };
    account.ask(json!(["parameter", "/incident-response/mcp-api-key", KEY]));
    let (http, sse) = (Reference::start(&python, "http"), Reference::start(&python, "sse"));
    let folder = tempfile::tempdir().unwrap();
    let servers = json!({
        "everything": {"command": node, "args": [everything, "stdio"],
            "env": {"KEY": "${ssm:/incident-response/mcp-api-key}"}},
        "modern": http.entry("http"),
        "older": sse.entry("sse"),
    });
    let command = || with_servers(folder.path(), &servers, &account.endpoint);

    let ran = checkup(&mut command());
    let session = ran.json().pop().unwrap_or_else(|| panic!("{ran:#?}"));
    assert_eq!(session["status"], "SUCCEEDED", "{session:#}");
    let checks = session["result"]["checks"].as_array().unwrap();
    for (server, offers) in [("everything", "get-sum"), ("modern", "add"), ("older", "add")] {
        let check = checks.iter().find(|check| check["name"] == format!("mcp:{server}")).unwrap();
        assert_eq!(check["ok"], true, "{check}");
        assert!(check["detail"].as_str().unwrap().contains(offers), "{check}");
    }
    let listed = run(command().args(["--json", "tools", "modern"]));
    assert_eq!(listed.exit, 0, "{listed:#?}");
    let names: Vec<_> = listed.json().iter().map(|tool| tool["name"].clone()).collect();
    assert!(names.contains(&json!("wipe")), "{names:?}");
    assert!(listed.json().iter().all(|tool| tool["inputSchema"]["type"] == "object"));
    let read = run(command().args(["-vv", "tools", "older"]));
    assert!(read.stdout.contains("Adds two whole numbers."), "{read:#?}");

    let id = session["session_id"].as_str().unwrap();
    let exported = run(daybook(folder.path()).args(["export", id]));
    let shown = run(daybook(folder.path()).args(["show", id, "--steps", "--payloads"]));
    for ran in [&ran, &listed, &read, &exported, &shown] {
        assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{ran:#?}");
    }
    assert_eq!(files_with(folder.path(), KEY), Vec::<PathBuf>::new());
    // Check that the search finds texts at all.
    assert!(!files_with(folder.path(), "Adds two whole numbers.").is_empty());
    let calls = account.ask(json!(["calls"]));
    assert_eq!(calls, json!(["ssm:GetParameter"]));
}

#[test]
fn an_unreadable_parameter_stops_the_program() {
    let Some(mut account) = Account::open() else { return };
    account.ask(json!(["parameter", "/there", KEY]));
    let folder = tempfile::tempdir().unwrap();
    let server = |name: &str| json!({"a": {"command": "x", "args": [format!("${{ssm:{name}}}")]}});
    let check = |servers: &Value, ssm: &str, said: &str| {
        let ran = checkup(&mut with_servers(folder.path(), servers, ssm));
        assert_eq!((ran.exit, ran.stdout.as_str()), (2, ""), "{ran:#?}");
        assert!(ran.stderr.contains(said) && ran.stderr.contains("hint: "), "{said}: {ran:#?}");
        assert!(!ran.stderr.contains(KEY));
    };
    check(&server("/gone"), &account.endpoint, "`/gone` cannot be read: ParameterNotFound");
    // A remote address, or none, does not lead to an account.
    for ssm in ["https://ssm.us-east-1.amazonaws.com", "http://10.0.0.1", ""] {
        let said = "`/there` cannot be read: AWS is used with --target aws only";
        check(&server("/there"), ssm, said);
    }
    account.ask(json!(["refuse", "ssm:GetParameter"]));
    check(&server("/there"), &account.endpoint, "`/there` cannot be read: AccessDenied");
}

#[test]
fn a_result_of_3_mb_is_journaled_and_a_larger_one_fails() {
    let Some(python) = tool("DAYBOOK_TEST_MCP") else { return };
    let server = Reference::start(&python, "http");
    let header = json!({"Authorization": format!("Bearer {KEY}")});
    let entry = json!({"url": server.url, "headers": header});
    for (megabytes, brought) in [(3, "ok"), (5, "error")] {
        let folder = tempfile::tempdir().unwrap();
        let servers = json!({"aws-diagnostics": entry});
        let message =
            json!({"lambda_name": format!("megabytes-{megabytes}"), "error_message": "?"});
        fs::write(folder.path().join("incident.json"), message.to_string()).unwrap();
        let mut command = with_servers(folder.path(), &servers, "");
        command.args(["--json", "--endpoint", &free_endpoint(), "trigger", "--agent", "incident"]);
        let ran = run(command.args(["--input", "incident.json", "--wait", "--with-stack"]));
        let session = ran.json().pop().unwrap_or_else(|| panic!("{ran:#?}"));
        let id = session["session_id"].as_str().unwrap();
        let shown =
            run(daybook(folder.path()).args(["--json", "show", id, "--steps", "--payloads"]));
        let outcomes = shown.json().into_iter().filter(|step| step["kind"] == "outcome");
        let outcome = outcomes
            .map(|step| step["outcome"].clone())
            .find(|brought| brought["ok"]["log_group"].is_string() || brought["error"].is_string());
        let outcome = outcome.unwrap_or_else(|| panic!("{session:#}"));
        let text = outcome[brought].to_string();
        match brought {
            "ok" => assert!(text.len() > 3 * 1024 * 1024, "{}", text.len()),
            _ => assert!(text.contains("too large") && text.len() < 1_000, "{text}"),
        }
        assert_eq!(run(daybook(folder.path()).args(["verify", id])).exit, 0);
    }
}
