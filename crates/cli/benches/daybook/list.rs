//! How long the list of sessions takes over a file of many, and a session of many records.
//!
//! The files contain real records, written by the sessions' own writers. The metrics measure whole HTTP
//! requests to `daybook dev`: "cold" is the first request after the start, the other row the median of
//! the later ones.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use journal::announce::Announcer;
use journal::chain::{self, Author, End, Head};
use journal::clock::{Clock, Hlc, Stamp};
use journal::event::{About, Draft, EventStatus, Writer};
use journal::id::{EventId, Runner, SessionId};
use journal::item::{Hash, Item};
use journal::key;
use journal::seal;
use journal::sqlite::{Durability, SqliteStore};
use journal::step::{EffectKind, EffectRef, Ending, StepBody, Usage};
use journal::store::{Condition, Store as _};
use serde_json::{Value, json};
use stack::stack::JOURNAL_FILE;
use tokio::task::JoinSet;

use crate::memory::DevStack;
use crate::report::{FSYNC, READ, Report};
use crate::{runtime, scratch};

/// Size of the file.
#[derive(Clone, Copy, Debug)]
pub enum Files {
    /// Minutes at most.
    HundredThousand,
    /// Many minutes, and gigabytes.
    Million,
}

/// Sizes of the sessions, in records.
const RECORDS: [u32; 3] = [1_000, 10_000, 20_000];

/// Concurrent writers.
const WRITERS: u32 = 256;

/// Time span of the sessions' starts.
const SPREAD: Duration = Duration::from_secs(86_400);

/// Size of an outcome, in bytes.
const OUTCOME_BYTES: usize = 300;

/// Size of an outcome of a long session, in bytes.
const LONG_OUTCOME_BYTES: usize = 1_000;

/// How long appends to a file are counted at a time.
const APPENDED_FOR: Duration = Duration::from_secs(1);

/// Requests after the first one.
const WARM: usize = 9;

/// Lists over a file, and sessions of each length.
pub fn measure(report: &mut Report, files: Files) {
    let runtime = runtime();
    match files {
        Files::HundredThousand => {
            runtime.block_on(list(report, 100_000));
            for records in RECORDS {
                runtime.block_on(long(report, records));
            }
        }
        Files::Million => {
            for sessions in [10_000, 100_000, 1_000_000] {
                runtime.block_on(list(report, sessions));
            }
        }
    }
}

async fn list(report: &mut Report, sessions: u32) {
    let folder = scratch();
    let began = Instant::now();
    fill(folder.path(), sessions).await;
    let of = format!("of {sessions}");
    let file = std::fs::metadata(folder.path().join(JOURNAL_FILE)).unwrap();
    let kib = file.len() / 1024;
    #[expect(clippy::cast_precision_loss, reason = "megabytes")]
    report.add("file, sessions of 6 records", &of, kib as f64 / 1024.0, "MiB", "none");
    let each = began.elapsed().as_secs_f64() * 1e6 / f64::from(sessions * 6);
    report.add("a record of many sessions", &of, each, "us", "none");
    let (rate, empty) = appended(folder.path()).await;
    let times = empty / rate;
    let target = "at most 1.3";
    report.add_aimed("an append by one on empty", &of, times, "times", FSYNC, target);
    let began = Instant::now();
    let stack = DevStack::start(folder.path());
    report.add("start of `daybook dev`", &of, ms(began), "ms", READ);
    // The first of all is the one that finds nothing in memory.
    let target = if sessions == 1_000_000 { "below 20" } else { "below 50" };
    let first = request(report, &stack, ("list of 50", &of, target), "limit=50").await;
    request(report, &stack, ("list of 200", &of, target), "").await;
    let deep = format!("{}~{}", Stamp::parse(&middle(&first)).unwrap(), SessionId::fresh());
    let deep = format!("limit=50&after={deep}");
    request(report, &stack, ("list from the middle", &of, target), &deep).await;
    let failed = "limit=50&status=FAILED";
    request(report, &stack, ("list, 1 in 100 by status", &of, target), failed).await;
    request(report, &stack, ("list, none by status", &of, ""), "limit=50&status=WAITING").await;
    request(report, &stack, ("list, 1 in 10 by agent", &of, ""), "limit=50&agent=rare").await;
    request(report, &stack, ("list, 1 in 100 by text", &of, ""), "limit=50&text=broke").await;
    request(report, &stack, ("list, none by text", &of, ""), "limit=50&text=nowhere").await;
    let mut times = Vec::new();
    for _ in 0..WARM {
        let began = Instant::now();
        stack.get("/api/histogram").await;
        times.push(ms(began));
    }
    report.add("histogram of the day", &of, crate::median(&mut times), "ms", READ);
    #[expect(clippy::cast_precision_loss, reason = "megabytes")]
    report.add("resident after these", &of, stack.resident_kib() as f64 / 1024.0, "MiB", READ);
}

