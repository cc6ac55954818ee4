//! How long the list of sessions takes over a file of many, and a session of many records.
//!
//! The files hold real records: what a session's writers write, written by them, many sessions at a
//! time. The figures are of whole HTTP requests to `daybook dev` over such a file: "cold" is the first
//! request after the start, "warm" the median of those after it.

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
use local::stack::JOURNAL_FILE;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::folder;
use crate::memory::DevStack;

/// Sizes of the files, in sessions.
const SESSIONS: [u32; 2] = [100_000, 1_000_000];

/// Sizes of the sessions, in records.
const RECORDS: [u32; 3] = [1_000, 10_000, 20_000];

/// Writers at a time.
const WRITERS: u32 = 256;

/// Over how long the sessions of a file began.
const SPREAD: Duration = Duration::from_secs(86_400);

/// What an outcome holds, in bytes.
const OUTCOME_BYTES: usize = 300;

/// What an outcome of a long session holds, in bytes.
const LONG_OUTCOME_BYTES: usize = 1_000;

/// How often each request is sent after the first.
const WARM: usize = 9;

/// Lists over the first `files` of the sizes, and sessions of each length.
pub fn lists(files: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for sessions in &SESSIONS[..files] {
        runtime.block_on(list(*sessions));
    }
    println!("\na session opened: GET /api/sessions/{{id}}/timeline");
    for records in RECORDS {
        runtime.block_on(long(records));
    }
}

async fn list(sessions: u32) {
    let folder = folder();
    let began = Instant::now();
    fill(folder.path(), sessions).await;
    let file = std::fs::metadata(folder.path().join(JOURNAL_FILE)).unwrap();
    println!(
        "\n{sessions} sessions of 6 records, {} MiB, written in {} s",
        file.len() / (1024 * 1024),
        began.elapsed().as_secs()
    );
    let began = Instant::now();
    let stack = DevStack::start(folder.path());
    println!("{:<44} {:>9.1} ms", "start of `daybook dev`", ms(began));
    // The first of all is the one that finds nothing in memory.
    let first = request(&stack, "first page", "limit=50").await;
    request(&stack, "first page of 200", "").await;
    let deep = format!("{}~{}", Stamp::parse(&middle(&first)).unwrap(), SessionId::fresh());
    request(&stack, "a page in the middle", &format!("limit=50&after={deep}")).await;
    request(&stack, "status=FAILED, one in a hundred", "limit=50&status=FAILED").await;
    request(&stack, "status=WAITING, none", "limit=50&status=WAITING").await;
    request(&stack, "agent, one in ten", "limit=50&agent=rare").await;
    request(&stack, "text, one in a hundred", "limit=50&text=broke").await;
    request(&stack, "text, nowhere", "limit=50&text=nowhere").await;
    let mut times = Vec::new();
    for _ in 0..=WARM {
        let began = Instant::now();
        stack.get("/api/histogram").await;
        times.push(ms(began));
    }
    let cold = times.remove(0);
    let warm = crate::median(&mut times);
    println!("{:<44} {cold:>9.1} ms {warm:>9.1} ms warm", "histogram of the day");
    println!("{:<44} {:>9} MiB", "resident memory", stack.resident_kib() / 1024);
}

/// The time in the middle of what a file holds, from its newest session's.
fn middle(first: &Value) -> String {
    let newest = first["sessions"][0]["initiated_at"].as_str().unwrap();
    Stamp::parse(newest).unwrap().before(SPREAD / 2).to_string()
}

async fn request(stack: &DevStack, what: &str, query: &str) -> Value {
    let (mut times, mut answer) = (Vec::new(), Value::Null);
    for _ in 0..=WARM {
        let began = Instant::now();
        let text = stack.get(&format!("/api/sessions?{query}")).await;
        times.push(ms(began));
        answer = serde_json::from_str(&text).unwrap();
    }
    let cold = times.remove(0);
    let (found, searched) = (answer["sessions"].as_array().unwrap().len(), &answer["searched"]);
    let warm = crate::median(&mut times);
    println!("{what:<44} {cold:>9.1} ms {warm:>9.1} ms warm, {found} of {searched} searched");
    answer
}

async fn long(records: u32) {
    let folder = folder();
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
    let cold = times.remove(0);
    let warm = crate::median(&mut times);
    println!("{records:>7} records {cold:>9.1} ms {warm:>9.1} ms warm, {} KiB", bytes / 1024);
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn open(folder: &Path) -> SqliteStore {
    // What is measured is reading; a power cut while a bench fills its file loses a bench.
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
    StepBody::Outcome { effect, started_at, usage, payload: json!({ "ok": "x".repeat(bytes) }) }
}
