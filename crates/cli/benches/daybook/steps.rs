//! Long sessions: bytes and time per step as a session grows, and the time to resume one.

use std::time::Instant;

use journal::item::Item;
use journal::read;
use journal::sqlite::{Durability, SqliteStore};
use journal::store::{Query, Store as _};

use crate::report::{FSYNC, READ, Report};
use crate::runs::{self, STEPS};
use crate::{runtime, scratch, store};

/// Steps of a session that is resumed; growth shows between them.
const RESUMED: [u32; 3] = [1_000, 10_000, 100_000];

/// What each of those brings, in bytes.
const OUTCOME_BYTES: usize = 1_000;

/// Turns of the run whose bytes are counted, and what a turn says.
const TURNS: u32 = 200;
const TURN_BYTES: [usize; 3] = [1_000, 4_000, 16_000];

/// Resumptions of a session; the median is reported.
const TIMES: usize = 5;

/// Runs all measurements.
pub fn measure(report: &mut Report) {
    let runtime = runtime();
    for steps in RESUMED {
        let folder = scratch();
        // The bench measures reads, so its file need not be durable.
        let file = folder.path().join("journal.db");
        let written = SqliteStore::open(&file, Durability::Relaxed).unwrap();
        let began = Instant::now();
        let session = runtime.block_on(runs::run(&written, steps, OUTCOME_BYTES));
        let micros = began.elapsed().as_secs_f64() * 1e6 / f64::from(steps);
        report.add("a step of one session", format!("of {steps}"), micros, "us", "none");
        drop(written);
        let mut times = Vec::new();
        for _ in 0..TIMES {
            let began = Instant::now();
            let read = SqliteStore::open_read_only(&file).unwrap();
            let mut steps = runtime.block_on(read::resolved_steps(&read, &session)).unwrap();
            // Up to its end: what is resumed has none.
            steps.pop();
            STEPS.resume(&steps).unwrap();
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        let target = if steps == 10_000 { "below 100" } else { "" };
        let ms = crate::median(&mut times);
        report.add_aimed("resume", format!("{steps} steps"), ms, "ms", READ, target);
    }
    for bytes in TURN_BYTES {
        let folder = scratch();
        let store = store(folder.path());
        let session = runtime.block_on(runs::run(&store, TURNS, bytes));
        let journaled = runtime.block_on(journaled(&store, &format!("SESSION#{session}")));
        #[expect(clippy::cast_precision_loss, reason = "megabytes")]
        let each = journaled as f64 / f64::from(TURNS);
        #[expect(clippy::cast_precision_loss, reason = "kilobytes")]
        let ratio = each / bytes as f64;
        let at = format!("turns of {bytes} B");
        report.add("journaled a step", &at, each, "B", FSYNC);
        let target = if bytes == TURN_BYTES[1] { "at most 1.2" } else { "" };
        report.add_aimed("journaled by what was said", at, ratio, "times", FSYNC, target);
    }
}

/// Bytes of all items of a partition.
async fn journaled(store: &SqliteStore, partition: &str) -> usize {
    items(store, partition).await.iter().map(Item::size_bytes).sum()
}

/// All items of a partition.
pub async fn items(store: &SqliteStore, partition: &str) -> Vec<Item> {
    let (mut items, mut query) = (Vec::new(), Query::all(partition));
    loop {
        let page = store.query(query.clone()).await.unwrap();
        items.extend(page.items);
        match page.next {
            Some(cursor) => query.after = Some(cursor),
            None => return items,
        }
    }
}
