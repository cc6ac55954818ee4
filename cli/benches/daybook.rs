//! How fast Daybook is on this machine, beside the raw disk in the same run.
//!
//! Everything is measured in short bursts, in turn, several rounds over; the median of the rounds is
//! printed. Absolute figures belong to the machine and the moment: the ratio to the raw disk in the
//! same round is what can be compared.

#![expect(clippy::unwrap_used, reason = "a bench that cannot run has nothing to say")]
#![expect(clippy::disallowed_methods, reason = "a bench measures real time")]

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::driver::{Driven, Driver};
use agent::model::Models;
use agent::progress::Broadcast;
use agent::session::Session;
use agent::settings::Defaults;
use agent::tool::{Servers, Timeouts, Toolbox};
use agent::trace::Spans;
use graph::agent::{Agent, Opening, Settings};
use graph::budget::Budget;
use graph::definition::{Attempts, Finish, Graph, Node, Route, Scope};
use graph::effect::{Chat, Effect, Reply};
use journal::chain::{Author, Head, append};
use journal::clock::{Clock, Hlc, Stamp};
use journal::event::EventStatus;
use journal::id::{Runner, SessionId};
use journal::item::Item;
use journal::read;
use journal::sqlite::{Durability, SqliteStore};
use journal::step::StepBody;
use journal::store::{Condition, Store as _};
use local::functions;
use local::stack::{Config, Isolation, Stack};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use workflow::admission::Limits;
use workflow::rule::{DETAIL_TYPE, SOURCE};

/// How long each measurement runs in each round.
const BURST: Duration = Duration::from_millis(1_500);

/// How many sessions wait at once when memory is measured.
const SUSPENDED: usize = 10_000;

/// Events of one request.
const EVENTS_AT_ONCE: usize = 10;

/// They all wait after this, or have got stuck.
const SUSPENDED_WITHIN: Duration = Duration::from_secs(900);

/// How many rounds; the median counts.
const ROUNDS: usize = 3;

/// A session that takes longer has got stuck.
const SESSION_WITHIN: Duration = Duration::from_secs(60);

/// What a record and an outcome weigh, in bytes.
const RECORD_BYTES: usize = 300;

fn main() {
    println!("durability: every figure is with fsync (SQLite synchronous FULL, raw fdatasync)");
    println!("each row: median of {ROUNDS} rounds of {} ms\n", BURST.as_millis());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut table = Table::default();
    for round in 0..ROUNDS {
        eprintln!("round {} of {ROUNDS}", round + 1);
        let raw = raw_disk();
        table.add("raw append + fdatasync", 1, raw, raw);
        for writers in [1, 16, 64] {
            table.add("journal append", writers, runtime.block_on(appends(writers)), raw);
        }
        for runs in [1, 16, 64] {
            table.add("ten-step run", runs, runtime.block_on(ten_step_runs(runs)), raw);
        }
        for sessions in [1, 16] {
            table.add("whole session", sessions, runtime.block_on(whole_sessions(sessions)), raw);
        }
    }
    table.print();
    suspended();
}

/// Rates by what was measured, one a round.
#[derive(Default)]
struct Table {
    rows: Vec<Row>,
}

struct Row {
    what: &'static str,
    at_once: usize,
    rates: Vec<f64>,
    ratios: Vec<f64>,
}

impl Table {
    fn add(&mut self, what: &'static str, at_once: usize, rate: f64, raw: f64) {
        let found = self.rows.iter_mut().find(|row| row.what == what && row.at_once == at_once);
        let row = match found {
            Some(row) => row,
            None => {
                self.rows.push(Row { what, at_once, rates: vec![], ratios: vec![] });
                self.rows.last_mut().unwrap()
            }
        };
        row.rates.push(rate);
        row.ratios.push(rate / raw);
    }

