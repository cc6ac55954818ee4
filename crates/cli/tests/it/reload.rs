//! `dev` takes a change of `daybook.toml`.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use crate::harness::{Dev, daybook, free_endpoint, run_in};
use crate::page::root;
use crate::projects::{at, dev, session, until, write};

/// A critical step takes a second.
const AGENT: &str = r#"
import time
from daybook import Context, agent, run

@agent("notes", version=1)
def notes(ctx: Context, text: str) -> dict:
    def pay():
        open("paid.log", "a").write("paid\n")
        time.sleep(1)
        return "paid"
    return {"summary": text, "paid": ctx.step("pay", pay, critical=True)}

run(notes)
"#;

const FILE: &str = "[agents.notes]\ncommand = [\"python3\", \"notes.py\"]\n\
                    env = { PYTHONPATH = \"KIT\", PYTHONDONTWRITEBYTECODE = \"1\" }\n";

fn file(more: &str) -> String {
    FILE.replace("KIT", &root().join("sdk/python").to_string_lossy()) + more
}

struct World {
    folder: tempfile::TempDir,
    dev: Dev,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "notes.py", AGENT);
        write(folder.path(), "daybook.toml", &file(""));
        let listen = free_endpoint().trim_start_matches("http://").to_owned();
        let mut command = daybook(folder.path());
        command.args(["--data", "data", "dev", "--listen", &listen]);
        let log = std::fs::File::create(folder.path().join("dev.log")).unwrap();
        let dev = Dev::ready_with(&mut command, Stdio::from(log));
        Self { folder, dev }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Waits until the stack has started again this often.
    fn reloaded(&self, times: usize) {
        self.said("the stack starts again", times);
        self.said("journal in ", times + 1);
    }

    fn said(&self, text: &str, times: usize) {
        for _ in 0..600 {
            if self.log().matches(text).count() == times {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{text:?} does not come: {}", self.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.path().join("dev.log")).unwrap()
    }

    fn trigger(&self, agent: &str, input: &serde_json::Value) -> String {
        let detail = json!({ "agent": agent, "input": input }).to_string();
        let begun =
            session(&at(self.path(), &self.dev, &["trigger", "--json", "--detail", &detail]));
        begun["session_id"].as_str().unwrap().to_owned()
    }
}

#[test]
fn an_agent_that_is_added_to_the_file_can_be_triggered() {
    let world = World::new();
    write(
        world.path(),
        "daybook.toml",
        &file("[agents.words]\nprompt = \"Count.\"\nmodel = \"openai:m\"\n"),
    );
    world.reloaded(1);
    let listed = run_in(world.path(), &["agents", "--json"]).json();
    assert!(listed.iter().any(|agent| agent["name"] == "words"), "{listed:#?}");
    let id = world.trigger("words", &json!({}));
    // No model answers there, but the agent is known.
    let ended = until(world.path(), &world.dev, &id, "FAILED");
    assert_eq!(ended["agent"], "words", "{ended:#}");
    assert_eq!(world.dev.stop("-TERM"), 0);
}

/// The tools of a server, whose critical one the file misspells.
#[test]
fn a_misspelt_critical_tool_is_named_and_nothing_is_called() {
    const PAYS: &str = "from daybook import agent, run\n\n@agent(\"notes\", version=1, servers=[\"bank\"])\n\
                        def notes(ctx) -> dict:\n    return {\"paid\": ctx.tool(\"bank\", \"transfer\")}\n\nrun(notes)\n";
    const BANK: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {}
    if asked["method"] == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "bank", "version": "1"}}
    elif asked["method"] == "tools/list":
        result = {"tools": [{"name": "transfer", "inputSchema": {"type": "object"}}]}
    elif asked["method"] == "tools/call":
        open("paid.log", "a").write("paid\n")
        result = {"content": [{"type": "text", "text": "paid"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "notes.py", PAYS);
    write(folder.path(), "bank.py", BANK);
    let more = "critical = [\"bank.transfr\"]\n[mcp.bank]\ncommand = [\"python3\", \"bank.py\"]\n";
    write(folder.path(), "daybook.toml", &file(more));
    let named = "the critical tool `bank.transfr` is not offered by server `bank` (did you mean `transfer`?)";
    let checked = run_in(folder.path(), &["check", "daybook.toml"]);
    assert_eq!(checked.exit, 2, "{checked:#?}");
    assert!(checked.stderr.contains(named), "{checked:#?}");
    let doctor = run_in(folder.path(), &["--data", "data", "doctor"]);
    assert!(doctor.exit == 1 && doctor.stdout.contains("bank.transfr"), "{doctor:#?}");
    let dev = dev(folder.path(), &[]);
    let ran = at(folder.path(), &dev, &["trigger", "--agent", "notes", "--wait", "--json"]);
    let ended = session(&ran);
    assert_eq!(ended["status"], "FAILED", "{ended:#}");
    assert!(ended.to_string().contains("bank.transfr"), "{ended:#}");
    assert!(!folder.path().join("paid.log").exists(), "it was called without an approval");
    assert_eq!(dev.stop("-TERM"), 0);
}

#[test]
fn a_reload_leaves_no_critical_step_in_doubt() {
    let world = World::new();
    let id = world.trigger("notes", &json!({ "text": "hello" }));
    let paid = world.path().join("paid.log");
    for _ in 0..600 {
        if paid.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    write(world.path(), "daybook.toml", &file("[settings]\nmodel_calls_max = 3\n"));
    world.reloaded(1);
    let ended = until(world.path(), &world.dev, &id, "SUCCEEDED");
    assert_eq!(ended["result"]["paid"], "paid");
    assert_eq!(std::fs::read_to_string(paid).unwrap(), "paid\n");
    assert_eq!(at(world.path(), &world.dev, &["verify", &id]).exit, 0);
    assert_eq!(world.dev.stop("-TERM"), 0);
}

#[test]
fn a_mistake_in_the_file_stops_nothing() {
    let world = World::new();
    let broken = [
        ("[agents.notes", "daybook.toml"),
        ("[settings]\nagents_max = \"many\"\n", "DAYBOOK_AGENTS_MAX"),
        ("[agents.gone]\ncommand = [\"/no/such/program\"]\n", "gone"),
        ("[settings]\nmodell = \"x\"\n", "did you mean `model`?"),
    ];
    for (index, (text, named)) in broken.into_iter().enumerate() {
        write(world.path(), "daybook.toml", &file(text));
        world.said("is not used; the stack goes on as it was", index + 1);
        let log = world.log();
        assert!(
            log.lines().last().unwrap().contains(named) || log.contains(named),
            "{named}: {log}"
        );
    }
    std::fs::remove_file(world.path().join("daybook.toml")).unwrap();
    world.said("is not used; the stack goes on as it was", broken.len() + 1);
    let id = world.trigger("notes", &json!({ "text": "hello" }));
    write(world.path(), "daybook.toml", &file(""));
    until(world.path(), &world.dev, &id, "SUCCEEDED");
    assert_eq!(world.log().matches("the stack starts again").count(), 0, "{}", world.log());
    assert_eq!(world.dev.stop("-TERM"), 0);
}

/// Its code is read for each run anyway.
#[test]
fn only_another_description_of_a_program_is_a_change() {
    let world = World::new();
    write(world.path(), "notes.py", &AGENT.replace("time.sleep(1)", "time.sleep(0)"));
    std::thread::sleep(Duration::from_secs(2));
    let described = AGENT.replace("text: str", "text: str, more: int = 0");
    write(world.path(), "notes.py", &described);
    world.reloaded(1);
    let id = world.trigger("notes", &json!({ "text": "hello", "more": 2 }));
    until(world.path(), &world.dev, &id, "SUCCEEDED");
    assert_eq!(world.log().matches("the stack starts again").count(), 1, "{}", world.log());
    assert_eq!(world.dev.stop("-TERM"), 0);
}
