//! Eight hours at work, on a clock that runs fast: what somebody who works and says so writes.

use std::path::Path;
use std::time::Duration;

use journal::store::{Query, Store as _};
use serde_json::json;

use crate::report::{FSYNC, Report};
use crate::runs::STEPS;
use crate::sessions::Running;
use crate::{RECORD_BYTES, scratch};

/// How many times as fast as the machine's the stack's clock runs. At this a heartbeat comes every tenth
/// of a second or less often, which a machine that does something else as well still manages.
const TIME_SCALE: u32 = 1_000;

/// Steps of the session, and how long each takes by the stack's clock: together ten minutes less than a
/// session may run.
const PIECES: u32 = 47;
const PIECE: Duration = Duration::from_secs(600);

/// Records, history and bytes of one session of almost eight hours.
pub fn measure(report: &mut Report) {
    let folder = scratch();
    // A piece of work keeps a thread of its own from everything else.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let (records, events, bytes) = runtime.block_on(async {
        let running = Running::start(folder.path(), TIME_SCALE).await;
        let before = on_disk(folder.path());
        let input = json!({
            "steps": PIECES,
            "bytes": RECORD_BYTES,
            "pause_ms": (PIECE / TIME_SCALE).as_millis(),
        });
        let ended =
            running.session(&json!({ "agent": STEPS.name(), "input": input }).to_string()).await;
        let partition = format!("SESSION#{}", ended.name);
        let records = running.stack.store().query(Query::all(&partition)).await.unwrap();
        assert!(records.next.is_none(), "more than a page");
        let executions = running.stack.executions();
        let events = executions.history(ended.id, None, false, usize::MAX).await.unwrap().len();
        running.stack.shutdown().await;
        (records.items.len(), events, on_disk(folder.path()).saturating_sub(before))
    });
    let at = format!("{PIECES} steps");
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
