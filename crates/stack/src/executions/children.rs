//! The child executions of a run of a distributed `Map`, as rows of the SQLite file.
//!
//! All of them are rows before the first one runs, with their inputs: a restart reads no item again.

use asl::time::Timestamp;
use journal::sqlite::SqliteStore;
use journal::store::Error;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::encrypted::encrypt_input;
use super::store::{ChildCounts, NewExecution};

pub(super) const CREATE: &str = "
CREATE TABLE IF NOT EXISTS map_run_child (
    run TEXT NOT NULL,
    position INTEGER NOT NULL,
    machine INTEGER NOT NULL,
    arn TEXT NOT NULL,
    name TEXT NOT NULL,
    input TEXT NOT NULL,
    token_seed TEXT NOT NULL,
    items INTEGER NOT NULL,
    execution INTEGER,
    PRIMARY KEY (run, position)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS map_run_child_by_execution ON map_run_child(execution);
";

/// See [`ExecutionStore::add_children`](super::ExecutionStore::add_children).
pub(super) async fn add(
    store: &SqliteStore,
    run: &str,
    machine: i64,
    children: Vec<(NewExecution, usize)>,
) -> Result<(), Error> {
    let encrypted = children
        .into_iter()
        .map(|(child, items)| Ok((encrypt_input(store, child)?, items as i64)))
        .collect::<Result<Vec<_>, Error>>()?;
    let run = run.to_owned();
    store
        .transact(move |connection| {
            // An earlier attempt has written all of them.
            let known = "SELECT EXISTS (SELECT 1 FROM map_run_child WHERE run = ?)";
            if connection.query_row(known, [&run], |row| row.get(0))? {
                return Ok(());
            }
            let mut insert = connection.prepare_cached(
                "INSERT INTO map_run_child (run, position, machine, arn, name, input, token_seed, items) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            )?;
            for (position, (child, items)) in encrypted.iter().enumerate() {
                insert.execute(params![
                    run,
                    position as i64,
                    machine,
                    child.arn,
                    child.name,
                    child.input,
                    child.token_seed,
                    items
                ])?;
            }
            Ok(())
        })
        .await
}

/// See [`ExecutionStore::begin_children`](super::ExecutionStore::begin_children).
pub(super) async fn begin(
    store: &SqliteStore,
    run: &str,
    limit: i64,
    now: Timestamp,
) -> Result<usize, Error> {
    let run = run.to_owned();
    store
        .transact(move |connection| {
            let mut waiting = connection.prepare_cached(
                "SELECT position FROM map_run_child WHERE run = ? AND execution IS NULL \
                 ORDER BY position LIMIT ?",
            )?;
            let positions = waiting.query_map(params![run, limit], |row| row.get(0))?;
            let positions = positions.collect::<rusqlite::Result<Vec<i64>>>()?;
            for position in &positions {
                begin_one(connection, &run, *position, now)?;
            }
            Ok(positions.len())
        })
        .await
}

fn begin_one(
    connection: &Connection,
    run: &str,
    position: i64,
    now: Timestamp,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO execution (arn, name, machine, status, input, started_ms, token_seed) \
             SELECT arn, name, machine, 'RUNNING', input, ?, token_seed FROM map_run_child \
             WHERE run = ? AND position = ?",
        )?
        .execute(params![now.as_millis(), run, position])?;
    // The execution has the input from now on.
    connection
        .prepare_cached(
            "UPDATE map_run_child SET execution = ?, input = '' WHERE run = ? AND position = ?",
        )?
        .execute(params![connection.last_insert_rowid(), run, position])?;
    Ok(())
}

/// See [`ExecutionStore::child_counts`](super::ExecutionStore::child_counts).
pub(super) async fn counts(
    store: &SqliteStore,
    run: &str,
    token: Option<&str>,
) -> Result<ChildCounts, Error> {
    let (run, token) = (run.to_owned(), token.map(str::to_owned));
    store
        .read(move |connection| {
            // An execution that was pruned meanwhile counts as aborted: what it did is not known.
            let sql = "SELECT CASE WHEN map_run_child.execution IS NULL THEN 'PENDING' \
                       WHEN ?2 IS NOT NULL AND status IN ('FAILED', 'TIMED_OUT', 'ABORTED') \
                       AND IFNULL(execution_redrive.token, '') <> ?2 THEN 'PENDING_REDRIVE' \
                       ELSE IFNULL(status, 'ABORTED') END AS child_status, COUNT(*), SUM(items) \
                       FROM map_run_child \
                       LEFT JOIN execution ON execution.id = map_run_child.execution \
                       LEFT JOIN execution_redrive \
                       ON execution_redrive.execution = map_run_child.execution \
                       WHERE run = ?1 GROUP BY child_status";
            let mut statement = connection.prepare_cached(sql)?;
            let counts = statement.query_map(params![run, token], |row| {
                let number = |n: i64| usize::try_from(n).unwrap_or(0);
                Ok((row.get(0)?, (number(row.get(1)?), number(row.get(2)?))))
            })?;
            Ok(ChildCounts(counts.collect::<rusqlite::Result<_>>()?))
        })
        .await
}

/// See [`ExecutionStore::run_of`](super::ExecutionStore::run_of).
pub(super) async fn run_of(store: &SqliteStore, execution: i64) -> Result<Option<String>, Error> {
    store
        .read(move |connection| {
            if !connection.table_exists(None, "map_run_child")? {
                return Ok(None);
            }
            let sql = "SELECT run FROM map_run_child WHERE execution = ?";
            Ok(connection.query_row(sql, [execution], |row| row.get(0)).optional()?)
        })
        .await
}
