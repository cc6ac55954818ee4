//! Executions as rows of the SQLite file that holds the journal.
//!
//! A history is stored in the API's JSON form, each event [packed]; earlier versions stored text. Inputs, outputs, failures and histories of a session that has a key are
//! encrypted under it; an encrypted event is not packed.

use asl::execution::Outcome;
use asl::history::Event;
use asl::time::Timestamp;
use journal::sqlite::SqliteStore;
use journal::sqlite::encrypted::session_of_text;
use journal::store::Error;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row, ToSql, params, params_from_iter};

use super::encrypted::{
    Body, Ended, decrypted, encrypt_history, encrypt_input, place_of_event, session_of,
};
use super::redrives::{self, Redriven};
use super::store::{
    ChildCounts, ExecutionStore, Inserted, MachineRow, NewExecution, RUNNING, Record,
};
use super::{children, packed, resources};

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

/// Selects the columns of [`record`]. A file of an earlier version has no redrives.
pub(super) fn select_rows(connection: &Connection) -> rusqlite::Result<String> {
    let (columns, redrives) = match connection.table_exists(None, "execution_redrive")? {
        true => (
            "execution_redrive.count, execution_redrive.at_ms, execution_redrive.token",
            "LEFT JOIN execution_redrive ON execution_redrive.execution = execution.id",
        ),
        false => ("NULL, NULL, NULL", ""),
    };
    Ok(format!(
        "SELECT execution.id, execution.arn, execution.name, machine, status, input, output, \
         error, cause, started_ms, stopped_ms, token_seed, execution_machine.arn, {columns} \
         FROM execution \
         LEFT JOIN execution_machine ON execution_machine.id = execution.machine {redrives}"
    ))
}

impl ExecutionStore for SqliteStore {
    async fn open_machine(
        &self,
        arn: &str,
        definition: &str,
        now: Timestamp,
    ) -> Result<MachineRow, Error> {
        let (arn, definition) = (arn.to_owned(), definition.to_owned());
        self.transact(move |connection| {
            connection.execute_batch(CREATE)?;
            connection.execute_batch(resources::CREATE)?;
            connection.execute_batch(redrives::CREATE)?;
            connection.execute_batch(children::CREATE)?;
            connection.execute(
                "INSERT INTO execution_machine (arn, definition, created_ms) VALUES (?, ?, ?) \
                 ON CONFLICT DO NOTHING",
                params![arn, definition, now.as_millis()],
            )?;
            connection.query_row(
                "SELECT id, created_ms FROM execution_machine WHERE arn = ? AND definition = ?",
                params![arn, definition],
                |row| {
                    let created_at = Timestamp::from_millis(row.get(1)?);
                    Ok(MachineRow { id: row.get(0)?, created_at })
                },
            )
        })
        .await
    }

    async fn definition(&self, machine: i64) -> Result<String, Error> {
        self.read(move |connection| {
            let sql = "SELECT definition FROM execution_machine WHERE id = ?";
            Ok(connection.query_row(sql, [machine], |row| row.get(0))?)
        })
        .await
    }

    async fn newest_time(&self) -> Result<Option<Timestamp>, Error> {
        self.read(|connection| {
            if !exists(connection)? {
                return Ok(None);
            }
            // A text in a damaged row is greater than any number.
            let sql = "SELECT MAX( \
                IFNULL((SELECT MAX(started_ms) FROM execution \
                        WHERE typeof(started_ms) = 'integer'), 0), \
                IFNULL((SELECT MAX(stopped_ms) FROM execution \
                        WHERE typeof(stopped_ms) = 'integer'), 0), \
                IFNULL((SELECT MAX(at_ms) FROM execution_event JOIN execution \
                        ON execution.id = execution \
                        WHERE status = 'RUNNING' AND typeof(at_ms) = 'integer'), 0))";
            let millis: Option<i64> = connection.query_row(sql, [], |row| row.get(0))?;
            Ok(millis.filter(|millis| *millis > 0).map(Timestamp::from_millis))
        })
        .await
    }

