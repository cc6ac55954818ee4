//! Gives executions to runners: new ones, those left by a restart, and those that are due.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use asl::definition::Definition;
use asl::execution::{Execution, Start};
use asl::history::Event;
use journal::clock::Stamp;
use journal::store::{Error, Retry};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::runner::{self, Broken, Callback, Cause, Command, Left, Runner};
use super::{ACTIVE_MAX, COMMANDS_MAX, ExecutionStore, Executions, READ_RETRY_DELAY, Record};
use crate::names;

/// What [`Executions::supervise`] waits for, besides a stop and a runner's end.
#[derive(Clone, Copy, PartialEq)]
enum Waiting {
    Start,
    Capacity,
    Store,
}

fn report(ended: &Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "An execution's runner stopped unexpectedly.");
    }
}

impl<S: ExecutionStore> Executions<S> {
    /// Runs every running execution until [`Self::begin_stop`].
    pub async fn supervise(&self) {
        let mut runners = JoinSet::new();
        let mut taken_up = 0;
        while !self.shared.stopping.is_cancelled() {
            let waiting = self.take_up_waiting(&mut runners, &mut taken_up).await;
            let due = self.until_due();
            // Cancel-safe: a start and an ended call leave their permits, a runner leaves its
            // result, and the next due time is computed again.
            tokio::select! {
                () = self.shared.started.notified(), if waiting == Waiting::Start => {}
                () = due, if waiting == Waiting::Start => {}
                () = self.shared.work.fewer(), if waiting == Waiting::Capacity => {}
                () = tokio::time::sleep(READ_RETRY_DELAY), if waiting == Waiting::Store => {}
                Some(ended) = runners.join_next() => report(&ended),
                () = self.shared.stopping.cancelled() => {}
            }
        }
        while let Some(ended) = runners.join_next().await {
            report(&ended);
        }
    }

    /// Waits until the next parked execution is due.
    async fn until_due(&self) {
        let Some(at) = self.shared.parked().next_at() else { return std::future::pending().await };
        let now = Stamp::from_nanos(self.shared.now().as_nanos());
        let wait = Stamp::from_nanos(at.as_nanos()).since(now);
        tokio::time::sleep(self.shared.clock.real(wait).min(runner::SLEEP_LONGEST)).await;
    }

    /// Gives due and new executions to runners while there is capacity.
    async fn take_up_waiting(&self, runners: &mut JoinSet<()>, taken_up: &mut i64) -> Waiting {
        loop {
            while let Some(ended) = runners.try_join_next() {
                report(&ended);
            }
            let capacity =
                ACTIVE_MAX.saturating_sub(runners.len()).min(self.shared.work.capacity());
            if capacity == 0 {
                return Waiting::Capacity;
            }
            let due = self.shared.parked().take_due(self.shared.now(), capacity);
            let found = if due.is_empty() {
                self.shared.store.running_after(*taken_up, capacity).await
            } else {
                self.shared.store.running(&due).await
            };
            let records = match found {
                Ok(records) => records,
                Err(error) => {
                    tracing::warn!(%error, "Cannot read the running executions.");
                    let now = self.shared.now();
                    due.iter().for_each(|id| self.shared.parked().park(*id, now));
                    return Waiting::Store;
                }
            };
            let is_last = due.is_empty() && records.len() < capacity;
            let cause = if due.is_empty() { Cause::Running } else { Cause::Due };
            if !self.take_up_all(runners, records, cause, taken_up).await {
                return Waiting::Store;
            }
            if is_last {
                return Waiting::Start;
            }
        }
    }

    /// Gives executions to runners in the order of their start, and records its progress in `taken_up`.
    /// Returns whether the store could be read.
    async fn take_up_all(
        &self,
        runners: &mut JoinSet<()>,
        records: Vec<Record>,
        cause: Cause,
        taken_up: &mut i64,
    ) -> bool {
        let mut records = records.into_iter();
        while let Some(record) = records.next() {
            let id = record.id;
            match self.replay(&record).await {
                Ok(execution) => self.take_up(runners, record, execution, cause),
                Err(Broken::Store(error)) if error.retry() != Retry::Never => {
                    tracing::warn!(%error, "Cannot read a running execution.");
                    // Those that ran before are still due.
                    let (now, known) = (self.shared.now(), *taken_up);
                    let left = std::iter::once(record).chain(records).filter(|r| r.id <= known);
                    left.for_each(|record| self.shared.parked().park(record.id, now));
                    return false;
                }
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    let arn = record.arn;
                    tracing::error!(%arn, %error, cause, "Cannot continue an execution.");
                }
            }
            *taken_up = id.max(*taken_up);
        }
        true
    }

    fn take_up(
        &self,
        runners: &mut JoinSet<()>,
        record: Record,
        execution: Execution,
        cause: Cause,
    ) {
        let (inbox, commands) = mpsc::channel(COMMANDS_MAX);
        let Record { id, arn, .. } = record;
        if let Some(token) = self.shared.owed().remove(&arn) {
            let (reply, _) = oneshot::channel();
            let answer = Callback::Success(json!({}));
            // The inbox is new and has room.
            let _ = inbox.try_send(Command::Callback { token, answer, reply });
        }
        self.shared.live().insert(arn.clone(), inbox);
        let shared = Arc::clone(&self.shared);
        let runner = Runner::new(Arc::clone(&shared), id, execution, commands, cause);
        let executions = self.clone();
        runners.spawn(async move {
            let left = runner.run().await;
            shared.live().remove(&arn);
            match left {
                Ok(Left::Parked(until)) => {
                    shared.parked().park(id, until);
                    // The supervisor may now be due earlier.
                    shared.started.notify_one();
                    return;
                }
                Ok(Left::Ended) => {}
                Err(error) => {
                    tracing::error!(%arn, %error, "An execution is stopped until the next start of the stack.");
                }
            }
            executions.announce_end(&arn).await;
        });
    }

    async fn replay(&self, record: &Record) -> Result<Execution, Broken> {
        let bodies = self.shared.store.history(record.id, 0, false, usize::MAX).await?;
        let history = bodies
            .iter()
            .map(|body| serde_json::from_str::<Event>(body))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| Error::Corrupt(error.into()))?;
        let start = Start {
            execution_arn: record.arn.clone(),
            execution_name: record.name.clone(),
            role_arn: names::ROLE_ARN.to_owned(),
            state_machine_arn: record.machine_arn.clone(),
            state_machine_name: self.shared.machine.name.clone(),
            input: record.input.clone(),
            started_at: record.started_at,
            token_seed: record.token_seed.clone(),
        };
        let definition = self.definition(record.machine).await?;
        Ok(Execution::replay(definition, start, &history)?)
    }

    pub(crate) async fn definition(&self, machine: i64) -> Result<Arc<Definition>, Error> {
        let known = |definitions: &Mutex<BTreeMap<i64, Arc<Definition>>>| {
            let definitions = definitions.lock().unwrap_or_else(PoisonError::into_inner);
            definitions.get(&machine).cloned()
        };
        if let Some(definition) = known(&self.shared.definitions) {
            return Ok(definition);
        }
        let text = self.shared.store.definition(machine).await?;
        let parsed = Definition::parse(&text).map_err(|error| Error::Corrupt(error.into()))?;
        let parsed = Arc::new(parsed);
        let mut definitions =
            self.shared.definitions.lock().unwrap_or_else(PoisonError::into_inner);
        definitions.insert(machine, Arc::clone(&parsed));
        Ok(parsed)
    }
}