/// Durable appends a second of one writer to this file, and to an empty one, in turn.
async fn appended(folder: &Path) -> (f64, f64) {
    let empty = scratch();
    let (mut rates, mut rates_empty) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        for (folder, rates) in [(folder, &mut rates), (empty.path(), &mut rates_empty)] {
            let file = folder.join(JOURNAL_FILE);
            let store = SqliteStore::open(&file, Durability::Fsync).unwrap();
            let (began, mut done, session) = (Instant::now(), 0, SessionId::fresh());
            while began.elapsed() < APPENDED_FOR {
                let item = Item::new(key::session(&session), format!("STEP#{done:08}"))
                    .with("Payload", "x".repeat(OUTCOME_BYTES));
                store.put(item, Condition::Absent).await.unwrap();
                done += 1;
            }
            rates.push(crate::rate(done, began));
        }
    }
    (crate::median(&mut rates), crate::median(&mut rates_empty))
}

/// The time in the middle of what a file holds, from its newest session's.
fn middle(first: &Value) -> String {
    let newest = first["sessions"][0]["initiated_at"].as_str().unwrap();
    Stamp::parse(newest).unwrap().before(SPREAD / 2).to_string()
}

/// Sends a request ten times: the first is cold. The row has the median of the others.
async fn request(
    report: &mut Report,
    stack: &DevStack,
    (what, of, target): (&str, &str, &'static str),
    query: &str,
) -> Value {
    let (mut times, mut answer) = (Vec::new(), Value::Null);
    for _ in 0..=WARM {
        let began = Instant::now();
        let text = stack.get(&format!("/api/sessions?{query}")).await;
        times.push(ms(began));
        answer = serde_json::from_str(&text).unwrap();
    }
    report.add_aimed(what, format!("{of}, cold"), times.remove(0), "ms", READ, target);
    report.add_aimed(what, of, crate::median(&mut times), "ms", READ, target);
    answer
}

async fn long(report: &mut Report, records: u32) {
    let folder = scratch();
    let store = open(folder.path());
    let session = SessionId::fresh();
    let at = Clock::system().now();
    begin(&store, &session, at).await;
    let (hlc, author) = writer(&session, at);
    let mut head = claimed(&store, &hlc, &author, "rare").await;
    for _ in 2..records {
        let outcome = outcome(at, LONG_OUTCOME_BYTES);
        let step = chain::append(&store, &hlc, &author, &head, 1, outcome).await.unwrap();
        head = Head::after(&step);
    }
    drop(store);
    let stack = DevStack::start(folder.path());
    let path = format!("/api/sessions/{session}/timeline");
    let (mut times, mut bytes) = (Vec::new(), 0);
    for _ in 0..=WARM {
        let began = Instant::now();
        bytes = stack.get(&path).await.len();
        times.push(ms(began));
    }
    let at = format!("of {records} records");
    let target = if records == 10_000 { "below 1,000" } else { "" };
    report.add_aimed(
        "a session opened",
        format!("{at}, cold"),
        times.remove(0),
        "ms",
        READ,
        target,
    );
    report.add_aimed("a session opened", &at, crate::median(&mut times), "ms", READ, target);
    #[expect(clippy::cast_precision_loss, reason = "kilobytes")]
    report.add("its answer", at, bytes as f64 / 1024.0, "KiB", READ);
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn open(folder: &Path) -> SqliteStore {
    // The bench measures reads, so its file need not be durable.
    SqliteStore::open(&folder.join(JOURNAL_FILE), Durability::Relaxed).unwrap()
}

/// So many sessions, the newest of which began a moment ago.
async fn fill(folder: &Path, sessions: u32) {
    let store = open(folder);
    let oldest = Clock::system().now().before(SPREAD);
    let next = Arc::new(AtomicU32::new(0));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (store, next) = (store.clone(), Arc::clone(&next));
        writers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= sessions {
                    return;
                }
                whole(&store, number, oldest.after(SPREAD / sessions * number)).await;
            }
        });
    }
    writers.join_all().await;
}

