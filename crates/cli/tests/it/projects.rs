//! `daybook.toml`: agents that are files, settings, `check`, `doctor`, and what `new agent` makes of it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Dev, Ran, daybook, run, run_in, tool};
use crate::page::root;

#[expect(clippy::disallowed_methods, reason = "python3 and node are on the machine's search path")]
pub fn path() -> String {
    let path = std::env::var("PATH").unwrap();
    let node = tool("DAYBOOK_TEST_NODE").and_then(|node| Some(node.parent()?.to_owned()));
    node.map_or(path.clone(), |folder| format!("{}:{path}", folder.display()))
}

pub fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

pub fn dev(folder: &Path, arguments: &[&str]) -> Dev {
    let mut command = daybook(folder);
    command.env("PATH", path()).env("PYTHONDONTWRITEBYTECODE", "1");
    Dev::listening_with(&mut command, &folder.join("data"), "127.0.0.1:0", arguments)
}

pub fn at(folder: &Path, dev: &Dev, arguments: &[&str]) -> Ran {
    let global = ["--data", "data", "--endpoint", &dev.endpoint];
    run_in(folder, &[&global, arguments].concat())
}

/// The session that a command shows; records may precede or follow it.
pub fn session(ran: &Ran) -> Value {
    ran.json().into_iter().rfind(|line| line["sk"].is_null()).unwrap_or_else(|| panic!("{ran:#?}"))
}

