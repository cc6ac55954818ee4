//! [`SqliteStore`]: the journal in one SQLite file.
//!
//! There is one writer (`writer`), which commits in groups: concurrent appends share a flush. Readers have connections
//! of their own and hold no transaction across an await. The file is in WAL mode, so that any `sqlite3` can read it at
//! the same time; its view `journal` shows the items as in the table.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::{Semaphore, watch};

use crate::log::LeafKey;
use crate::store::Error;

pub mod backup;
pub mod encrypted;
mod failure;
mod integrity;
mod keep;
pub mod log;
mod place;
mod prune;
mod reads;
mod records;
mod rows;
mod session_keys;
mod writer;

use failure::Failure;
use integrity::Met;
pub use integrity::{Pages, check_pages};
pub use keep::{Migrated, is_journal};
use place::Place;
pub use prune::Pruning;
use session_keys::SessionKeys;
pub use session_keys::{KeysError, SESSION_KEYS_FILE};
pub use writer::WriteProblem;
use writer::Writer;

/// How durable a commit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Waits for the disk: SQLite's synchronous FULL.
    Fsync,
    /// Waits for the operating system: SQLite's synchronous NORMAL. A power failure may lose the last commits.
    Relaxed,
}

/// How long a connection waits for another process's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Polling interval of `changed` for writes of another process, which sends no notifications.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Concurrent reads on the blocking pool, each with a thread and a connection; further ones wait. More of them only
/// cost memory: a burst of a thousand sessions had ninety threads.
const READERS_MAX: usize = 8;

/// Most bytes of a read on the caller's thread. The most frequent reads are small: the newest step, the lease, a dozen
/// events.
const READ_HERE_BYTES_MAX: usize = 64 * 1024;

/// Page cache of a reader, in KiB. A reader needs a session's few records, and the operating system caches the file.
/// With SQLite's default of 2,000, the readers used most of the memory of a stack with ten thousand waiting sessions.
const READER_CACHE_KIB: i64 = 256;

/// Prepared statements per connection; beyond it the least recently used one is evicted. There are about thirty
/// statements.
const STATEMENTS_MAX: usize = 64;

/// The schema version, in `PRAGMA user_version`. Version 1 had no log of sessions; a program of that version must not
/// write records that the log would miss. Version 3 has leaves of decisions to keep or prune a session, which a program
/// of version 2 calls damage. Version 4 has packed events in the histories of executions, which one of version 3 cannot
/// read. A release with a new version keeps a file of the one before, see
/// `crates/stack/tests/released`.
pub const SCHEMA: i64 = 4;

/// The first version with a log of sessions.
const SCHEMA_WITH_LOG: i64 = 2;

const CREATE: &str = "
CREATE TABLE IF NOT EXISTS partition (id INTEGER PRIMARY KEY, pk TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS item (
    pos INTEGER PRIMARY KEY,
    partition INTEGER NOT NULL REFERENCES partition(id),
    sk TEXT NOT NULL,
    body TEXT NOT NULL,
    day TEXT,
    at TEXT,
    open TEXT,
    UNIQUE (partition, sk)
);
CREATE INDEX IF NOT EXISTS item_by_day ON item(day, at) WHERE day IS NOT NULL;
CREATE INDEX IF NOT EXISTS item_by_day_with_status
    ON item(day, at, json_extract(body, '$.Status.S')) WHERE day IS NOT NULL;
CREATE INDEX IF NOT EXISTS item_by_open ON item(open, at) WHERE open IS NOT NULL;
CREATE VIEW IF NOT EXISTS journal AS
    SELECT pos, pk, sk,
           json_extract(body, '$.Status.S') AS status,
           json_extract(body, '$.Kind.S') AS kind,
           json_extract(body, '$.Timestamp.S') AS timestamp,
           body
    FROM item JOIN partition ON partition.id = item.partition;
";

/// The journal in a file.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

/// Its parts are dropped in this order: the last connection that is closed is one that writes, so that SQLite removes the
/// write-ahead log.
#[derive(Debug)]
struct Shared {
    path: PathBuf,
    readers: Mutex<Vec<Connection>>,
    /// `None` if opened read-only.
    writer: Option<Writer>,
    turns: Arc<Semaphore>,
    changes: watch::Sender<u64>,
    met: Met,
    migrated: Option<Migrated>,
    /// The keys of sessions, once there are any and they are needed.
    keys: OnceLock<SessionKeys>,
    /// Whether sessions that start get a key.
    encrypts: OnceLock<()>,
}

/// Size of a file's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub items: i64,
    /// Of the whole file, including other tables.
    pub bytes: i64,
}

