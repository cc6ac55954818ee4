//! Failures of the runners of executions, which bound their restarts.

use std::collections::BTreeMap;
use std::time::Duration;

use journal::clock::Stamp;

/// After this time without another failure, the earlier ones no longer count. All restarts take half of it.
const REMEMBERED: Duration = Duration::from_secs(60);

/// By execution: how often its runner has failed, and when last, on the even clock.
#[derive(Debug, Default)]
pub(super) struct Failures(BTreeMap<i64, (u32, Stamp)>);

impl Failures {
    /// Returns how often the execution's runner has failed, this time included.
    pub(super) fn count(&mut self, execution: i64, now: Stamp) -> u32 {
        let before = self.0.get(&execution).filter(|(_, newest)| is_recent(*newest, now));
        let count = before.map_or(0, |(count, _)| *count) + 1;
        self.0.insert(execution, (count, now));
        count
    }

    pub(super) fn forget(&mut self, execution: i64) {
        self.0.remove(&execution);
    }

    /// The executions whose runner has failed recently.
    pub(super) fn recent(&mut self, now: Stamp) -> Vec<i64> {
        self.0.retain(|_, (_, newest)| is_recent(*newest, now));
        self.0.keys().copied().collect()
    }
}

fn is_recent(newest: Stamp, now: Stamp) -> bool {
    now.since(newest) < REMEMBERED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_that_are_far_apart_do_not_add_up() {
        let (mut failures, start) = (Failures::default(), Stamp::from_millis(1_795_257_000_000));
        let at = |seconds| start.after(Duration::from_secs(seconds));
        assert_eq!([failures.count(1, at(0)), failures.count(1, at(16))], [1, 2]);
        assert_eq!(failures.count(2, at(20)), 1);
        assert_eq!(failures.recent(at(75)), [1, 2]);
        assert_eq!(failures.recent(at(76)), [2]);
        assert_eq!(failures.count(1, at(80)), 1);
    }
}
