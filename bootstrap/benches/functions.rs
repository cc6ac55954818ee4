//! How small and how quick the packaged functions are: `functions FOLDER`, where `scripts/lambdas.sh` put
//! them for this machine's architecture.
//!
//! The services answer at once from this machine, so that the figures are the functions' own. Each is the
//! median of many starts, or of many warm events; memory is the most of any run.

#![expect(clippy::unwrap_used, reason = "a bench that cannot run has nothing to say")]

use std::path::Path;
use std::time::Duration;

use bootstrap::stand_in::{Answer, Function, Services};
use serde_json::{Value, json};
use tokio::time::Instant;

/// How often each function is started.
const STARTS: usize = 20;

/// How many warm events each start is given.
const WARM_EVENTS: usize = 50;

/// As long as nobody is pressed for time.
const PLENTY: Duration = Duration::from_secs(60);

const SESSION: &str = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f";
const NOW: &str = "2026-11-22T10:00:00.000000000Z";

#[tokio::main]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|text| text != "--bench").collect();
    let Some(folder) = arguments.first().map(Path::new) else {
        println!("error: functions takes the folder that scripts/lambdas.sh filled");
        println!("hint: make bench");
        std::process::exit(2);
    };
    println!(
        "{:<10} {:>10} {:>14} {:>12} {:>12} {:>10}",
        "", "zip", "exec to /next", "first", "warm", "memory"
    );
    for (name, event) in [("invoker", invocation()), ("poller", check()), ("watchdog", sweep())] {
        measure(folder, name, &event).await;
    }
    println!(
        "{:<10} {:>10} {:>14} {:>12} {:>12} {:>10}",
        "targets", "3 MB", "20 ms", "5 ms", "0.5 ms", "16 MB"
    );
}

async fn measure(folder: &Path, name: &str, event: &Value) {
    let zip = std::fs::metadata(folder.join(format!("{name}.zip"))).unwrap().len();
    let program = folder.join(name).join("bootstrap");
    let services = Services::start(answering).await;
    let environment = [
        ("JOURNAL_TABLE_NAME", "journal".to_owned()),
        (
            "AGENT_RUNTIME_ARN",
            "arn:aws:bedrock-agentcore:us-east-1:000000000000:runtime/agent-1".to_owned(),
        ),
        ("AWS_ENDPOINT_URL", services.endpoint.clone()),
    ];
    let (mut ready, mut first, mut warm, mut memory) = (vec![], vec![], vec![], 0);
    for _ in 0..STARTS {
        let mut function = Function::start(&program, &environment).await;
        ready.push(function.ready().await);
        first.push(answered(&mut function, event).await);
        for _ in 0..WARM_EVENTS {
            warm.push(answered(&mut function, event).await);
        }
        memory = memory.max(function.peak_memory_kib());
    }
    println!(
        "{name:<10} {:>7.2} MB {:>11.1} ms {:>9.2} ms {:>9.2} ms {:>7.1} MB",
        megabytes(zip),
        median(ready),
        median(first),
        median(warm),
        megabytes(memory * 1024),
    );
}

async fn answered(function: &mut Function, event: &Value) -> Duration {
    let began = Instant::now();
    let answer = function.send(event.to_string(), PLENTY).await;
    let took = began.elapsed();
    assert!(matches!(answer, Answer::Response(_)), "{answer:?}: {}", function.log());
    took
}

#[expect(clippy::cast_precision_loss, reason = "a few megabytes")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// In milliseconds.
fn median(mut durations: Vec<Duration>) -> f64 {
    durations.sort();
    durations[durations.len() / 2].as_secs_f64() * 1e3
}

/// A journal that holds nothing and takes everything, and an agent that begins.
fn answering(operation: &str) -> Option<Value> {
    Some(match operation {
        "Query" => json!({ "Items": [], "Count": 0, "ScannedCount": 0 }),
        "invocations" => json!({ "outcome": "accepted", "seen": NOW }),
        _ => json!({}),
    })
}

fn invocation() -> Value {
    json!({
        "session_id": SESSION, "execution_arn": "arn", "detail": { "agent": "checkup" },
        "expires_at": 1_900_000_000, "seen": NOW, "asked_at": NOW, "invocation": 1, "retry": 0,
        "supersedes": 0,
    })
}

fn check() -> Value {
    json!({
        "mode": "check", "session_id": SESSION, "execution_arn": "arn", "expires_at": 1_900_000_000,
        "seen": NOW, "now": NOW, "woken": "not", "callback": null,
        "watch": {
            "invocation": 1, "epoch": 0, "invoked_at": NOW, "seq": 0, "lost": 0, "lost_at_seq": 0,
            "running_ms": 0, "poll_ms": 0, "timeout_s": 5, "heartbeat_s": 4,
        },
    })
}

fn sweep() -> Value {
    json!({ "detail-type": "Scheduled Event" })
}
