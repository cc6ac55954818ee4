//! Durable Step Functions executions, in the database that holds the journal.
//!
//! [`Executions::start`] inserts a row. [`Executions::supervise`] takes the running rows in the order of
//! their start (`supervise`) and gives each to a runner (`runner`). The runner asks the interpreter what
//! comes next, writes it to the store (`store`, `sqlite`), and only then performs it (`call`). After a
//! kill at any instant, an execution continues from its rows. An execution that waits for long leaves
//! memory and continues the same way (`parked`).

mod busy;
mod call;
mod children;
pub mod conformance;
mod damaged;
mod encrypted;
mod error;
mod failures;
mod heads;
mod machines;
mod map_runs;
pub mod packed;
mod parked;
mod redrives;
mod resources;
mod runner;
mod shared;
mod sqlite;
mod store;
mod supervise;
mod versions;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use asl::definition::Definition;
use asl::execution::{CallbackError, PAYLOAD_BYTES_MAX};
use asl::history::Failure;
use asl::time::Timestamp;
use asl::token;
use journal::clock::{Clock, Stamp};
use journal::store::Error;
use serde_json::json;
use tokio::sync::{Notify, broadcast, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
#[cfg(doc)]
use workflow::error_name::EXECUTION_BROKEN;

use crate::names;
use crate::services::Services;
use crate::store::Database;
use busy::Work;
pub(crate) use damaged::damaged;
pub use heads::{Heads, heads, named};
use machines::is_name;
pub use machines::{MachineError, UserMachine, workflow_of};
use runner::Command;
use shared::Shared;
pub(crate) use store::until_known;
pub use versions::{Alias, Route, Version, VersionError};

pub use call::call_function;
pub(crate) use call::is_own;
pub use error::{OpenError, SendError, StartError, StopError};
pub use map_runs::{MapRunChange, MapRunError, UserMapRun};
pub use redrives::{RedriveError, Redriven};
pub use runner::Callback;
pub use store::{
    ChildCounts, ExecutionStore, Inserted, MachineRow, NewExecution, PENDING_REDRIVE, RUNNING,
    Record,
};

/// Most executions in memory at once; further ones wait as rows. An execution that waits for a person
/// or a distant time is not in memory.
pub const ACTIVE_MAX: usize = 10_000;

/// Capacity of the broadcast of ended executions.
const ENDS_MAX: usize = 1_024;

/// Most queued callbacks per execution.
const COMMANDS_MAX: usize = 64;

/// How often, and at which interval, a callback looks for its execution's runner after a restart.
const TAKEN_UP_POLLS: u32 = 100;
const TAKEN_UP_POLL: Duration = Duration::from_millis(20);

/// Delay before the running executions are read again after a failure.
const READ_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Most restarts of an execution's runner after a panic or an error that no retry can help, since the start of the
/// stack. The next failure ends the execution as [`EXECUTION_BROKEN`].
const RESTARTS_MAX: u32 = 5;

/// Delay before the first restart of a runner, by the stack's clock. Each further one doubles it.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// The state machine of new executions.
#[derive(Clone, Debug)]
pub struct StateMachine {
    pub arn: String,
    pub name: String,
    /// JSON text.
    pub text: String,
    /// When this definition was first used.
    pub created_at: Timestamp,
    row: i64,
}

/// A request to start an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Unique for all time.
    pub name: String,
    /// JSON text.
    pub input: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    pub arn: String,
    pub at: Timestamp,
}

/// The executions of a local stack. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Executions<S = Database> {
    shared: Arc<Shared<S>>,
}

/// The newest time that an execution in this store has recorded.
///
/// # Errors
/// If the store cannot be read.
pub async fn newest_time<S: ExecutionStore>(store: &S) -> Result<Option<Stamp>, Error> {
    Ok(store.newest_time().await?.map(|time| Stamp::from_nanos(time.as_nanos())))
}

impl<S: ExecutionStore> Executions<S> {
    pub fn store(&self) -> &S {
        &self.shared.store
    }

