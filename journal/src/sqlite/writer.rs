//! The SQLite writer: group commit, with an inline fast path when uncontended.
//!
//! A thread commits waiting work in groups. If no work is waiting, the caller commits on its own thread: waking the
//! writer's thread and being woken by it takes a third of the time of a durable write, and a single session has no
//! others to share a flush with. This blocks one thread of the runtime for one flush, or while another process holds
//! the file's lock; the runtime's other threads take over its tasks.
//!
//! Source: measured. With `block_in_place`, which moves those tasks to a new thread, a burst of ten thousand sessions
//! took 9 MiB more and ten-step runs at 64 were a quarter fewer.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use super::failure::Failure;
use super::integrity::Met;
use super::log::NewLeaf;
use super::place::Place;
use super::{BUSY_TIMEOUT, OpenError};
use super::{log, rows};
use crate::log::LeafKey;
use crate::store::{Error, Written};

/// Most pieces of work in one commit.
const GROUP_MAX: usize = 512;

/// Capacity of the queue; further callers wait.
const QUEUE_MAX: usize = 4_096;

/// A commit that takes longer is reported as stalled: twice as long as it waits for another process's lock.
const STALLED_AFTER: Duration = Duration::from_secs(10);

/// Largest write-ahead log, in bytes, unless a reader needs it. SQLite puts the log into the file every 4,000 pages, but
/// begins it anew only when nobody reads; readers that overlap all the time would let it grow without a bound.
pub(super) const LOG_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How much the log grows between two attempts to empty it, in bytes.
const LOG_STEP_BYTES: u64 = 16 * 1024 * 1024;

/// How long such an attempt waits for readers. Commits wait meanwhile.
const LOG_WAIT: Duration = Duration::from_millis(100);

/// Runs statements inside the group's transaction; returns what to reply after the commit.
type Work = Box<dyn FnOnce(&Connection) -> Answer + Send>;

/// Replies to one caller once it is known whether the group was committed.
type Answer = Box<dyn FnOnce(Result<(), &Arc<Failure>>) + Send>;

/// Opens a connection.
type Connect = Box<dyn Fn() -> Result<Connection, OpenError> + Send + Sync>;

/// A handle of the writer's thread. Dropping the last one finishes the queue and ends the thread.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Option<mpsc::Sender<Work>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

/// State shared by the writer's thread and its callers.
struct Shared {
    connection: Mutex<Connection>,
    reconnect: Connect,
    place: Place,
    progress: Mutex<Progress>,
    /// Marks the leaves of the log of sessions.
    key: Option<LeafKey>,
    /// Queued work that the thread has not started.
    waiting: AtomicUsize,
    changes: watch::Sender<u64>,
    met: Met,
    /// Size of the write-ahead log at which the next commit tries to empty it.
    log_bytes_max: AtomicU64,
}

/// Why nothing can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteProblem {
    pub why: String,
    /// Whether it stays until a person does something, or the program is started again. Otherwise the next commit may
    /// succeed.
    pub is_lasting: bool,
}

/// What became of the last commit.
#[derive(Default)]
struct Progress {
    /// When the commit began that has not ended.
    begun: Option<Instant>,
    /// Why the last one failed.
    failure: Option<String>,
    /// How many failed since the journal was opened.
    failures: u64,
    /// Why the log of sessions took no leaf the last time. No session can start or end then.
    no_leaf: Option<String>,
}

impl Progress {
    fn end(&mut self, failure: Option<String>) {
        self.failures += u64::from(failure.is_some());
        (self.begun, self.failure) = (None, failure);
    }
}

