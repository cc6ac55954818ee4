//! Eight hours of heartbeats, on a fast clock: bytes and records that a running agent writes.

use std::path::Path;

use serde_json::json;

use crate::report::{FSYNC, Report};
use crate::runs::STEPS;
use crate::sessions::Running;
use crate::{RECORD_BYTES, runtime, scratch, steps};

/// How many times as fast as the machine's the stack's clock runs. A heartbeat comes every fortieth of a
/// second then, and may be a seventh of a second late.
const TIME_SCALE: u32 = 400;

/// Steps of the session, and how many seconds of the stack's clock it sleeps before each. Who sleeps for
/// less than a minute is at work and says so; together they are ten minutes less than a session may run.
const STEPS_EACH: u32 = 564;
const NAP_S: u64 = 50;

/// Records, history and bytes of one session of almost eight hours.
pub fn measure(report: &mut Report) {
    let folder = scratch();
    let (records, events, bytes) = runtime().block_on(async {
        let running = Running::start(folder.path(), TIME_SCALE).await;
        let before = on_disk(folder.path());
        let input = json!({ "steps": STEPS_EACH, "bytes": RECORD_BYTES, "nap_s": NAP_S });
        let ended =
            running.session(&json!({ "agent": STEPS.name(), "input": input }).to_string()).await;
        let partition = format!("SESSION#{}", ended.name);
        let records = steps::items(running.stack.store(), &partition).await.len();
        let executions = running.stack.executions();
        let events = executions.history(ended.id, None, false, usize::MAX).await.unwrap().len();
        running.stack.shutdown().await;
        (records, events, on_disk(folder.path()).saturating_sub(before))
    });
    let at = format!("{STEPS_EACH} steps");
    let mut add = |what, figure: usize, unit| {
        #[expect(clippy::cast_precision_loss, reason = "thousands")]
        report.add(what, &at, figure as f64, unit, FSYNC);
    };
    add("eight hours at work", records, "records");
    add("eight hours at work", events, "history events");
    add("eight hours at work", bytes / 1024, "KiB on disk");
}

/// The journal's file and what has not been merged into it.
fn on_disk(folder: &Path) -> usize {
    let length = |name: &str| std::fs::metadata(folder.join(name)).map_or(0, |file| file.len());
    usize::try_from(length("journal.db") + length("journal.db-wal")).unwrap()
}
