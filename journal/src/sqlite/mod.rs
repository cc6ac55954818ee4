//! [`SqliteStore`]: the journal as one SQLite file.
//!
//! One at a time writes (`writer`), in groups: whoever waits for durability shares a flush with all
//! who wait at that moment. Readers have connections of their own and never hold a transaction
//! across an await. The file is in WAL mode, so that any `sqlite3` can read it meanwhile; the view
//! `journal` shows it as the table would be.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::{Semaphore, watch};

use crate::item::{Item, Value};
use crate::store::{Condition, Error, Key, Page, Query, Store, Written};

mod rows;
mod writer;

use writer::Writer;

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The disk: SQLite's synchronous FULL.
    Fsync,
    /// The operating system: SQLite's synchronous NORMAL. A power cut may take the last commits.
    Relaxed,
}

/// How long a connection waits for another process's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long `changed` sleeps where another process writes and nobody tells.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Longer reads that run at once, each on a thread and a connection of its own; further ones wait their
/// turn. More would only be memory: a burst of a thousand sessions had ninety threads.
const READERS_MAX: usize = 8;

/// Most bytes of a read that is done where it is asked for: what is wanted of a session most often is
/// its newest step, its lease, its dozen of events.
const READ_HERE_BYTES_MAX: usize = 64 * 1024;

/// Pages that a reader keeps in memory, in KiB. What it reads is a session's few records, and the
/// operating system has the file's pages anyway; SQLite's own default of 2,000, times the readers,
/// was most of what a stack with ten thousand waiting sessions took.
const READER_CACHE_KIB: i64 = 256;

/// Statements that a connection keeps prepared; beyond that the one that was used longest ago is prepared
/// anew. We have some thirty.
const STATEMENTS_MAX: usize = 64;

/// The schema's version, kept in `PRAGMA user_version`.
const SCHEMA: i64 = 1;

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

/// A journal in a file.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    /// `None` in a store that only reads.
    writer: Option<Writer>,
    readers: Mutex<Vec<Connection>>,
    turns: Arc<Semaphore>,
    changes: watch::Sender<u64>,
}

/// Why a file could not be opened as a journal.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be opened, or is no SQLite database.
    #[error("cannot open the journal {}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        #[source]
        source: rusqlite::Error,
    },
    /// The file was written by a newer version.
    #[error("the journal {} has schema {found}, this version knows {SCHEMA}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
    },
    /// A setting on which durability rests did not take.
    #[error("the journal {} did not accept {setting}", path.display())]
    Setting {
        /// The file.
        path: PathBuf,
        /// The setting.
        setting: &'static str,
    },
}