    /// Opens the executions of a store. None runs until [`Self::supervise`] does.
    ///
    /// # Errors
    /// If the definition is invalid or the store cannot be written.
    pub async fn open(
        store: S,
        clock: Clock,
        definition: &str,
        services: impl Into<Services>,
    ) -> Result<Self, OpenError> {
        let parsed = Arc::new(Definition::parse(definition)?);
        let now = Timestamp::from_nanos(clock.now().nanos());
        let arn = names::STATE_MACHINE_ARN;
        let MachineRow { id: row, created_at } =
            until_known(|| store.open_machine(arn, definition, now)).await?;
        let machine = StateMachine {
            arn: arn.to_owned(),
            name: names::STATE_MACHINE.to_owned(),
            text: definition.to_owned(),
            created_at,
            row,
        };
        let shared = Shared {
            store,
            even: clock.even(),
            clock,
            services: services.into(),
            machine,
            definitions: Mutex::new(BTreeMap::from([(row, parsed)])),
            live: Mutex::default(),
            parked: Mutex::default(),
            failures: Mutex::default(),
            owed: Mutex::default(),
            started: Notify::new(),
            rules: Mutex::default(),
            rules_reading: Default::default(),
            changing: Default::default(),
            wall_set: Notify::new(),
            work: Work::default(),
            ends: broadcast::channel(ENDS_MAX).0,
            stopping: CancellationToken::new(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    pub fn machine(&self) -> &StateMachine {
        &self.shared.machine
    }

    /// Starts an execution; it is durable when this returns. Repeating the request while the
    /// execution runs has no effect.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(&self, request: Request) -> Result<Started, StartError> {
        let mut started = self.start_all(vec![request]).await?;
        started.pop().unwrap_or_else(|| unreachable!("one request has one answer"))
    }

    /// Starts executions in one commit.
    ///
    /// # Errors
    /// If the store cannot be written. A refused execution has its error in the result.
    pub async fn start_all(
        &self,
        requests: Vec<Request>,
    ) -> Result<Vec<Result<Started, StartError>>, Error> {
        let StateMachine { name, row, .. } = &self.shared.machine;
        self.start_on(name, *row, requests).await
    }

    fn check(&self, machine: &str, request: Request) -> Result<NewExecution, StartError> {
        if !is_name(&request.name) {
            return Err(StartError::InvalidName(request.name));
        }
        if request.input.len() > PAYLOAD_BYTES_MAX {
            return Err(StartError::TooLarge(request.input.len()));
        }
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&request.input) {
            return Err(StartError::InvalidInput(error.to_string()));
        }
        Ok(NewExecution {
            arn: names::execution_arn(machine, &request.name),
            name: request.name,
            input: request.input,
            started_at: self.shared.wall(),
            token_seed: Uuid::new_v4().to_string(),
        })
    }

    /// Finds an execution by its ARN.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn describe(&self, arn: &str) -> Result<Option<Record>, Error> {
        self.shared.store.find(arn).await
    }