impl Writer {
    /// Starts the thread with an open connection; `reconnect` opens another after a failed commit.
    pub(super) fn start(
        connection: Connection,
        reconnect: impl Fn() -> Result<Connection, OpenError> + Send + Sync + 'static,
        place: Place,
        key: Option<LeafKey>,
        changes: watch::Sender<u64>,
        met: Met,
    ) -> Self {
        let (queue, inbox) = mpsc::channel(QUEUE_MAX);
        let shared = Arc::new(Shared {
            connection: Mutex::new(connection),
            reconnect: Box::new(reconnect),
            place,
            progress: Mutex::default(),
            key,
            waiting: AtomicUsize::new(0),
            changes,
            met,
            log_bytes_max: AtomicU64::new(LOG_BYTES_MAX),
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::spawn(move || of_thread.write_groups(inbox));
        Self { queue: Some(queue), thread: Some(thread), shared }
    }

    /// See [`super::SqliteStore::write_problem`].
    pub(super) fn problem(&self) -> Option<WriteProblem> {
        let lasting = |why| Some(WriteProblem { why, is_lasting: true });
        if let Err(lost) = self.shared.place.check() {
            return lasting(lost.to_string());
        }
        let progress = self.shared.progress();
        let stalled = progress.begun.map(|begun| begun.elapsed()).filter(|it| *it > STALLED_AFTER);
        if let Some(time) = stalled {
            return lasting(format!("a commit has not ended for {} s", time.as_secs()));
        }
        let failed = |why: &String| format!("the last commit failed: {why}");
        let no_leaf = |why: &String| format!("the log of sessions takes no leaf: {why}");
        let why = progress.failure.as_ref().map(failed);
        let why = why.or_else(|| progress.no_leaf.as_ref().map(no_leaf))?;
        Some(WriteProblem { why, is_lasting: false })
    }

    /// See [`super::SqliteStore::commit_failures`].
    pub(super) fn failures(&self) -> u64 {
        self.shared.progress().failures
    }

    /// Puts the write-ahead log into the file; returns whether it is empty then.
    pub(super) fn empty_log(&self) -> Result<bool, Failure> {
        let connection = self.shared.connection.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.place.check()?;
        Ok(empty_log(&connection)?)
    }

    /// Runs work in the thread's next group or inline, and waits until it is durable. All of it is committed, or
    /// nothing.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        self.have_done(move |connection| Ok(in_savepoint(connection, work)?)).await
    }

    /// Like [`Self::run`], for work in which a single statement makes the only visible change. SQLite reverts a failed
    /// statement by itself, and a savepoint costs more than that statement.
    pub(super) async fn run_one<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        self.have_done(move |connection| {
            catch_panic(connection, work).map_err(|failure| match failure {
                // Without a savepoint, a statement before the panic is committed with its group.
                Failure::Panicked(_) => Error::Unknown(failure.into()),
                failure => failure.into(),
            })
        })
        .await
    }

    /// Like [`Self::run`], for work on a record that the log of sessions may have a leaf for: both are committed, or
    /// neither.
    pub(super) async fn run_logged(
        &self,
        work: impl FnOnce(&Connection) -> rows::Outcome + Send + 'static,
        leaf: impl FnOnce(&Connection) -> Option<NewLeaf> + Send + 'static,
    ) -> Result<Written, Error> {
        let shared = Arc::clone(&self.shared);
        self.have_done(move |connection| {
            in_savepoint(connection, |connection| {
                let written = work(connection)??;
                if written == Written::Done
                    && let Some(leaf) = leaf(connection)
                {
                    let appended = log::append(connection, &leaf, shared.key.as_ref());
                    shared.progress().no_leaf = appended.as_ref().err().map(chain);
                    appended?;
                }
                Ok::<_, Failure>(written)
            })
            .map_err(Error::from)
        })
        .await
    }

    /// Like [`Self::run`], for work that appends to the log of sessions.
    pub(super) async fn run_marking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, Option<&LeafKey>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Error> {
        let key = self.shared.key.clone();
        let work = move |connection: &Connection| work(connection, key.as_ref());
        self.have_done(move |connection| in_savepoint(connection, work).map_err(Error::from)).await
    }

    async fn have_done<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let met = self.shared.met.clone();
        let work: Work = Box::new(move |connection| {
            let outcome = work(connection).inspect_err(|error| met.note(error));
            Box::new(move |committed| {
                let result = match (committed, outcome) {
                    (Err(failure), _) if matches!(**failure, Failure::Lost(_)) => {
                        Err(Error::Unavailable(Arc::clone(failure).into()))
                    }
                    (Err(failure), _) => Err(Error::Unknown(Arc::clone(failure).into())),
                    (Ok(()), outcome) => outcome,
                };
                // The caller may be gone; the work is done anyway.
                let _ = reply.send(result);
            })
        });
        if let Some(connection) = self.shared.take_alone() {
            self.shared.write(connection, vec![work]);
        } else {
            let queue = self.queue.as_ref().ok_or_else(closed)?;
            let place = queue.reserve().await.map_err(|_| closed())?;
            self.shared.waiting.fetch_add(1, Ordering::AcqRel);
            place.send(work);
        }
        answer.await.unwrap_or_else(|_| Err(Error::Unknown("the journal's writer stopped".into())))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // It can only have panicked, and its callers have received the error.
            let _ = thread.join();
        }
    }
}

fn closed() -> Error {
    Error::Unavailable("the journal's writer has stopped".into())
}

/// An error with its causes.
fn chain(error: &Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn say(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

fn in_savepoint<T, E: Into<Failure>>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, E>,
) -> Result<T, Failure> {
    say(connection, "SAVEPOINT work")?;
    let outcome = catch_panic(connection, work);
    if outcome.is_ok() {
        say(connection, "RELEASE work")?;
    } else {
        connection.execute_batch("ROLLBACK TO work; RELEASE work")?;
    }
    outcome
}

/// Turns a panic into an error: it must not end the writer's thread.
fn catch_panic<T, E: Into<Failure>>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, E>,
) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(|| work(connection))) {
        Ok(outcome) => outcome.map_err(Into::into),
        Err(panic) => Err(Failure::of_panic(&*panic)),
    }
}

