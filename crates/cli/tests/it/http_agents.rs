//! Agents that know nothing of Daybook: `url` and `http_command` of `daybook.toml`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Dev, free_endpoint, tool};
use crate::projects::{at, dev, session, until, write};

/// An agent with `/ping` and `/invocations`. It logs each invocation, takes as long as the input says, and stays busy.
const AGENT: &str = r#"
import json, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
busy_until = 0
class Agent(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass
    def answer(self, status, body, kind="application/json"):
        body = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        state = "HealthyBusy" if time.time() < busy_until else "Healthy"
        self.answer(200, json.dumps({"status": state}))
    def do_POST(self):
        global busy_until
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open("invoked.log", "a") as log:
            log.write(json.dumps([os.getpid(), self.headers["X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"]]) + "\n")
        time.sleep(asked.get("seconds", 0))
        busy_until = time.time() + asked.get("busy", 0)
        if asked.get("stream"):
            return self.answer(200, 'data: "one"\n\ndata: {"two": 2}\n\n', "text/event-stream; charset=utf-8")
        if asked.get("fail"):
            return self.answer(500, "the database is gone")
        self.answer(200, json.dumps({"summary": "Said " + asked["prompt"], "token": self.headers["Authorization"]}))
print("listening", flush=True)
ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Agent).serve_forever()
"#;

/// A folder with the agent, which is started for each session.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "old.py", AGENT);
    let text = "[agents.old]\nhttp_command = [\"python3\", \"old.py\"]\n";
    write(folder.path(), "daybook.toml", text);
    folder
}

fn trigger(folder: &Path, dev: &Dev, input: Value) -> String {
    let detail = json!({ "agent": "old", "input": input }).to_string();
    let begun = session(&at(folder, dev, &["trigger", "--json", "--detail", &detail]));
    begun["session_id"].as_str().unwrap().to_owned()
}

fn invoked(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("invoked.log")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn wait(what: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if what() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("it does not come");
}

#[test]
fn an_agent_that_is_started_for_its_session_is_invoked_once() {
    let folder = folder();
    let folder = folder.path();
    let stack = dev(folder, &[]);
    let id = trigger(folder, &stack, json!({"prompt": "hello", "busy": 1}));
    let ended = until(folder, &stack, &id, "SUCCEEDED");
    assert_eq!(ended["result"], json!({"summary": "Said hello", "token": null}));
    let calls = invoked(folder);
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0][1], json!(id));
    let pid = calls[0][0].as_u64().unwrap();
    wait(|| !Path::new(&format!("/proc/{pid}")).exists());
    let id = trigger(folder, &stack, json!({"prompt": "", "stream": true}));
    let ended = until(folder, &stack, &id, "SUCCEEDED");
    assert_eq!(ended["result"], json!({"events": ["one", {"two": 2}]}));
    let id = trigger(folder, &stack, json!({"prompt": "", "fail": true}));
    let ended = until(folder, &stack, &id, "FAILED");
    let error = ended["error"].to_string();
    assert!(error.contains("500") && error.contains("the database is gone"), "{ended:#}");
    assert_eq!(at(folder, &stack, &["verify", "--all"]).exit, 0);
    assert_eq!(stack.stop("-TERM"), 0);
}

/// Whether the agent did its work is not known then: a person decides, and nothing is invoked again before.
#[test]
fn an_invocation_that_a_crash_cut_off_is_a_question() {
    let folder = folder();
    let folder = folder.path();
    let stack = dev(folder, &[]);
    let id = trigger(folder, &stack, json!({"prompt": "pay", "seconds": 60}));
    wait(|| invoked(folder).len() == 1);
    stack.kill();
    let pid = invoked(folder)[0][0].as_u64().unwrap();
    wait(|| !Path::new(&format!("/proc/{pid}")).exists());
    let stack = dev(folder, &[]);
    let asked = until(folder, &stack, &id, "WAITING");
    let prompt = asked["open_question"]["prompt"].as_str().unwrap();
    assert!(prompt.contains("invoke") && prompt.contains("is not known"), "{asked:#}");
    assert_eq!(invoked(folder).len(), 1);
    assert_eq!(at(folder, &stack, &["answer", &id, "--say", "it was paid"]).exit, 0);
    let ended = until(folder, &stack, &id, "SUCCEEDED");
    assert_eq!(ended["result"], json!({"answer": "it was paid"}));
    assert_eq!(invoked(folder).len(), 1, "it is not invoked again");
    assert_eq!(stack.stop("-TERM"), 0);
}

#[test]
fn an_agent_at_an_address_is_invoked_with_its_token_or_named_as_gone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "old.py", AGENT);
    let url = free_endpoint();
    let port = url.rsplit_once(':').unwrap().1;
    let text =
        format!("[agents.old]\nurl = \"{url}\"\nbearer_env = \"OLD_TOKEN\"\nstart_seconds = 2\n");
    write(folder, "daybook.toml", &text);
    let mut command = crate::harness::daybook(folder);
    command.env("OLD_TOKEN", "sesame-4711");
    let stack = Dev::listening(&mut command, &folder.join("data"), "127.0.0.1:0");
    let id = trigger(folder, &stack, json!({"prompt": "hello"}));
    let ended = until(folder, &stack, &id, "FAILED");
    let error = ended["error"].to_string();
    assert!(error.contains("is not healthy after 2 s, nothing was invoked"), "{ended:#}");
    let mut python = Command::new("python3");
    let python = python.arg("old.py").current_dir(folder).env("PORT", port);
    let mut agent = python.stdout(Stdio::null()).spawn().unwrap();
    let id = trigger(folder, &stack, json!({"prompt": "hello"}));
    let ended = until(folder, &stack, &id, "SUCCEEDED");
    assert_eq!(ended["result"]["token"], "Bearer sesame-4711");
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert_eq!(stack.stop("-TERM"), 0);
}

/// AWS's own kit, from the registry.
const AGENTCORE: &str = r#"
import asyncio, os
from bedrock_agentcore import BedrockAgentCoreApp
app = BedrockAgentCoreApp()
@app.async_task
async def later():
    await asyncio.sleep(1.5)
    open("later.log", "w").close()
@app.entrypoint
async def invoke(payload, context):
    asyncio.create_task(later())
    return {"summary": "Said " + payload["prompt"], "session": context.session_id}
app.run(port=int(os.environ["PORT"]))
"#;

#[test]
fn an_agent_made_with_the_kit_of_agentcore_runs_unchanged() {
    let Some(python) = tool("DAYBOOK_TEST_AGENTCORE") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "old.py", AGENTCORE);
    let text = format!("[agents.old]\nhttp_command = [{}, \"old.py\"]\n", json!(python));
    write(folder, "daybook.toml", &text);
    let stack = dev(folder, &[]);
    let id = trigger(folder, &stack, json!({"prompt": "hello"}));
    let ended = until(folder, &stack, &id, "SUCCEEDED");
    assert_eq!(ended["result"], json!({"summary": "Said hello", "session": id}));
    assert!(folder.join("later.log").exists(), "it is awaited while it is busy");
    assert_eq!(at(folder, &stack, &["verify", "--all"]).exit, 0);
    assert_eq!(stack.stop("-TERM"), 0);
}
