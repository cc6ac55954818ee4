//! Answers and conversations: every way to answer, a conversation over a killed stack, and a terminal.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{DEADLINE, Dev, Ran, daybook, run_in};

const ASKED: &str = "simulate 250 mg of theophylline every 8 h for 1 day";

/// Runs a command with these lines on its stdin.
pub fn with_lines(command: &mut Command, lines: &[&str]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for line in lines {
        writeln!(stdin, "{line}").unwrap();
    }
    drop(stdin);
    let id = child.id().to_string();
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let killer = std::thread::spawn(move || {
        if is_done.recv_timeout(DEADLINE).is_err() {
            let _ = Command::new("kill").args(["-KILL", &id]).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    let _ = done.send(());
    killer.join().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran {
        exit: output.status.code().expect("it ended by itself"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

fn chat(folder: &Path, dev: &Dev, arguments: &[&str], lines: &[&str]) -> Ran {
    let mut command = daybook(folder);
    command.args(["--endpoint", &dev.endpoint, "chat"]).args(arguments);
    with_lines(&mut command, lines)
}

/// Actions on a session over HTTP.
pub struct Api {
    http: reqwest::Client,
    endpoint: String,
}

impl Api {
    pub fn new(dev: &Dev) -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(DEADLINE).build().unwrap();
        Self { http, endpoint: dev.endpoint.clone() }
    }

    pub async fn session(&self, id: &str) -> Value {
        let url = format!("{}/api/sessions/{id}", self.endpoint);
        let text = self.http.get(url).send().await.unwrap().text().await.unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// The question that is open after `after`, once there is one.
    async fn question(&self, id: &str, after: u64) -> Value {
        for _ in 0..DEADLINE.as_millis() / 20 {
            let open = self.session(id).await["session"]["open_question"].clone();
            if open["question_id"].as_u64().is_some_and(|question| question > after) {
                return open;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("no question is asked: {:#}", self.session(id).await);
    }

    async fn aws(&self, target: &str, body: Value) -> (u16, Value) {
        let request = self.http.post(&self.endpoint).header("x-amz-target", target);
        let answer = request.body(body.to_string()).send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or_default())
    }

    /// The token of the workflow as DynamoDB's interface has it.
    async fn token(&self, id: &str) -> Option<String> {
        let key = json!({ "PK": { "S": format!("SESSION#{id}") }, "SK": { "S": "WAIT" } });
        let body = json!({ "TableName": "daybook-journal", "Key": key });
        let (_, answer) = self.aws("DynamoDB_20120810.GetItem", body).await;
        answer["Item"]["Token"]["S"].as_str().map(str::to_owned)
    }

    /// Sends the token with an output, as soon as the workflow is parked.
    async fn send_token(&self, id: &str, output: &Value) {
        for _ in 0..DEADLINE.as_millis() / 20 {
            if let Some(token) = self.token(id).await {
                let body = json!({ "taskToken": token, "output": output.to_string() });
                if self.aws("AWSStepFunctions.SendTaskSuccess", body).await.0 == 200 {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the workflow does not park: {:#}", self.session(id).await);
    }
}

#[tokio::test]
async fn an_event_names_only_allowed_paths_and_the_cli_any() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = elsewhere.path().join("rows.csv");
    std::fs::write(&file, "hunter2,x\n").unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let api = Api::new(&dev);
    let input = json!({ "transaction_id": "t", "data": file });
    let detail = json!({ "agent": "fraud", "input": input }).to_string();
    let entry =
        json!({ "Source": "manual-trigger", "DetailType": "execute-agent", "Detail": detail });
    let (_, put) = api.aws("AWSEvents.PutEvents", json!({ "Entries": [entry] })).await;
    let id = put["Entries"][0]["EventId"].as_str().unwrap().to_owned();
    let at = |arguments: &[&str]| {
        run_in(folder.path(), &[&["--endpoint", &dev.endpoint], arguments].concat())
    };
    at(&["tail", &id]);
    let records = at(&["show", &id, "--steps", "--json"]).stdout;
    let refused = "is outside of the folders that a trigger may name";
    assert!(records.contains(refused) && !records.contains("hunter2"), "{records}");
    let ran = at(&["trigger", "--wait", "--json", "--detail", &detail]);
    let id = ran.json()[0]["session_id"].as_str().unwrap().to_owned();
    let records = at(&["show", &id, "--steps", "--json"]).stdout;
    assert!(records.contains("missing column") && !records.contains("hunter2"), "{records}");
}

#[tokio::test]
async fn an_answer_is_accepted_by_cli_http_and_event() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let at = |arguments: &[&str]| {
        run_in(folder.path(), &[&["--endpoint", &dev.endpoint], arguments].concat())
    };
    let api = Api::new(&dev);
    let detail =
        json!({ "agent": "assistant", "input": { "message": "simulate 320 mg of theophylline" } });
    let id = at(&["trigger", "--detail", &detail.to_string()]).stdout.trim().to_owned();
    let load = api.question(&id, 0).await;
    assert_eq!(load["tool"], "load_simulation", "{load}");
    let answered = at(&["answer", &id, "--approve"]);
    assert_eq!(answered.exit, 0, "{answered:#?}");
    let run = api.question(&id, load["question_id"].as_u64().unwrap()).await;
    assert_eq!(run["tool"], "run_simulation", "{run}");
    let body = json!({ "question_id": run["question_id"], "decision": "approve" });
    let url = format!("{}/api/sessions/{id}/answer", dev.endpoint);
    let answered = api.http.post(url).body(body.to_string()).send().await.unwrap();
    assert_eq!(answered.status(), 202);
    let told = api.question(&id, run["question_id"].as_u64().unwrap()).await;
    assert!(told["prompt"].as_str().unwrap().contains("Ran theophylline-oral"), "{told}");
    let question = told["question_id"].as_u64().unwrap();
    let words =
        json!({ "question_id": question, "decision": "say", "text": "what is the half-life?" });
    api.send_token(&id, &words).await;
    let told = api.question(&id, question).await;
    assert!(told["prompt"].as_str().unwrap().contains("half-life 8.66"), "{told}");
    let detail = json!({ "session_id": id, "question_id": told["question_id"], "decision": "say", "text": "bye" });
    let entry = json!({ "Source": "manual-trigger", "DetailType": "answer-agent", "Detail": detail.to_string() });
    let (status, put) = api.aws("AWSEvents.PutEvents", json!({ "Entries": [entry] })).await;
    assert_eq!((status, &put["FailedEntryCount"]), (200, &json!(0)), "{put}");
    let tail = at(&["tail", &id]);
    assert_eq!(tail.exit, 0, "{tail:#?}");
    let shown = api.session(&id).await;
    assert_eq!(shown["session"]["result"]["ended"], "asked", "{shown:#}");
    let intents = shown["steps"].as_array().unwrap().iter().filter(|step| step["kind"] == "intent");
    assert_eq!(intents.count(), 2, "nothing critical happened but what was approved");
    assert_eq!(at(&["verify", &id]).exit, 0);
    assert_eq!(dev.stop("-TERM"), 0);
}

/// Begins a thread whose simulation is loaded; returns it with the question that follows.
async fn loaded(folder: &Path, dev: &Dev) -> (String, Value) {
    // The approval was in the pipe before its question: it approves nothing.
    let first = chat(folder, dev, &[], &[ASKED, "y"]);
    assert_eq!(first.exit, 0, "{first:#?}");
    assert!(first.stderr.contains("an approval must name the question"), "{}", first.stderr);
    let thread =
        first.stderr.lines().find_map(|line| line.strip_prefix("thread ")).unwrap().to_owned();
    assert!(first.stderr.contains(&format!("daybook chat --thread {thread}")), "{}", first.stderr);
    let api = Api::new(dev);
    let load = api.question(&thread, 3).await;
    assert_eq!(load["tool"], "load_simulation", "{load}");
    let approval = format!("y {}", &load["digest"].as_str().unwrap()[..12]);
    let named = chat(folder, dev, &["--thread", &thread], &[&approval]);
    assert_eq!(named.exit, 0, "{named:#?}");
    let open = api.question(&thread, load["question_id"].as_u64().unwrap()).await;
    (thread, open)
}

/// Approves the calls that are asked about after a question, each by its digest.
async fn approve_calls_after(mut asked: Value, folder: &Path, dev: &Dev, thread: &str) {
    let api = Api::new(dev);
    loop {
        asked = api.question(thread, asked["question_id"].as_u64().unwrap()).await;
        if asked["tool"].is_null() {
            return;
        }
        let digest = &asked["digest"].as_str().unwrap()[..12];
        let approve = ["--endpoint", &dev.endpoint, "answer", thread, "--approve", "--digest"];
        let wrong = run_in(folder, &[&approve[..], &["000000000000"]].concat());
        assert_eq!(wrong.exit, 2, "{wrong:#?}");
        let answered = run_in(folder, &[&approve[..], &[digest]].concat());
        assert_eq!(answered.exit, 0, "{answered:#?}");
    }
}

#[tokio::test]
async fn a_conversation_survives_a_killed_stack() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let dev = Dev::start(folder.path(), &data);
    let (thread, open) = loaded(folder.path(), &dev).await;
    let first = chat(folder.path(), &dev, &["--thread", &thread], &[]);
    dev.kill();

    let dev = Dev::start(folder.path(), &data);
    let api = Api::new(&dev);
    let again = api.question(&thread, 3).await;
    assert_eq!(again, open, "the question stands as it was asked");
    // Word for word the same, whoever shows it.
    let prompt = open["prompt"].as_str().unwrap();
    let expected = format!(
        "Tool: set_parameter_value\nSimulation ID: {}\nParameter Path: Dosing|Dose\n\
         New Value: 250 mg\nValue Now: 320 mg\nApprove? (yes/no)",
        open["arguments"]["simulation_id"].as_str().unwrap()
    );
    assert_eq!(prompt, expected);
    let digest = &open["digest"].as_str().unwrap()[..12];
    let last = first.stdout.split(prompt).last().unwrap();
    for (name, value) in open["arguments"].as_object().unwrap() {
        assert!(last.contains(&format!("  \"{name}\": {value}\n")), "{name}: {last}");
    }
    assert!(last.contains("  server pk-sim\n") && last.contains(digest), "{last}");
    let shown = Api::new(&dev).session(&thread).await;
    let asked = shown["steps"].as_array().unwrap().last().unwrap()["outcome"]["question"].clone();
    assert_eq!(asked["prompt"], prompt);

    let edits = [r#"{"value": 5000000}"#, r#"{"value": "much"}"#, r#"{"value": 200}"#];
    let edits = edits.map(|edit| format!("e {digest} {edit}"));
    let second = chat(
        folder.path(),
        &dev,
        &["--thread", &thread[..8]],
        &edits.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    assert_eq!(second.exit, 0, "{second:#?}");
    assert!(
        second.stdout.starts_with(first.stdout.lines().next().unwrap()),
        "the history comes first"
    );
    assert!(second.stdout.contains(&format!("> {ASKED}\n")), "{}", second.stdout);
    assert!(second.stderr.contains("do not match its schema"), "{}", second.stderr);
    assert!(!second.stdout.contains("> edit"), "what was typed here is not said again");
    approve_calls_after(open, folder.path(), &dev, &thread).await;
    let last = chat(folder.path(), &dev, &["--thread", &thread], &["what is the Cmax?", "bye"]);
    assert_eq!(last.exit, 0, "{last:#?}");
    let shown = Api::new(&dev).session(&thread).await;
    let steps = shown["session"]["result"]["intermediate_steps"].as_array().unwrap();
    let calls = |tool: &str| steps.iter().filter(|step| step["tool"] == tool).count();
    assert_eq!(calls("load_simulation"), 1, "{steps:#?}");
    let doses = steps.iter().filter(|step| step["arguments"]["parameter_path"] == "Dosing|Dose");
    let doses: Vec<_> = doses.map(|step| step["arguments"]["value"].clone()).collect();
    assert_eq!(doses, [200], "out of range is refused before anything is called");
    let late = chat(folder.path(), &dev, &["--thread", &thread], &[]);
    assert_eq!(late.exit, 0, "an ended thread is shown: {late:#?}");
    let none =
        chat(folder.path(), &dev, &["--thread", "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f"], &[]);
    assert_eq!(none.exit, 2, "{none:#?}");
    assert_eq!(dev.stop("-TERM"), 0);
}

/// A command at its own terminal, and the terminal's output.
pub struct Terminal {
    child: std::process::Child,
    stdin: std::process::ChildStdin,
    seen: Arc<Mutex<String>>,
}

impl Terminal {
    pub fn run(folder: &Path, line: &str) -> Self {
        let mut command = Command::new("script");
        command.args(["-q", "-e", "-c", line, "/dev/null"]).current_dir(folder).env_clear();
        for (name, value) in
            [("PATH", "/usr/bin:/bin"), ("TERM", "xterm"), ("NO_COLOR", "1"), ("SHELL", "/bin/sh")]
        {
            command.env(name, value);
        }
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let (stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let seen = Arc::new(Mutex::new(String::new()));
        let seeing = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = stdout.read(&mut bytes) {
                seeing.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        });
        Self { child, stdin, seen }
    }

    /// Waits for a text and consumes the output up to it.
    pub fn until(&self, text: &str) {
        for _ in 0..DEADLINE.as_millis() / 20 {
            let mut seen = self.seen.lock().unwrap();
            if let Some(at) = seen.find(text) {
                seen.drain(..at + text.len());
                return;
            }
            drop(seen);
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("`{text}` does not come: {}", self.seen.lock().unwrap());
    }

    fn types(&mut self, keys: &str) {
        self.stdin.write_all(keys.as_bytes()).unwrap();
        self.stdin.flush().unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_key_or_a_word_decides_a_call_at_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let line = format!("{} --endpoint {} chat", env!("CARGO_BIN_EXE_daybook"), dev.endpoint);
    let mut terminal = Terminal::run(folder.path(), &line);
    terminal.until("> ");
    terminal.types("simulate 250 mg of theophylline\n");
    terminal.until("Tool: load_simulation");
    terminal.until("or words");
    terminal.types("y");
    terminal.until("New Value: 250 mg");
    terminal.until("or words");
    terminal.types("e");
    terminal.until("changed arguments");
    terminal.types("{\"value\": 200}\n");
    terminal.until("Tool: run_simulation");
    terminal.until("or words");
    terminal.types("yes\n");
    terminal.until("Ran theophylline-oral");
    terminal.until("> ");
    terminal.types("run it again\n");
    terminal.until("or words");
    terminal.types("n");
    terminal.until("> ");
    terminal.types("bye\n");
    assert!(terminal.child.wait().unwrap().success());
    assert_eq!(dev.stop("-TERM"), 0);
}

/// Prompts and keys of one session: invalid input is reported and prompted again, and edits use the
/// person's editor.
#[test]
fn a_terminal_answers_with_keys_words_and_an_editor() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let detail = r#"{"agent":"assistant","input":{"message":"simulate 250 mg of theophylline"}}"#;
    let triggered = run_in(
        folder.path(),
        &["--endpoint", &dev.endpoint, "trigger", "--detail", detail, "--wait"],
    );
    assert_eq!(triggered.exit, 2, "{triggered:#?}");
    let id = triggered.stderr.split("daybook answer ").nth(1).unwrap();
    let id = id.split_whitespace().next().unwrap();
    let piped = run_in(folder.path(), &["--endpoint", &dev.endpoint, "answer", id]);
    assert_eq!(piped.exit, 64, "{piped:#?}");
    assert!(piped.stderr.contains("hint: pass --approve"), "{}", piped.stderr);
    let daybook = format!("{} --endpoint {}", env!("CARGO_BIN_EXE_daybook"), dev.endpoint);
    let answer = format!("{daybook} answer {id}");

    let mut terminal = Terminal::run(folder.path(), &answer);
    terminal.until("Tool: load_simulation");
    terminal.until("y approve, n reject, e edit, w words, q leave: ");
    terminal.types("q");
    terminal.until("the question stays open");
    assert_eq!(terminal.child.wait().unwrap().code(), Some(2));

    let mut terminal = Terminal::run(folder.path(), &answer);
    terminal.types("y\ny\n");
    terminal.until("discarded what was typed before the question was shown");
    terminal.until("q leave: ");
    terminal.types("y");
    terminal.until("answered session");
    assert!(terminal.child.wait().unwrap().success());

    let asked = |text: &str| {
        let mut waited = Duration::ZERO;
        while !run_in(folder.path(), &["--endpoint", &dev.endpoint, "show", id])
            .stdout
            .contains(text)
        {
            assert!(waited < DEADLINE, "`{text}` is not asked");
            std::thread::sleep(Duration::from_millis(50));
            waited += Duration::from_millis(50);
        }
    };
    asked("New Value: 250 mg");
    // One that breaks the schema, then one that fits.
    let editor = r#"EDITOR="sed -i -e s/250/99999999/""#;
    let mut terminal = Terminal::run(folder.path(), &format!("{editor} {answer}"));
    terminal.until("q leave: ");
    terminal.types("e");
    terminal.until("do not match its schema");
    terminal.until("q leave: ");
    terminal.types("e {\"value\": 80}\n");
    terminal.until("answered session");
    assert!(terminal.child.wait().unwrap().success());

    asked("Tool: run_simulation");
    let mut terminal = Terminal::run(folder.path(), &answer);
    terminal.until("q leave: ");
    terminal.types("n");
    terminal.until("reason (Enter for none): ");
    terminal.types("too early\n");
    terminal.until("answered session");
    assert!(terminal.child.wait().unwrap().success());
    let shown = run_in(folder.path(), &["--endpoint", &dev.endpoint, "show", id, "--steps"]);
    assert!(shown.stdout.contains("reject, too early"), "{}", shown.stdout);
    assert_eq!(dev.stop("-TERM"), 0);
}

/// In a terminal a question is asked where it comes up.
#[test]
fn a_trigger_that_waits_asks_in_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let detail = r#"{"agent":"assistant","input":{"message":"load theophylline"}}"#;
    let line = format!(
        "{} --endpoint {} trigger --detail '{detail}' --wait",
        env!("CARGO_BIN_EXE_daybook"),
        dev.endpoint
    );
    let mut terminal = Terminal::run(folder.path(), &line);
    // Typed before the question is on the screen: it approves nothing.
    terminal.types("yes\nyes\ny\n");
    terminal.until("Tool: load_simulation");
    terminal.until("\"model_path\": \"theophylline-oral\"");
    terminal.until("discarded what was typed before the question was shown");
    terminal.until("y approve, n reject, e edit, or words: ");
    terminal.types("yes\n");
    terminal.until("Loaded theophylline-oral");
    terminal.until("your answer: ");
    terminal.types("bye\n");
    terminal.until("✓ SUCCEEDED");
    assert!(terminal.child.wait().unwrap().success());
    let ran = run_in(
        folder.path(),
        &["--endpoint", &dev.endpoint, "trigger", "--detail", detail, "--wait"],
    );
    assert_eq!(ran.exit, 2, "without a terminal it cannot ask: {ran:#?}");
    let (_, options) = ran.stderr.split_once("daybook answer ").unwrap();
    assert!(options.contains("--approve --digest "), "{}", ran.stderr);
    assert!(options.contains("| --reject | --edit FILE --digest "), "{}", ran.stderr);
    assert_eq!(dev.stop("-TERM"), 0);
}

#[tokio::test]
async fn what_is_typed_ahead_in_a_chat_approves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let line = format!("{} --endpoint {} chat", env!("CARGO_BIN_EXE_daybook"), dev.endpoint);
    let mut terminal = Terminal::run(folder.path(), &line);
    terminal.until("thread ");
    terminal.until("> ");
    terminal.types("simulate 250 mg of theophylline\ny\nyes\napprove\n");
    terminal.until("Tool: load_simulation");
    terminal.until("\"simulation_id\": ");
    terminal.until("discarded what was typed before the question was shown");
    terminal.until("or words");
    std::thread::sleep(Duration::from_secs(1));
    let sessions = run_in(folder.path(), &["--endpoint", &dev.endpoint, "--json", "sessions"]);
    let open = sessions.json()[0]["open_question"].clone();
    assert_eq!(open["tool"], "load_simulation", "nothing was approved: {open}");
    terminal.types("y");
    terminal.until("New Value: 250 mg");
    terminal.until("or words");
    terminal.types("n");
    terminal.until("> ");
    terminal.types("bye\n");
    assert!(terminal.child.wait().unwrap().success());
    assert_eq!(dev.stop("-TERM"), 0);
}
