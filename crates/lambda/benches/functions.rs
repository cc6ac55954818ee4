//! Measures size, start and latency of the packaged functions: `functions FOLDER`, where
//! `scripts/lambdas.sh` put them for this machine's architecture.
//!
//! Fake services on this machine answer at once, so that the metrics are the functions' own. Times are
//! medians of many starts or warm events; memory is the maximum of all runs.

#![expect(clippy::unwrap_used, reason = "a bench that cannot run has nothing to say")]

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

#[path = "../tests/it/events.rs"]
mod events;
#[path = "../tests/it/fake.rs"]
mod fake;

use events::{ENVIRONMENT, answering, check, invocation, sweep};
use fake::{Answer, Function, Services};

/// Starts of each function.
const STARTS: usize = 20;

/// Warm events per start.
const WARM_EVENTS: usize = 50;

/// Ample time for any event.
const PLENTY: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|text| text != "--bench").collect();
    let Some(folder) = arguments.first().map(Path::new) else {
        println!("error: expected the folder that scripts/lambdas.sh creates");
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
    let mut environment: Vec<_> =
        ENVIRONMENT.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    environment.push(("AWS_ENDPOINT_URL", services.endpoint.clone()));
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
