//! Recovery: `kill -9` of a stack at random instants, each with sessions under way.
//!
//! For each session that had not ended at the kill, the time from `ready` of the next start to the session's next
//! journaled step. The next step of most is the claim of a new runner, so the first step after that claim is reported,
//! too.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use journal::clock::Stamp;
use journal::id::SessionId;
use journal::read;
use journal::sqlite::SqliteStore;
use journal::step::StepBody;
use serde_json::{Value, json};
use workflow::rule::{DETAIL_TYPE, SOURCE};

use crate::memory::{DevStack, daybook};
use crate::report::{FSYNC, Report};
use crate::{runtime, scratch};

/// Kills of each agent, unless `kills=N` says otherwise.
const KILLS: u64 = 20;

/// Kills of one journal: an agent admits a thousand sessions an hour.
const KILLS_A_JOURNAL: usize = 18;

/// Sessions at each kill.
const SESSIONS: usize = 50;

/// Events of one request.
const EVENTS_AT_ONCE: usize = 10;

/// Timeout of one kill's sessions.
const WITHIN: Duration = Duration::from_secs(180);

/// The shipped agents, with an input of each.
const AGENTS: [(&str, Option<&str>); 5] = [
    ("checkup", None),
    ("incident", Some("packs/incident/incidents/network-blocked")),
    ("fraud", Some("packs/fraud/transactions/account-takeover.json")),
    ("network", Some("packs/network/networks/mtu-mismatch")),
    ("assistant", None),
];

/// What was measured of one agent.
#[derive(Default)]
struct Times {
    /// To the next step, in milliseconds.
    next: Vec<f64>,
    /// To the first step after a claim.
    work: Vec<f64>,
    /// Sessions that had ended, or waited for a person, at the kill.
    over: usize,
}

/// All agents.
pub fn measure(report: &mut Report) {
    let asked = |name: &str| {
        std::env::args().find_map(|argument| Some(argument.strip_prefix(name)?.to_owned()))
    };
    let kills = asked("kills=").map_or(KILLS, |kills| kills.parse().unwrap());
    let only = asked("agent=");
    let is_asked = |agent: &str| only.as_deref().is_none_or(|only| only == agent);
    for (agent, input) in AGENTS.into_iter().filter(|(agent, _)| is_asked(agent)) {
        let mut times = Times::default();
        for first in (0..kills).step_by(KILLS_A_JOURNAL) {
            let kills = first..kills.min(first + KILLS_A_JOURNAL as u64);
            runtime().block_on(of_agent(agent, input, kills, &mut times));
        }
        let at = format!("{agent} {}", times.next.len());
        eprintln!("{agent}: {kills} kills, {} sessions were over at the kill", times.over);
        add(report, "ready to next step", &at, times.next, ["50", "1,000", ""]);
        add(report, "ready to work after the claim", &at, times.work, [""; 3]);
    }
}

