//! Single workloads for external measurement tools.
//!
//! - `ten-step SECONDS AT_ONCE...` runs ten-step runs for comparison with other systems, and prints a JSON
//!   line per concurrency.
//! - `session SECONDS AT_ONCE...` does the same with whole sessions, for a profiler.
//! - `count WHAT TIMES` repeats one operation, for instruction counts: `append` (a record to the journal),
//!   `step` (of one run, through the driver) or `resume` (a session of TIMES steps).

use std::time::Duration;

use journal::item::Item;
use journal::read;
use journal::sqlite::{Durability, SqliteStore};
use journal::store::{Condition, Store as _};
use serde_json::json;
use tokio::runtime::Builder;

use crate::runs::{self, STEPS};
use crate::{RECORD_BYTES, runtime, scratch, sessions};

/// The requested workload.
pub enum Asked {
    /// Runs or sessions at once, and for how long each.
    Rates { of: Of, within: Duration, at_once: Vec<usize> },
    /// What, and how often.
    Count { what: String, times: u32 },
}

/// A workload measured as a rate.
#[derive(Clone, Copy)]
pub enum Of {
    /// Runs of ten steps.
    TenSteps,
    /// Whole sessions of ten steps.
    Sessions,
}

/// Parses the command line, if it requests a single workload.
pub fn asked(arguments: &[String]) -> Option<Asked> {
    let after = |word: &str| {
        let place = arguments.iter().position(|argument| argument == word)?;
        Some(&arguments[place + 1..])
    };
    if let Some([what, times, ..]) = after("count") {
        return Some(Asked::Count { what: what.clone(), times: times.parse().ok()? });
    }
    let (of, numbers) = after("ten-step")
        .map(|numbers| (Of::TenSteps, numbers))
        .or_else(|| Some((Of::Sessions, after("session")?)))?;
    let mut numbers = numbers.iter().map_while(|text| text.parse::<u32>().ok());
    let within = Duration::from_secs(numbers.next().unwrap_or(3).into());
    let at_once = numbers.map(|number| usize::try_from(number).unwrap()).collect();
    Some(Asked::Rates { of, within, at_once })
}

/// Runs the workload.
pub fn measure(asked: &Asked) {
    match asked {
        Asked::Rates { of, within, at_once } => {
            for &at_once in at_once {
                let pace = match of {
                    Of::TenSteps => runtime().block_on(runs::of_ten(at_once, *within)),
                    Of::Sessions => runtime().block_on(sessions::rate(at_once, *within)),
                };
                println!(
                    "{}",
                    json!({ "what": "Daybook", "at_once": at_once, "per_second": pace.rate })
                );
            }
        }
        // On one thread: which of several does something depends on the machine.
        Asked::Count { what, times } => {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(count(what, *times));
        }
    }
}

async fn count(what: &str, times: u32) {
    let folder = scratch();
    // Waiting for the disk is no instruction.
    let store = SqliteStore::open(&folder.path().join("journal.db"), Durability::Relaxed).unwrap();
    match what {
        "append" => {
            for number in 0..times {
                let item = Item::new("SESSION#1", format!("STEP#{number:08}"))
                    .with("Payload", "x".repeat(RECORD_BYTES - 40));
                store.put(item, Condition::Absent).await.unwrap();
            }
        }
        "step" => {
            runs::run(&store, times, RECORD_BYTES).await;
        }
        "resume" => {
            let session = runs::run(&store, 500, RECORD_BYTES).await;
            for _ in 0..times {
                let mut steps = read::resolved_steps(&store, &session).await.unwrap();
                steps.pop();
                STEPS.resume(&steps).unwrap();
            }
        }
        other => panic!("`{other}` is not append, step or resume"),
    }
}
