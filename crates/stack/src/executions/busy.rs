//! Limits how many executions work at once, so that a burst does not fill the memory.
//!
//! Without this limit, ten thousand executions that start together would all be read and then wait for
//! the same functions. The limit lets those that have begun finish first; the others wait as rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// Executions at work above which no further one is read. Two functions of the workflow run 64 calls
/// each at a time.
pub(super) const BUSY_MAX: usize = 128;

/// How long a call counts as work, by the machine's clock. Some functions take a quarter of an hour,
/// and some calls wait for another execution.
pub(super) const BUSY_LONGEST: Duration = Duration::from_secs(5);

/// The number of executions at work, and a notification when it falls.
#[derive(Clone, Debug, Default)]
pub(super) struct Work(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    busy: AtomicUsize,
    fewer: Notify,
}

/// RAII permit; released on drop.
#[derive(Debug)]
pub(super) struct Busy(Work);

impl Work {
    /// Adds an execution at work, even beyond the limit.
    pub(super) fn begin(&self) -> Busy {
        self.0.busy.fetch_add(1, Ordering::Relaxed);
        Busy(self.clone())
    }

    /// How many more executions may begin.
    pub(super) fn capacity(&self) -> usize {
        BUSY_MAX.saturating_sub(self.0.busy.load(Ordering::Relaxed))
    }

    /// Waits until an execution has ended since the last wait.
    pub(super) async fn fewer(&self) {
        self.0.fewer.notified().await;
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Work(counted) = &self.0;
        counted.busy.fetch_sub(1, Ordering::Relaxed);
        counted.fewer.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_waiter_sees_a_permit_that_was_released_before() {
        let work = Work::default();
        let mut busy: Vec<Busy> = (0..BUSY_MAX).map(|_| work.begin()).collect();
        assert_eq!(work.capacity(), 0);
        drop(busy.pop());
        work.fewer().await;
        assert_eq!(work.capacity(), 1);
        // Executions that have begun continue even above the limit.
        busy.extend((0..2).map(|_| work.begin()));
        assert_eq!(work.capacity(), 0);
    }
}