    async fn holds_executions(&self) -> Result<bool, Error> {
        self.read(|connection| Ok(exists(connection)?)).await
    }

    async fn start_all(
        &self,
        machine: i64,
        executions: Vec<NewExecution>,
    ) -> Result<Vec<Inserted>, Error> {
        let sessions: Vec<_> = executions.iter().filter_map(session_of).collect();
        self.create_keys(&sessions)?;
        let encrypted = executions.into_iter().map(|new| encrypt_input(self, new));
        let executions = encrypted.collect::<Result<Vec<_>, Error>>()?;
        self.transact(move |connection| {
            executions.iter().map(|new| insert_one(connection, machine, new)).collect()
        })
        .await
    }

    async fn append(
        &self,
        execution: i64,
        events: &[Event],
        ended: Option<&(Outcome, Timestamp)>,
    ) -> Result<(), Error> {
        let (bodies, ended) = stored_events(self, execution, events, ended.cloned()).await?;
        self.transact(move |connection| {
            let mut insert = connection.prepare_cached(
                "INSERT INTO execution_event (execution, id, at_ms, body) VALUES (?, ?, ?, ?) \
                 ON CONFLICT DO NOTHING",
            )?;
            for (id, at_ms, body) in &bodies {
                insert.execute(params![execution, *id as i64, at_ms, body])?;
            }
            if let Some((outcome, at)) = &ended {
                let last = bodies.last().map_or(0, |(id, ..)| *id as i64);
                close(connection, execution, last, outcome, *at)?;
            }
            Ok(())
        })
        .await
    }

    async fn redrive(
        &self,
        execution: i64,
        event: &Event,
        token: Option<&str>,
    ) -> Result<bool, Error> {
        redrives::redrive(self, execution, event, token).await
    }

    async fn running_after(&self, after: i64, limit: usize) -> Result<Vec<Record>, Error> {
        let rest = "status = 'RUNNING' AND execution.id > ? ORDER BY execution.id LIMIT ?";
        select(self, rest, vec![after.into(), limit_of(limit).into()]).await
    }

    async fn running(&self, ids: &[i64]) -> Result<Vec<Record>, Error> {
        let ids = ids.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        let rest = format!("status = 'RUNNING' AND execution.id IN ({ids}) ORDER BY execution.id");
        select(self, &rest, Vec::new()).await
    }

    async fn find(&self, arn: &str) -> Result<Option<Record>, Error> {
        let found = rows(self, "execution.arn = ?", vec![arn.to_owned().into()]).await?;
        found.into_iter().next().transpose()
    }

    async fn newest_first(
        &self,
        status: Option<&str>,
        before: i64,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        let limit = limit_of(limit);
        match status {
            None => {
                let rest = "execution.id < ? ORDER BY execution.id DESC LIMIT ?";
                select(self, rest, vec![before.into(), limit.into()]).await
            }
            Some(status) => {
                let rest = "status = ? AND execution.id < ? ORDER BY execution.id DESC LIMIT ?";
                select(self, rest, vec![status.to_owned().into(), before.into(), limit.into()])
                    .await
            }
        }
    }