    /// Executions with an id below `before`, newest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn list(
        &self,
        status: Option<&str>,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        self.shared.store.newest_first(status, before.unwrap_or(i64::MAX), limit).await
    }

    /// The number of executions, by status.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn counts(&self) -> Result<Vec<(String, i64)>, Error> {
        self.shared.store.counts().await
    }

    /// Part of an execution's history; each event is the API's JSON text.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn history(
        &self,
        execution: i64,
        after: Option<i64>,
        reverse: bool,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
        let after = after.unwrap_or(if reverse { i64::MAX } else { 0 });
        self.shared.store.history(execution, after, reverse, limit).await
    }

    /// Delivers a success without output to these task tokens as soon as their executions are taken up. Unlike with
    /// [`Self::send`], nothing waits for that.
    pub fn wake_when_taken_up(&self, tokens: Vec<String>) {
        let located = tokens
            .into_iter()
            .filter_map(|token| Some((token::locate(&token)?.execution_arn, token)));
        self.shared.owed().extend(located);
    }

    /// Delivers a callback to a task token. Except for a heartbeat, it is durable when this returns.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn send(&self, token: &str, answer: Callback) -> Result<(), SendError> {
        let locator = token::locate(token).ok_or(SendError::InvalidToken)?;
        let (reply, answered) = oneshot::channel();
        let command = Command::Callback { token: token.to_owned(), answer, reply };
        match self.hand_over(&locator.execution_arn, command).await? {
            HandedOver::Absent => Err(SendError::DoesNotExist),
            HandedOver::Busy => Err(SendError::Busy),
            HandedOver::Ended(_) => Err(SendError::TimedOut),
            // The runner drops a callback that it cannot write: the outcome is unknown, and the
            // sender may retry.
            HandedOver::Taken => match answered.await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(CallbackError::TimedOut)) => Err(SendError::TimedOut),
                Ok(Err(CallbackError::Unknown)) => Err(SendError::InvalidToken),
                Err(_) => match self.describe(&locator.execution_arn).await? {
                    Some(record) if record.status != RUNNING => Err(SendError::TimedOut),
                    _ => Err(SendError::Busy),
                },
            },
        }
    }

    /// Wakes a workflow that the poller has parked with this token, or with a later one if the token is no
    /// longer open. Returns whether one was parked.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub async fn wake(&self, token: &str) -> Result<bool, Error> {
        match self.send(token, Callback::Success(json!({}))).await {
            Ok(()) => return Ok(true),
            Err(SendError::Store(error)) => return Err(error),
            Err(SendError::DoesNotExist) => return Ok(false),
            Err(_) => {}
        }
        let Some(locator) = token::locate(token) else { return Ok(false) };
        let (reply, answered) = oneshot::channel();
        match self.hand_over(&locator.execution_arn, Command::Wake { reply }).await? {
            HandedOver::Taken => Ok(answered.await.unwrap_or(false)),
            HandedOver::Absent | HandedOver::Busy | HandedOver::Ended(_) => Ok(false),
        }
    }

    /// Has every waiting execution compare its due time with the wall clock, which was set.
    pub fn wall_was_set(&self) {
        self.shared.parked().wake_all();
        self.shared.wall_set.notify_waiters();
        self.shared.started.notify_one();
    }

    /// Stops an execution, unless it has ended already. Returns when it ended.
    ///
    /// # Errors
    /// See [`StopError`].
    pub async fn stop(&self, arn: &str, failure: Failure) -> Result<Timestamp, StopError> {
        let (reply, answered) = oneshot::channel();
        match self.hand_over(arn, Command::Stop { failure, reply }).await? {
            HandedOver::Absent => return Err(StopError::DoesNotExist(arn.to_owned())),
            HandedOver::Busy => return Err(StopError::Busy),
            HandedOver::Ended(at) => return Ok(at),
            HandedOver::Taken => {}
        }
        if let Ok(Ok(at)) = answered.await {
            return Ok(at);
        }
        match self.describe(arn).await?.and_then(|record| record.stopped_at) {
            Some(at) => Ok(at),
            None => Err(StopError::Busy),
        }
    }

    async fn hand_over(&self, arn: &str, command: Command) -> Result<HandedOver, Error> {
        let mut command = command;
        for _ in 0..TAKEN_UP_POLLS {
            let inbox = self.shared.live().get(arn).cloned();
            if let Some(inbox) = inbox {
                match inbox.send(command).await {
                    Ok(()) => return Ok(HandedOver::Taken),
                    Err(refused) => command = refused.0,
                }
            }
            match self.describe(arn).await? {
                None => return Ok(HandedOver::Absent),
                Some(Record { stopped_at: Some(at), .. }) => return Ok(HandedOver::Ended(at)),
                // It does not run before the next start.
                Some(_) if self.shared.stopping.is_cancelled() => return Ok(HandedOver::Busy),
                // Parked, just started, or waiting for its turn after a restart.
                Some(record) => {
                    if self.shared.parked().wake(record.id) {
                        self.shared.started.notify_one();
                    }
                    tokio::time::sleep(TAKEN_UP_POLL).await;
                }
            }
        }
        Ok(HandedOver::Busy)
    }

    /// The running executions whose runner has failed since the start of the stack and was restarted.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn failing(&self) -> Result<Vec<Record>, Error> {
        let ids = self.shared.failing();
        self.shared.store.running(&ids).await
    }

    /// Subscribes to the ends of executions. A receiver that lags by more than 1,024 misses some.
    pub fn ends(&self) -> broadcast::Receiver<Arc<Record>> {
        self.shared.ends.subscribe()
    }

    async fn announce_end(&self, arn: &str) {
        match self.describe(arn).await {
            Ok(Some(record)) if record.stopped_at.is_some() => {
                // An error means that there is no receiver.
                let _ = self.shared.ends.send(Arc::new(record));
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%arn, %error, "Cannot announce the end of an execution."),
        }
    }

    /// Makes [`Self::supervise`] stop: it gives calls in flight a few seconds, then returns.
    pub fn begin_stop(&self) {
        self.shared.stopping.cancel();
    }
}

enum HandedOver {
    Taken,
    Absent,
    Ended(Timestamp),
    Busy,
}