/// Why a file cannot be opened as a journal.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be opened, or is not an SQLite database.
    #[error("cannot open the journal {}", path.display())]
    Sqlite {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    /// The file is of a version without a log of sessions, and none can be added.
    #[error("cannot add the log of sessions to the journal {}", path.display())]
    Log {
        path: PathBuf,
        #[source]
        source: Error,
    },
    /// The file cannot be created, or not for this user alone.
    #[error("cannot make the journal {} private to its user", path.display())]
    Private {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The file was written by a newer version.
    #[error("the journal {} has schema {found}; this version supports {SCHEMA}", path.display())]
    Newer { path: PathBuf, found: i64 },
    /// The file has no bytes. To open it would remove a write-ahead log beside it.
    #[error("the journal {} is empty", .0.display())]
    Empty(PathBuf),
    /// Another process has it open for itself, by this path or another one.
    #[error("another stack uses the journal {}", .0.display())]
    InUse(PathBuf),
    /// SQLite did not accept a setting that durability depends on.
    #[error("the journal {} did not accept {setting}", path.display())]
    Setting { path: PathBuf, setting: &'static str },
    #[error(transparent)]
    Keys(#[from] KeysError),
}

impl SqliteStore {
    /// Opens a journal for writing, and creates it if absent. Only one process may do so at a time. Other users lose
    /// their access to the file.
    ///
    /// # Errors
    /// The file is not a journal of this version.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, OpenError> {
        Self::open_marking(path, durability, None)
    }

    /// Like [`Self::open`], for a writer that marks its leaves in the log of sessions.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_marking(
        path: &Path,
        durability: Durability,
        key: Option<LeafKey>,
    ) -> Result<Self, OpenError> {
        files::private::database(path).map_err(private(path))?;
        Self::start(path, durability, key)
    }

    fn start(path: &Path, durability: Durability, key: Option<LeafKey>) -> Result<Self, OpenError> {
        let connect = {
            let (path, key) = (path.to_owned(), key.clone());
            move || open_writing(&path, durability, key.as_ref())
        };
        let (first, migrated) = connect()?;
        let (changes, _) = watch::channel(0);
        let place = Place::of(path).map_err(private(path))?;
        let met = Met::default();
        let reconnect = move || Ok(connect()?.0);
        let writer = Writer::start(first, reconnect, place, key, changes.clone(), met.clone());
        let store = Self::new(path, Some(writer), changes, met, migrated);
        store.find_keys()?;
        Ok(store)
    }

    /// Opens a journal that another process may be writing. Writes are rejected.
    ///
    /// # Errors
    /// The file is absent, or not a journal of this version.
    pub fn open_read_only(path: &Path) -> Result<Self, OpenError> {
        let reader = open_reading(path)?;
        check_version(&reader, path)?;
        let store = Self::new(path, None, watch::channel(0).0, Met::default(), None);
        store.give_back(reader);
        Ok(store)
    }

    fn new(
        path: &Path,
        writer: Option<Writer>,
        changes: watch::Sender<u64>,
        met: Met,
        migrated: Option<Migrated>,
    ) -> Self {
        let (readers, turns) = (Mutex::default(), Arc::new(Semaphore::new(READERS_MAX)));
        let path = path.to_owned();
        let (keys, encrypts) = (OnceLock::new(), OnceLock::new());
        let shared =
            Shared { path, readers, writer, turns, changes, met, migrated, keys, encrypts };
        Self { shared: Arc::new(shared) }
    }

    /// Why nothing can be written now, if that is known: the file is gone or another, the last commit failed, or a commit
    /// does not end. `None` for a journal that is opened read-only.
    pub fn write_problem(&self) -> Option<WriteProblem> {
        self.shared.writer.as_ref()?.problem()
    }

    /// How many commits have failed since the journal was opened.
    pub fn commit_failures(&self) -> u64 {
        self.shared.writer.as_ref().map_or(0, Writer::failures)
    }

    /// Commits a write that changes nothing.
    ///
    /// # Errors
    /// Nothing can be written, or the store is read-only.
    pub async fn try_commit(&self) -> Result<(), Error> {
        let work = |connection: &Connection| connection.pragma_update(None, "user_version", SCHEMA);
        self.writer()?.run_one(work).await
    }

    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Runs statements on the writer's connection in one transaction, which is durable on return.
    ///
    /// For other tables in the same file; only [`Store`](crate::store::Store) may write those of the journal.
    ///
    /// # Errors
    /// [`Error::Unknown`] if it is unknown whether the commit happened.
    pub async fn transact<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        self.writer()?.run(work).await
    }

    /// Runs a read on the blocking pool.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let store = self.clone();
        let turn = Arc::clone(&self.shared.turns).acquire_owned().await;
        let joined = tokio::task::spawn_blocking(move || {
            // The thread holds the permit: a caller that goes away does not end the read.
            let _turn = turn;
            store.read_here(work)
        });
        joined.await.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => Err(Failure::of_panic(&*panic).into()),
            // The runtime is shutting down.
            Err(cancelled) => Err(Error::Unavailable(cancelled.into())),
        })
    }

    /// Runs a small read on the caller's thread, which is faster than waking another.
    fn read_here<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        let answer = self.take_reader().and_then(|reader| {
            let answer = work(&reader);
            self.give_back(reader);
            answer
        });
        answer.inspect_err(|error| self.shared.met.note(error))
    }

    /// The size of the file's contents.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn size(&self) -> Result<Size, Error> {
        self.read(|connection| {
            let one = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
            let bytes = one("PRAGMA page_count")? * one("PRAGMA page_size")?;
            Ok(Size { items: one("SELECT count(*) FROM item")?, bytes })
        })
        .await
    }

    /// Counts the commits of this process.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    fn writer(&self) -> Result<&Writer, Error> {
        self.shared
            .writer
            .as_ref()
            .ok_or_else(|| Error::Refused("this journal was opened read-only".into()))
    }

    fn take_reader(&self) -> Result<Connection, Error> {
        let idle = self.shared.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(reader) => Ok(reader),
            None => {
                open_reading(&self.shared.path).map_err(|error| Error::Unavailable(error.into()))
            }
        }
    }

    fn give_back(&self, reader: Connection) {
        self.shared.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
    }
}

