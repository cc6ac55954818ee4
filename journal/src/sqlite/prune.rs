//! Removes whole sessions from the file, and gives the space back.
//!
//! One commit appends the leaf that says so and takes the session's partitions out of sight; it is small, however large
//! the session is. Their rows are removed afterwards in bounded batches, so that no writer waits for long. A crash in
//! between leaves rows that nothing finds; the next call removes them.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::Failure;
use super::{SqliteStore, log, open_writing_plain};
use crate::clock::Stamp;
use crate::event::EventStatus;
use crate::id::SessionId;
use crate::key;
use crate::log::{AnyLeaf, Decision, ENTRIES_MAX, Keeping, Label, Retention};
use crate::store::Error;

/// Most rows of one batch, and most bytes of their bodies. Source: measured; a batch takes a few milliseconds.
const BATCH_ROWS_MAX: i64 = 500;
const BATCH_BYTES_MAX: i64 = 1024 * 1024;

/// Most pages that one commit gives back to the file system.
const SHRINK_PAGES_MAX: u32 = 256;

/// The partition keys of removed sessions begin with it.
const REMOVED: &str = "PRUNED#";

/// Most leaves of a session that is held once more. Each hold can be released, so twice as many fit into what is read
/// ([`ENTRIES_MAX`]), and a few are left for verdicts and a prune.
const LEAVES_BEFORE_HOLD_MAX: usize = ENTRIES_MAX / 2 - 10;

/// What became of a prune.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pruning {
    Done,
    /// This label holds the session.
    Held(Label),
    /// The log has no leaf of this verdict, or the session was pruned before.
    Unknown,
}

