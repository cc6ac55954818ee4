//! One stack for a file, its write-ahead log, and files of earlier versions.

use std::path::Path;

use files::lock::Lock;
use rusqlite::Connection;

use super::{Durability, OpenError, SCHEMA, SqliteStore, open_reading, place, private};
use crate::log::LeafKey;
use crate::store::Error;

/// A file of an earlier version that was brought to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The schema version that it had.
    pub from: i64,
    pub to: i64,
}

impl SqliteStore {
    /// Like [`Self::open_marking`], for a stack: until the lock is dropped, nobody else opens the file so, whatever path
    /// leads to it. What a killed stack left in the write-ahead log is put into the file.
    ///
    /// # Errors
    /// As [`Self::open`], or if another has it open so.
    pub fn open_alone(
        path: &Path,
        durability: Durability,
        key: Option<LeafKey>,
    ) -> Result<(Self, Lock), OpenError> {
        files::private::database(path).map_err(private(path))?;
        let lock = Lock::take(path).map_err(private(path))?;
        let lock = lock.ok_or_else(|| OpenError::InUse(path.to_owned()))?;
        let store = Self::start(path, durability, key)?;
        if let Some(writer) = &store.shared.writer {
            // A reader of another process may keep it from being done; the next commits try again.
            let _ = writer.empty_log();
        }
        Ok((store, lock))
    }

    /// The schema version that the file had before it was opened for writing, if it was an earlier one.
    pub fn migrated(&self) -> Option<Migrated> {
        self.shared.migrated
    }

    /// The first damage of the file itself that a statement of this process met.
    pub fn damage_met(&self) -> Option<String> {
        self.shared.met.get()
    }

    /// Puts the write-ahead log into the file, so that a copy of the file alone is whole. Returns whether it was done: a
    /// reader of another process may keep it from being so.
    ///
    /// # Errors
    /// The file cannot be written, or is not the one that was opened.
    pub async fn empty_log(&self) -> Result<bool, Error> {
        let store = self.clone();
        let work = move || store.writer()?.empty_log().map_err(Error::from);
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(Error::Unavailable(error.into())))
    }

    /// What the file's contents use, in bytes: without pages that are free again, with what is still in the write-ahead
    /// log.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn used_bytes(&self) -> Result<u64, Error> {
        self.read(|connection| {
            let one = |name: &str| {
                connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0))
            };
            let pages = one("page_count")? - one("freelist_count")?;
            Ok(u64::try_from(pages * one("page_size")?).unwrap_or(0))
        })
        .await
    }

    /// Size of the write-ahead log beside the file, in bytes.
    pub fn log_bytes(&self) -> u64 {
        std::fs::metadata(place::log_of(&self.shared.path)).map_or(0, |found| found.len())
    }
}

/// Whether a file has the tables of a journal. An empty file, or none, has not, and is not opened: SQLite would take a
/// write-ahead log beside it for one of a removed database, and remove it.
///
/// # Errors
/// The file cannot be read, or is no database.
pub fn is_journal(path: &Path) -> Result<bool, OpenError> {
    match std::fs::metadata(path) {
        Ok(found) if found.len() > 0 => {
            let reader = open_reading(path)?;
            let found = reader.table_exists(None, "item");
            found.map_err(|source| OpenError::Sqlite { path: path.to_owned(), source })
        }
        _ => Ok(false),
    }
}

/// Says that opening takes longer than usual: every record is read once.
pub(super) fn announce_migration(connection: &Connection) -> rusqlite::Result<()> {
    let from: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if from < SCHEMA {
        tracing::warn!(from, to = SCHEMA, "The journal is of an earlier version and is migrated.");
    }
    Ok(())
}
