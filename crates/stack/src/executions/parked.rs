//! Executions that wait for long: in memory, each is only an id and its due time.

use std::collections::{BTreeMap, BTreeSet};

use asl::time::Timestamp;

/// Running executions without a runner.
#[derive(Debug, Default)]
pub(super) struct Parked {
    until: BTreeMap<i64, Timestamp>,
    queue: BTreeSet<(Timestamp, i64)>,
    /// How far each execution's own time is ahead of the due times, if it is, in milliseconds.
    ahead_ms: BTreeMap<i64, i64>,
}

impl Parked {
    /// Parks an execution until a time.
    pub(super) fn park(&mut self, execution: i64, until: Timestamp) {
        self.forget(execution);
        self.until.insert(execution, until);
        self.queue.insert((until, execution));
    }

    /// Makes a parked execution due now. Returns whether it is parked.
    pub(super) fn wake(&mut self, execution: i64) -> bool {
        let is_parked = self.until.contains_key(&execution);
        if is_parked {
            self.park(execution, Timestamp::from_millis(0));
        }
        is_parked
    }

    pub(super) fn wake_all(&mut self) {
        let all: Vec<i64> = self.until.keys().copied().collect();
        all.into_iter().for_each(|execution| _ = self.wake(execution));
    }

    /// Keeps how far an execution's own time is ahead until a runner takes it.
    pub(super) fn keep_ahead_ms(&mut self, execution: i64, ahead_ms: i64) {
        self.ahead_ms.insert(execution, ahead_ms);
    }

    pub(super) fn take_ahead_ms(&mut self, execution: i64) -> Option<i64> {
        self.ahead_ms.remove(&execution)
    }

    /// Removes and returns due executions, the earliest first, at most `limit`.
    pub(super) fn take_due(&mut self, now: Timestamp, limit: usize) -> Vec<i64> {
        let due = self.queue.iter().take_while(|(until, _)| *until <= now).take(limit);
        let due: Vec<i64> = due.map(|(_, execution)| *execution).collect();
        due.iter().for_each(|execution| self.forget(*execution));
        due
    }

    /// When the next execution is due.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        self.queue.first().map(|(until, _)| *until)
    }

    fn forget(&mut self, execution: i64) {
        if let Some(until) = self.until.remove(&execution) {
            self.queue.remove(&(until, execution));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn woken_executions_come_first_and_due_ones_in_order() {
        let at = Timestamp::from_millis;
        let mut parked = Parked::default();
        for (execution, until) in [(1, 300), (2, 100), (3, 200), (4, 900)] {
            parked.park(execution, at(until));
        }
        parked.park(2, at(250));
        assert_eq!(parked.next_at(), Some(at(200)));
        assert!(parked.wake(4) && !parked.wake(9));
        assert_eq!(parked.take_due(at(250), 2), [4, 3]);
        assert_eq!(parked.take_due(at(250), 2), [2]);
        assert_eq!(parked.take_due(at(250), 2), Vec::<i64>::new());
        assert_eq!(parked.next_at(), Some(at(300)));
    }
}
