//! The checkpoints in the file.

use rusqlite::{Connection, Row, params};

use super::{Failure, bytes, number};
use crate::log::Extract;

/// Checkpoints that are kept. Older ones follow from the tree, and witnesses keep their own.
const CHECKPOINTS_KEPT: i64 = 100;

/// Stores a checkpoint, in place of one of the same size, and drops old ones.
pub(super) fn put_checkpoint(
    connection: &Connection,
    size: u64,
    note: &str,
) -> rusqlite::Result<()> {
    let insert = "INSERT INTO log_checkpoint (size, note) VALUES (?, ?) \
                  ON CONFLICT (size) DO UPDATE SET note = excluded.note";
    connection.prepare_cached(insert)?.execute(params![number(size), note])?;
    let drop = format!(
        "DELETE FROM log_checkpoint WHERE size <= (SELECT size FROM log_checkpoint \
         ORDER BY size DESC LIMIT 1 OFFSET {CHECKPOINTS_KEPT})"
    );
    connection.prepare_cached(&drop)?.execute([]).map(|_| ())
}

/// The newest checkpoint that is stored under its own size. Another one would keep later signatures from counting.
pub(super) fn checkpoint(connection: &Connection) -> Result<Option<String>, Failure> {
    let sql = "SELECT size, note FROM log_checkpoint ORDER BY size DESC";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (size, note) = checkpoint_row(row)?;
        if size.is_some() && Extract::size_of(&note) == size {
            return Ok(Some(note));
        }
    }
    Ok(None)
}

/// A checkpoint, and the size that it is stored under.
pub(super) fn checkpoint_row(row: &Row<'_>) -> rusqlite::Result<(Option<u64>, String)> {
    let size = row.get_ref(0)?.as_i64().ok().and_then(|size| u64::try_from(size).ok());
    Ok((size, String::from_utf8_lossy(bytes(row.get_ref(1)?)).into_owned()))
}

/// The newest checkpoint with a cosignature that covers a leaf.
pub(super) fn cosigned(connection: &Connection, leaf: i64) -> Result<Option<String>, Failure> {
    let sql = "SELECT size, note FROM log_checkpoint WHERE size > ? ORDER BY size DESC";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([leaf])?;
    while let Some(row) = rows.next()? {
        let (size, note) = checkpoint_row(row)?;
        if Extract::size_of(&note) == size && Extract::signatures_of(&note) > 1 {
            return Ok(Some(note));
        }
    }
    Ok(None)
}