fn open_writing(
    path: &Path,
    durability: Durability,
    key: Option<&LeafKey>,
) -> Result<(Connection, Option<Migrated>), OpenError> {
    let fail = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let connection = Connection::open(path).map_err(fail)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
    keep_plans(&connection).map_err(fail)?;
    check_version(&connection, path)?;
    let synchronous = match durability {
        Durability::Fsync => 2,
        Durability::Relaxed => 1,
    };
    // Before the first table: later, only a rewrite of the file changes it. Measured: appends take 5 % more processor
    // time with it.
    connection.pragma_update(None, "auto_vacuum", "incremental").map_err(fail)?;
    connection.pragma_update(None, "journal_mode", "wal").map_err(fail)?;
    connection.pragma_update(None, "synchronous", synchronous).map_err(fail)?;
    // Limits the size of the WAL; this value performed best.
    connection.pragma_update(None, "wal_autocheckpoint", 4_000).map_err(fail)?;
    connection
        .pragma_update(None, "journal_size_limit", writer::LOG_BYTES_MAX as i64)
        .map_err(fail)?;
    let mode: String =
        connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(fail)?;
    let level: i64 =
        connection.query_row("PRAGMA synchronous", [], |row| row.get(0)).map_err(fail)?;
    for (took, setting) in [(mode == "wal", "journal_mode"), (level == synchronous, "synchronous")]
    {
        if !took {
            return Err(OpenError::Setting { path: path.to_owned(), setting });
        }
    }
    let is_new = !connection.table_exists(None, "item").map_err(fail)?;
    if !is_new {
        keep::announce_migration(&connection).map_err(fail)?;
    }
    connection.execute_batch(CREATE).map_err(fail)?;
    connection.execute_batch(log::CREATE).map_err(fail)?;
    let from = add_log(&connection, key)
        .map_err(|source| OpenError::Log { path: path.to_owned(), source })?;
    let migrated = from.filter(|_| !is_new).map(|from| Migrated { from, to: SCHEMA });
    Ok((connection, migrated))
}

