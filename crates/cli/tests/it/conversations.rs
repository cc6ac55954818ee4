//! `kill -9` of the stack during a conversation, after a record of each kind.

use std::path::{Path, PathBuf};
use std::time::Duration;

use journal::read;
use journal::sqlite::SqliteStore;
use journal::step::{Step, StepKind};
use serde_json::{Value, json};
use stack::stack::JOURNAL_FILE;

use crate::harness::{DEADLINE, Dev, daybook, run_in};
use crate::people::Api;

/// Speed of the stacks' clock: a lost agent is detected after three seconds.
const TIME_SCALE: &str = "20";

/// The stack is killed right after the next record of this kind, once for each, in a conversation's order.
const KILLED_AFTER: [StepKind; 5] =
    [StepKind::Claim, StepKind::Ask, StepKind::Answer, StepKind::Intent, StepKind::Outcome];

/// Tools that change a simulation.
const CRITICAL: [&str; 3] = ["load_simulation", "set_parameter_value", "run_simulation"];

/// A folder with a journal and a log of the simulator's requests.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new() -> Self {
        let scene = Self(tempfile::tempdir().unwrap());
        // What a client asks goes through `tee` into the log before the server reads it. What is simulated
        // outlives its server, as the conversation does.
        let script = r#"tee -a "$0" | exec "$1" mcp pk-sim --state "$2""#;
        let arguments = json!([
            "-c",
            script,
            scene.path("asked"),
            env!("CARGO_BIN_EXE_daybook"),
            scene.path("state")
        ]);
        let reads = ["list_models", "list_parameters", "get_parameter_value", "get_results"];
        let server = json!({ "command": "sh", "args": arguments, "reads": reads });
        let servers = json!({ "mcpServers": { "pk-sim": server } });
        std::fs::write(scene.path("servers.json"), servers.to_string()).unwrap();
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn dev(&self) -> Dev {
        let mut command = daybook(self.0.path());
        command.env("DAYBOOK_MCP_SERVERS", self.path("servers.json"));
        command.env("MCP_CONNECT_TIMEOUT", "600").env("MCP_INIT_TIMEOUT", "600");
        let arguments = ["--time-scale", TIME_SCALE];
        Dev::listening_with(&mut command, &self.path("data"), "127.0.0.1:0", &arguments)
    }

    async fn steps(&self, thread: &str) -> Vec<Step<Value>> {
        let journal = SqliteStore::open_read_only(&self.path("data").join(JOURNAL_FILE)).unwrap();
        read::resolved_steps(&journal, &thread.parse().unwrap()).await.unwrap()
    }

    async fn count(&self, thread: &str, kind: StepKind) -> usize {
        self.steps(thread).await.iter().filter(|step| step.body.kind() == kind).count()
    }

    /// The calls that change a simulation, as the server was asked for them.
    fn critical_calls(&self) -> Vec<(String, Value)> {
        let asked = std::fs::read_to_string(self.path("asked")).unwrap_or_default();
        // Ignore a line that the kill cut off: no server read it.
        let lines = asked.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines
            .filter(|line| line["method"] == "tools/call")
            .map(|line| {
                let name = line["params"]["name"].as_str().unwrap().to_owned();
                (name, line["params"]["arguments"].clone())
            })
            .filter(|(name, _)| CRITICAL.contains(&name.as_str()))
            .collect()
    }

    /// What the person says: yes to what is planned, but not to what was done already; and a farewell.
    fn answer(&self, question: &Value) -> Value {
        let id = &question["question_id"];
        let choices = question["choices"].as_array().unwrap();
        let is_doubt = question["tool"].is_string() && !choices.contains(&json!("edit"));
        let was_made = || {
            let call =
                (question["tool"].as_str().unwrap().to_owned(), question["arguments"].clone());
            self.critical_calls().contains(&call)
        };
        if is_doubt && was_made() {
            json!({ "question_id": id, "decision": "say", "text": "it was made" })
        } else if question["tool"].is_string() {
            json!({ "question_id": id, "decision": "approve" })
        } else {
            json!({ "question_id": id, "decision": "say", "text": "bye" })
        }
    }

    /// Answers every question while the stack is running.
    async fn talk(&self, dev: &Dev, thread: &str) {
        let http = reqwest::Client::builder().no_proxy().timeout(DEADLINE).build().unwrap();
        let url = format!("{}/api/sessions/{thread}", dev.endpoint);
        let mut answered = Value::Null;
        loop {
            let Ok(shown) = http.get(&url).send().await else { return };
            let shown: Value =
                serde_json::from_str(&shown.text().await.unwrap_or_default()).unwrap_or_default();
            let question = &shown["session"]["open_question"];
            if question.is_object() && question["question_id"] != answered {
                answered = question["question_id"].clone();
                let answer =
                    http.post(format!("{url}/answer")).body(self.answer(question).to_string());
                // Whether it was heard is seen by whether the question stays.
                if !answer.send().await.is_ok_and(|reply| reply.status().is_success()) {
                    answered = Value::Null;
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until there are this many records of a kind.
    async fn until(&self, thread: &str, kind: StepKind, count: usize) {
        let waiting = async {
            while self.count(thread, kind).await < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        if tokio::time::timeout(DEADLINE, waiting).await.is_err() {
            panic!("there are no {count} of {kind:?}: {:#?}", self.steps(thread).await);
        }
    }
}

fn trigger(folder: &Path, dev: &Dev) -> String {
    let detail =
        json!({ "agent": "assistant", "input": { "message": "simulate 320 mg of theophylline" } });
    let detail = detail.to_string();
    let ran = run_in(folder, &["--endpoint", &dev.endpoint, "trigger", "--detail", &detail]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    ran.stdout.trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_survives_kills_after_a_record_of_each_kind() {
    let scene = Scene::new();
    let mut dev = scene.dev();
    let thread = trigger(scene.0.path(), &dev);
    for kind in KILLED_AFTER {
        // The first claim may be there already.
        let count = if kind == StepKind::Claim { 1 } else { scene.count(&thread, kind).await + 1 };
        tokio::select! {
            () = scene.until(&thread, kind, count) => {}
            () = scene.talk(&dev, &thread) => panic!("the stack answers no more"),
        }
        let seen = scene.steps(&thread).await;
        dev.kill();
        let kept = scene.steps(&thread).await;
        assert_eq!(format!("{seen:?}"), format!("{:?}", &kept[..seen.len()]), "after {kind:?}");
        dev = scene.dev();
    }
    tokio::select! {
        () = scene.until(&thread, StepKind::End, 1) => {}
        () = scene.talk(&dev, &thread) => panic!("the stack answers no more"),
    }
    let tail = ["--endpoint", &dev.endpoint, "tail", &thread];
    let ended = run_in(scene.0.path(), &tail);
    assert_eq!(ended.exit, 0, "{ended:#?}");
    let result = Api::new(&dev).session(&thread).await["session"]["result"].clone();
    assert_eq!(result["ended"], "asked", "{result:#}");
    let calls = scene.critical_calls();
    let names: Vec<&str> = calls.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["load_simulation", "run_simulation"], "each once: {calls:#?}");
    let data = scene.path("data");
    let verified = run_in(scene.0.path(), &["--data", data.to_str().unwrap(), "verify", &thread]);
    assert_eq!(verified.exit, 0, "{verified:#?}");
    assert_eq!(dev.stop("-TERM"), 0);
}