impl SqliteStore {
    /// What the leaves of a session say about keeping it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn keeping(&self, session: &SessionId) -> Result<Keeping, Error> {
        let session = session.clone();
        self.read(move |connection| Ok(keeping(connection, &session)?)).await
    }

    /// Journals that a session is held, or released.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn hold(&self, leaf: Retention) -> Result<(), Error> {
        let write = move |connection: &Connection, key: Option<&_>| {
            if matches!(leaf.decision, Decision::Hold(_)) {
                room_for_a_hold(connection, &leaf.session)?;
            }
            Ok(log::append_bytes(connection, &leaf.session, &leaf.to_bytes(), key)?)
        };
        self.writer()?.run_marking(write).await
    }

    /// Removes a session with the verdict that `leaf` names, and journals it, in one commit. `also` removes what other
    /// tables have of it. Then call [`Self::remove_pruned`] until nothing is left.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn prune(
        &self,
        leaf: Retention,
        also: impl FnOnce(&Connection) -> rusqlite::Result<()> + Send + 'static,
    ) -> Result<Pruning, Error> {
        let write = move |connection: &Connection, key: Option<&_>| {
            let mut keeping = keeping(connection, &leaf.session)?;
            if let Some(label) = keeping.held.first() {
                return Ok(Pruning::Held(label.clone()));
            }
            let was_pruned = keeping.pruned.is_some();
            let is_prune = matches!(leaf.decision, Decision::Prune(_));
            let problem = keeping.add(&AnyLeaf::Retention(leaf.clone()));
            if was_pruned || !is_prune || problem.is_some() {
                return Ok(Pruning::Unknown);
            }
            log::append_bytes(connection, &leaf.session, &leaf.to_bytes(), key)?;
            hide(connection, &leaf.session)?;
            also(connection)?;
            Ok::<_, Failure>(Pruning::Done)
        };
        self.writer()?.run_marking(write).await
    }

    /// Sessions with a verdict from before a time, the oldest verdicts first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn ended_before(&self, time: Stamp, limit: usize) -> Result<Vec<SessionId>, Error> {
        let rest = "AND item.at < ?";
        self.read(move |connection| Ok(ended(connection, time, rest, &time.to_string(), limit)?))
            .await
    }

    /// Sessions whose verdict says that its records have expired.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn expired(&self, now: Stamp, limit: usize) -> Result<Vec<SessionId>, Error> {
        let rest =
            "AND CAST(json_extract(item.body, '$.ExpiresAt.N') AS INTEGER) <= CAST(? AS INTEGER)";
        self.read(move |connection| {
            Ok(ended(connection, now, rest, &now.seconds().to_string(), limit)?)
        })
        .await
    }

    /// Removes a batch of rows of pruned sessions. Returns whether there may be more.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn remove_pruned(&self) -> Result<bool, Error> {
        let left =
            "SELECT EXISTS (SELECT 1 FROM partition WHERE pk >= 'PRUNED#' AND pk < 'PRUNED$')";
        let left =
            self.read(move |connection| Ok(connection.query_row(left, [], |row| row.get(0))?));
        if !left.await? {
            return Ok(false);
        }
        self.transact(remove_batch).await
    }

    /// Gives at most a megabyte of unused pages back to the file system. Returns whether there may be more. A file of an
    /// earlier version keeps them for new records, until [`Self::compact`].
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn shrink(&self) -> Result<bool, Error> {
        let unused = |connection: &Connection| -> rusqlite::Result<bool> {
            let one = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
            Ok(one("PRAGMA auto_vacuum")? == INCREMENTAL && one("PRAGMA freelist_count")? > 0)
        };
        if !self.read(move |connection| Ok(unused(connection)?)).await? {
            return Ok(false);
        }
        self.transact(move |connection| {
            let sql = format!("PRAGMA incremental_vacuum({SHRINK_PAGES_MAX})");
            let mut statement = connection.prepare(&sql)?;
            let mut rows = statement.query([])?;
            // Each row is a page.
            while rows.next()?.is_some() {}
            unused(connection)
        })
        .await
    }

    /// Copies the write-ahead log into the file, as far as no reader needs it, so that the file gets shorter.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn checkpoint(&self) -> Result<(), Error> {
        let path = self.path().to_owned();
        self.writer()?;
        self.read(move |_| {
            let connection = open_writing_plain(&path)?;
            // Others do not wait for it.
            let sql = "PRAGMA wal_checkpoint(PASSIVE)";
            Ok(connection.query_row(sql, [], |_| Ok(()))?)
        })
        .await
    }

    /// Rewrites the file without unused space, and has it shrink by itself from then on. Needs as much free disk as the
    /// file has records, and locks the file: for a stack that does not run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn compact(&self) -> Result<(), Error> {
        let path = self.path().to_owned();
        self.writer()?;
        self.read(move |_| {
            let connection = open_writing_plain(&path)?;
            connection.execute_batch(
                "PRAGMA auto_vacuum = INCREMENTAL; VACUUM; PRAGMA wal_checkpoint(TRUNCATE);",
            )?;
            Ok(())
        })
        .await
    }
}

/// SQLite's number of this mode.
///
/// Source: SQLite, "PRAGMA auto_vacuum".
const INCREMENTAL: i64 = 2;

/// Sessions with a verdict of a day up to that of `time`, and more conditions on it.
fn ended(
    connection: &Connection,
    time: Stamp,
    rest: &str,
    value: &str,
    limit: usize,
) -> rusqlite::Result<Vec<SessionId>> {
    let verdicts: Vec<_> = EventStatus::ALL.iter().filter(|status| status.is_verdict()).collect();
    let verdicts = verdicts.iter().map(|status| format!("'{status}'")).collect::<Vec<_>>();
    let sql = format!(
        "SELECT DISTINCT partition.pk FROM item JOIN partition ON partition.id = item.partition \
         WHERE item.day IS NOT NULL AND item.day < ? \
         AND json_extract(item.body, '$.Status.S') IN ({}) {rest} \
         ORDER BY item.day, item.at LIMIT ?",
        verdicts.join(", ")
    );
    // After the last digit that a day ends with.
    let until = format!("DAY#{}#g", time.date());
    let mut statement = connection.prepare_cached(&sql)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![until, value, limit], |row| row.get::<_, String>(0))?;
    let keys = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(keys.iter().filter_map(|pk| key::session_of(pk)).collect())
}

