//! Runs of distributed `Map` states: child executions beside their parent's.
//!
//! The parent's runner performs a run like a call (`perform`). What a run is and how it is set are a resource in the
//! journal's file, its executions are rows (`children`). So after a crash the run continues with both: no item is read
//! twice, and no execution starts twice. If the parent ends, its run and the executions in it are aborted.

mod dataset;
mod results;

use std::sync::Arc;
use std::time::Duration;

use asl::error_name;
use asl::execution::{Execution, MapRun, Source};
use asl::history::Failure;
use asl::time::Timestamp;
use journal::store::{Error, Retry};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::redrives::RedriveError;
use super::{
    ChildCounts, ExecutionStore, Executions, NewExecution, PENDING_REDRIVE, RUNNING, Record,
    Shared, StopError, until_known,
};
use crate::names;

/// The kind of its resources.
const KIND: &str = "map run";

/// Most executions of a run at once where the definition sets no limit: more would exceed what functions take at once.
pub const CONCURRENCY_DEFAULT: usize = 40;

/// Most executions of a run at once.
pub const CONCURRENCY_MAX: usize = 1_000;

/// How often a run is looked at if no execution ends, by the machine's clock.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Delay before a failed read or write is repeated, by the machine's clock.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A run of a distributed `Map`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserMapRun {
    pub arn: String,
    /// The parent.
    pub execution_arn: String,
    /// The state machine of the children.
    pub machine_arn: String,
    pub status: String,
    pub started_at: Timestamp,
    pub stopped_at: Option<Timestamp>,
    /// 0 for the default.
    pub max_concurrency: usize,
    pub tolerated_count: Option<usize>,
    pub tolerated_percentage: Option<f64>,
    pub redrives: u64,
    pub redriven_at: Option<Timestamp>,
    pub has_writer: bool,
    /// Whether all executions are rows.
    is_filled: bool,
    /// The event that started it, or its newest redrive.
    event_id: u64,
}

/// Why a run is not changed.
#[derive(Debug, thiserror::Error)]
pub enum MapRunError {
    #[error("Resource not found: '{0}'")]
    DoesNotExist(String),
    #[error("Map Run has ended and cannot be updated: '{0}'")]
    Ended(String),
    #[error(transparent)]
    Store(#[from] Error),
}

/// New settings of a run; absent ones stay.
#[derive(Clone, Copy, Debug, Default)]
pub struct MapRunChange {
    pub max_concurrency: Option<usize>,
    pub tolerated_count: Option<usize>,
    pub tolerated_percentage: Option<f64>,
}

impl UserMapRun {
    /// Marks the executions that its newest redrive has run again.
    fn token(&self) -> String {
        run_token(&self.arn, self.event_id)
    }

    fn concurrency(&self) -> usize {
        match self.max_concurrency {
            0 => CONCURRENCY_DEFAULT,
            most => most.min(CONCURRENCY_MAX),
        }
    }

    /// Whether more items failed than it tolerates.
    fn exceeds(&self, failed: usize, items: usize) -> bool {
        let share = |percentage: f64| (percentage * items as f64 / 100.0) as usize;
        let limits = [self.tolerated_count, self.tolerated_percentage.map(share)];
        failed > limits.into_iter().flatten().min().unwrap_or(0)
    }
}

/// Performs a run until it has ended; `None` if the stack stops, or if the parent ends or goes on without it
/// (`gone`).
pub(super) async fn perform<S: ExecutionStore>(
    shared: Arc<Shared<S>>,
    execution: Execution,
    event_id: u64,
    gone: CancellationToken,
) -> Option<Result<Value, Failure>> {
    let executions = Executions { shared };
    loop {
        match executions.run_map(&execution, event_id, &gone).await {
            Ok(ended) => return ended,
            Err(error) if error.retry() == Retry::Never => {
                return Some(Err(Failure::new(error_name::RUNTIME, Some(error.to_string()))));
            }
            Err(error) => {
                tracing::warn!(%error, "Cannot read or write the run of a Map; retrying.");
                let stopping = executions.shared.stopping.clone();
                let pause = tokio::time::sleep(RETRY_DELAY);
                stopping.run_until_cancelled(pause).await?;
            }
        }
    }
}

impl<S: ExecutionStore> Executions<S> {
    /// All runs of distributed maps, by ARN.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn map_runs(&self) -> Result<Vec<UserMapRun>, Error> {
        let resources = self.shared.store.resources(KIND).await?;
        let parsed = resources.iter().map(|(_, body)| serde_json::from_str(body));
        parsed.collect::<Result<_, _>>().map_err(|error| Error::Corrupt(error.into()))
    }

