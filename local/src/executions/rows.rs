//! Executions as rows, in the journal's file.
//!
//! The execution's row and its history's rows are written by one transaction a step, so that the
//! status never says what the history does not. Histories are stored as the API spells them.

use std::sync::Arc;

use journal::sqlite::SqliteStore;
use journal::store::{Error, Retry};
use rusqlite::{Connection, Row, ToSql, params, params_from_iter};
use states::execution::Outcome;
use states::history::Event;
use states::time::Timestamp;

const CREATE: &str = "
CREATE TABLE IF NOT EXISTS execution_machine (
    id INTEGER PRIMARY KEY,
    arn TEXT NOT NULL,
    definition TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    UNIQUE (arn, definition)
);
CREATE TABLE IF NOT EXISTS execution (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    arn TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    machine INTEGER NOT NULL REFERENCES execution_machine(id),
    status TEXT NOT NULL,
    input TEXT NOT NULL,
    output TEXT,
    error TEXT,
    cause TEXT,
    started_ms INTEGER NOT NULL,
    stopped_ms INTEGER,
    token_seed TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS execution_by_status ON execution(status, id);
CREATE TABLE IF NOT EXISTS execution_event (
    execution INTEGER NOT NULL REFERENCES execution(id),
    id INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (execution, id)
) WITHOUT ROWID;
";

const COLUMNS: &str = "execution.id, execution.arn, execution.name, machine, status, input, \
                       output, error, cause, started_ms, stopped_ms, token_seed, execution_machine.arn";

/// The status of an execution that has not ended.
pub const RUNNING: &str = "RUNNING";

/// An execution's row.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Counts up in the order of starting.
    pub id: i64,
    /// Its ARN.
    pub arn: String,
    /// Its name.
    pub name: String,
    /// The row of the definition that it runs.
    pub machine: i64,
    /// The state machine's ARN.
    pub machine_arn: String,
    /// As `DescribeExecution` answers it.
    pub status: String,
    /// JSON text.
    pub input: String,
    /// JSON text, of one that succeeded.
    pub output: Option<String>,
    /// Of one that failed or was aborted.
    pub error: Option<String>,
    /// As `error`.
    pub cause: Option<String>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it ended.
    pub stopped_at: Option<Timestamp>,
    /// What its tokens are made of. Never shown.
    pub token_seed: String,
}