/// Adds the log of sessions to a file of the first version: a leaf for each record that has one now. One transaction: a
/// crash leaves the earlier version. Returns that version.
fn add_log(connection: &Connection, key: Option<&LeafKey>) -> Result<Option<i64>, Error> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version == SCHEMA {
        return Ok(None);
    }
    if version >= SCHEMA_WITH_LOG {
        connection.pragma_update(None, "user_version", SCHEMA)?;
        return Ok(Some(version));
    }
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let added = rows::leaves(connection, |leaf| log::append(connection, &(&leaf).into(), key));
    let added = added.and_then(|()| Ok(connection.pragma_update(None, "user_version", SCHEMA)?));
    connection.execute_batch(if added.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    added.map(|()| Some(version))
}

fn private(path: &Path) -> impl Fn(std::io::Error) -> OpenError {
    move |source| OpenError::Private { path: path.to_owned(), source }
}

/// A connection for work that cannot be in the writer's transactions.
fn open_writing_plain(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

fn open_reading(path: &Path) -> Result<Connection, OpenError> {
    if std::fs::metadata(path).is_ok_and(|found| found.len() == 0) {
        return Err(OpenError::Empty(path.to_owned()));
    }
    let fail = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
    keep_plans(&connection).map_err(fail)?;
    // A negative value is in KiB, not in pages. Source: SQLite, "PRAGMA cache_size".
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB).map_err(fail)?;
    Ok(connection)
}

/// Enables SQLite's query planner stability guarantee. Otherwise SQLite plans statements again for new values, which
/// took an eighth of a session's time.
///
/// Source: SQLite, "The Query Planner Stability Guarantee".
fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(())
}

