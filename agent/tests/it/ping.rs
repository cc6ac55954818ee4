//! `/ping` while everything else is blocked: a runtime without a free worker, a journal that does not
//! answer.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use agent::host::{Config, Host};
use agent::model::Models;
use agent::settings::Defaults;
use agent::tool::{Servers, Timeouts};
use journal::clock::{Clock, Stamp};
use journal::id::SessionId;
use journal::item::{Item, Value};
use journal::key;
use journal::sqlite::{Durability, SqliteStore};
use journal::store::{Condition, Error, Key, Page, Query, Store, Written};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use workflow::contract::AgentRequest;
use workflow::trigger::Trigger;

use crate::host::callbacks;

/// Generous timeout for a loaded machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// Workers of the sessions' runtime. As many sessions keep all of them busy.
const WORKERS: usize = 2;

const PINGS: usize = 200;

/// The promise to `AgentCore`. Asserted as the 99th percentile, since the machine also runs other
/// tests.
const WITHIN: Duration = Duration::from_millis(50);

/// Asserted of every ping: far below the two seconds after which the local host considers it lost.
const AT_MOST: Duration = Duration::from_millis(500);

/// Speed of the host's clock, so that its seconds advance while the pings are sent.
const TIME_SCALE: u32 = 5;

/// How a session's task misbehaves from its first step after the claim.
#[derive(Clone, Copy, Debug)]
enum Plight {
    /// Every call of the journal hangs, for all callers.
    Stalls,
    /// The task keeps its worker busy and never yields.
    Burns,
}

/// A store that works until a session begins its work.
#[derive(Clone, Debug)]
struct Troubled {
    inner: SqliteStore,
    plight: Plight,
    /// The number of misbehaving tasks.
    caught: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
}

impl Troubled {
    /// A task misbehaves at its first write after the claim.
    async fn write(&self, sk: &str) {
        let works = sk.starts_with(key::STEP_PREFIX) && sk != key::step(1);
        if works && !self.over.load(Ordering::Acquire) {
            self.caught.fetch_add(1, Ordering::AcqRel);
            while matches!(self.plight, Plight::Burns) && !self.over.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
        }
        self.stall().await;
    }

    async fn stall(&self) {
        while matches!(self.plight, Plight::Stalls)
            && self.caught.load(Ordering::Acquire) > 0
            && !self.over.load(Ordering::Acquire)
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Store for Troubled {
    async fn put(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        self.write(&item.sk).await;
        self.inner.put(item, condition).await
    }

    async fn update(
        &self,
        key: Key,
        set: BTreeMap<String, Value>,
        condition: Condition,
    ) -> Result<Written, Error> {
        self.write(&key.sk).await;
        self.inner.update(key, set, condition).await
    }

    async fn get(&self, key: Key) -> Result<Option<Item>, Error> {
        self.stall().await;
        self.inner.get(key).await
    }

    async fn query(&self, query: Query) -> Result<Page, Error> {
        self.stall().await;
        self.inner.query(query).await
    }

    async fn changed(&self, timeout: Duration) {
        self.inner.changed(timeout).await;
    }
}

/// Sends a request on a new connection. Returns the whole response.
fn send(address: SocketAddr, head: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect_timeout(&address, DEADLINE).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let length = body.len();
    let head =
        format!("{head} HTTP/1.1\r\nhost: agent\r\nconnection: close\r\ncontent-length: {length}");
    stream.write_all(&[head.as_bytes(), b"\r\n\r\n", body].concat()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn ping(address: SocketAddr) -> serde_json::Value {
    let answer = send(address, "GET /ping", b"");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(body).unwrap()
}

/// The latency of each ping, sorted. All must have the same answer.
fn ping_often(address: SocketAddr) -> Vec<Duration> {
    let clock = Clock::system();
    let first = ping(address);
    assert_eq!(first["status"], "HealthyBusy");
    let measure = |_| {
        let began = clock.now();
        assert_eq!(ping(address), first, "a ping's answer changes only with the status");
        let took = clock.now().since(began);
        std::thread::sleep(Duration::from_millis(5));
        took
    };
    let mut took: Vec<_> = (0..PINGS).map(measure).collect();
    took.sort_unstable();
    took
}

fn invocation() -> Vec<u8> {
    let request = AgentRequest {
        session_id: SessionId::fresh(),
        invocation_id: "1".to_owned(),
        attempt: 10,
        supersedes: 0,
        trigger: Trigger::parse(&json!({"agent": "checkup"})).unwrap(),
        expires_at: 4_000_000_000,
        seen: Stamp::default(),
    };
    serde_json::to_vec(&request).unwrap()
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let clock = Clock::system();
    let began = clock.now();
    while !holds() {
        assert!(clock.now().since(began) < DEADLINE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends all requests from threads, since the test is about the runtime's workers.
fn check(address: SocketAddr, troubled: &Troubled) {
    // A session that blocks its worker may also block its response.
    let sessions: Vec<_> = (0..WORKERS)
        .map(|_| std::thread::spawn(move || send(address, "POST /invocations", &invocation())))
        .collect();
    let wanted = match troubled.plight {
        Plight::Stalls => 1,
        Plight::Burns => WORKERS,
    };
    until("the sessions misbehave", || troubled.caught.load(Ordering::Acquire) >= wanted);
    // One more, which hangs or finds no worker.
    let late = std::thread::spawn(move || send(address, "POST /invocations", &invocation()));
    let took = ping_often(address);
    let (p99, max) = (took[PINGS * 99 / 100], took[PINGS - 1]);
    assert!(p99 < WITHIN && max < AT_MOST, "p99 {p99:?}, max {max:?}");
    assert!(!late.is_finished(), "the journal or the workers were free");
    troubled.over.store(true, Ordering::Release);
    for invocation in sessions.into_iter().chain([late]) {
        let answer = invocation.join().unwrap();
        assert!(answer.contains(r#""outcome":"accepted""#), "{answer}");
    }
    until("the sessions end", || ping(address)["status"] == "Healthy");
}

async fn pings_are_answered_while_a_task(plight: Plight) {
    let folder = tempfile::tempdir().unwrap();
    let inner = SqliteStore::open(&folder.path().join("journal.db"), Durability::Relaxed).unwrap();
    let troubled = Troubled { inner, plight, caught: Arc::default(), over: Arc::default() };
    let host = Host::new(
        troubled.clone(),
        Config {
            agents: packs::all().into(),
            callbacks: callbacks(),
            progress: Default::default(),
            clock: Clock::scaled(Clock::system().now(), TIME_SCALE),
            servers: Servers::bundled("/nonexistent".as_ref(), packs::all()),
            timeouts: Timeouts { connect: DEADLINE, init: DEADLINE },
            models: Models::default(),
            defaults: Defaults::default(),
        },
    );
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let server = agent::http::serve(host.clone(), listener, None, stop.clone()).unwrap();
    tokio::task::spawn_blocking(move || check(address, &troubled)).await.unwrap();
    host.shutdown().await;
    stop.cancel();
    server.join().unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ping_is_answered_in_time_while_no_worker_is_free() {
    pings_are_answered_while_a_task(Plight::Burns).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ping_is_answered_in_time_while_the_journal_stalls() {
    pings_are_answered_while_a_task(Plight::Stalls).await;
}
