//! `kill -9` of the stack and of an isolated agent: no accepted session is lost, no recorded result is
//! requested again, and no record changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use journal::clock::Clock;
use journal::event::EventStatus;
use journal::id::SessionId;
use journal::key;
use journal::read;
use journal::sqlite::SqliteStore;
use journal::step::{EffectKind, Step, StepBody};
use journal::store::Error;
use serde_json::{Value, json};
use stack::stack::JOURNAL_FILE;

use crate::harness::{DEADLINE, Dev, daybook, incident, run_in};

/// Speed of the stacks' clock: a lost agent is detected after three seconds.
const TIME_SCALE: u32 = 20;

/// Time to detect a lost agent, on the stacks' clock: about a minute, plus delays of a loaded machine.
const LOST_WITHIN: Duration = Duration::from_secs(180);

/// Number of kills.
const KILLS: u64 = 8;

/// Longest life of a stack before a kill. Lost agents are detected within it, so some sessions are resumed
/// and killed again.
const ALIVE_MS_MAX: u64 = 5_000;

/// Start time of a session's server, in seconds. It is most of a session, so kills hit running sessions.
const SERVER_STARTS_S: f32 = 0.5;

/// Interval between triggers while a stack is alive.
const PUT_EVERY: Duration = Duration::from_millis(300);

/// Seed for the times of the kills.
const SEED: u64 = 0x0dab_0001;

/// The function of the incident that is copied for every session.
pub const FUNCTION: &str = "data-processor";

/// A bundled incident with a slow server that logs its requests.
pub struct Scene {
    pub folder: tempfile::TempDir,
}

impl Scene {
    /// `start_s` is what the server takes to start, in seconds.
    pub fn new(start_s: f32) -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(scene.path("snapshot/functions")).unwrap();
        scene.server_starts_in(start_s);
        scene
    }

    /// Sets what servers take to start from now on, in seconds.
    pub fn server_starts_in(&self, start_s: f32) {
        // What a client asks goes through `tee` into the log before the server reads it.
        let script = r#"sleep "$0"; tee -a "$1" | exec "$2" mcp aws-diagnostics --snapshot "$3""#;
        let server = json!({
            "command": "sh",
            "args": ["-c", script, start_s.to_string(), self.path("asked"),
                env!("CARGO_BIN_EXE_daybook"), self.path("snapshot")],
        });
        let servers = json!({ "mcpServers": { "aws-diagnostics": server } });
        std::fs::write(self.path("servers.json"), servers.to_string()).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// A stack with a fast clock and long MCP timeouts.
    fn dev(&self, arguments: &[&str]) -> Dev {
        self.dev_at(TIME_SCALE, arguments)
    }

    /// The same at a speed of the clock.
    pub fn dev_at(&self, time_scale: u32, arguments: &[&str]) -> Dev {
        let mut command = daybook(self.folder.path());
        command.env("DAYBOOK_MCP_SERVERS", self.path("servers.json"));
        command.env("MCP_CONNECT_TIMEOUT", "600").env("MCP_INIT_TIMEOUT", "600");
        command.env("MAX_INCIDENTS_PER_HOUR", "1000");
        let time_scale = ["--time-scale", &time_scale.to_string()];
        let arguments = [&time_scale[..], arguments].concat();
        Dev::listening_with(&mut command, &self.data(), "127.0.0.1:0", &arguments)
    }

    /// An incident of a function of its own, so that the log tells the sessions apart.
    pub fn incident(&self, name: &str) -> Value {
        let functions = incident("s3-permission-revoked").join("functions");
        copy(&functions.join(FUNCTION), &self.path("snapshot/functions").join(name));
        json!({ "agent": "incident", "input": { "lambda_name": name,
            "error_message": "An error occurred (AccessDenied) when calling the GetObject operation" } })
    }

    /// How often each tool was called for each function.
    fn calls(&self) -> BTreeMap<(String, String), u32> {
        let asked = std::fs::read_to_string(self.path("asked")).unwrap_or_default();
        let mut calls = BTreeMap::new();
        // Ignore a line that the kill cut off: no server read it.
        for line in asked.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if line["method"] == "tools/call" {
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                let params = &line["params"];
                let call = (text(&params["arguments"]["lambda_name"]), text(&params["name"]));
                *calls.entry(call).or_default() += 1;
            }
        }
        calls
    }

    pub fn journal(&self) -> SqliteStore {
        SqliteStore::open_read_only(&self.data().join(JOURNAL_FILE)).unwrap()
    }

    /// Every record. What is written over by design, the lease and the wait, is none.
    async fn records(&self) -> BTreeMap<(String, String), String> {
        let journal = self.journal();
        let read = journal.read(|connection| {
            let fail = |error| Error::Unavailable(Box::new(error));
            let mut statement =
                connection.prepare("SELECT pk, sk, body FROM journal").map_err(fail)?;
            let rows = statement
                .query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))
                .map_err(fail)?;
            rows.collect::<Result<BTreeMap<(String, String), String>, _>>().map_err(fail)
        });
        let mut records = read.await.unwrap();
        records.retain(|(_, sk), _| sk != key::LEASE && sk != key::WAIT);
        records
    }

    pub async fn statuses(&self, session: &SessionId) -> Vec<EventStatus> {
        let events = read::events(&self.journal(), session).await.unwrap();
        events.iter().map(|event| event.status).collect()
    }

    /// Waits until a session has an event.
    pub async fn shows(&self, session: &SessionId, event: EventStatus) {
        let waiting = async {
            while !self.statuses(session).await.contains(&event) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(DEADLINE, waiting).await.is_err() {
            panic!("no {event} in {session}: {:?}", self.statuses(session).await);
        }
    }

    pub async fn claims(&self, session: &SessionId) -> Vec<Step<Value>> {
        let mut steps = read::resolved_steps(&self.journal(), session).await.unwrap();
        steps.retain(|step| matches!(step.body, StepBody::Claim { .. }));
        steps
    }

    /// The tools whose outcome a session has; none has two, nor has any other effect.
    async fn learned(&self, session: &SessionId) -> BTreeSet<String> {
        let steps = read::resolved_steps(&self.journal(), session).await.unwrap();
        let (mut effects, mut tools, mut asked) = (BTreeSet::new(), BTreeSet::new(), Value::Null);
        for step in &steps {
            let StepBody::Outcome { effect, payload, .. } = &step.body else { continue };
            let identity = (effect.node.clone(), effect.digest.as_str().to_owned(), effect.call);
            assert!(effects.insert(identity), "two outcomes: {session} {effect:?}");
            if effect.kind == EffectKind::Chat {
                asked = payload["reply"]["calls"].clone();
            }
            let call = &asked[usize::try_from(effect.call).unwrap()];
            if effect.kind == EffectKind::Tools && call["server"] == "aws-diagnostics" {
                tools.insert(call["tool"].as_str().unwrap().to_owned());
            }
        }
        tools
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            std::fs::copy(path, to.join(name)).unwrap();
        }
    }
}

