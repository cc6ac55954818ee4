//! Memory of waiting sessions, and of a large file of payments.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use journal::sqlite::SqliteStore;
use serde_json::{Value, json};
use workflow::rule::{DETAIL_TYPE, SOURCE};

use crate::report::{FSYNC, READ, Report};
use crate::{runtime, scratch};

/// Number of waiting sessions when memory is measured.
const SUSPENDED: [usize; 2] = [1_000, 10_000];

/// Events of one request.
const EVENTS_AT_ONCE: usize = 10;

/// Timeout until all sessions wait.
const SUSPENDED_WITHIN: Duration = Duration::from_secs(900);

/// How long after the last look another is taken: what was only slow to be given back is gone by then.
const LATER: Duration = Duration::from_secs(60);

/// Payments of the large file.
const PAYMENTS: &str = "1000000";

/// Both.
pub fn measure(report: &mut Report) {
    suspended(report);
    a_million_payments(report);
}

/// Memory of sessions that wait for a person, in a running stack and after a restart.
fn suspended(report: &mut Report) {
    let folder = scratch();
    let runtime = runtime();
    let stack = DevStack::start(folder.path());
    runtime.block_on(stack.settle());
    let mut add = |at: &str, kib: usize, target| {
        report.add_aimed("resident, waiting sessions", at, mib(kib), "MiB", FSYNC, target);
    };
    let idle = stack.resident_kib();
    add("none", idle, "below 40");
    let mut waiting = 0;
    for sessions in SUSPENDED {
        runtime.block_on(stack.suspend(waiting, sessions));
        waiting = sessions;
        let target = if sessions == 10_000 { "below 90" } else { "" };
        add(&sessions.to_string(), stack.resident_kib(), target);
    }
    std::thread::sleep(LATER);
    let later = stack.resident_kib();
    add("a minute later", later, "below 90");
    add("above idle", later.saturating_sub(idle), "below 50");
    add("at most", stack.peak_kib(), "");
    drop(stack);
    let stack = DevStack::start(folder.path());
    runtime.block_on(stack.settle());
    add("after a restart", stack.resident_kib(), "");
}

#[expect(clippy::cast_precision_loss, reason = "megabytes")]
fn mib(kib: usize) -> f64 {
    kib as f64 / 1024.0
}

/// Peak memory of the transactions server for a case in a large file.
fn a_million_payments(report: &mut Report) {
    let folder = scratch();
    let data = folder.path().join("payments.csv");
    let recipe = ["generate", "transactions", "--rows", PAYMENTS, "--output"];
    let made = daybook().args(recipe).arg(&data).status().unwrap();
    assert!(made.success());
    let text = BufReader::new(std::fs::File::open(&data).unwrap());
    let last = text.lines().last().unwrap().unwrap();
    let id = last.split(',').next().unwrap();
    let mut server = daybook();
    server.args(["mcp", "card-transactions", "--data"]).arg(&data);
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let idle = memory_kib(&server, "VmRSS");
    let began = Instant::now();
    for request in [
        json!({ "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" } } }),
        json!({ "method": "notifications/initialized" }),
        json!({ "id": 2, "method": "tools/call", "params": {
            "name": "context_tool", "arguments": { "transaction_id": id } } }),
    ] {
        ask(&mut server, request);
    }
    let (peak, took) = (memory_kib(&server, "VmHWM"), began.elapsed());
    let _ = server.kill();
    let _ = server.wait();
    let at = format!("{PAYMENTS} rows");
    let what = "a case of a CSV file";
    report.add(what, format!("{at}, before"), mib(idle), "MiB", READ);
    report.add(what, format!("{at}, at most"), mib(peak), "MiB", READ);
    report.add(what, at, took.as_secs_f64(), "s", READ);
}

pub fn daybook() -> Command {
    Command::new(env!("CARGO_BIN_EXE_daybook"))
}

/// Sends a message of MCP and waits for its answer if it is a request.
fn ask(server: &mut Child, mut message: Value) {
    message["jsonrpc"] = json!("2.0");
    writeln!(server.stdin.as_mut().unwrap(), "{message}").unwrap();
    if message["id"].is_null() {
        return;
    }
    // A line at a time: nothing else stands in the pipe while a request is open.
    for line in BufReader::new(server.stdout.as_mut().unwrap()).lines() {
        let answer: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if answer["id"] == message["id"] {
            assert!(answer["error"].is_null() && answer["result"]["isError"] != true, "{answer}");
            return;
        }
    }
    panic!("the server hung up");
}

/// Source: Linux, proc(5), `status`.
fn memory_kib(child: &Child, field: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let lines = status.lines();
    let line = lines.filter_map(|line| line.strip_prefix(field)?.strip_prefix(':')).next().unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// `daybook dev` in a process of its own; killed when dropped.
pub struct DevStack {
    child: Child,
    endpoint: String,
    folder: PathBuf,
}

impl DevStack {
    pub fn start(folder: &Path) -> Self {
        let mut child = daybook()
            .arg("--data")
            .arg(folder)
            .args(["dev", "--listen", "127.0.0.1:0"])
            .env("MAX_INCIDENTS_PER_HOUR", "1000")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let endpoint = ready.trim().strip_prefix("ready ").unwrap().to_owned();
        Self { child, endpoint, folder: folder.to_owned() }
    }

    /// What an answer has in its body.
    pub async fn get(&self, path: &str) -> String {
        let url = format!("{}{path}", self.endpoint);
        let answer = reqwest::get(url).await.unwrap().error_for_status().unwrap();
        answer.text().await.unwrap()
    }

    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn resident_kib(&self) -> usize {
        memory_kib(&self.child, "VmRSS")
    }

    fn peak_kib(&self) -> usize {
        memory_kib(&self.child, "VmHWM")
    }

    /// Begins threads of the assistant until there are so many, and waits until each asks for its first
    /// message and nothing works on it any more.
    async fn suspend(&self, begun: usize, sessions: usize) {
        let client = reqwest::Client::new();
        let detail = json!({ "agent": "assistant" }).to_string();
        let entry = json!({ "Source": SOURCE, "DetailType": DETAIL_TYPE, "Detail": detail });
        let body = json!({ "Entries": vec![entry; EVENTS_AT_ONCE] }).to_string();
        for _ in 0..(sessions - begun) / EVENTS_AT_ONCE {
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

    /// Waits until the process has been idle for a while.
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
