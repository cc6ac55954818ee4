//! How many executions are being worked on, so that a burst is worked off rather than held in memory.
//!
//! Ten thousand that are started at once would all be read and wait for the same functions, and what
//! they hold meanwhile is what the process stays as large as. Those that were begun come first; the
//! others wait as rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// Executions worked on at once before no further one is taken up. Two functions of ours answer 64 calls
/// each at a time.
pub(super) const BUSY_MAX: usize = 128;

/// How long a call keeps others from being taken up, by the machine's clock: some functions take a
/// quarter of an hour, and some calls wait for another execution.
pub(super) const BUSY_LONGEST: Duration = Duration::from_secs(5);

/// The number of those that are worked on, and who is told when it falls.
#[derive(Clone, Debug, Default)]
pub(super) struct Work(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    busy: AtomicUsize,
    fewer: Notify,
}

/// One of them, for as long as it is kept.
#[derive(Debug)]
pub(super) struct Busy(Work);

impl Work {
    /// One more, whatever the number is.
    pub(super) fn begin(&self) -> Busy {
        self.0.busy.fetch_add(1, Ordering::Relaxed);
        Busy(self.clone())
    }

    /// How many more may be taken up.
    pub(super) fn places(&self) -> usize {
        BUSY_MAX.saturating_sub(self.0.busy.load(Ordering::Relaxed))
    }

    /// Waits until one has ended since this was last waited for.
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
    async fn whoever_waits_for_a_place_is_told_of_one_even_if_it_came_before() {
        let work = Work::default();
        let mut busy: Vec<Busy> = (0..BUSY_MAX).map(|_| work.begin()).collect();
        assert_eq!(work.places(), 0);
        drop(busy.pop());
        work.fewer().await;
        assert_eq!(work.places(), 1);
        // Those that were begun go on although there are too many.
        busy.extend((0..2).map(|_| work.begin()));
        assert_eq!(work.places(), 0);
    }
}