/// Triggers a session; returns its id if the stack responded.
pub async fn put(endpoint: &str, detail: &Value) -> Option<SessionId> {
    let entry = json!({
        "Source": "manual-trigger", "DetailType": "execute-agent", "Detail": detail.to_string(),
    });
    let http = reqwest::Client::builder().no_proxy().timeout(DEADLINE).build().unwrap();
    let request = http
        .post(endpoint)
        .header("content-type", "application/x-amz-json-1.1")
        .header("x-amz-target", "AWSEvents.PutEvents")
        .body(json!({ "Entries": [entry] }).to_string());
    let answer = request.send().await.ok()?.text().await.ok()?;
    let answer: Value = serde_json::from_str(&answer).ok()?;
    assert_eq!(answer["FailedEntryCount"], 0, "{answer}");
    Some(answer["Entries"][0]["EventId"].as_str().unwrap().parse().unwrap())
}

/// Pseudorandom numbers. Source: Vigna, splitmix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

pub fn verified(scene: &Scene, session: &SessionId) {
    let data = scene.data();
    let ran = run_in(
        scene.folder.path(),
        &["--data", data.to_str().unwrap(), "verify", session.as_str(), "--json"],
    );
    assert_eq!((ran.exit, ran.json()[0]["state"].as_str()), (0, Some("sealed")), "{ran:#?}");
}

