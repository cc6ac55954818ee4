//! Durable Step Functions executions, in the journal's file.
//!
//! [`Executions::start`] makes a row; [`Executions::supervise`] takes every running row in the order
//! of starting (`supervise`) and has a runner drive it (`runner`), which asks the interpreter what comes next,
//! writes that down (`rows`), and only then does it (`call`). Whatever is killed at any instant
//! goes on from its rows; so does what waits for long, which leaves the memory meanwhile (`parked`).

mod busy;
mod call;
mod error;
mod parked;
mod rows;
mod runner;
mod supervise;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use journal::clock::{Clock, Stamp};
use journal::sqlite::SqliteStore;
use journal::store::Error;
use states::definition::Definition;
use states::execution::{CallbackError, PAYLOAD_BYTES_MAX};
use states::history::Failure;
use states::time::Timestamp;
use states::token;
use tokio::sync::{Notify, broadcast, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::names;
use crate::services::Services;
use busy::Work;
use parked::Parked;
use rows::{Fresh, Inserted};
use runner::Command;

pub use call::call_function;
pub use error::{OpenError, SendError, StartError, StopError};
pub use rows::{RUNNING, Record};
pub use runner::Callback;

/// Most executions driven at once; further ones wait as rows for their turn. Those that wait for a
/// person or a distant time are not driven.
pub const ACTIVE_MAX: usize = 10_000;

/// Most ends that wait for whoever listens to them.
const ENDS_MAX: usize = 1_024;

/// Most callbacks that wait for one execution.
const COMMANDS_MAX: usize = 64;

/// How often and how long a callback waits for its execution to be taken up after a restart.
const TAKEN_UP_POLLS: u32 = 100;
const TAKEN_UP_POLL: Duration = Duration::from_millis(20);

/// How long to wait before reading the running executions again when they could not be read.
const REREAD_AFTER: Duration = Duration::from_secs(1);

/// The state machine that new executions run.
#[derive(Clone, Debug)]
pub struct StateMachine {
    /// Its ARN.
    pub arn: String,
    /// Its name.
    pub name: String,
    /// Its definition, JSON text.
    pub text: String,
    /// When this definition was first used.
    pub created_at: Timestamp,
    row: i64,
}

/// An execution to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its name, unique for all time.
    pub name: String,
    /// Its input, JSON text.
    pub input: String,
}

/// An execution that is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Its ARN.
    pub arn: String,
    /// When it was started.
    pub at: Timestamp,
}

/// The executions of one machine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Executions {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: SqliteStore,
    clock: Clock,
    services: Services,
    machine: StateMachine,
    /// Parsed definitions by row; there are as many as versions of the text.
    definitions: Mutex<BTreeMap<i64, Arc<Definition>>>,
    live: Mutex<BTreeMap<String, mpsc::Sender<Command>>>,
    parked: Mutex<Parked>,
    started: Notify,
    work: Work,
    ends: broadcast::Sender<Arc<Record>>,
    stopping: CancellationToken,
}

impl Shared {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.clock.now().nanos())
    }

    fn parked(&self) -> std::sync::MutexGuard<'_, Parked> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, mpsc::Sender<Command>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The newest time that executions in this file have recorded, if there are any.
///
/// # Errors
/// When the file cannot be read.
pub async fn newest_time(store: &SqliteStore) -> Result<Option<Stamp>, Error> {
    Ok(rows::newest(store).await?.map(|time| Stamp::from_nanos(time.as_nanos())))
}

impl Executions {
    /// The file that holds them.
    pub fn store(&self) -> &SqliteStore {
        &self.shared.store
    }

