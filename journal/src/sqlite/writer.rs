//! The one who writes: a thread that takes what waits in groups, or, while nobody waits, whoever has
//! something to write.
//!
//! To wake a thread and to be woken by it is a third of what one durable write takes, and one session at
//! a time has nobody to share a flush with. It holds up a thread of the runtime for as long as one flush
//! takes (and, while another process has the file's lock, for as long as that is waited for), whose other
//! tasks go to the others.
//!
//! Source: measured. With `block_in_place`, which gives those tasks a thread of their own, a burst of ten
//! thousand sessions took 9 MiB more and ten-step runs at 64 were a quarter fewer.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use super::OpenError;
use crate::store::Error;

/// Most pieces of work in one commit.
const GROUP_MAX: usize = 512;

/// Most pieces of work waiting; further callers wait for a place.
const QUEUE_MAX: usize = 4_096;

/// Does its statements inside the group's transaction and says what to answer after the commit.
type Work = Box<dyn FnOnce(&Connection) -> Answer + Send>;

/// Answers one caller, once it is known whether the group was committed.
type Answer = Box<dyn FnOnce(Result<(), &str>) + Send>;

/// How a connection is made.
type Connect = Box<dyn Fn() -> Result<Connection, OpenError> + Send + Sync>;

/// The handle of the writing thread. Dropping the last one finishes the queue and ends it.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Option<mpsc::Sender<Work>>,
    thread: Option<JoinHandle<()>>,
    desk: Arc<Desk>,
}

/// Where one at a time writes.
struct Desk {
    connection: Mutex<Connection>,
    reconnect: Connect,
    /// Pieces of work that the thread is to do and has not begun.
    waiting: AtomicUsize,
    changes: watch::Sender<u64>,
}

impl Writer {
    /// Starts the thread on an open connection; `reconnect` gives it another after a failed commit.
    pub(super) fn start(
        connection: Connection,
        reconnect: impl Fn() -> Result<Connection, OpenError> + Send + Sync + 'static,
        changes: watch::Sender<u64>,
    ) -> Self {
        let (queue, inbox) = mpsc::channel(QUEUE_MAX);
        let desk = Arc::new(Desk {
            connection: Mutex::new(connection),
            reconnect: Box::new(reconnect),
            waiting: AtomicUsize::new(0),
            changes,
        });
        let of_thread = Arc::clone(&desk);
        let thread = std::thread::spawn(move || of_thread.write_groups(inbox));
        Self { queue: Some(queue), thread: Some(thread), desk }
    }

    /// Has some work done, in the thread's next group or at once, and waits until it is durable: all of
    /// it, or nothing.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        self.have_done(move |connection| in_savepoint(connection, work)).await
    }

    /// As [`Self::run`], for work of which one statement alone is a change that anybody sees: SQLite
    /// takes that back by itself when it fails, and a savepoint around it costs more than it does.
    pub(super) async fn run_one<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        self.have_done(move |connection| {
            caught(connection, work).unwrap_or(Err(rusqlite::Error::ExecuteReturnedResults))
        })
        .await
    }

    async fn have_done<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let work: Work = Box::new(move |connection| {
            let outcome = work(connection);
            Box::new(move |committed| {
                let result = match (committed, outcome) {
                    (Err(why), _) => Err(Error::Unknown(why.to_owned().into())),
                    (Ok(()), outcome) => outcome.map_err(from_sqlite),
                };
                // The caller may have gone; the work is done all the same.
                let _ = reply.send(result);
            })
        });
        if let Some(connection) = self.desk.take_alone() {
            self.desk.write(connection, vec![work]);
        } else {
            let queue = self.queue.as_ref().ok_or_else(closed)?;
            let place = queue.reserve().await.map_err(|_| closed())?;
            self.desk.waiting.fetch_add(1, Ordering::AcqRel);
            place.send(work);
        }
        answer.await.unwrap_or_else(|_| Err(Error::Unknown("the journal's writer stopped".into())))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // It can only have panicked, which its callers have been told.
            let _ = thread.join();
        }
    }
}

fn closed() -> Error {
    Error::Unavailable("the journal's writer has stopped".into())
}

/// SQLite's error as the caller must take it.
pub(super) fn from_sqlite(error: rusqlite::Error) -> Error {
    use rusqlite::ErrorCode as Code;
    match error.sqlite_error_code() {
        Some(Code::DatabaseCorrupt | Code::NotADatabase) => Error::Corrupt(error.into()),
        Some(Code::ReadOnly | Code::ConstraintViolation | Code::TypeMismatch | Code::ApiMisuse) => {
            Error::Refused(error.into())
        }
        _ => Error::Unavailable(error.into()),
    }
}

fn say(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

fn in_savepoint<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    say(connection, "SAVEPOINT work")?;
    match caught(connection, work) {
        Some(Ok(value)) => {
            say(connection, "RELEASE work")?;
            Ok(value)
        }
        failed => {
            connection.execute_batch("ROLLBACK TO work; RELEASE work")?;
            failed.unwrap_or(Err(rusqlite::Error::ExecuteReturnedResults))
        }
    }
}

/// What the work says; nothing if it panicked, which must not end the thread.
fn caught<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> Option<rusqlite::Result<T>> {
    catch_unwind(AssertUnwindSafe(|| work(connection))).ok()
}

impl Desk {
    /// The connection, if nobody waits for it and this thread may be held up: a runtime that has only one
    /// would flush for each of many writers, since no other could come meanwhile.
    fn take_alone(&self) -> Option<MutexGuard<'_, Connection>> {
        let workers = Handle::try_current().map(|runtime| runtime.metrics().num_workers());
        let others_go_on = workers.is_ok_and(|workers| workers > 1);
        if !others_go_on || self.waiting.load(Ordering::Acquire) > 0 {
            return None;
        }
        self.connection.try_lock().ok()
    }

    /// The thread's work, until there is no queue.
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
            self.write(connection, group);
        }
    }

    /// Commits a group and answers all of it.
    fn write(&self, mut connection: MutexGuard<'_, Connection>, group: Vec<Work>) {
        let (answers, committed) = commit(&connection, group);
        if let Err(why) = &committed {
            tracing::error!(error = %why, "A commit failed; its records may or may not be there.");
            // A connection in doubt is not used again; until there is a new one, nobody is served.
            if let Ok(fresh) = (self.reconnect)() {
                *connection = fresh;
            }
        }
        drop(connection);
        for answer in answers {
            answer(committed.as_ref().copied().map_err(String::as_str));
        }
        self.changes.send_modify(|generation| *generation += 1);
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

fn commit(connection: &Connection, group: Vec<Work>) -> (Vec<Answer>, Result<(), String>) {
    let begun = say(connection, "BEGIN IMMEDIATE");
    let answers = group.into_iter().map(|work| work(connection)).collect();
    let committed = begun
        .and_then(|()| {
            // Some errors (a full disk among them) end the transaction by themselves.
            if connection.is_autocommit() {
                return Err(rusqlite::Error::InvalidQuery);
            }
            say(connection, "COMMIT")
        })
        .map_err(|error| error.to_string());
    if committed.is_err() && !connection.is_autocommit() {
        // If even this fails the connection is replaced by the caller.
        let _ = connection.execute_batch("ROLLBACK");
    }
    (answers, committed)
}