/// Asserts that no earlier record is missing or changed.
fn nothing_is_lost<K: Ord + std::fmt::Debug>(
    before: &BTreeMap<K, String>,
    after: &BTreeMap<K, String>,
) {
    for (key, record) in before {
        assert_eq!(Some(record), after.get(key), "{key:?} was lost or changed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_stack_loses_and_repeats_nothing() {
    eprintln!("seed {SEED:#x}");
    let (scene, mut chance) = (Scene::new(SERVER_STARTS_S), Chance(SEED));
    let (mut accepted, mut kept) = (BTreeMap::new(), BTreeMap::new());
    // How often had been called what was known to be learned.
    let mut settled = BTreeMap::new();
    for life in 1..=KILLS {
        let dev = scene.dev(&[]);
        let alive = Duration::from_millis(chance.below(ALIVE_MS_MAX));
        let endpoint = dev.endpoint.clone();
        let (load, kill) = (put_until_killed(&scene, &endpoint, life), async {
            tokio::time::sleep(alive).await;
            let seen = scene.records().await;
            dev.kill();
            seen
        });
        let (answered, seen) = tokio::join!(load, kill);
        accepted.extend(answered);
        let killed = scene.records().await;
        nothing_is_lost(&kept, &seen);
        nothing_is_lost(&seen, &killed);
        kept = killed;
        let calls = scene.calls();
        for (session, function) in &accepted {
            for tool in scene.learned(session).await {
                let call = (String::clone(function), tool);
                settled.entry(call.clone()).or_insert_with(|| calls[&call]);
            }
        }
    }
    let dev = scene.dev(&[]);
    for session in accepted.keys() {
        scene.shows(session, EventStatus::SessionSucceeded).await;
    }
    assert_eq!(dev.stop("-TERM"), 0);
    nothing_is_lost(&kept, &scene.records().await);
    let calls = scene.calls();
    for (call, count) in settled {
        assert_eq!(calls[&call], count, "{call:?} was made after its outcome");
    }
    let mut claims = 0;
    for session in accepted.keys() {
        scene.learned(session).await;
        verified(&scene, session);
        claims += scene.claims(session).await.len();
    }
    eprintln!("{} sessions, {claims} claims", accepted.len());
    assert!(claims > accepted.len(), "no kill met a session at work");
}

/// Triggers sessions while the stack lives; returns the accepted ones with their functions.
async fn put_until_killed(scene: &Scene, endpoint: &str, life: u64) -> Vec<(SessionId, String)> {
    let mut accepted = Vec::new();
    for number in 0.. {
        let function = format!("{FUNCTION}-{life}-{number}");
        match put(endpoint, &scene.incident(&function)).await {
            Some(session) => accepted.push((session, function)),
            None => break,
        }
        tokio::time::sleep(PUT_EVERY).await;
    }
    accepted
}

/// The process of the isolated agent, once there is one.
pub async fn agent_of(dev: &Dev) -> u32 {
    let child = || {
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(id) = entry.file_name().to_string_lossy().parse() else { continue };
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let Some((name, rest)) = stat.rsplit_once(')') else { continue };
            let parent = rest.split_whitespace().nth(1).and_then(|text| text.parse().ok());
            if name.ends_with("(agent") && parent == Some(dev.id()) {
                return Some(id);
            }
        }
        None
    };
    let waiting = async {
        loop {
            match child() {
                Some(id) => return id,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("an agent's process starts")
}

/// Sends a signal; returns whether the process existed.
pub fn signal(name: &str, id: u32) -> bool {
    Command::new("kill")
        .args([name, &id.to_string()])
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .success()
}

/// A session at work in a process of its own, which then gets a signal, and, if it is still there
/// when it is taken for lost, another.
async fn an_isolated_agent_is_replaced_after(first: &str, second: Option<&str>) {
    let agent = Path::new(env!("CARGO_BIN_EXE_daybook")).with_file_name("agent");
    if !agent.exists() {
        eprintln!("skipped: build it with `cargo build -p agent --features container`");
        return;
    }
    let scene = Scene::new(1.5);
    let dev = scene.dev(&["--isolate"]);
    let session = put(&dev.endpoint, &scene.incident(FUNCTION)).await.unwrap();
    // The invocation succeeded: from now on only missing heartbeats reveal the loss.
    scene.shows(&session, EventStatus::AgentInvocationSucceeded).await;
    let lost = agent_of(&dev).await;
    assert!(signal(first, lost), "it had ended");
    let before = scene.records().await;
    let clock = Clock::system();
    let began = clock.now();
    scene.shows(&session, EventStatus::AgentLost).await;
    let silent = clock.now().since(began) * TIME_SCALE;
    assert!(silent < LOST_WITHIN, "{silent:?}");
    if let Some(second) = second {
        signal(second, lost);
    }
    scene.shows(&session, EventStatus::SessionSucceeded).await;
    nothing_is_lost(&before, &scene.records().await);
    let lost_times = scene.statuses(&session).await;
    let lost_times = lost_times.iter().filter(|status| **status == EventStatus::AgentLost).count();
    let claims = scene.claims(&session).await;
    assert_eq!((lost_times, claims.len()), (1, 2), "{claims:#?}");
    let steps = read::resolved_steps(&scene.journal(), &session).await.unwrap();
    let late = steps.iter().filter(|step| step.seq > claims[1].seq);
    assert!(late.clone().all(|step| step.runner == claims[1].runner), "the first one wrote more");
    // The first agent must write nothing more.
    let records = scene.records().await;
    signal("-CONT", lost);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(scene.records().await, records);
    scene.learned(&session).await;
    assert_eq!(dev.stop("-TERM"), 0);
    verified(&scene, &session);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_isolated_agent_is_lost_and_invoked_again() {
    an_isolated_agent_is_replaced_after("-KILL", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_isolated_agent_is_lost_and_invoked_again() {
    an_isolated_agent_is_replaced_after("-STOP", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_isolated_agent_that_wakes_writes_nothing() {
    an_isolated_agent_is_replaced_after("-STOP", Some("-CONT")).await;
}