/// A session from its trigger to its verdict: one in ten of an agent of its own, one in a hundred failed.
async fn whole(store: &SqliteStore, number: u32, at: Stamp) {
    let session = SessionId::fresh();
    begin(store, &session, at).await;
    let (hlc, author) = writer(&session, at);
    let agent = if number.is_multiple_of(10) { "rare" } else { "usual" };
    let head = claimed(store, &hlc, &author, agent).await;
    chain::append(store, &hlc, &author, &head, 1, outcome(at, OUTCOME_BYTES)).await.unwrap();
    let failed = number % 100 == 1;
    let error = failed.then(|| journal::error_message::ErrorMessage::new("Bench", "It", "broke"));
    let ending = if failed { Ending::Failed } else { Ending::Completed };
    let end = End { ending, error, category: None, result: json!({ "summary": "It is done." }) };
    let end = chain::end_session(store, &hlc, &author, &end).await.unwrap();
    let announcer = Announcer {
        store,
        hlc: &hlc,
        session: &session,
        writer: Writer::Agent,
        expires_at: author.expires_at,
    };
    let started = Draft::new(EventStatus::AgentBackgroundTaskStarted, About::Epoch(1));
    announcer.announce(&started).await.unwrap();
    seal::seal(store, &announcer, &end).await.unwrap();
}

async fn begin(store: &SqliteStore, session: &SessionId, at: Stamp) {
    let item = Item::new(key::session(session), key::event(at))
        .with("V", 1_i64)
        .with("Status", "SESSION_INITIATED")
        .with("Timestamp", at.to_string())
        .with("EventId", EventId::initiated().as_str())
        .with("Writer", "state-machine")
        .with("Day", key::day(at, session))
        .with("ExecutionArn", format!("arn:{session}"))
        .with("ExpiresAt", at.seconds() + 90 * 86_400);
    store.put(item, Condition::Absent).await.unwrap();
}

fn writer(session: &SessionId, at: Stamp) -> (Hlc, Author) {
    let expires_at = at.seconds() + 90 * 86_400;
    let author = Author { session: session.clone(), runner: Runner::fresh("agent"), expires_at };
    (Hlc::new(Clock::fixed(at), at), author)
}

async fn claimed(store: &SqliteStore, hlc: &Hlc, author: &Author, agent: &str) -> Head {
    let claim = StepBody::Claim {
        supersedes: 0,
        agent: agent.to_owned(),
        graph_version: "1".to_owned(),
        input: Some(json!({})),
    };
    let step = chain::append(store, hlc, author, &Head::genesis(), 1, claim).await.unwrap();
    Head::after(&step)
}

fn outcome(started_at: Stamp, bytes: usize) -> StepBody<Value> {
    let node = "work".to_owned();
    let effect = EffectRef { node, kind: EffectKind::Chat, digest: Hash::genesis(), call: 0 };
    let usage = Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() };
    let payload = json!({ "ok": "x".repeat(bytes) });
    StepBody::Outcome { effect, started_at, usage, request: None, payload }
}