    async fn counts(&self) -> Result<Vec<(String, i64)>, Error> {
        self.read(|connection| {
            // The status of a damaged row may be anything; it is counted as what it reads.
            let sql = "SELECT CAST(status AS BLOB), COUNT(*) FROM execution GROUP BY status ORDER BY status";
            let mut statement = connection.prepare_cached(sql)?;
            let counts = statement.query_map([], |row| {
                let status = row.get_ref(0)?.as_bytes_or_null()?.unwrap_or_default();
                Ok((String::from_utf8_lossy(status).into_owned(), row.get(1)?))
            })?;
            Ok(counts.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn running_count(&self) -> Result<usize, Error> {
        self.read(|connection| {
            let sql = "SELECT COUNT(*) FROM execution WHERE status = 'RUNNING'";
            let count: i64 = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            Ok(usize::try_from(count).unwrap_or(0))
        })
        .await
    }

    async fn resources(&self, kind: &'static str) -> Result<Vec<(String, String)>, Error> {
        resources::all(self, kind).await
    }

    async fn resource(&self, kind: &'static str, name: &str) -> Result<Option<String>, Error> {
        resources::one(self, kind, name.to_owned()).await
    }

    fn has_children(&self) -> bool {
        true
    }

    async fn add_children(
        &self,
        run: &str,
        machine: i64,
        children: Vec<(NewExecution, usize)>,
    ) -> Result<(), Error> {
        children::add(self, run, machine, children).await
    }

    async fn begin_children(
        &self,
        run: &str,
        limit: usize,
        now: Timestamp,
    ) -> Result<usize, Error> {
        children::begin(self, run, limit_of(limit), now).await
    }

    async fn children(&self, run: &str) -> Result<Vec<Record>, Error> {
        let rest = "execution.id IN (SELECT execution FROM map_run_child WHERE run = ?) \
                    ORDER BY execution.id";
        select(self, rest, vec![run.to_owned().into()]).await
    }

    async fn child_counts(&self, run: &str, token: Option<&str>) -> Result<ChildCounts, Error> {
        children::counts(self, run, token).await
    }

    async fn run_of(&self, execution: i64) -> Result<Option<String>, Error> {
        children::run_of(self, execution).await
    }

    async fn put_resource(
        &self,
        kind: &'static str,
        name: &str,
        body: Option<String>,
    ) -> Result<(), Error> {
        resources::put(self, kind, name.to_owned(), body).await
    }

    async fn history(
        &self,
        execution: i64,
        after: i64,
        reverse: bool,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
        let sql = if reverse {
            "SELECT id, body FROM execution_event WHERE execution = ? AND id < ? ORDER BY id DESC LIMIT ?"
        } else {
            "SELECT id, body FROM execution_event WHERE execution = ? AND id > ? ORDER BY id LIMIT ?"
        };
        let bodies: Vec<(i64, String)> = self
            .read(move |connection| {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query(params![execution, after, limit_of(limit)])?;
                let mut bodies = Vec::new();
                while let Some(row) = rows.next()? {
                    let id = row.get(0).map_err(unreadable)?;
                    let body = match row.get_ref(1).map_err(unreadable)? {
                        ValueRef::Blob(packed) => packed::unpack(packed)?,
                        _ => row.get(1).map_err(unreadable)?,
                    };
                    bodies.push((id, body));
                }
                Ok(bodies)
            })
            .await?;
        // The history of an erased session is gone.
        let readable =
            |(id, body)| self.decrypt_text(&place_of_event(execution, id), body).transpose();
        bodies.into_iter().filter_map(readable).collect()
    }
}

fn exists(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'execution_event')";
    connection.query_row(sql, [], |row| row.get(0))
}

fn insert_one(
    connection: &Connection,
    machine: i64,
    new: &NewExecution,
) -> rusqlite::Result<Inserted> {
    let inserted = connection
        .prepare_cached(
            "INSERT INTO execution (arn, name, machine, status, input, started_ms, token_seed) \
             VALUES (?, ?, ?, 'RUNNING', ?, ?, ?) ON CONFLICT (arn) DO NOTHING",
        )?
        .execute(params![
            new.arn,
            new.name,
            machine,
            new.input,
            new.started_at.as_millis(),
            new.token_seed
        ])?;
    if inserted == 1 {
        return Ok(Inserted::Started(new.started_at));
    }
    let (status, input, started_ms): (String, String, i64) = connection.query_row(
        "SELECT status, input, started_ms FROM execution WHERE arn = ?",
        [&new.arn],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    Ok(if status == RUNNING && input == new.input {
        Inserted::Started(Timestamp::from_millis(started_ms))
    } else {
        Inserted::Taken
    })
}

/// Closes an execution whose last event is `last`. A repeated write does not close one that was redriven since.
fn close(
    connection: &Connection,
    execution: i64,
    last: i64,
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
            "UPDATE execution SET status = ?1, output = ?2, error = ?3, cause = ?4, stopped_ms = ?5 \
             WHERE id = ?6 AND status = 'RUNNING' \
             AND ?7 = (SELECT MAX(id) FROM execution_event WHERE execution = ?6)",
        )?
        .execute(params![
            outcome.status(),
            output,
            failure.and_then(|failure| failure.error.as_ref()),
            failure.and_then(|failure| failure.cause.as_ref()),
            at.as_millis(),
            execution,
            last
        ])
}

/// The readable rows of a list: a damaged one hides no other.
async fn select(store: &SqliteStore, rest: &str, values: Vec<Value>) -> Result<Vec<Record>, Error> {
    let readable = |row: Result<Record, Error>| {
        row.inspect_err(|error| tracing::warn!(%error, "An execution cannot be read.")).ok()
    };
    Ok(rows(store, rest, values).await?.into_iter().filter_map(readable).collect())
}

/// Packs events, unless they are encrypted.
fn stored(bodies: Vec<Body>) -> Result<Vec<(u64, i64, Value)>, Error> {
    if bodies.first().is_some_and(|(_, _, body)| session_of_text(body).is_some()) {
        return Ok(bodies.into_iter().map(|(id, at, body)| (id, at, body.into())).collect());
    }
    let packed = packed::pack_all(bodies.iter().map(|(_, _, body)| body.as_str()))?;
    let stored = bodies.iter().zip(packed);
    Ok(stored.map(|((id, at, _), packed)| (*id, *at, packed.into())).collect())
}

/// Events and an end as they are stored: packed, or encrypted.
pub(super) async fn stored_events(
    store: &SqliteStore,
    execution: i64,
    events: &[Event],
    ended: Ended,
) -> Result<(Vec<(u64, i64, Value)>, Ended), Error> {
    let body = |event: &Event| {
        let body = serde_json::to_string(event).map_err(|e| Error::Refused(e.into()))?;
        Ok((event.id, event.timestamp.as_millis(), body))
    };
    let bodies = events.iter().map(body).collect::<Result<Vec<_>, Error>>()?;
    let (bodies, ended) = encrypt_history(store, execution, bodies, ended).await?;
    Ok((stored(bodies)?, ended))
}

fn unreadable(error: rusqlite::Error) -> Error {
    Error::Corrupt(error.into())
}

async fn rows(
    store: &SqliteStore,
    rest: &str,
    values: Vec<Value>,
) -> Result<Vec<Result<Record, Error>>, Error> {
    let rest = rest.to_owned();
    let found: Vec<rusqlite::Result<Record>> = store
        .read(move |connection| {
            let sql = format!("{} WHERE {rest}", select_rows(connection)?);
            let mut statement = connection.prepare_cached(&sql)?;
            let values = params_from_iter(values.iter().map(|v| v as &dyn ToSql));
            let mut rows = statement.query(values)?;
            let mut records = Vec::new();
            while let Some(row) = rows.next()? {
                records.push(record(row));
            }
            Ok(records)
        })
        .await?;
    let decrypt = |row: rusqlite::Result<Record>| decrypted(store, row.map_err(unreadable)?);
    Ok(found.into_iter().map(decrypt).collect())
}

pub(super) fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
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
        redriven: redriven(row)?,
    })
}

fn redriven(row: &Row<'_>) -> rusqlite::Result<Option<Redriven>> {
    let Some(count) = row.get::<_, Option<i64>>(13)? else { return Ok(None) };
    let at = Timestamp::from_millis(row.get(14)?);
    Ok(Some(Redriven { count: count.unsigned_abs(), at, token: row.get(15)? }))
}

fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