fn room_for_a_hold(connection: &Connection, session: &SessionId) -> Result<(), Failure> {
    let sql = "SELECT count(*) FROM log_leaf WHERE session = ?";
    let leaves: i64 =
        connection.prepare_cached(sql)?.query_row([session.as_str()], |row| row.get(0))?;
    if usize::try_from(leaves).is_ok_and(|leaves| leaves <= LEAVES_BEFORE_HOLD_MAX) {
        return Ok(());
    }
    let problem = format!(
        "session {session} has {leaves} leaves in the log of sessions; it can be held while it has at most \
         {LEAVES_BEFORE_HOLD_MAX}"
    );
    Err(Error::Refused(problem.into()).into())
}

fn keeping(connection: &Connection, session: &SessionId) -> rusqlite::Result<Keeping> {
    let mut statement =
        connection.prepare_cached("SELECT leaf FROM log_leaf WHERE session = ? ORDER BY n")?;
    let mut rows = statement.query([session.as_str()])?;
    let mut keeping = Keeping::default();
    while let Some(row) = rows.next()? {
        // The verification names a leaf that cannot be read.
        if let Some(leaf) = AnyLeaf::parse(log::bytes(row.get_ref(0)?)) {
            let _ = keeping.add(&leaf);
        }
    }
    Ok(keeping)
}

/// Takes the partitions of a session out of sight of every query.
fn hide(connection: &Connection, session: &SessionId) -> rusqlite::Result<()> {
    let (partition, blobs) = (key::session(session), key::blob(session, ""));
    let notices = key::notices(session);
    // The character after `#`.
    let after = format!("{}$", blobs.trim_end_matches('#'));
    let of_session = "SELECT id FROM partition WHERE pk IN (?1, ?4) OR (pk >= ?2 AND pk < ?3)";
    let unlist = format!(
        "UPDATE item SET day = NULL, at = NULL, open = NULL \
         WHERE partition IN ({of_session}) AND (day IS NOT NULL OR open IS NOT NULL)"
    );
    connection.execute(&unlist, params![partition, blobs, after, notices])?;
    let rename = format!(
        "UPDATE partition SET pk = '{REMOVED}' || id || '#' || pk WHERE id IN ({of_session})"
    );
    connection.execute(&rename, params![partition, blobs, after, notices])?;
    Ok(())
}

fn remove_batch(connection: &Connection) -> rusqlite::Result<bool> {
    let first = "SELECT id FROM partition WHERE pk >= 'PRUNED#' AND pk < 'PRUNED$' LIMIT 1";
    let id: Option<i64> = connection.query_row(first, [], |row| row.get(0)).optional()?;
    let Some(id) = id else { return Ok(false) };
    let rows = "SELECT pos, octet_length(body) FROM item WHERE partition = ? LIMIT ?";
    let mut statement = connection.prepare_cached(rows)?;
    let rows = statement.query_map(params![id, BATCH_ROWS_MAX], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?.unwrap_or(0)))
    })?;
    let rows: Vec<(i64, i64)> = rows.collect::<rusqlite::Result<_>>()?;
    let mut bytes = 0;
    let mut delete = connection.prepare_cached("DELETE FROM item WHERE pos = ?")?;
    for (pos, size) in &rows {
        if bytes > BATCH_BYTES_MAX {
            return Ok(true);
        }
        delete.execute([pos])?;
        bytes += size;
    }
    if rows.len() < usize::try_from(BATCH_ROWS_MAX).unwrap_or(usize::MAX) {
        connection.execute("DELETE FROM partition WHERE id = ?", [id])?;
    }
    Ok(true)
}