    /// The executions in a file. None is driven until [`Self::supervise`] runs.
    ///
    /// # Errors
    /// When the definition is wrong or the file cannot be written.
    pub async fn open(
        store: SqliteStore,
        clock: Clock,
        definition: &str,
        services: impl Into<Services>,
    ) -> Result<Self, OpenError> {
        let parsed = Arc::new(Definition::parse(definition)?);
        let now = Timestamp::from_nanos(clock.now().nanos());
        let (row, created_at) =
            rows::create(&store, names::STATE_MACHINE_ARN, definition, now).await?;
        let machine = StateMachine {
            arn: names::STATE_MACHINE_ARN.to_owned(),
            name: names::STATE_MACHINE.to_owned(),
            text: definition.to_owned(),
            created_at,
            row,
        };
        let shared = Shared {
            store,
            clock,
            services: services.into(),
            machine,
            definitions: Mutex::new(BTreeMap::from([(row, parsed)])),
            live: Mutex::default(),
            parked: Mutex::default(),
            started: Notify::new(),
            work: Work::default(),
            ends: broadcast::channel(ENDS_MAX).0,
            stopping: CancellationToken::new(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The state machine.
    pub fn machine(&self) -> &StateMachine {
        &self.shared.machine
    }

    /// Starts an execution: durable when this returns. The same request may be made again while the
    /// execution runs.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(&self, request: Request) -> Result<Started, StartError> {
        let mut started = self.start_all(vec![request]).await?;
        started.pop().unwrap_or_else(|| unreachable!("one request has one answer"))
    }

    /// Starts executions, all in one commit.
    ///
    /// # Errors
    /// When the file cannot be written; each execution's own refusal is in its place.
    pub async fn start_all(
        &self,
        requests: Vec<Request>,
    ) -> Result<Vec<Result<Started, StartError>>, Error> {
        let checked: Vec<_> = requests.into_iter().map(|request| self.fresh(request)).collect();
        let fresh = checked.iter().filter_map(|fresh| fresh.as_ref().ok().cloned()).collect();
        let inserted = rows::insert(&self.shared.store, self.shared.machine.row, fresh).await?;
        self.shared.started.notify_one();
        let mut inserted = inserted.into_iter();
        let answer = |fresh: Fresh, inserted| match inserted {
            Some(Inserted::Started(at)) => Ok(Started { arn: fresh.arn, at }),
            _ => Err(StartError::AlreadyExists(fresh.arn)),
        };
        Ok(checked
            .into_iter()
            .map(|fresh| fresh.and_then(|fresh| answer(fresh, inserted.next())))
            .collect())
    }

    fn fresh(&self, request: Request) -> Result<Fresh, StartError> {
        if !is_name(&request.name) {
            return Err(StartError::InvalidName(request.name));
        }
        if request.input.len() > PAYLOAD_BYTES_MAX {
            return Err(StartError::TooLarge(request.input.len()));
        }
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&request.input) {
            return Err(StartError::InvalidInput(error.to_string()));
        }
        Ok(Fresh {
            arn: names::execution_arn(&self.shared.machine.name, &request.name),
            name: request.name,
            input: request.input,
            started_at: self.shared.now(),
            token_seed: Uuid::new_v4().to_string(),
        })
    }

    /// An execution by its ARN.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn describe(&self, arn: &str) -> Result<Option<Record>, Error> {
        rows::by_arn(&self.shared.store, arn).await
    }

    /// Executions, newest first, with a number below `before`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn list(
        &self,
        status: Option<&str>,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        rows::newest_first(&self.shared.store, status, before.unwrap_or(i64::MAX), limit).await
    }

    /// How many executions there are, by status.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn counts(&self) -> Result<Vec<(String, i64)>, Error> {
        rows::counts(&self.shared.store).await
    }

    /// Part of an execution's history, each event as the API's JSON text.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn history(
        &self,
        execution: i64,
        after: Option<i64>,
        reverse: bool,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
        let after = after.unwrap_or(if reverse { i64::MAX } else { 0 });
        rows::events(&self.shared.store, execution, after, reverse, limit).await
    }

    /// Sends a task token: durable when this returns, heartbeats excepted.
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
            // The runner drops what it cannot write: then nobody knows, and the sender may try again.
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

    /// Stops an execution. Returns when it ended, also if it had ended before.
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
                // Nobody drives it before the next start.
                Some(_) if self.shared.stopping.is_cancelled() => return Ok(HandedOver::Busy),
                // Parked, started a moment ago, or waiting for its turn after a restart.
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

    /// Executions as they end. A listener that is more than 1,024 behind misses some.
    pub fn ends(&self) -> broadcast::Receiver<Arc<Record>> {
        self.shared.ends.subscribe()
    }

    async fn tell_end(&self, arn: &str) {
        match self.describe(arn).await {
            Ok(Some(record)) if record.stopped_at.is_some() => {
                // Nobody may be listening.
                let _ = self.shared.ends.send(Arc::new(record));
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%arn, %error, "An execution's end was not told."),
        }
    }

    /// Has [`Self::supervise`] stop: what is in flight may answer within seconds, then it returns.
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

/// Source: AWS, `StartExecution`, `name`.
fn is_name(name: &str) -> bool {
    let forbidden =
        |c: char| c.is_whitespace() || c.is_control() || "<>{}[]?*\"#%\\^|~`$&,;:/".contains(c);
    (1..=80).contains(&name.chars().count()) && !name.contains(forbidden)
}