/// An execution to be started.
#[derive(Clone, Debug)]
pub(super) struct Fresh {
    pub(super) arn: String,
    pub(super) name: String,
    pub(super) input: String,
    pub(super) started_at: Timestamp,
    pub(super) token_seed: String,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Inserted {
    /// It is durable, now or since an earlier start of the same.
    Started(Timestamp),
    /// The name is taken by another, or by one that has ended.
    Taken,
}

/// Makes the tables and the definition's row. Returns the row's number and when it was made.
pub(super) async fn create(
    store: &SqliteStore,
    arn: &str,
    definition: &str,
    now: Timestamp,
) -> Result<(i64, Timestamp), Error> {
    let (arn, definition) = (arn.to_owned(), definition.to_owned());
    transact(store, move |connection| {
        connection.execute_batch(CREATE)?;
        connection.execute(
            "INSERT INTO execution_machine (arn, definition, created_ms) VALUES (?, ?, ?) \
             ON CONFLICT DO NOTHING",
            params![arn, definition, now.as_millis()],
        )?;
        connection.query_row(
            "SELECT id, created_ms FROM execution_machine WHERE arn = ? AND definition = ?",
            params![arn, definition],
            |row| Ok((row.get(0)?, Timestamp::from_millis(row.get(1)?))),
        )
    })
    .await
}

/// The newest time that any execution has recorded: a clock must not start before it.
pub(super) async fn newest(store: &SqliteStore) -> Result<Option<Timestamp>, Error> {
    store
        .read(|connection| {
            let exists: bool = query(connection, |c| {
                c.query_row(
                    "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'execution_event')",
                    [],
                    |row| row.get(0),
                )
            })?;
            if !exists {
                return Ok(None);
            }
            let sql = "SELECT MAX( \
                IFNULL((SELECT MAX(started_ms) FROM execution), 0), \
                IFNULL((SELECT MAX(stopped_ms) FROM execution), 0), \
                IFNULL((SELECT MAX(at_ms) FROM execution_event JOIN execution \
                        ON execution.id = execution WHERE status = 'RUNNING'), 0))";
            let millis: Option<i64> =
                query(connection, |c| c.query_row(sql, [], |row| row.get(0)))?;
            Ok(millis.filter(|millis| *millis > 0).map(Timestamp::from_millis))
        })
        .await
}

/// Inserts executions, all in one commit.
pub(super) async fn insert(
    store: &SqliteStore,
    machine: i64,
    fresh: Vec<Fresh>,
) -> Result<Vec<Inserted>, Error> {
    transact(store, move |connection| {
        fresh.iter().map(|execution| insert_one(connection, machine, execution)).collect()
    })
    .await
}

fn insert_one(connection: &Connection, machine: i64, fresh: &Fresh) -> rusqlite::Result<Inserted> {
    let inserted = connection
        .prepare_cached(
            "INSERT INTO execution (arn, name, machine, status, input, started_ms, token_seed) \
             VALUES (?, ?, ?, 'RUNNING', ?, ?, ?) ON CONFLICT (arn) DO NOTHING",
        )?
        .execute(params![
            fresh.arn,
            fresh.name,
            machine,
            fresh.input,
            fresh.started_at.as_millis(),
            fresh.token_seed
        ])?;
    if inserted == 1 {
        return Ok(Inserted::Started(fresh.started_at));
    }
    let (status, input, started_ms): (String, String, i64) = connection.query_row(
        "SELECT status, input, started_ms FROM execution WHERE arn = ?",
        [&fresh.arn],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    Ok(if status == RUNNING && input == fresh.input {
        Inserted::Started(Timestamp::from_millis(started_ms))
    } else {
        Inserted::Taken
    })
}

/// Appends events to a history and, if the last one ends it, closes the execution.
///
/// The same append may be made again: what is there already is left as it is.
pub(super) async fn append(
    store: &SqliteStore,
    execution: i64,
    events: &[Event],
    ended: Option<(Outcome, Timestamp)>,
) -> Result<(), Error> {
    let bodies = events
        .iter()
        .map(|event| {
            let body = serde_json::to_string(event).map_err(|e| Error::Refused(e.into()))?;
            Ok((event.id, event.timestamp.as_millis(), body))
        })
        .collect::<Result<Arc<[_]>, Error>>()?;
    transact(store, move |connection| {
        let mut insert = connection.prepare_cached(
            "INSERT INTO execution_event (execution, id, at_ms, body) VALUES (?, ?, ?, ?) \
             ON CONFLICT DO NOTHING",
        )?;
        for (id, at_ms, body) in bodies.iter() {
            insert.execute(params![execution, *id as i64, at_ms, body])?;
        }
        if let Some((outcome, at)) = &ended {
            close(connection, execution, outcome, *at)?;
        }
        Ok(())
    })
    .await
}

fn close(
    connection: &Connection,
    execution: i64,
    outcome: &Outcome,
    at: Timestamp,
) -> rusqlite::Result<usize> {
    let (output, failure) = match outcome {
        Outcome::Succeeded(output) => (Some(output), None),
        Outcome::Failed(failure) | Outcome::Aborted(failure) => (None, Some(failure)),
        Outcome::TimedOut => (None, None),
    };
    connection
        .prepare_cached(
            "UPDATE execution SET status = ?, output = ?, error = ?, cause = ?, stopped_ms = ? \
             WHERE id = ? AND status = 'RUNNING'",
        )?
        .execute(params![
            outcome.status(),
            output,
            failure.and_then(|failure| failure.error.as_ref()),
            failure.and_then(|failure| failure.cause.as_ref()),
            at.as_millis(),
            execution
        ])
}

/// Writes until it is known what became of it. Every write here can be made twice.
pub(super) async fn transact<T: Send + 'static>(
    store: &SqliteStore,
    work: impl Fn(&Connection) -> rusqlite::Result<T> + Clone + Send + 'static,
) -> Result<T, Error> {
    let mut attempt = 1;
    loop {
        match store.transact(work.clone()).await {
            Err(error) if attempt < journal::limits::WRITE_ATTEMPTS_MAX => match error.retry() {
                Retry::After(pause) => tokio::time::sleep(pause * attempt).await,
                Retry::Never => return Err(error),
            },
            known => return known,
        }
        attempt += 1;
    }
}

/// The executions with a number above `after` that run, in the order of starting.
pub(super) async fn running_after(
    store: &SqliteStore,
    after: i64,
    limit: usize,
) -> Result<Vec<Record>, Error> {
    select(
        store,
        "status = 'RUNNING' AND execution.id > ? ORDER BY execution.id LIMIT ?",
        vec![after.into(), limit_of(limit).into()],
    )
    .await
}

/// Of these executions the ones that run, in the order of starting.
pub(super) async fn running_of(store: &SqliteStore, ids: &[i64]) -> Result<Vec<Record>, Error> {
    let ids = ids.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let rest = format!("status = 'RUNNING' AND execution.id IN ({ids}) ORDER BY execution.id");
    select(store, &rest, Vec::new()).await
}

/// An execution by its ARN.
pub(super) async fn by_arn(store: &SqliteStore, arn: &str) -> Result<Option<Record>, Error> {
    let found = select(store, "execution.arn = ?", vec![arn.to_owned().into()]).await?;
    Ok(found.into_iter().next())
}

/// Executions with a number below `before`, newest first.
pub(super) async fn newest_first(
    store: &SqliteStore,
    status: Option<&str>,
    before: i64,
    limit: usize,
) -> Result<Vec<Record>, Error> {
    let limit = limit_of(limit);
    match status {
        None => {
            let rest = "execution.id < ? ORDER BY execution.id DESC LIMIT ?";
            select(store, rest, vec![before.into(), limit.into()]).await
        }
        Some(status) => {
            let rest = "status = ? AND execution.id < ? ORDER BY execution.id DESC LIMIT ?";
            select(store, rest, vec![status.to_owned().into(), before.into(), limit.into()]).await
        }
    }
}

/// How many executions there are, by status.
pub(super) async fn counts(store: &SqliteStore) -> Result<Vec<(String, i64)>, Error> {
    store
        .read(|connection| {
            query(connection, |connection| {
                connection
                    .prepare_cached("SELECT status, COUNT(*) FROM execution GROUP BY status")?
                    .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                    .collect()
            })
        })
        .await
}

/// The text of a definition.
pub(super) async fn definition(store: &SqliteStore, machine: i64) -> Result<String, Error> {
    store
        .read(move |connection| {
            let sql = "SELECT definition FROM execution_machine WHERE id = ?";
            query(connection, |c| c.query_row(sql, [machine], |row| row.get(0)))
        })
        .await
}

/// Part of a history, as stored JSON text: the events beyond `after`, or below it in reverse.
pub(super) async fn events(
    store: &SqliteStore,
    execution: i64,
    after: i64,
    reverse: bool,
    limit: usize,
) -> Result<Vec<String>, Error> {
    let sql = if reverse {
        "SELECT body FROM execution_event WHERE execution = ? AND id < ? ORDER BY id DESC LIMIT ?"
    } else {
        "SELECT body FROM execution_event WHERE execution = ? AND id > ? ORDER BY id LIMIT ?"
    };
    store
        .read(move |connection| {
            query(connection, |connection| {
                connection
                    .prepare_cached(sql)?
                    .query_map(params![execution, after, limit_of(limit)], |row| row.get(0))?
                    .collect()
            })
        })
        .await
}

async fn select(
    store: &SqliteStore,
    rest: &str,
    values: Vec<rusqlite::types::Value>,
) -> Result<Vec<Record>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM execution JOIN execution_machine \
         ON execution_machine.id = execution.machine WHERE {rest}"
    );
    store
        .read(move |connection| {
            query(connection, |connection| {
                connection
                    .prepare_cached(&sql)?
                    .query_map(params_from_iter(values.iter().map(|v| v as &dyn ToSql)), record)?
                    .collect()
            })
        })
        .await
}

fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    Ok(Record {
        id: row.get(0)?,
        arn: row.get(1)?,
        name: row.get(2)?,
        machine: row.get(3)?,
        status: row.get(4)?,
        input: row.get(5)?,
        output: row.get(6)?,
        error: row.get(7)?,
        cause: row.get(8)?,
        started_at: Timestamp::from_millis(row.get(9)?),
        stopped_at: row.get::<_, Option<i64>>(10)?.map(Timestamp::from_millis),
        token_seed: row.get(11)?,
        machine_arn: row.get(12)?,
    })
}

fn query<T>(
    connection: &Connection,
    read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> Result<T, Error> {
    read(connection).map_err(|error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
            Error::Corrupt(error.into())
        }
        _ => Error::Unavailable(error.into()),
    })
}

fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