fn add(report: &mut Report, what: &str, at: &str, mut times: Vec<f64>, targets: [&'static str; 3]) {
    if times.is_empty() {
        return;
    }
    times.sort_by(f64::total_cmp);
    let last = times.len() - 1;
    let rows = [("p50", last / 2), ("p99", last * 99 / 100), ("largest", last)];
    for ((name, place), target) in rows.into_iter().zip(targets) {
        report.add_aimed(&format!("{what}, {name}"), at, times[place], "ms", FSYNC, target);
    }
}

async fn of_agent(agent: &str, input: Option<&str>, kills: Range<u64>, times: &mut Times) {
    let folder = scratch();
    let stack = DevStack::start(folder.path());
    let detail = detail_of(&stack, agent, input).await;
    // How long the sessions take when nothing is killed: the kills fall within that time.
    let began = Instant::now();
    let sessions = put(&stack, &detail).await;
    over(folder.path(), &sessions).await;
    let whole = began.elapsed();
    let mut stack = stack;
    for kill in kills {
        let began = Instant::now();
        let sessions = put(&stack, &detail).await;
        // Evenly over the time in which they run: a new instant for each kill, the same ones in each run.
        let part = (kill as f64 * 0.618_033_988_749).fract();
        tokio::time::sleep(whole.mul_f64(part).saturating_sub(began.elapsed())).await;
        drop(stack);
        let before = newest(folder.path(), &sessions).await;
        stack = DevStack::start(folder.path());
        let ready = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        over(folder.path(), &sessions).await;
        times.add(folder.path(), before, Stamp::from_nanos(ready.as_nanos() as i64)).await;
    }
}

impl Times {
    async fn add(&mut self, folder: &Path, before: BTreeMap<SessionId, (u32, bool)>, ready: Stamp) {
        let store = journal(folder);
        let ms = |stamp: Stamp| stamp.since(ready).as_secs_f64() * 1e3;
        for (session, (seq, is_over)) in before {
            if is_over {
                self.over += 1;
                continue;
            }
            let steps = read::steps(&store, &session).await.unwrap();
            let mut later = steps.iter().filter(|step| step.seq > seq);
            let next = later.clone().next();
            let work = later.find(|step| !matches!(step.body, StepBody::Claim { .. }));
            self.next.push(ms(next.expect("the session went on").stamp));
            self.work.extend(work.map(|step| ms(step.stamp)));
        }
    }
}

/// The event's detail that `daybook trigger` sends for an input.
async fn detail_of(stack: &DevStack, agent: &str, input: Option<&str>) -> Value {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut trigger = daybook();
    trigger.current_dir(&root).args(["--endpoint", stack.endpoint()]).arg("--data");
    trigger.arg(stack.folder()).args(["trigger", "--agent", agent]);
    let triggered = trigger.args(input.into_iter().flat_map(|path| ["--input", path])).output();
    let triggered = triggered.unwrap();
    assert!(triggered.status.success(), "{}", String::from_utf8_lossy(&triggered.stderr));
    let store = journal(stack.folder());
    let read = store.read(|connection| {
        let row = connection.query_row("SELECT input FROM execution", [], |row| row.get(0));
        row.map_err(|error| journal::store::Error::Unavailable(error.into()))
    });
    let input: String = read.await.unwrap();
    serde_json::from_str::<Value>(&input).unwrap()["detail"].take()
}

/// Puts the sessions' events.
async fn put(stack: &DevStack, detail: &Value) -> Vec<SessionId> {
    let client = reqwest::Client::new();
    let mut sessions = Vec::new();
    while sessions.len() < SESSIONS {
        let entry = |_| {
            let mut detail = detail.clone();
            detail["dedupe_key"] = json!(SessionId::fresh());
            json!({ "Source": SOURCE, "DetailType": DETAIL_TYPE, "Detail": detail.to_string() })
        };
        let entries: Vec<Value> = (0..EVENTS_AT_ONCE).map(entry).collect();
        let request = client
            .post(stack.endpoint())
            .header("x-amz-target", "AWSEvents.PutEvents")
            .header("content-type", "application/x-amz-json-1.1")
            .body(json!({ "Entries": entries }).to_string());
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        let answers = answer["Entries"].as_array().unwrap().iter();
        sessions.extend(answers.map(|entry| entry["EventId"].as_str().unwrap().parse().unwrap()));
    }
    sessions
}

fn journal(folder: &Path) -> SqliteStore {
    SqliteStore::open_read_only(&folder.join("journal.db")).unwrap()
}

/// The newest step of each session, and whether it is an end or a question.
async fn newest(folder: &Path, sessions: &[SessionId]) -> BTreeMap<SessionId, (u32, bool)> {
    let store = journal(folder);
    let mut newest = BTreeMap::new();
    for session in sessions {
        let step = read::newest_step(&store, session).await.unwrap();
        let is_over =
            |body: &StepBody<_>| matches!(body, StepBody::End { .. } | StepBody::Ask { .. });
        let found = step.map_or((0, false), |step| (step.seq, is_over(&step.body)));
        newest.insert(session.clone(), found);
    }
    newest
}

/// Waits until each session has ended or asks.
async fn over(folder: &Path, sessions: &[SessionId]) {
    let deadline = Instant::now() + WITHIN;
    while newest(folder, sessions).await.values().any(|(_, is_over)| !is_over) {
        assert!(Instant::now() < deadline, "not all sessions went on");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
