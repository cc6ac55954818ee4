//! Whole stacks: sessions from the event to the verdict, restarts, and refused starts.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use agent::model::Models;
use agent::settings::Defaults;
use agent::tool::{Servers, Timeouts};
use graph::agent::Agent;
use graph::definition::{Context, Graph, Node, Route};
use graph::effect::{Effect, Reply};
use graph::profile::Limits;
use journal::sqlite::{Durability, SqliteStore};
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use stack::executions::ExecutionStore as _;
use stack::functions::File;
use stack::stack::{Config, Isolation, Stack, StartError};
use stack::store::Database;
use tempfile::TempDir;

use crate::world::TIMEOUT;

/// The settings of a stack in a folder, whose clock runs `time_scale` times as fast as the machine's.
pub fn config(data: &Path, time_scale: u32) -> Config {
    Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        data: data.to_owned(),
        accepts_loss: false,
        durability: Durability::Relaxed,
        encrypt: false,
        time_scale,
        clock: None,
        keys: None,
        witnesses: Vec::new(),
        token: None,
        token_name: None,
        ttl_days: 90,
        workflow: None,
        functions: File::default(),
        isolation: Isolation::None,
        servers: Servers::default(),
        timeouts: Timeouts { connect: TIMEOUT, init: TIMEOUT },
        models: Models::default(),
        defaults: Defaults::default(),
        admission: Limits::default(),
        load: Default::default(),
        notify: None,
        agents: packs::all().into(),
    }
}

/// A client of a stack's endpoint.
pub struct Client {
    http: reqwest::Client,
    url: String,
}

/// A response's status and body.
pub type Response = (u16, Value);

impl Client {
    pub fn new(stack: &Stack) -> Self {
        Self::at(stack.url())
    }

    /// A client that sends these headers with each request.
    pub fn sending(stack: &Stack, headers: &[(&'static str, &str)]) -> Self {
        let headers = headers.iter().map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        });
        let http = reqwest::Client::builder().no_proxy().timeout(TIMEOUT);
        let http = http.default_headers(headers.collect()).build().unwrap();
        Self { http, url: stack.url() }
    }

