//! Gives executions to runners: new ones, those left by a restart, and those that are due.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use asl::definition::Definition;
use asl::execution::{Execution, Outcome, Start};
use asl::history::{Event, EventKind, Failure};
use asl::time::Timestamp;
use journal::clock::Stamp;
use journal::store::{Error, Retry};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use workflow::error_name::EXECUTION_BROKEN;

use super::parked::Parked;
use super::runner::{self, Broken, Callback, Cause, Command, Left, Runner};
use super::{
    ACTIVE_MAX, COMMANDS_MAX, ExecutionStore, Executions, READ_RETRY_DELAY, RESTART_DELAY,
    RESTARTS_MAX, Record,
};
use crate::names;
use crate::restart::contained;
use crate::stack::chain;

/// Delay before an execution that could not be ended is tried again, by the stack's clock.
const END_RETRY_DELAY: Duration = Duration::from_secs(60);

/// What [`Executions::supervise`] waits for, besides a stop and a runner's end.
#[derive(Clone, Copy, PartialEq)]
enum Waiting {
    Start,
    Capacity,
    Store,
}

/// A runner's task contains panics; what remains is a bug in the restart itself.
fn report(ended: &Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "An execution's task stopped unexpectedly.");
    }
}

impl<S: ExecutionStore> Executions<S> {
    /// Runs every running execution until [`Self::begin_stop`]. If this panics, the next call begins with the rows again.
    pub async fn supervise(&self) {
        *self.shared.parked() = Parked::default();
        self.shared.live().clear();
        let mut runners = JoinSet::new();
        let mut taken_up = 0;
        let executions = self.clone();
        runners.spawn(async move {
            if let Err(error) = executions.abort_orphans().await {
                tracing::warn!(%error, "Cannot abort the Map runs of ended executions.");
            }
        });
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
            match replayed(self, &record).await {
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
                    let executions = self.clone();
                    runners.spawn(async move {
                        executions.failed(id, &record.arn, &chain(&error)).await
                    });
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
        // A redrive may make an execution due that a restarted stack takes up anyway.
        if self.shared.live().get(&arn).is_some_and(|inbox| !inbox.is_closed()) {
            return;
        }
        if let Some(token) = self.shared.owed().remove(&arn) {
            let (reply, _) = oneshot::channel();
            let answer = Callback::Success(json!({}));
            // The inbox is new and has room.
            let _ = inbox.try_send(Command::Callback { token, answer, reply });
        }
        self.shared.live().insert(arn.clone(), inbox.clone());
        let inbox = inbox.downgrade();
        let shared = Arc::clone(&self.shared);
        let ahead_ms = shared.ahead_ms(id, execution.newest_at());
        let runner = Runner::new(Arc::clone(&shared), id, execution, ahead_ms, commands, cause);
        let executions = self.clone();
        runners.spawn(async move {
            let left = contained("an execution's runner", runner.run()).await;
            shared.leave(&arn, &inbox);
            match left {
                Ok(Ok(Left::Parked(until))) => {
                    shared.parked().keep_ahead_ms(id, ahead_ms);
                    executions.take_up_at(id, until);
                }
                Ok(Ok(Left::Ended)) => executions.announce_end(&arn).await,
                Ok(Err(error)) => executions.failed(id, &arn, &chain(&error)).await,
                Err(panic) => executions.failed(id, &arn, &panic.to_string()).await,
            }
        });
    }

    pub(super) fn take_up_at(&self, id: i64, until: Timestamp) {
        self.shared.parked().park(id, until);
        // The supervisor may now be due earlier.
        self.shared.started.notify_one();
    }

    /// Restarts the runner of an execution after a delay. After too many failures, ends the execution.
    async fn failed(&self, id: i64, arn: &str, why: &str) {
        if self.shared.stopping.is_cancelled() {
            return;
        }
        let failures = self.shared.count_failure(id);
        if failures <= RESTARTS_MAX {
            let delay = RESTART_DELAY * (1 << (failures - 1));
            tracing::error!(%arn, why, failures, ?delay, "An execution's runner failed; restarting it.");
            self.take_up_at(id, self.shared.after(delay));
            return;
        }
        tracing::error!(%arn, why, failures, "An execution's runner failed too often; ending the execution.");
        match contained("the end of an execution", self.end_broken(id, why)).await {
            Ok(Ok(())) => self.announce_end(arn).await,
            failed => {
                let why = match failed {
                    Ok(error) => error.err().map(|error| chain(&error)).unwrap_or_default(),
                    Err(panic) => panic.to_string(),
                };
                tracing::error!(%arn, why, "An execution cannot be ended; trying again.");
                self.take_up_at(id, self.shared.after(END_RETRY_DELAY));
            }
        }
    }

    /// Ends an execution as failed without its interpreter, which may be what fails.
    async fn end_broken(&self, id: i64, why: &str) -> Result<(), Error> {
        let known = self.shared.store.history(id, 0, false, usize::MAX).await?.len() as u64;
        let cause = format!("the runner of the execution failed {} times: {why}", RESTARTS_MAX + 1);
        let failure = Failure::new(EXECUTION_BROKEN, Some(cause));
        let event = Event {
            id: known + 1,
            previous_event_id: known,
            timestamp: self.shared.wall(),
            kind: EventKind::ExecutionFailed(failure.clone()),
        };
        let ended = (Outcome::Failed(failure), event.timestamp);
        runner::append(&self.shared, id, &[event], Some(&ended)).await
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

/// The execution as its history has left it.
pub(super) async fn replayed<S: ExecutionStore>(
    executions: &Executions<S>,
    record: &Record,
) -> Result<Execution, Broken> {
    let bodies = executions.shared.store.history(record.id, 0, false, usize::MAX).await?;
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
        state_machine_name: names::machine_name(&record.machine_arn).to_owned(),
        input: record.input.clone(),
        started_at: record.started_at,
        token_seed: record.token_seed.clone(),
    };
    let definition = executions.definition(record.machine).await?;
    let mut execution = Execution::replay(definition, start, &history)?;
    if executions.shared.store.has_children() {
        execution.run_children();
    }
    Ok(execution)
}
