//! The keys of sessions, in a file beside the journal that no backup of the journal holds.
//!
//! A key that is destroyed leaves a tombstone: when, by whom and why. Constraints of the file itself forbid to destroy a
//! held key, to change one, and to bring one back. The file has no write-ahead log, and SQLite overwrites deleted bytes
//! with zeros.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aws_lc_rs::rand;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, params};

use super::BUSY_TIMEOUT;
use crate::cipher::{
    self, Erasure, KEY_BYTES, KeyChange, KeyRefused, KeyState, SessionKey, Unjournaled,
};
use crate::clock::Stamp;
use crate::id::SessionId;
use crate::principal::Principal;
use crate::store::Error;

/// The file of keys, in the folder of the journal.
pub const SESSION_KEYS_FILE: &str = "session-keys.db";

/// The schema version, in `PRAGMA user_version`.
const SCHEMA: i64 = 1;

const CREATE: &str = "
CREATE TABLE IF NOT EXISTS session_key (
    session TEXT PRIMARY KEY,
    key BLOB CHECK (length(key) = 32),
    hold TEXT,
    erased_at TEXT,
    erased_by TEXT,
    reason TEXT,
    journaled INTEGER NOT NULL DEFAULT 0,
    CHECK ((key IS NULL) = (erased_at IS NOT NULL AND erased_by IS NOT NULL AND reason IS NOT NULL)),
    CHECK (hold IS NULL OR key IS NOT NULL)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS session_key_not_journaled
    ON session_key(session) WHERE key IS NULL AND journaled = 0;
CREATE TABLE IF NOT EXISTS guard (id INTEGER PRIMARY KEY CHECK (id = 1), key BLOB NOT NULL);
CREATE TRIGGER IF NOT EXISTS a_held_key_is_not_destroyed
    BEFORE UPDATE OF key ON session_key WHEN OLD.hold IS NOT NULL
    BEGIN SELECT RAISE(ABORT, 'a hold forbids to destroy this key'); END;
CREATE TRIGGER IF NOT EXISTS a_key_is_not_changed
    BEFORE UPDATE OF key ON session_key WHEN NEW.key IS NOT NULL
    BEGIN SELECT RAISE(ABORT, 'a key is never changed or brought back'); END;
CREATE TRIGGER IF NOT EXISTS a_row_is_not_deleted
    BEFORE DELETE ON session_key
    BEGIN SELECT RAISE(ABORT, 'a key is destroyed, its row stays'); END;
";

/// The open file of keys.
#[derive(Debug)]
pub(super) struct SessionKeys {
    connection: Mutex<Connection>,
    /// What deduplication keys are guarded with.
    guard: [u8; KEY_BYTES],
}

/// Why the file of keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error("cannot open the keys of sessions {}", path.display())]
    Sqlite {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("cannot make the keys of sessions {} private to their user", path.display())]
    Private {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the keys of sessions {} have schema {found}; this version supports {SCHEMA}", path.display())]
    Newer { path: PathBuf, found: i64 },
}

/// The file of keys of the journal at this path.
pub(super) fn beside(journal: &Path) -> PathBuf {
    journal.with_file_name(SESSION_KEYS_FILE)
}

impl SessionKeys {
    /// Opens the file, and creates it if it is absent.
    pub(super) fn create(path: &Path) -> Result<Self, KeysError> {
        files::private::database(path)
            .map_err(|source| KeysError::Private { path: path.to_owned(), source })?;
        Self::open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    /// Opens an existing file for reading.
    pub(super) fn read_only(path: &Path) -> Result<Self, KeysError> {
        Self::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
    }

    fn open(path: &Path, flags: OpenFlags) -> Result<Self, KeysError> {
        let fail = |source| KeysError::Sqlite { path: path.to_owned(), source };
        let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
        let version = |row: &Row<'_>| row.get(0);
        let found: i64 = connection.query_row("PRAGMA user_version", [], version).map_err(fail)?;
        if found > SCHEMA {
            return Err(KeysError::Newer { path: path.to_owned(), found });
        }
        if flags.contains(OpenFlags::SQLITE_OPEN_READ_WRITE) {
            set_up(&connection).map_err(fail)?;
        }
        let guard = connection
            .query_row("SELECT key FROM guard", [], |row| row.get::<_, [u8; KEY_BYTES]>(0))
            .map_err(fail)?;
        Ok(Self { connection: Mutex::new(connection), guard })
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates the keys that these sessions lack, in one transaction.
    pub(super) fn create_keys(&self, sessions: &[SessionId]) -> Result<(), Error> {
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        for session in sessions {
            let sql = "INSERT INTO session_key (session, key) VALUES (?, ?) ON CONFLICT DO NOTHING";
            transaction.prepare_cached(sql)?.execute(params![session.as_str(), fresh()])?;
        }
        Ok(transaction.commit()?)
    }

    pub(super) fn state(&self, session: &SessionId) -> Result<KeyState, Error> {
        let connection = self.connection();
        let sql =
            "SELECT key, hold, erased_at, erased_by, reason FROM session_key WHERE session = ?";
        let mut statement = connection.prepare_cached(sql)?;
        let read = |row: &Row<'_>| match row.get::<_, Option<[u8; KEY_BYTES]>>(0)? {
            Some(key) => Ok(KeyState::Usable { key: SessionKey::of(&key), hold: row.get(1)? }),
            None => Ok(KeyState::Erased(erasure(row, 2)?)),
        };
        Ok(statement.query_row([session.as_str()], read).optional()?.unwrap_or(KeyState::None))
    }

    /// Changes a key; durable on return. Destroying one twice has no effect.
    pub(super) fn change(&self, session: &SessionId, change: &KeyChange) -> Result<(), Error> {
        match (self.state(session)?, change) {
            (KeyState::None, _) => return Err(KeyRefused::NotEncrypted.into()),
            (KeyState::Erased(_), KeyChange::Destroy(_)) => return Ok(()),
            (KeyState::Erased(erasure), _) => return Err(KeyRefused::Erased(erasure).into()),
            (KeyState::Usable { hold: Some(reason), .. }, KeyChange::Destroy(_)) => {
                return Err(KeyRefused::Held { reason }.into());
            }
            (KeyState::Usable { .. }, _) => {}
        }
        let connection = self.connection();
        let session = session.as_str();
        let hold = "UPDATE session_key SET hold = ? WHERE session = ?";
        match change {
            KeyChange::Hold { reason } => connection.execute(hold, params![reason, session])?,
            KeyChange::Release => connection.execute(hold, params![None::<String>, session])?,
            // A hold that came in between makes the file refuse.
            KeyChange::Destroy(Erasure { at, by, reason }) => connection.execute(
                "UPDATE session_key SET key = NULL, erased_at = ?, erased_by = ?, reason = ? \
                 WHERE session = ? AND key IS NOT NULL",
                params![at.to_string(), by.to_string(), reason, session],
            )?,
        };
        Ok(())
    }

    /// The destroyed keys of which the journal may not tell yet.
    pub(super) fn unjournaled(&self) -> Result<Vec<Unjournaled>, Error> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(
            "SELECT session, erased_at, erased_by, reason FROM session_key \
             WHERE key IS NULL AND journaled = 0",
        )?;
        let rows =
            statement.query_map([], |row| Ok((row.get::<_, String>(0)?, erasure(row, 1)?)))?;
        let mut found = Vec::new();
        for row in rows {
            let (session, erasure) = row?;
            // Only this program writes the file, from valid ids.
            found.extend(session.parse().ok().map(|session| (session, erasure)));
        }
        Ok(found)
    }

    pub(super) fn journaled(&self, session: &SessionId) -> Result<(), Error> {
        let sql = "UPDATE session_key SET journaled = 1 WHERE session = ? AND key IS NULL";
        self.connection().execute(sql, [session.as_str()])?;
        Ok(())
    }

    /// An HMAC of a text.
    pub(super) fn guarded(&self, text: &str) -> String {
        hex::encode(cipher::hmac(&self.guard, &[text.as_bytes()]))
    }
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    // The journal of a transaction is removed at its end: no log keeps what was deleted.
    connection.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()))?;
    // Also waits until the removal of the journal is durable: a power failure brings no key back.
    connection.pragma_update(None, "synchronous", "extra")?;
    connection.pragma_update_and_check(None, "secure_delete", "on", |_| Ok(()))?;
    connection.execute_batch(CREATE)?;
    connection
        .execute("INSERT INTO guard (id, key) VALUES (1, ?) ON CONFLICT DO NOTHING", [fresh()])?;
    connection.pragma_update(None, "user_version", SCHEMA)
}

fn fresh() -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    rand::fill(&mut key).unwrap_or_else(|_| unreachable!("the operating system has randomness"));
    key
}

fn erasure(row: &Row<'_>, first: usize) -> rusqlite::Result<Erasure> {
    let (at, by): (String, String) = (row.get(first)?, row.get(first + 1)?);
    Ok(Erasure {
        at: Stamp::parse(&at).unwrap_or_default(),
        by: by.parse().unwrap_or(Principal::Unknown),
        reason: row.get(first + 2)?,
    })
}