    fn at(url: String) -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(TIMEOUT).build().unwrap();
        Self { http, url }
    }

    /// An action of the AWS JSON protocol.
    pub async fn aws(&self, target: &str, body: &Value) -> Response {
        let request = self.http.post(&self.url).header("x-amz-target", target);
        let request = request.header("content-type", "application/x-amz-json-1.0");
        read(request.body(body.to_string())).await
    }

    pub async fn get(&self, path: &str) -> Response {
        read(self.http.get(format!("{}{path}", self.url))).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Response {
        read(self.http.post(format!("{}{path}", self.url)).body(body.to_string())).await
    }

    pub fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    /// Triggers a session; returns its id.
    pub async fn trigger(&self, detail: &Value) -> String {
        let entry = json!({
            "Source": "manual-trigger", "DetailType": "execute-agent", "Detail": detail.to_string(),
        });
        let (status, answer) =
            self.aws("AWSEvents.PutEvents", &json!({ "Entries": [entry] })).await;
        assert_eq!((status, &answer["FailedEntryCount"]), (200, &json!(0)), "{answer}");
        answer["Entries"][0]["EventId"].as_str().unwrap().to_owned()
    }

    /// The session's execution, once it has ended.
    pub async fn ended(&self, session: &str) -> Value {
        let arn = stack::names::execution_arn("daybook", session);
        let waiting = async {
            loop {
                let body = json!({ "executionArn": arn });
                let (_, execution) = self.aws("AWSStepFunctions.DescribeExecution", &body).await;
                if execution["status"] != "RUNNING" {
                    return execution;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        match tokio::time::timeout(TIMEOUT, waiting).await {
            Ok(execution) => execution,
            Err(_) => panic!("{:#}", self.get(&format!("/api/sessions/{session}")).await.1),
        }
    }
}

pub async fn read(request: reqwest::RequestBuilder) -> Response {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

pub fn statuses(shown: &Value) -> Vec<&str> {
    let events = shown["events"].as_array().unwrap();
    events.iter().map(|event| event["status"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_data_folder_and_its_files_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = TempDir::new().unwrap();
    let data = place.path().join("data");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for _ in 0..2 {
        let stack = Stack::start(config(&data, 1)).await.unwrap();
        let client = Client::new(&stack);
        client.ended(&client.trigger(&json!({})).await).await;
        assert_eq!(mode(&data), 0o700);
        let entries: Vec<_> = std::fs::read_dir(&data).unwrap().flatten().collect();
        assert!(entries.len() >= 4, "{entries:?}");
        for entry in &entries {
            assert_eq!(mode(&entry.path()), 0o600, "{entry:?}");
        }
        stack.shutdown().await;
        // As an earlier version left them.
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        open(&data, 0o755);
        std::fs::read_dir(&data).unwrap().flatten().for_each(|entry| open(&entry.path(), 0o644));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkup_goes_from_the_event_to_the_verdict() {
    let folder = TempDir::new().unwrap();
    let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
    let client = Client::new(&stack);
    let session = client.trigger(&json!({})).await;
    let execution = client.ended(&session).await;
    assert_eq!(execution["status"], "SUCCEEDED", "{execution:#}");
    let (status, shown) = client.get(&format!("/api/sessions/{session}")).await;
    assert_eq!(status, 200);
    assert_eq!(shown["session"]["status"], "SUCCEEDED");
    let statuses = statuses(&shown);
    assert_eq!(statuses[..2], ["SESSION_INITIATED", "AGENT_INVOCATION_STARTED"]);
    assert_eq!(statuses.last(), Some(&"SESSION_SUCCEEDED"));
    for expected in [
        "AGENT_INVOCATION_SUCCEEDED",
        "AGENT_ENTRYPOINT_STARTED",
        "AGENT_BACKGROUND_TASK_STARTED",
        "AGENT_BACKGROUND_TASK_COMPLETED",
    ] {
        assert!(statuses.contains(&expected), "{expected} in {statuses:?}");
    }
    let (_, list) = client.get("/api/sessions").await;
    assert_eq!(list["sessions"][0]["session_id"], *session);
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_shown_from_its_trigger_on() {
    let folder = TempDir::new().unwrap();
    let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
    let client = Client::new(&stack);
    for _ in 0..20 {
        let session = client.trigger(&json!({ "agent": "checkup" })).await;
        let (status, shown) = client.get(&format!("/api/sessions/{session}")).await;
        assert_eq!(status, 200, "{shown}");
        let session = &shown["session"];
        let status = session["status"].as_str().unwrap();
        assert!(["INITIATED", "RUNNING", "SUCCEEDED"].contains(&status), "{session}");
        assert!(session["initiated_at"].is_string(), "{session}");
    }
    let absent = format!("/api/sessions/{}", journal::id::SessionId::fresh());
    assert_eq!(client.get(&absent).await.0, 404);
    stack.shutdown().await;
}

/// How far an elapsed time may be from a stopwatch's.
const STOPWATCH_MS: u64 = 20;

#[tokio::test(flavor = "multi_thread")]
async fn elapsed_time_agrees_with_a_stopwatch() {
    let folder = TempDir::new().unwrap();
    let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
    let client = Client::new(&stack);
    let hour_ago = stack.clock().now().seconds() - 3_600;
    let mut longest_before = 0;
    for time in [Value::Null, json!(hour_ago)] {
        let entry = json!({
            "Source": "manual-trigger", "DetailType": "execute-agent", "Detail": "{}", "Time": time,
        });
        // Most of a second has passed since its beginning.
        let now = stack.clock().now().millis();
        tokio::time::sleep(Duration::from_millis(u64::try_from(1_900 - now % 1_000).unwrap()))
            .await;
        let begun = stack.clock().even();
        let before = begun.now();
        let (_, put) = client.aws("AWSEvents.PutEvents", &json!({ "Entries": [entry] })).await;
        let session = put["Entries"][0]["EventId"].as_str().unwrap();
        client.ended(session).await;
        let stopwatch = begun.now().since(before).as_millis();
        let most = u64::try_from(stopwatch).unwrap() + STOPWATCH_MS;
        let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
        let elapsed_ms = shown["session"]["elapsed_ms"].as_u64().unwrap();
        assert!(elapsed_ms <= most, "{elapsed_ms} of at most {most}");
        let (_, page) = client.get(&format!("/api/sessions/{session}/timeline")).await;
        let span_ms = page["waterfall"]["span_ms"].as_u64().unwrap();
        assert!(span_ms.abs_diff(elapsed_ms) <= STOPWATCH_MS, "{span_ms} and {elapsed_ms}");
        let (_, health) = client.get("/api/health").await;
        let longest = health["health"]["agents"][0]["p95_ms"].as_u64().unwrap();
        assert!(longest <= most.max(longest_before), "{longest} of at most {most}");
        longest_before = longest;
        if time.is_number() {
            let initiated_at = shown["session"]["initiated_at"].as_str().unwrap();
            let initiated_at = journal::clock::Stamp::parse(initiated_at).unwrap();
            assert_eq!(initiated_at.seconds(), hour_ago, "the event's time is shown as it is");
        }
    }
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_triggers_end_with_a_verdict_that_names_the_field() {
    let folder = TempDir::new().unwrap();
    let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
    let client = Client::new(&stack);
    for (detail, expected) in [
        (json!({ "agnet": "x" }), "detail.agnet"),
        (json!({ "agent": "nobody" }), "detail.agent: no agent is named `nobody`"),
    ] {
        let session = client.trigger(&detail).await;
        let execution = client.ended(&session).await;
        assert_eq!(execution["status"], "FAILED", "{execution:#}");
        let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
        assert_eq!(shown["session"]["status"], "FAILED");
        let error = shown["session"]["error"].as_str().unwrap_or_default();
        assert!(error.contains(expected), "{shown:#}");
    }
    stack.shutdown().await;
}

/// Names the folder of the stack that [`a_stack_that_only_a_kill_ends`] runs.
const KILLED: &str = "DAYBOOK_TEST_KILLED";

/// The file to which that stack writes its address.
const ADDRESS_FILE: &str = "address";

/// Not a test by itself: the process that another test kills.
#[tokio::test(flavor = "multi_thread")]
async fn a_stack_that_only_a_kill_ends() {
    #[expect(clippy::disallowed_methods, reason = "how one test process tells another its folder")]
    let Some(data) = std::env::var_os(KILLED).map(std::path::PathBuf::from) else { return };
    let stack = Stack::start(config(&data, 1)).await.unwrap();
    std::fs::write(data.join("address.new"), stack.url()).unwrap();
    std::fs::rename(data.join("address.new"), data.join(ADDRESS_FILE)).unwrap();
    tokio::time::sleep(TIMEOUT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_stack_continues_its_sessions() {
    for millis_after in [0, 40, 120] {
        let folder = TempDir::new().unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "stack::a_stack_that_only_a_kill_ends"])
            .env(KILLED, folder.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let client = Client::at(written(&folder.path().join(ADDRESS_FILE)).await);
        let mut sessions = Vec::new();
        for _ in 0..5 {
            sessions.push(client.trigger(&json!({})).await);
        }
        tokio::time::sleep(Duration::from_millis(millis_after)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        let stack = Stack::start(config(folder.path(), 20)).await.unwrap();
        let client = Client::new(&stack);
        for session in &sessions {
            let execution = client.ended(session).await;
            assert_eq!(execution["status"], "SUCCEEDED", "{execution:#}");
        }
        stack.shutdown().await;
    }
}

/// The content of a file, once it exists.
async fn written(path: &Path) -> String {
    let reading = async {
        loop {
            if let Ok(text) = std::fs::read_to_string(path) {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, reading).await.expect("the stack starts")
}

/// The journal keeps everything while the execution forgets it, event by event: repeating the work
/// changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn every_execution_prefix_over_a_whole_journal_has_one_verdict() {
    let folder = TempDir::new().unwrap();
    let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
    let client = Client::new(&stack);
    let session = client.trigger(&json!({})).await;
    let whole = client.ended(&session).await;
    let path = format!("/api/sessions/{session}");
    let (_, shown) = client.get(&path).await;
    stack.shutdown().await;
    let count = cut(folder.path(), i64::MAX).await;
    for kept in 0..count {
        cut(folder.path(), kept).await;
        let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
        let client = Client::new(&stack);
        let again = client.ended(&session).await;
        assert_eq!(again["status"], "SUCCEEDED", "after {kept} events: {again:#}");
        assert_eq!(again["output"], whole["output"], "after {kept} events");
        let (_, shown_again) = client.get(&path).await;
        assert_eq!(shown_again["session"], shown["session"], "after {kept} events");
        assert_eq!(shown_again["steps"], shown["steps"], "after {kept} events");
        stack.shutdown().await;
    }
}

/// Forgets all but the first events of the only execution. Returns how many it had.
async fn cut(data: &Path, kept: i64) -> i64 {
    let store =
        SqliteStore::open(&data.join(stack::stack::JOURNAL_FILE), Durability::Relaxed).unwrap();
    let work = move |connection: &rusqlite::Connection| {
        let count = "SELECT COUNT(*) FROM execution_event";
        let count: i64 = connection.query_row(count, [], |row| row.get(0))?;
        if kept < count {
            connection.execute("DELETE FROM execution_event WHERE id > ?", [kept])?;
            connection.execute("UPDATE execution SET status = 'RUNNING', stopped_ms = NULL", [])?;
        }
        Ok(count)
    };
    store.transact(work).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_folder_has_one_stack() {
    let folder = TempDir::new().unwrap();
    let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
    let second = Stack::start(config(folder.path(), 1)).await;
    assert!(matches!(second, Err(StartError::InUse(_))));
    let url = stack.url();
    stack.shutdown().await;
    assert!(reqwest::get(url).await.is_err());
    let third = Stack::start(config(folder.path(), 1)).await.unwrap();
    third.shutdown().await;
}

#[tokio::test]
async fn beyond_loopback_a_stack_does_not_start_without_a_token() {
    let folder = TempDir::new().unwrap();
    let listen = SocketAddr::from(([0, 0, 0, 0], 0));
    let open = Config { listen, ..config(folder.path(), 1) };
    let refusal = Stack::start(open).await.unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "listening on 0.0.0.0, which is not loopback, needs DAYBOOK_TOKEN to be set"
    );
    assert!(matches!(refusal, StartError::Token(_)));
}

/// A leaf of the former log has the mark of its place, which may be free in the new one.
#[test]
fn a_new_log_marks_leaves_with_another_secret() {
    let folder = TempDir::new().unwrap();
    let keys = stack::keys::Keys::of(&folder.path().join("keys"), folder.path());
    let secret = || keys.leaf_key().unwrap().unwrap();
    keys.begin_log().unwrap();
    let former = secret().mark(3, b"a leaf");
    keys.begin_log().unwrap();
    assert!(!secret().has_marked(3, b"a leaf", &former));
    let mark = secret().mark(3, b"a leaf");
    keys.rotate().unwrap();
    assert!(secret().has_marked(3, b"a leaf", &mark), "the same log goes on");
}

/// Each cell of an execution and of its history that somebody may have damaged.
const DAMAGED_CELLS: [&str; 11] = [
    "UPDATE execution SET status = x'ff' WHERE name = ?1",
    "UPDATE execution SET output = CAST(x'ff7b7d' AS TEXT) WHERE name = ?1",
    "UPDATE execution SET started_ms = 'soon' WHERE name = ?1",
    "UPDATE execution SET machine = 99 WHERE name = ?1",
    "UPDATE execution SET input = 7.5, token_seed = x'00ff' WHERE name = ?1",
    "UPDATE execution SET arn = CAST(arn AS BLOB) WHERE name = ?1",
    "UPDATE execution SET name = x'ff' WHERE name = ?1",
    "UPDATE execution_event SET body = x'ff' WHERE execution = (SELECT id FROM execution WHERE name = ?1) AND id = 1",
    "UPDATE execution_event SET body = CAST(x'22ff22' AS TEXT) WHERE execution = (SELECT id FROM execution WHERE name = ?1)",
    "UPDATE execution_event SET body = '{' WHERE execution = (SELECT id FROM execution WHERE name = ?1)",
    "UPDATE execution_event SET id = 'x' WHERE execution = (SELECT id FROM execution WHERE name = ?1) AND id = 2",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_execution_is_named_and_hides_no_session() {
    let folder = TempDir::new().unwrap();
    let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
    let client = Client::new(&stack);
    let (one, other) = (client.trigger(&json!({})).await, client.trigger(&json!({})).await);
    client.ended(&one).await;
    client.ended(&other).await;
    stack.shutdown().await;
    let original = folder.path().join(stack::stack::JOURNAL_FILE);
    for (n, sql) in DAMAGED_CELLS.into_iter().enumerate() {
        let path = folder.path().join(format!("copy-{n}.db"));
        let connection = rusqlite::Connection::open(&original).unwrap();
        connection.execute("VACUUM INTO ?1", [path.to_str().unwrap()]).unwrap();
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        assert!(connection.execute(sql, [&one]).unwrap() > 0, "{sql}");
        drop(connection);
        let store = Database::open_read_only(&path).unwrap();
        let trust = journal::log::Trust::default();
        let verifier = stack::verifier::Verifier::new(store.clone(), None, trust, None).await;
        let mut verifier = verifier.unwrap();
        let named = verifier.read_all().await.unwrap();
        assert_eq!((named.sessions.len(), named.executions.len()), (2, 1), "{sql}");
        assert!(named.executions[0].contains(&one), "{sql}: {:?}", named.executions);
        for id in [&one, &other] {
            let now = journal::clock::Clock::system().now();
            let found = verifier.report(&id.parse().unwrap(), &[], now).await.unwrap().unwrap();
            let is_fine = found.report.outcome() == journal::verify::Outcome::Sound;
            assert!(is_fine || id == &one, "{sql}: {:?}", found.report);
        }
        let listed = store.newest_first(None, i64::MAX, 10).await.unwrap();
        assert!(listed.iter().any(|execution| execution.name == other), "{sql}");
        assert!(store.counts().await.is_ok(), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_execution_breaks_no_other_session() {
    let folder = TempDir::new().unwrap();
    let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
    let client = Client::new(&stack);
    let session = client.trigger(&json!({})).await;
    client.ended(&session).await;
    stack.shutdown().await;
    let path = folder.path().join(stack::stack::JOURNAL_FILE);
    let journal = rusqlite::Connection::open(&path).unwrap();
    let bad = "INSERT INTO execution (arn, name, machine, status, input, started_ms, stopped_ms, token_seed) \
               SELECT arn || 'x', x'ff', machine, 'RUNNING', input, 'soon', x'ff', token_seed FROM execution";
    assert_eq!(journal.execute(bad, []).unwrap(), 1);
    drop(journal);
    let id = session.parse().unwrap();
    let store = Database::open_read_only(&path).unwrap();
    assert_eq!(
        stack::executions::heads(&store, &id, std::collections::BTreeSet::new())
            .await
            .unwrap()
            .found
            .len(),
        1
    );
    drop(store);
    let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
    let client = Client::new(&stack);
    let next = client.trigger(&json!({})).await;
    assert_eq!(client.ended(&next).await["status"], "SUCCEEDED");
    stack.shutdown().await;
}

static PANICKING: Graph<Value> = Graph::new(
    "panicking",
    "Panics.",
    &[Node { name: "do", to: &["do"], ask: panicking, fold: |_, _| Route::To("do") }],
    |_, _| Ok(Value::Null),
    |_, _| Reply::says(""),
);

fn panicking(_: &Value, _: &Context<'_>) -> Effect {
    panic!("no request")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panicking_agent_fails_its_session_and_is_shown() {
    let folder = TempDir::new().unwrap();
    let agents = [Agent::of(&PANICKING)].into();
    let stack = Stack::start(Config { agents, ..config(folder.path(), 1) }).await.unwrap();
    let client = Client::new(&stack);
    let session = client.trigger(&json!({"agent": "panicking"})).await;
    assert_eq!(client.ended(&session).await["status"], "FAILED");
    let (status, shown) = client.get(&format!("/api/sessions/{session}")).await;
    assert_eq!((status, &shown["session"]["error_category"]), (200, &json!("graph")), "{shown}");
    let error = shown["session"]["error"].as_str().unwrap();
    assert!(error.ends_with("node `do` panicked: no request"), "{error}");
    assert!(!statuses(&shown).contains(&"AGENT_LOST"));
    let (status, _) = client.get(&format!("/api/sessions/{session}/timeline")).await;
    assert_eq!(status, 200);
    stack.shutdown().await;
}