    fn print(mut self) {
        println!("{:<24} {:>7} {:>12} {:>12}", "", "at once", "a second", "of raw disk");
        for row in &mut self.rows {
            let (rate, ratio) = (median(&mut row.rates), median(&mut row.ratios));
            println!("{:<24} {:>7} {rate:>12.0} {ratio:>12.3}", row.what, row.at_once);
        }
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn rate(done: usize, since: Instant) -> f64 {
    f64::from(u32::try_from(done).unwrap()) / since.elapsed().as_secs_f64()
}

fn folder() -> tempfile::TempDir {
    // Beside the build, on a disk: the system's folder for temporary files may be memory.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn store(folder: &Path) -> SqliteStore {
    SqliteStore::open(&folder.join("journal.db"), Durability::Fsync).unwrap()
}

fn raw_disk() -> f64 {
    let folder = folder();
    let mut file = File::create(folder.path().join("raw")).unwrap();
    let (record, began, mut done) = ([b'x'; RECORD_BYTES], Instant::now(), 0);
    while began.elapsed() < BURST {
        file.write_all(&record).unwrap();
        file.sync_data().unwrap();
        done += 1;
    }
    rate(done, began)
}

async fn appends(writers: usize) -> f64 {
    let folder = folder();
    let store = store(folder.path());
    in_parallel(writers, move |writer| {
        let store = store.clone();
        async move {
            let (began, mut done) = (Instant::now(), 0);
            while began.elapsed() < BURST {
                let item = Item::new(format!("SESSION#{writer}"), format!("STEP#{done:08}"))
                    .with("Payload", "x".repeat(RECORD_BYTES - 40));
                store.put(item, Condition::Absent).await.unwrap();
                done += 1;
            }
            done
        }
    })
    .await
}

async fn ten_step_runs(runs: usize) -> f64 {
    let folder = folder();
    let store = store(folder.path());
    in_parallel(runs, move |_| {
        let store = store.clone();
        async move {
            let (began, mut done) = (Instant::now(), 0);
            while began.elapsed() < BURST {
                ten_steps(&store).await;
                done += 1;
            }
            done
        }
    })
    .await
}

/// Sums what many tasks did, as a rate over the whole time.
async fn in_parallel<F: Future<Output = usize> + Send + 'static>(
    tasks: usize,
    work: impl Fn(usize) -> F,
) -> f64 {
    let began = Instant::now();
    let set: JoinSet<usize> = (0..tasks).map(work).collect();
    let done = set.join_all().await.into_iter().sum();
    rate(done, began)
}

/// One claim, ten effects that need no outside world, and an end.
async fn ten_steps(store: &SqliteStore) {
    static AGENT: std::sync::LazyLock<Agent> = std::sync::LazyLock::new(|| Agent::of(&TEN));
    let author = Author {
        session: SessionId::fresh(),
        runner: Runner::fresh("agent"),
        expires_at: i64::from(u32::MAX),
    };
    let hlc = Arc::new(Hlc::new(Clock::system(), Stamp::default()));
    let session = Session { store: store.clone(), hlc, author, epoch: 1 };
    let opening = Opening { input: json!({}), settings: Settings::default() };
    let claim = StepBody::Claim {
        supersedes: 0,
        agent: AGENT.name().to_owned(),
        graph_version: AGENT.version().to_owned(),
        input: Some(opening.payload()),
    };
    let genesis = Head::genesis();
    let claimed = append(store, &session.hlc, &session.author, &genesis, 1, claim).await.unwrap();
    let servers = Servers::bundled("/nonexistent".into());
    let timeouts = Timeouts { connect: BURST, init: BURST };
    let models = Models::default();
    let driver = Driver {
        toolbox: Arc::new(Toolbox::new(
            session.clone(),
            servers,
            timeouts,
            models.clone(),
            &Broadcast::default(),
            &Value::Null,
        )),
        models,
        session,
        head: Head::after(&claimed),
        run: AGENT.resume(&[claimed]).unwrap(),
        tool_timeout: BURST,
        stop: CancellationToken::new(),
        spans: Spans::default(),
    };
    match driver.drive().await {
        Driven::Ended(end) => assert_eq!(end.seq, 12),
        other => panic!("{other:?}"),
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Count(u32);

static TEN: Graph<Count> = Graph {
    name: "ten",
    version: "1",
    summary: "Ten effects.",
    start: "work",
    nodes: &[Node {
        name: "work",
        to: &["work"],
        ask: |_, _| Effect::Chat(Chat::default()),
        fold: |count, _| {
            count.0 += 1;
            if count.0 < 10 {
                Route::To("work")
            } else {
                Route::End(Finish::Completed(Value::Null))
            }
        },
    }],
    init: |_, _| Ok(Count(0)),
    budget: Budget::UNLIMITED,
    scope: Scope::Session,
    on_limit: |_, _| Route::End(Finish::Completed(Value::Null)),
    policy: |_, _| Reply::says("x".repeat(RECORD_BYTES)),
    attempts: Attempts { chat: 1, tool: 1 },
    at_most_once: &[],
    critical: &[],
    servers: &[],
    tool_timeout_s: 30,
};

/// From an event on the bus to a verdict in the journal: the whole stack, every record durable.
async fn whole_sessions(at_once: usize) -> f64 {
    let folder = folder();
    let stack = Arc::new(start(folder.path()).await);
    let client = reqwest::Client::new();
    let running = Arc::clone(&stack);
    let rate = in_parallel(at_once, move |_| {
        let (stack, client) = (Arc::clone(&running), client.clone());
        async move {
            let (began, mut done) = (Instant::now(), 0);
            while began.elapsed() < BURST {
                session(&stack, &client).await;
                done += 1;
            }
            done
        }
    })
    .await;
    Arc::try_unwrap(stack).unwrap_or_else(|_| unreachable!("all tasks are done")).shutdown().await;
    rate
}

async fn start(folder: &Path) -> Stack {
    let config = Config {
        listen: ([127, 0, 0, 1], 0).into(),
        data: folder.to_owned(),
        durability: Durability::Fsync,
        time_scale: 1,
        token: None,
        ttl_days: workflow::limits::TTL_DAYS,
        workflow: None,
        functions: functions::File::default(),
        isolation: Isolation::None,
        servers: Servers::bundled("/nonexistent".into()),
        timeouts: Timeouts { connect: BURST, init: BURST },
        models: Models::default(),
        defaults: Defaults::default(),
        admission: Limits::default(),
        agents: agents::all().into(),
    };
    Stack::start(config).await.unwrap()
}

/// Puts a checkup's event through the endpoint and waits for the verdict.
async fn session(stack: &Stack, client: &reqwest::Client) {
    let entry = json!({ "Source": SOURCE, "DetailType": DETAIL_TYPE, "Detail": "{}" });
    let answer: Value = client
        .post(stack.url())
        .header("x-amz-target", "AWSEvents.PutEvents")
        .header("content-type", "application/x-amz-json-1.1")
        .body(json!({ "Entries": [entry] }).to_string())
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let id: SessionId = answer["Entries"][0]["EventId"].as_str().unwrap().parse().unwrap();
    let deadline = Instant::now() + SESSION_WITHIN;
    loop {
        // The verdict need not be the newest event: an announcement that comes late sorts behind it.
        let events = read::events(stack.store(), &id).await.unwrap();
        if let Some(verdict) = events.iter().find(|event| event.status.is_verdict()) {
            assert_eq!(verdict.status, EventStatus::SessionSucceeded, "{:?}", verdict.error);
            return;
        }
        assert!(Instant::now() < deadline, "a session took longer than {SESSION_WITHIN:?}");
        stack.store().changed(Duration::from_millis(20)).await;
    }
}

/// What sessions that wait for a person cost a running stack in memory, and after a restart.
fn suspended() {
    let folder = folder();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let began = Instant::now();
    let stack = DevStack::start(folder.path());
    let idle = stack.resident_kib();
    runtime.block_on(stack.suspend(SUSPENDED));
    let took = began.elapsed().as_secs();
    let waiting = stack.resident_kib();
    drop(stack);
    let stack = DevStack::start(folder.path());
    runtime.block_on(stack.settle());
    let restarted = stack.resident_kib();
    println!(
        "\n{SUSPENDED} suspended sessions in `daybook dev`, resident memory ({took} s to get there)"
    );
    for (what, kib) in [("idle", idle), ("with them", waiting), ("after a restart", restarted)] {
        let above = kib.saturating_sub(idle) / 1024;
        println!("{what:<24} {:>7} MiB {above:>7} MiB above idle", kib / 1024);
    }
}

/// `daybook dev` in a process of its own; killed when dropped.
struct DevStack {
    child: std::process::Child,
    endpoint: String,
    folder: std::path::PathBuf,
}

impl DevStack {
    fn start(folder: &Path) -> Self {
        use std::io::BufRead as _;
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_daybook"))
            .arg("--data")
            .arg(folder)
            .args(["dev", "--listen", "127.0.0.1:0"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let endpoint = ready.trim().strip_prefix("ready ").unwrap().to_owned();
        Self { child, endpoint, folder: folder.to_owned() }
    }

    /// Source: Linux, proc(5), `VmRSS`.
    fn resident_kib(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Begins so many threads of the assistant and waits until each asks for its first message and
    /// nothing works on it any more.
    async fn suspend(&self, sessions: usize) {
        let client = reqwest::Client::new();
        let detail = json!({ "agent": "assistant" }).to_string();
        let entry = json!({ "Source": SOURCE, "DetailType": DETAIL_TYPE, "Detail": detail });
        let body = json!({ "Entries": vec![entry; EVENTS_AT_ONCE] }).to_string();
        for _ in 0..sessions / EVENTS_AT_ONCE {
            let request = client.post(&self.endpoint).header("x-amz-target", "AWSEvents.PutEvents");
            request.body(body.clone()).send().await.unwrap().error_for_status().unwrap();
        }
        let store = SqliteStore::open_read_only(&self.folder.join("journal.db")).unwrap();
        let deadline = Instant::now() + SUSPENDED_WITHIN;
        while waiting(&store).await < sessions {
            assert!(Instant::now() < deadline, "the sessions do not all come to wait");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        self.settle().await;
    }

    /// Waits until the processor has nothing to do for a while.
    async fn settle(&self) {
        let mut before = usize::MAX;
        loop {
            tokio::time::sleep(Duration::from_secs(4)).await;
            let ticks = self.ticks();
            if ticks.saturating_sub(before) < 10 {
                return;
            }
            before = ticks;
        }
    }

    /// Source: Linux, proc(5), `stat`, fields 14 and 15.
    fn ticks(&self) -> usize {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields = stat.rsplit_once(") ").unwrap().1.split(' ').skip(11).take(2);
        fields.map(|field| field.parse::<usize>().unwrap()).sum()
    }
}

impl Drop for DevStack {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How many sessions have a parked workflow and a suspended agent.
async fn waiting(store: &SqliteStore) -> usize {
    let sql = "SELECT COUNT(*) FROM journal WHERE status = 'AGENT_BACKGROUND_TASK_SUSPENDED'";
    let count = store
        .read(move |connection| {
            let count = connection.query_row(sql, [], |row| row.get::<_, i64>(0));
            count.map_err(|error| journal::store::Error::Unavailable(error.into()))
        })
        .await;
    usize::try_from(count.unwrap()).unwrap()
}