pub fn until(folder: &Path, dev: &Dev, id: &str, status: &str) -> Value {
    for _ in 0..600 {
        let session = session(&at(folder, dev, &["show", id, "--json"]));
        if session["status"] == status {
            return session;
        }
        assert!(session["verdict"].is_null(), "{session:#}");
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{:#}", session(&at(folder, dev, &["show", id, "--json"])));
}

/// Makes an agent, runs it to its question, kills the stack, answers, and verifies.
fn the_first_run(language: &str, arguments: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    the_first_run_of(&made(folder.path(), language), arguments);
}

/// Makes an agent; its folder.
pub fn made(folder: &Path, language: &str) -> PathBuf {
    let made = run_in(folder, &["new", "agent", "tidy", "--language", language]);
    assert_eq!((made.exit, made.stdout.trim()), (0, "tidy"), "{made:#?}");
    folder.join("tidy")
}

/// Runs a made agent to its question, kills the stack, answers, and verifies.
pub fn the_first_run_of(folder: &Path, arguments: &[&str]) {
    let first = dev(folder, arguments);
    let trigger = ["trigger", "--agent", "tidy", "--input", "input.json", "--wait", "--json"];
    let asked = session(&at(folder, &first, &trigger));
    assert_eq!(asked["status"], "WAITING", "{asked:#}");
    assert_eq!(asked["open_question"]["prompt"], "Delete old.log (82 bytes)?");
    let id = asked["session_id"].as_str().unwrap().to_owned();
    first.kill();
    let second = dev(folder, arguments);
    assert_eq!(at(folder, &second, &["answer", &id, "--approve"]).exit, 0);
    let ended = until(folder, &second, &id, "SUCCEEDED");
    let result = json!({ "summary": "1 files deleted.", "findings": ["old.log"] });
    assert_eq!(ended["result"], result);
    assert_eq!(ended["title"], "Tidy box", "{ended:#}");
    assert!(!folder.join("box/old.log").exists() && folder.join("box/new.log").exists());
    let verified = at(folder, &second, &["verify", "--all"]);
    assert_eq!(verified.exit, 0, "{verified:#?}");
    assert_eq!(second.stop("-TERM"), 0);
}

#[test]
fn a_new_agent_in_python_runs_at_once() {
    the_first_run("python", &[]);
}

/// The process of a session reads the file that `DAYBOOK_CONFIG` names, as the container's program does.
#[test]
fn a_new_agent_in_python_runs_in_a_process_of_its_own() {
    let agent = Path::new(env!("CARGO_BIN_EXE_daybook")).with_file_name("agent");
    if !agent.exists() {
        eprintln!("skipped: build it with `cargo build -p agent --features container`");
        return;
    }
    the_first_run("python", &["--isolate"]);
}

#[test]
fn a_new_agent_in_typescript_runs_at_once() {
    if tool("DAYBOOK_TEST_NODE").is_some() {
        the_first_run("typescript", &[]);
    }
}

#[test]
fn the_documented_agent_in_python_is_the_template() {
    let template = root().join("crates/cli/template/python/janitor.py");
    let template = std::fs::read_to_string(template).unwrap();
    assert_eq!(block("docs/your-own-agent.md", "python"), template);
}

/// An MCP server with two tools over the folder `box`.
const FILES: &str = r#"
import json, os, sys
TOOLS = [
    {"name": "list_files", "description": "Lists.", "inputSchema": {"type": "object"}},
    {"name": "delete_file", "description": "Deletes.", "inputSchema": {"type": "object",
        "properties": {"name": {"type": "string"}}, "required": ["name"]}},
]
def call(name, arguments):
    if name == "list_files":
        return {f: os.path.getsize(os.path.join("box", f)) for f in sorted(os.listdir("box"))}
    os.remove(os.path.join("box", arguments["name"]))
    return {"deleted": arguments["name"]}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, params = asked["method"], asked.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "files", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    else:
        content = call(params["name"], params.get("arguments", {}))
        result = {"content": [{"type": "text", "text": json.dumps(content)}], "isError": False}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

/// A model that lists, deletes the largest file, and finishes.
const MODEL: &str = r#"
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
class Model(BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        names = [tool["function"]["name"] for tool in asked["tools"]]
        named = lambda end: next(name for name in names if name.endswith(end))
        turn = sum(message["role"] == "tool" for message in asked["messages"])
        name, arguments = [
            (named("list_files"), {}),
            (named("delete_file"), {"name": "old.log"}),
            (named("finish"), {"deleted": 1, "summary": "One file deleted."}),
        ][turn]
        call = {"index": 0, "id": f"c{turn}", "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)}}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for delta, reason in [({"role": "assistant", "content": ""}, None), ({"tool_calls": [call]}, None), ({}, "tool_calls")]:
            chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")
server = HTTPServer(("127.0.0.1", 0), Model)
print(server.server_port, flush=True)
server.serve_forever()
"#;

struct Model(Child, String);

impl Model {
    fn start(folder: &Path) -> Self {
        write(folder, "model.py", MODEL);
        let mut command = Command::new("python3");
        let mut child =
            command.arg("model.py").current_dir(folder).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self(child, format!("http://127.0.0.1:{}/v1", port.trim()))
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The first block of this kind on a page.
pub fn block(page: &str, kind: &str) -> String {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let rest = text.split_once(&format!("```{kind}\n")).unwrap().1;
    rest.split_once("```").unwrap().0.to_owned()
}

/// The files of docs/agent-files.md, with a server and a model that a test can have.
fn documented(folder: &Path, address: &str) {
    let file = block("docs/agent-files.md", "yaml");
    let lines = file.lines().count();
    assert!(lines <= 15, "{lines} lines");
    write(folder, "janitor.yaml", &file);
    write(folder, "files.py", FILES);
    let toml = block("docs/agent-files.md", "toml");
    write(folder, "daybook.toml", &format!("{toml}openai_base_url = \"{address}\"\n"));
    std::fs::create_dir(folder.join("box")).unwrap();
    write(folder, "box/old.log", &"x".repeat(90));
    write(folder, "box/new.log", &"x".repeat(40));
    write(folder, "input.json", r#"{"folder": "box", "bytes_max": 100}"#);
}

#[test]
fn an_agent_that_is_a_file_asks_and_deletes_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let model = Model::start(folder);
    documented(folder, &model.1);
    let first = dev(folder, &[]);
    let trigger =
        ["trigger", "--agent", "janitor-file", "--input", "input.json", "--wait", "--json"];
    let asked = session(&at(folder, &first, &trigger));
    assert_eq!(asked["status"], "WAITING", "{asked:#}");
    let id = asked["session_id"].as_str().unwrap().to_owned();
    first.kill();
    assert!(folder.join("box/old.log").exists());
    let second = dev(folder, &[]);
    assert_eq!(at(folder, &second, &["answer", &id, "--approve"]).exit, 0);
    let ended = until(folder, &second, &id, "SUCCEEDED");
    assert_eq!(ended["result"], json!({ "deleted": 1, "summary": "One file deleted." }));
    assert_eq!(ended["title"], "box below 100 bytes");
    assert!(!folder.join("box/old.log").exists());
    assert_eq!(at(folder, &second, &["verify", "--all"]).exit, 0);
    assert_eq!(second.stop("-TERM"), 0);
}

#[test]
fn check_names_everything_that_a_run_would_refuse() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    documented(folder, "http://127.0.0.1:9/v1");
    let check = |file: &str| run(daybook(folder).env("PATH", path()).args(["check", file]));
    let good = check("janitor.yaml");
    assert_eq!(good.exit, 0, "{good:#?}");
    assert!(good.stdout.starts_with("janitor-file version "), "{good:#?}");
    assert_eq!(check("daybook.toml").exit, 0);
    write(
        folder,
        "bad.yaml",
        "name: Bad\nprompt: ''\nservers: [files]\ncritical: [fils.delete_file]\n",
    );
    let bad = check("bad.yaml");
    assert_eq!(bad.exit, 64, "{bad:#?}");
    for problem in ["`name` is `Bad`", "`prompt` is empty", "(did you mean `files`?)"] {
        assert!(bad.stderr.contains(problem), "{problem}: {bad:#?}");
    }
    write(folder, "alone.yaml", "name: alone\nprompt: x\nservers: [elsewhere]\n");
    let alone = check("alone.yaml");
    let expected = "agent `alone` needs the MCP server `elsewhere`, which is not configured";
    assert!(alone.exit == 2 && alone.stderr.contains(expected), "{alone:#?}");
}

#[test]
fn a_wrong_configuration_names_the_nearest_key() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "daybook.toml", "[settings]\nmodell = \"openai:m\"\n");
    let refused = run_in(folder, &["agents"]);
    assert_eq!(refused.exit, 64, "{refused:#?}");
    assert!(refused.stderr.contains("`settings.modell` (did you mean `model`?)"), "{refused:#?}");
    let doctor = run_in(folder, &["doctor", "--json"]);
    let found = doctor.json().into_iter().find(|check| check["name"] == "daybook.toml").unwrap();
    assert_eq!(found["state"], "failed", "{found}");
    write(folder, "daybook.toml", "[settings]\nmodel = \"nonsense\"\n");
    let refused = run_in(folder, &["dev"]);
    assert!(
        refused.exit == 64 && refused.stderr.contains("DAYBOOK_MODEL is `nonsense`"),
        "{refused:#?}"
    );
    let taken = run(daybook(folder).env("DAYBOOK_MODEL", "also").arg("dev"));
    assert!(taken.stderr.contains("DAYBOOK_MODEL is `also`"), "a variable wins: {taken:#?}");
}
