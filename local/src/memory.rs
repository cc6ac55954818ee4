//! Memory that a burst of sessions leaves behind goes back to the system.
//!
//! `daybook`'s own allocator gives back what was freed; the C library, which serves SQLite and programs
//! without another allocator, keeps it for the next burst. A stack whose ten thousand sessions wait for
//! people may wait for days, and with the C library alone a quarter of what it held was free: 19 of 75 MB
//! after three thousand sessions.

use std::time::Duration;

use journal::sqlite::SqliteStore;
use journal::store::Store as _;
use tokio_util::sync::CancellationToken;

/// A burst is over when nothing was written for so long.
const QUIET: Duration = Duration::from_secs(5);

/// Longer than [`QUIET`]; how long does not matter.
const LONG: Duration = Duration::from_secs(3_600);

/// Gives free memory back each time that the journal falls quiet.
pub async fn give_back(store: SqliteStore, stop: CancellationToken) {
    let quiet = async || while tokio::time::timeout(QUIET, store.changed(LONG)).await.is_ok() {};
    // The first time without a change: a start reads what an earlier process left.
    while stop.run_until_cancelled(quiet()).await.is_some() {
        // Some milliseconds, in which allocations wait.
        let _ = tokio::task::spawn_blocking(trim).await;
        if stop.run_until_cancelled(store.changed(LONG)).await.is_none() {
            return;
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "only the C library knows what it has kept")]
fn trim() {
    // SAFETY: takes a number and may be called at any time from any thread.
    unsafe { libc::malloc_trim(0) };
}

/// Other systems' allocators do so by themselves, or cannot be asked.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}