impl Shared {
    /// The connection, if no work is waiting and this thread may block. The thread of a single-threaded runtime may
    /// not: it would flush once per write, because no other write can join in the meantime.
    fn take_alone(&self) -> Option<MutexGuard<'_, Connection>> {
        let workers = Handle::try_current().map(|runtime| runtime.metrics().num_workers());
        let others_go_on = workers.is_ok_and(|workers| workers > 1);
        if !others_go_on || self.waiting.load(Ordering::Acquire) > 0 {
            return None;
        }
        self.connection.try_lock().ok()
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread's main loop, which ends with the queue.
    fn write_groups(&self, mut inbox: mpsc::Receiver<Work>) {
        while let Some(first) = inbox.blocking_recv() {
            let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
            let mut group = vec![first];
            while group.len() < GROUP_MAX {
                match inbox.try_recv() {
                    Ok(work) => group.push(work),
                    Err(_) => break,
                }
            }
            self.waiting.fetch_sub(group.len(), Ordering::AcqRel);
            // A panic, such as one of the log's, loses the group's answers but not the thread. The next commit fails
            // if a transaction was left open, and gets a new connection.
            let written = catch_unwind(AssertUnwindSafe(|| self.write(connection, group)));
            if let Err(panic) = written {
                let failure = Failure::of_panic(&*panic).to_string();
                self.progress().end(Some(failure));
            }
        }
    }

    /// Commits a group and replies to all of its callers.
    fn write(&self, mut connection: MutexGuard<'_, Connection>, group: Vec<Work>) {
        self.progress().begun = Some(now());
        let (answers, committed) = commit(&connection, &self.place, group);
        let committed = committed.map_err(Arc::new);
        if let Err(failure) = &committed {
            tracing::error!(error = %failure, "A commit failed.");
            self.met.note(&**failure);
            // A connection in an unknown state is not used again; until there is a new one, work waits. Never one to
            // another file.
            if self.place.check().is_ok()
                && let Ok(fresh) = (self.reconnect)()
            {
                *connection = fresh;
            }
        }
        self.bound_log(&connection);
        let failure = committed.as_ref().err().map(ToString::to_string);
        self.progress().end(failure);
        drop(connection);
        for answer in answers {
            answer(committed.as_ref().copied());
        }
        self.changes.send_modify(|generation| *generation += 1);
    }
}

impl Shared {
    /// Empties the write-ahead log if it is too large, once the readers of the moment are done.
    fn bound_log(&self, connection: &Connection) {
        let bytes = self.place.log_bytes();
        if bytes <= self.log_bytes_max.load(Ordering::Acquire) {
            if bytes <= LOG_BYTES_MAX {
                self.log_bytes_max.store(LOG_BYTES_MAX, Ordering::Release);
            }
            return;
        }
        // If one of these fails, the next attempt is made after more commits.
        let _ = connection.busy_timeout(LOG_WAIT);
        let is_empty = empty_log(connection).unwrap_or(false);
        let _ = connection.busy_timeout(BUSY_TIMEOUT);
        let next = if is_empty { LOG_BYTES_MAX } else { bytes + LOG_STEP_BYTES };
        self.log_bytes_max.store(next, Ordering::Release);
    }
}

/// Source: SQLite, "PRAGMA wal_checkpoint": the first column is 1 if it was kept from being completed.
fn empty_log(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row(
        "PRAGMA wal_checkpoint(TRUNCATE)",
        [],
        |row| Ok(row.get::<_, i64>(0)? == 0),
    )
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

#[expect(clippy::disallowed_methods, reason = "a stalled disk is noticed by the machine's clock")]
fn now() -> Instant {
    Instant::now()
}

fn commit(
    connection: &Connection,
    place: &Place,
    group: Vec<Work>,
) -> (Vec<Answer>, Result<(), Failure>) {
    let begun = say(connection, "BEGIN IMMEDIATE");
    let answers = group.into_iter().map(|work| work(connection)).collect();
    let committed = begun.map_err(Failure::from).and_then(|()| {
        if connection.is_autocommit() {
            return Err(Failure::TransactionEnded);
        }
        place.check()?;
        Ok(say(connection, "COMMIT")?)
    });
    if committed.is_err() && !connection.is_autocommit() {
        // If this fails too, the caller replaces the connection.
        let _ = connection.execute_batch("ROLLBACK");
    }
    (answers, committed)
}