    /// The run of this ARN.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn map_run(&self, arn: &str) -> Result<Option<UserMapRun>, Error> {
        let body = self.shared.store.resource(KIND, arn).await?;
        let parsed = body.map(|body| serde_json::from_str(&body)).transpose();
        parsed.map_err(|error| Error::Corrupt(error.into()))
    }

    /// How many executions and items of a run have which status.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn child_counts(&self, run: &UserMapRun) -> Result<ChildCounts, Error> {
        let token = (run.redrives > 0).then(|| run.token());
        self.shared.store.child_counts(&run.arn, token.as_deref()).await
    }

    /// The executions of a run that have begun, in the order of their items.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn children(&self, run: &str) -> Result<Vec<Record>, Error> {
        self.shared.store.children(run).await
    }

    /// The run that an execution belongs to.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn run_of(&self, execution: &Record) -> Result<Option<String>, Error> {
        self.shared.store.run_of(execution.id).await
    }

    /// Changes the settings of a run in progress, which applies them at once.
    ///
    /// # Errors
    /// See [`MapRunError`].
    pub async fn update_map_run(&self, arn: &str, change: MapRunChange) -> Result<(), MapRunError> {
        let _changing = self.changing().await;
        let found = self.map_run(arn).await?;
        let mut run = found.ok_or_else(|| MapRunError::DoesNotExist(arn.to_owned()))?;
        if run.status != RUNNING {
            return Err(MapRunError::Ended(arn.to_owned()));
        }
        run.max_concurrency = change.max_concurrency.unwrap_or(run.max_concurrency);
        run.tolerated_count = change.tolerated_count.or(run.tolerated_count);
        run.tolerated_percentage = change.tolerated_percentage.or(run.tolerated_percentage);
        Ok(self.keep_run(&run).await?)
    }

    /// Aborts the runs whose parent ended while the stack was down.
    pub(super) async fn abort_orphans(&self) -> Result<(), Error> {
        if !self.shared.store.has_children() {
            return Ok(());
        }
        for run in self.map_runs().await?.into_iter().filter(|run| run.status == RUNNING) {
            if !self.runs(&run.execution_arn).await? {
                self.abort(&run.arn).await?;
            }
        }
        Ok(())
    }

    async fn keep_run(&self, run: &UserMapRun) -> Result<(), Error> {
        self.keep_resource(KIND, &run.arn, Some(run)).await
    }

    async fn runs(&self, arn: &str) -> Result<bool, Error> {
        Ok(self.describe(arn).await?.is_some_and(|record| record.status == RUNNING))
    }

    async fn run_map(
        &self,
        execution: &Execution,
        event_id: u64,
        gone: &CancellationToken,
    ) -> Result<Option<Result<Value, Failure>>, Error> {
        let plan = match execution.map_run(event_id) {
            None => return Ok(None),
            Some(Err(failure)) => return Ok(Some(Err(failure))),
            Some(Ok(plan)) => plan,
        };
        let run = self.opened(execution, &plan, event_id).await?;
        if !run.is_filled
            && let Err(failure) = self.fill(execution, &plan, event_id, run).await?
        {
            self.close(&plan.arn, "FAILED").await?;
            return Ok(Some(Err(failure)));
        }
        let parent = &execution.start().execution_arn;
        let token = plan.redriven.then(|| run_token(&plan.arn, event_id));
        let driven = self.drive(&plan.arn, parent, token.as_deref(), gone).await?;
        let Some(is_exceeded) = driven else {
            return Ok(None);
        };
        let children = self.children(&plan.arn).await?;
        let buckets = self.shared.services.buckets.clone();
        let writer = plan.writer.clone();
        let arn = plan.arn.clone();
        let result = tokio::task::spawn_blocking(move || {
            results::result(buckets.as_ref(), writer.as_ref(), &arn, &children)
        });
        let result = result.await.map_err(|error| Error::Unavailable(error.into()))?;
        let result = if is_exceeded { Err(exceeded()) } else { result };
        self.close(&plan.arn, if result.is_ok() { "SUCCEEDED" } else { "FAILED" }).await?;
        Ok(Some(result))
    }

    /// The run's resource, created or opened again.
    async fn opened(
        &self,
        execution: &Execution,
        plan: &MapRun,
        event_id: u64,
    ) -> Result<UserMapRun, Error> {
        let _changing = self.changing().await;
        let now = self.shared.wall();
        let start = execution.start();
        let run = match self.map_run(&plan.arn).await? {
            Some(known) if known.event_id == event_id => return Ok(known),
            Some(known) => UserMapRun {
                status: RUNNING.to_owned(),
                stopped_at: None,
                redrives: known.redrives + 1,
                redriven_at: Some(now),
                event_id,
                ..known
            },
            None => UserMapRun {
                arn: plan.arn.clone(),
                execution_arn: start.execution_arn.clone(),
                machine_arn: format!("{}/{}", start.state_machine_arn, plan.label),
                status: RUNNING.to_owned(),
                started_at: now,
                stopped_at: None,
                max_concurrency: plan.max_concurrency.unwrap_or(0),
                tolerated_count: plan.tolerated_count,
                tolerated_percentage: plan.tolerated_percentage,
                redrives: 0,
                redriven_at: None,
                has_writer: plan.writer.is_some(),
                is_filled: false,
                event_id,
            },
        };
        self.keep_run(&run).await?;
        Ok(run)
    }

    /// Reads the items and writes a row for each execution.
    async fn fill(
        &self,
        execution: &Execution,
        plan: &MapRun,
        event_id: u64,
        run: UserMapRun,
    ) -> Result<Result<(), Failure>, Error> {
        let items = match &plan.source {
            Source::Items(items) => Ok(items.clone()),
            Source::Reader(reading) => {
                let (buckets, reading) = (self.shared.services.buckets.clone(), reading.clone());
                let read =
                    tokio::task::spawn_blocking(move || dataset::read(buckets.as_ref(), &reading));
                read.await.map_err(|error| Error::Unavailable(error.into()))?
            }
        };
        let inputs = match items.map(|items| execution.map_run_inputs(event_id, items)) {
            Ok(Some(Ok(inputs))) => inputs,
            Ok(Some(Err(failure))) | Err(failure) => return Ok(Err(failure)),
            Ok(None) => return Ok(Err(dataset::failed("the run is not in progress"))),
        };
        let now = self.shared.wall();
        let store = &self.shared.store;
        let machine =
            until_known(|| store.open_machine(&run.machine_arn, &plan.definition, now)).await?;
        let machine_name = names::machine_name(&run.machine_arn);
        let child = |(input, items): (Value, usize)| {
            let name = Uuid::new_v4().to_string();
            let new = NewExecution {
                arn: names::execution_arn(machine_name, &name),
                token_seed: Uuid::new_v4().to_string(),
                name,
                input: input.to_string(),
                started_at: now,
            };
            (new, items)
        };
        let children: Vec<_> = inputs.into_iter().map(child).collect();
        until_known(|| store.add_children(&run.arn, machine.id, children.clone())).await?;
        let _changing = self.changing().await;
        // It may have been updated since.
        if let Some(run) = self.map_run(&run.arn).await? {
            self.keep_run(&UserMapRun { is_filled: true, ..run }).await?;
        }
        Ok(Ok(()))
    }

    /// Runs the executions until all have ended, or too many have failed. Returns whether it is the latter; `None` if
    /// the stack stops or the parent has ended.
    async fn drive(
        &self,
        run: &str,
        parent: &str,
        token: Option<&str>,
        gone: &CancellationToken,
    ) -> Result<Option<bool>, Error> {
        let mut ends = self.ends();
        loop {
            if gone.is_cancelled() || !self.runs(parent).await? {
                self.abort(run).await?;
                return Ok(None);
            }
            let Some(settings) = self.map_run(run).await? else { return Ok(None) };
            let counts = self.shared.store.child_counts(run, token).await?;
            if settings.exceeds(counts.failed_items(), counts.items()) {
                self.stop_children(run).await?;
                return Ok(Some(true));
            }
            let mut free = settings.concurrency().saturating_sub(counts.of(RUNNING).0);
            if let Some(token) = token
                && counts.of(PENDING_REDRIVE).0 > 0
            {
                free -= self.redrive_children(run, token, free).await?;
            }
            let (store, now) = (&self.shared.store, self.shared.wall());
            let begun = match free {
                0 => 0,
                free => until_known(|| store.begin_children(run, free, now)).await?,
            };
            if begun > 0 {
                self.shared.started.notify_one();
            }
            if counts.have_all_ended() {
                return Ok(Some(false));
            }
            // Cancel-safe: the next look reads the rows.
            tokio::select! {
                _ = ends.recv() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = gone.cancelled() => {}
                () = self.shared.stopping.cancelled() => return Ok(None),
            }
        }
    }

    /// Redrives executions that have not been yet, at most `limit`. Returns how many.
    async fn redrive_children(&self, run: &str, token: &str, limit: usize) -> Result<usize, Error> {
        let waits = |child: &Record| {
            let is_done =
                child.redriven.as_ref().is_some_and(|it| it.token.as_deref() == Some(token));
            !is_done && !["SUCCEEDED", RUNNING].contains(&child.status.as_str())
        };
        let children = self.children(run).await?.into_iter().filter(waits).take(limit);
        let mut redriven = 0;
        for child in children {
            match self.redrive_now(&child, Some(token)).await {
                Ok(_) => redriven += 1,
                Err(RedriveError::Store(error)) => return Err(error),
                // A history that is full fails the run again: it is not redriven, so it stays pending.
                Err(error) => return Err(Error::Refused(error.into())),
            }
        }
        Ok(redriven)
    }

    /// Aborts a run whose parent has ended, and its executions.
    async fn abort(&self, run: &str) -> Result<(), Error> {
        self.stop_children(run).await?;
        self.close(run, "ABORTED").await
    }

    async fn stop_children(&self, run: &str) -> Result<(), Error> {
        for child in self.children(run).await?.into_iter().filter(|it| it.status == RUNNING) {
            match self.stop(&child.arn, Failure::default()).await {
                Ok(_) | Err(StopError::DoesNotExist(_)) => {}
                Err(StopError::Store(error)) => return Err(error),
                // The run is looked at again.
                Err(error @ StopError::Busy) => return Err(Error::Unavailable(error.into())),
            }
        }
        Ok(())
    }

    async fn close(&self, arn: &str, status: &str) -> Result<(), Error> {
        let _changing = self.changing().await;
        let Some(run) = self.map_run(arn).await? else { return Ok(()) };
        let stopped_at = Some(self.shared.wall());
        self.keep_run(&UserMapRun { status: status.to_owned(), stopped_at, ..run }).await
    }
}

fn run_token(arn: &str, event_id: u64) -> String {
    format!("{arn}/{event_id}")
}

fn exceeded() -> Failure {
    let cause = "The specified tolerated failure threshold was exceeded".to_owned();
    Failure::new(error_name::TOLERATED_FAILURES_EXCEEDED, Some(cause))
}
