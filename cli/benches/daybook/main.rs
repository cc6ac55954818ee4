//! How fast Daybook is on this machine, beside the raw disk in the same run.
//!
//! Everything is measured in short bursts, in turn, several rounds over; the median of the rounds is
//! printed. Absolute figures belong to the machine and the moment: the ratio to the raw disk in the
//! same round is what can be compared. Last comes what waiting sessions and a large file of payments
//! take in memory; `cargo bench -p cli --bench daybook -- memory` measures that alone. Lists are
//! measured over a file of 100,000 sessions, and with `-- list`, which does nothing else, over one of
//! 1,000,000, too.

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

/// How many rounds; the median counts.
const ROUNDS: usize = 3;

/// A session that takes longer has got stuck.
const SESSION_WITHIN: Duration = Duration::from_secs(60);

/// What a record and an outcome weigh, in bytes.
const RECORD_BYTES: usize = 300;

mod alone;
mod list;
mod memory;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(asked) = alone::asked(&arguments) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        return alone::ten_steps(&runtime, &asked);
    }
    let is_asked = |what: &str| arguments.iter().any(|argument| argument == what);
    if is_asked("list") {
        return list::lists(2);
    }
    if !is_asked("memory") {
        speed();
        list::lists(1);
    }
    memory::suspended();
    memory::a_million_payments();
}

fn speed() {
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
            table.add("ten-step run", runs, runtime.block_on(ten_step_runs(runs, BURST)), raw);
        }
        for sessions in [1, 16] {
            table.add("whole session", sessions, runtime.block_on(whole_sessions(sessions)), raw);
        }
    }
    table.print();
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

async fn ten_step_runs(runs: usize, within: Duration) -> f64 {
    let folder = folder();
    let store = store(folder.path());
    in_parallel(runs, move |_| {
        let store = store.clone();
        async move {
            let (began, mut done) = (Instant::now(), 0);
            while began.elapsed() < within {
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