impl SqliteStore {
    /// Opens a journal for writing, and creates it if it is absent. One process at a time.
    ///
    /// # Errors
    /// When the file is no journal of this version.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, OpenError> {
        let connect = {
            let path = path.to_owned();
            move || open_writing(&path, durability)
        };
        let first = connect()?;
        let (changes, _) = watch::channel(0);
        let writer = Writer::start(first, connect, changes.clone());
        Ok(Self::new(path, Some(writer), changes))
    }

    /// Opens a journal that another process may be writing. Its writes are refused.
    ///
    /// # Errors
    /// When the file is absent or no journal of this version.
    pub fn open_read_only(path: &Path) -> Result<Self, OpenError> {
        let reader = open_reading(path)?;
        check_version(&reader, path)?;
        let store = Self::new(path, None, watch::channel(0).0);
        store.give_back(reader);
        Ok(store)
    }

    fn new(path: &Path, writer: Option<Writer>, changes: watch::Sender<u64>) -> Self {
        let (readers, turns) = (Mutex::default(), Arc::new(Semaphore::new(READERS_MAX)));
        let path = path.to_owned();
        Self { shared: Arc::new(Shared { path, writer, readers, turns, changes }) }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Runs statements on the writer's connection, all or nothing, durable when it returns.
    ///
    /// For tables of one's own in the same file; the journal's are written by [`Store`] alone.
    ///
    /// # Errors
    /// [`Error::Unknown`] when the commit's fate is unknown.
    pub async fn transact<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        self.writer()?.run(work).await
    }

    /// Runs a read on a connection of its own.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let store = self.clone();
        let turn = Arc::clone(&self.shared.turns).acquire_owned().await;
        let joined = tokio::task::spawn_blocking(move || {
            // Held by the thread: a caller who goes away does not end the read.
            let _turn = turn;
            store.read_here(work)
        });
        joined.await.unwrap_or_else(|panicked| Err(Error::Unavailable(panicked.into())))
    }

    /// Runs a read of a little on the caller's thread: it takes less time than to wake another.
    fn read_here<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        let reader = self.take_reader()?;
        let answer = work(&reader);
        self.give_back(reader);
        answer
    }

    /// The items of a partition that landed after a place, each with its own, in the order in which
    /// they first landed; at most a thousand. Places only grow.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn landed(&self, partition: &str, after: i64) -> Result<Vec<(i64, Item)>, Error> {
        let partition = partition.to_owned();
        self.read(move |connection| rows::landed(connection, &partition, after)).await
    }

    fn writer(&self) -> Result<&Writer, Error> {
        self.shared
            .writer
            .as_ref()
            .ok_or_else(|| Error::Refused("this journal was opened to read".into()))
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

impl Store for SqliteStore {
    async fn put(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        rows::check_size(&item)?;
        let item = rows::Encoded::of(item);
        self.writer()?.run_one(move |connection| rows::put(connection, &item, &condition)).await?
    }

    async fn update(
        &self,
        key: Key,
        set: BTreeMap<String, Value>,
        condition: Condition,
    ) -> Result<Written, Error> {
        self.writer()?
            .run_one(move |connection| rows::update(connection, &key, set, &condition))
            .await?
    }

    async fn get(&self, key: Key) -> Result<Option<Item>, Error> {
        self.read_here(|connection| rows::get(connection, &key))
    }

    async fn query(&self, query: Query) -> Result<Page, Error> {
        // What has one page already is much.
        if query.after.is_none()
            && let Some(page) = self.read_here(|connection| {
                rows::query_within(connection, &query, READ_HERE_BYTES_MAX)
            })?
        {
            return Ok(page);
        }
        self.read(move |connection| rows::query(connection, &query)).await
    }

    async fn count_by_status(&self, query: Query) -> Result<BTreeMap<String, u64>, Error> {
        self.read(move |connection| rows::count_by_status(connection, &query)).await
    }

    async fn changed(&self, patience: Duration) {
        if self.shared.writer.is_none() {
            return tokio::time::sleep(patience.min(POLL_INTERVAL)).await;
        }
        let mut changes = self.shared.changes.subscribe();
        // Whether the wait ended by a change or by time makes no difference to the caller.
        let _ = tokio::time::timeout(patience, changes.changed()).await;
    }
}

fn open_writing(path: &Path, durability: Durability) -> Result<Connection, OpenError> {
    let fail = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let connection = Connection::open(path).map_err(fail)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
    keep_plans(&connection).map_err(fail)?;
    check_version(&connection, path)?;
    let synchronous = match durability {
        Durability::Fsync => 2,
        Durability::Relaxed => 1,
    };
    connection.pragma_update(None, "journal_mode", "wal").map_err(fail)?;
    connection.pragma_update(None, "synchronous", synchronous).map_err(fail)?;
    // Bounds the WAL; measured best between rarely and every commit.
    connection.pragma_update(None, "wal_autocheckpoint", 4_000).map_err(fail)?;
    connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024).map_err(fail)?;
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
    connection.execute_batch(CREATE).map_err(fail)?;
    connection.pragma_update(None, "user_version", SCHEMA).map_err(fail)?;
    Ok(connection)
}

fn open_reading(path: &Path) -> Result<Connection, OpenError> {
    let fail = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
    keep_plans(&connection).map_err(fail)?;
    // Negative: in KiB, not in pages. Source: SQLite, "PRAGMA cache_size".
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB).map_err(fail)?;
    Ok(connection)
}

/// Has a statement keep its plan whatever values it gets. Otherwise each is planned anew for each time's
/// values, which was an eighth of what a whole session costs.
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

    #[tokio::test]
    async fn a_file_of_a_newer_schema_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        drop(SqliteStore::open(&path, Durability::Fsync).unwrap());
        Connection::open(&path).unwrap().pragma_update(None, "user_version", SCHEMA + 1).unwrap();
        let refusal = SqliteStore::open(&path, Durability::Fsync).unwrap_err();
        assert!(matches!(refusal, OpenError::Newer { .. }), "{refusal}");
        assert!(matches!(SqliteStore::open_read_only(&path).unwrap_err(), OpenError::Newer { .. }));
    }

    #[tokio::test]
    async fn a_read_only_store_reads_what_another_writes_and_writes_nothing() {
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
    async fn one_refused_item_does_not_roll_back_its_group() {
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
    async fn who_writes_alone_writes_on_its_own_thread_and_who_does_not_waits_its_turn() {
        let folder = tempfile::tempdir().unwrap();
        let store =
            SqliteStore::open(&folder.path().join("journal.db"), Durability::Fsync).unwrap();
        let thread = || std::thread::current().id();
        // Twice within one poll: between its own the task may have been moved.
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
    async fn the_only_thread_of_a_runtime_is_not_held_up_by_a_flush() {
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
    async fn what_shares_a_commit_that_fails_is_not_acknowledged() {
        let folder = tempfile::tempdir().unwrap();
        let store =
            SqliteStore::open(&folder.path().join("journal.db"), Durability::Fsync).unwrap();
        // A reference that is looked at when the transaction is committed, and not before.
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
        // While the thread is held up in one group, the other two come together in the next.
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
        // Polled once each, all of them wait in the writer's queue before any is answered.
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
    async fn a_failed_transaction_leaves_nothing_behind() {
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