fn check_version(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let found: i64 = connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(|source| OpenError::Sqlite { path: path.to_owned(), source })?;
    if found > SCHEMA {
        return Err(OpenError::Newer { path: path.to_owned(), found });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Item;
    use crate::store::Key;
    use crate::store::{Condition, Query, Retry, Store as _, Written};

    #[tokio::test]
    async fn a_file_with_a_newer_schema_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        drop(SqliteStore::open(&path, Durability::Fsync).unwrap());
        Connection::open(&path).unwrap().pragma_update(None, "user_version", SCHEMA + 1).unwrap();
        let refusal = SqliteStore::open(&path, Durability::Fsync).unwrap_err();
        assert!(matches!(refusal, OpenError::Newer { .. }), "{refusal}");
        assert!(matches!(SqliteStore::open_read_only(&path).unwrap_err(), OpenError::Newer { .. }));
    }

    #[tokio::test]
    async fn a_read_only_store_reads_and_rejects_writes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let writing = SqliteStore::open(&path, Durability::Fsync).unwrap();
        let reading = SqliteStore::open_read_only(&path).unwrap();
        let item = Item::new("p", "s").with("A", "a");
        assert_eq!(writing.put(item.clone(), Condition::Absent).await.unwrap(), Written::Done);
        assert_eq!(reading.get(Key::new("p", "s")).await.unwrap(), Some(item.clone()));
        assert!(matches!(reading.put(item, Condition::Absent).await, Err(Error::Refused(_))));
    }

    #[tokio::test]
    async fn one_rejected_item_does_not_roll_back_its_group() {
        let folder = tempfile::tempdir().unwrap();
        let store =
            SqliteStore::open(&folder.path().join("journal.db"), Durability::Fsync).unwrap();
        let put = |n: u32| {
            store.put(Item::new("p", format!("{:02}", n % 50)).with("N", n), Condition::Absent)
        };
        let outcomes = futures(0..100, put).await;
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == Written::Done).count(), 50);
        assert_eq!(store.query(Query::all("p")).await.unwrap().items.len(), 50);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_uncontended_append_commits_on_the_callers_thread() {
        let folder = tempfile::tempdir().unwrap();
        let store =
            SqliteStore::open(&folder.path().join("journal.db"), Durability::Fsync).unwrap();
        let thread = || std::thread::current().id();
        // Twice within one poll, because between polls the task may move to another thread.
        let (here, there) = (thread(), store.transact(move |_| Ok(thread())).await.unwrap());
        assert_eq!(here, there);
        let (entered, has_entered) = std::sync::mpsc::channel();
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let of_first = store.clone();
        let first = tokio::spawn(async move {
            let held = move |_: &Connection| {
                entered.send(()).unwrap();
                gate.recv().unwrap();
                Ok(())
            };
            of_first.transact(held).await
        });
        has_entered.recv().unwrap();
        let mut second = Box::pin(store.transact(move |_| Ok(thread())));
        let here = std::future::poll_fn(|context| {
            assert!(second.as_mut().poll(context).is_pending());
            std::task::Poll::Ready(thread())
        })
        .await;
        open.send(()).unwrap();
        first.await.unwrap().unwrap();
        assert_ne!(second.await.unwrap(), here);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_flush_does_not_block_a_single_threaded_runtime() {
        let folder = tempfile::tempdir().unwrap();
        let store =
            SqliteStore::open(&folder.path().join("journal.db"), Durability::Fsync).unwrap();
        let mut written = Box::pin(store.transact(|_| Ok(())));
        std::future::poll_fn(|context| {
            assert!(written.as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        written.await.unwrap();
    }

    #[tokio::test]
    async fn work_in_a_failed_commit_is_not_acknowledged() {
        let folder = tempfile::tempdir().unwrap();
        let store =
            SqliteStore::open(&folder.path().join("journal.db"), Durability::Fsync).unwrap();
        // A reference that is checked at commit, not before.
        let tables = "CREATE TABLE one (id INTEGER PRIMARY KEY); CREATE TABLE other \
                      (id INTEGER REFERENCES one(id) DEFERRABLE INITIALLY DEFERRED);";
        store.transact(move |connection| connection.execute_batch(tables)).await.unwrap();
        let (entered, has_entered) = std::sync::mpsc::channel();
        let (open, gate) = std::sync::mpsc::channel();
        let mut gate = Box::pin(store.transact(move |_| {
            entered.send(()).unwrap();
            gate.recv().unwrap();
            Ok(())
        }));
        let poisonous = "INSERT INTO other VALUES (7)";
        let mut poison =
            Box::pin(store.transact(move |connection| connection.execute(poisonous, [])));
        let item = Item::new("p", "s").with("A", "a");
        let mut put = Box::pin(store.put(item.clone(), Condition::Absent));
        // While the thread is busy with one group, the other two join the next.
        std::future::poll_fn(|context| {
            assert!(gate.as_mut().poll(context).is_pending());
            has_entered.recv().unwrap();
            assert!(poison.as_mut().poll(context).is_pending());
            assert!(put.as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        open.send(()).unwrap();
        gate.await.unwrap();
        assert!(matches!(poison.await, Err(Error::Unknown(_))));
        assert!(matches!(put.await, Err(Error::Unknown(_))));
        assert_eq!(store.get(Key::new("p", "s")).await.unwrap(), None);
        assert_eq!(store.put(item, Condition::Absent).await.unwrap(), Written::Done);
    }

    async fn futures<F: Future<Output = Result<Written, Error>>>(
        numbers: std::ops::Range<u32>,
        put: impl Fn(u32) -> F,
    ) -> Vec<Written> {
        let mut started: Vec<_> = numbers.map(|n| Box::pin(put(n))).collect();
        // Polled once each, all of them wait in the writer's queue before any is done.
        std::future::poll_fn(|context| {
            for future in &mut started {
                assert!(future.as_mut().poll(context).is_pending());
            }
            std::task::Poll::Ready(())
        })
        .await;
        let mut written = Vec::new();
        for future in started {
            written.push(future.await.unwrap());
        }
        written
    }

    #[tokio::test]
    async fn a_panic_in_a_transaction_is_rejected_and_rolled_back() {
        let folder = tempfile::tempdir().unwrap();
        let store =
            SqliteStore::open(&folder.path().join("journal.db"), Durability::Fsync).unwrap();
        let panicked = store
            .transact(|connection| {
                connection.execute("CREATE TABLE mine (a)", [])?;
                if connection.changes() == 0 {
                    panic!("out of {}", "cheese");
                }
                Ok(())
            })
            .await
            .unwrap_err();
        assert_eq!(panicked.retry(), Retry::Never);
        let Error::Refused(cause) = panicked else { panic!("{panicked:?}") };
        assert_eq!(cause.to_string(), "the database work panicked: out of cheese");
        store.transact(|connection| connection.execute("CREATE TABLE mine (a)", [])).await.unwrap();
    }

    #[tokio::test]
    async fn a_panic_in_a_read_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let store =
            SqliteStore::open(&folder.path().join("journal.db"), Durability::Fsync).unwrap();
        let read = store.read(|_| -> Result<(), Error> { panic!("out of cheese") }).await;
        let Err(Error::Refused(cause)) = read else { panic!("{read:?}") };
        assert_eq!(cause.to_string(), "the database work panicked: out of cheese");
    }

    #[tokio::test]
    async fn a_transaction_rolled_back_by_sqlite_is_unknown() {
        let folder = tempfile::tempdir().unwrap();
        let store =
            SqliteStore::open(&folder.path().join("journal.db"), Durability::Fsync).unwrap();
        let ended = store.transact(|connection| connection.execute_batch("ROLLBACK")).await;
        let Err(error @ Error::Unknown(_)) = ended else { panic!("{ended:?}") };
        assert!(matches!(error.retry(), Retry::Unknown(_)));
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(cause, "SQLite rolled back the transaction before its commit");
        store.transact(|_| Ok(())).await.unwrap();
    }

    #[tokio::test]
    async fn a_failed_transaction_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store =
            SqliteStore::open(&folder.path().join("journal.db"), Durability::Fsync).unwrap();
        let failed = store
            .transact(|connection| {
                connection.execute("CREATE TABLE mine (a)", [])?;
                connection.execute("INSERT INTO nowhere VALUES (1)", [])
            })
            .await;
        assert!(failed.is_err());
        assert!(
            store
                .transact(|connection| connection.execute("CREATE TABLE mine (a)", []))
                .await
                .is_ok()
        );
    }
}
