//! What all runners of a stack's executions share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use asl::definition::Definition;
use asl::time::Timestamp;
use journal::clock::Clock;
use tokio::sync::{Notify, broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use super::StateMachine;
use super::busy::Work;
use super::failures::Failures;
use super::parked::Parked;
use super::runner::Command;
use super::store::Record;
use crate::rules::UserRule;
use crate::services::Services;

#[derive(Debug)]
pub(super) struct Shared<S> {
    pub(super) store: S,
    pub(super) clock: Clock,
    /// The clock above without its steps. Waits and time limits count on it.
    pub(super) even: Clock,
    pub(super) services: Services,
    pub(super) machine: StateMachine,
    /// Parsed definitions, by row: one for each version of the text.
    pub(super) definitions: Mutex<BTreeMap<i64, Arc<Definition>>>,
    pub(super) live: Mutex<BTreeMap<String, mpsc::Sender<Command>>>,
    pub(super) parked: Mutex<Parked>,
    /// Failures of their runners since the start of the stack, by execution.
    pub(super) failures: Mutex<Failures>,
    /// Tokens of callbacks that executions get when they are taken up, by ARN.
    pub(super) owed: Mutex<BTreeMap<String, String>>,
    pub(super) started: Notify,
    /// The rules of users, read once and after each change.
    pub(super) rules: Mutex<Option<Arc<[UserRule]>>>,
    pub(super) rules_reading: tokio::sync::Mutex<()>,
    /// Held while what users created is read to be changed.
    pub(super) changing: tokio::sync::Mutex<()>,
    /// Notified when the wall clock was set.
    pub(super) wall_set: Notify,
    pub(super) work: Work,
    pub(super) ends: broadcast::Sender<Arc<Record>>,
    pub(super) stopping: CancellationToken,
}

impl<S> Shared<S> {
    /// The machine's clock.
    pub(super) fn wall(&self) -> Timestamp {
        Timestamp::from_nanos(self.clock.now().nanos())
    }

    /// When a delay has passed, on the even clock.
    pub(super) fn after(&self, delay: Duration) -> Timestamp {
        Timestamp::from_nanos(self.even.now().after(delay).nanos())
    }

    /// The even clock, which due times refer to.
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.even.now().nanos())
    }

    /// How far an execution's own time is ahead of [`Self::now`], in milliseconds. It starts at the wall
    /// clock, with each start of the stack again, and never before its own history. From there it runs
    /// evenly.
    pub(super) fn ahead_ms(&self, id: i64, newest_at: Timestamp) -> i64 {
        let parked = self.parked().take_ahead_ms(id);
        let from = self.wall().max(newest_at).as_millis();
        parked.unwrap_or_else(|| from.saturating_sub(self.now().as_millis()))
    }

    pub(super) fn parked(&self) -> std::sync::MutexGuard<'_, Parked> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn owed(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn failing(&self) -> Vec<i64> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.recent(self.even.now())
    }

    /// Returns how often the execution's runner has failed, this time included.
    pub(super) fn count_failure(&self, execution: i64) -> u32 {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.count(execution, self.even.now())
    }

    /// Removes the inbox of a runner that has left its execution. Another one may run it by now.
    pub(super) fn leave(&self, arn: &str, inbox: &mpsc::WeakSender<Command>) {
        let mut live = self.live();
        let is_own = |known: &mpsc::Sender<Command>| {
            inbox.upgrade().is_some_and(|inbox| inbox.same_channel(known))
        };
        if live.get(arn).is_some_and(is_own) {
            live.remove(arn);
        }
    }

    pub(super) fn forget_failures(&self, execution: i64) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.forget(execution);
    }

    pub(super) fn live(
        &self,
    ) -> std::sync::MutexGuard<'_, BTreeMap<String, mpsc::Sender<Command>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
