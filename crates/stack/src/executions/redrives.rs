//! Redriven executions: how often and when, beside the rows that earlier versions read, too.

use asl::execution::NotRedrivable;
use asl::history::Event;
use asl::time::Timestamp;
use journal::sqlite::SqliteStore;
use journal::store::Error;
use rusqlite::{Connection, params};
use std::time::Duration;

use super::sqlite::stored_events;
use super::store::{ExecutionStore, Record};
use super::supervise::replayed;
use super::{Executions, until_known};
use crate::names;

pub(super) const CREATE: &str = "
CREATE TABLE IF NOT EXISTS execution_redrive (
    execution INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    token TEXT
);
";

/// The most time between the end of an execution and its redrive.
///
/// Source: AWS, "Restarting state machine executions with redrive", eligibility.
const REDRIVABLE: Duration = Duration::from_secs(14 * 24 * 3_600);

/// The most time between the start of an execution and its redrive.
///
/// Source: AWS, "Step Functions service quotas", maximum execution time.
const OPEN_LONGEST: Duration = Duration::from_secs(365 * 24 * 3_600);

/// How long a client token makes a repeated request the same one.
///
/// Source: AWS, `RedriveExecution`, `clientToken`.
const TOKEN_VALID: Duration = Duration::from_secs(15 * 60);

/// A redrive of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redriven {
    /// How many redrives there were, this one included.
    pub count: u64,
    pub at: Timestamp,
    /// The client token of the request.
    pub token: Option<String>,
}

/// Why an execution is not redriven.
#[derive(Debug, thiserror::Error)]
pub enum RedriveError {
    #[error("execution does not exist: '{0}'")]
    DoesNotExist(String),
    /// Worded as the `redriveStatusReason` of `DescribeExecution` where AWS has a sentence for it.
    #[error("{0}")]
    NotRedrivable(String),
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<NotRedrivable> for RedriveError {
    fn from(why: NotRedrivable) -> Self {
        Self::NotRedrivable(why.to_string())
    }
}

impl<S: ExecutionStore> Executions<S> {
    /// Continues an execution that ended without success from the states that failed; it is durable when this returns.
    /// The same request again, by its client token, has no effect. Returns when it was redriven.
    ///
    /// # Errors
    /// See [`RedriveError`].
    pub async fn redrive(&self, arn: &str, token: Option<&str>) -> Result<Timestamp, RedriveError> {
        let found = self.describe(arn).await?;
        let record = found.ok_or_else(|| RedriveError::DoesNotExist(arn.to_owned()))?;
        let wall = self.shared.wall();
        if let (Some(last), Some(_)) = (&record.redriven, token)
            && last.token.as_deref() == token
            && !is_past(last.at, TOKEN_VALID, wall)
        {
            return Ok(last.at);
        }
        if let Some(why) = self.not_redrivable(&record).await? {
            return Err(RedriveError::NotRedrivable(why));
        }
        if self.run_of(&record).await?.is_some() {
            let why =
                "Execution of a Map Run is redriven with the execution that started the Map Run";
            return Err(RedriveError::NotRedrivable(why.to_owned()));
        }
        self.redrive_now(&record, token).await
    }

    /// Redrives an execution that may be one of a run.
    pub(super) async fn redrive_now(
        &self,
        record: &Record,
        token: Option<&str>,
    ) -> Result<Timestamp, RedriveError> {
        let execution = replayed(self, record).await.map_err(|error| {
            RedriveError::NotRedrivable(format!("Its history cannot be continued: {error}"))
        })?;
        let event = execution.redrive(self.shared.wall().max(execution.newest_at()))?;
        let (store, id) = (&self.shared.store, record.id);
        if !until_known(|| store.redrive(id, &event, token)).await? {
            return Err(NotRedrivable::Running.into());
        }
        self.shared.forget_failures(id);
        self.take_up_at(id, Timestamp::from_millis(0));
        Ok(event.timestamp)
    }

    /// Why an execution cannot be redriven now, if so.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn not_redrivable(&self, record: &Record) -> Result<Option<String>, Error> {
        let ended = match (record.status.as_str(), record.stopped_at) {
            ("FAILED" | "TIMED_OUT" | "ABORTED", Some(ended)) => ended,
            (status, _) => {
                return Ok(Some(format!("Execution is {status} and cannot be redriven")));
            }
        };
        let wall = self.shared.wall();
        let why = if is_past(ended, REDRIVABLE, wall) {
            "Execution redrivable period exceeded".to_owned()
        } else if is_past(record.started_at, OPEN_LONGEST, wall) {
            "Execution has exceeded the max execution time".to_owned()
        } else if self.last_event(record.id).await? >= asl::execution::REDRIVE_EVENTS_MAX {
            NotRedrivable::HistoryFull.to_string()
        } else if let Some(why) = self.not_redrivable_machine(record).await? {
            why
        } else {
            return Ok(None);
        };
        Ok(Some(why))
    }

    async fn not_redrivable_machine(&self, record: &Record) -> Result<Option<String>, Error> {
        if record.machine_arn == names::STATE_MACHINE_ARN {
            let text = self.definition_text(record).await?;
            let hint = "A session's execution cannot be redriven; use: daybook resume SESSION";
            return Ok(workflow::state_machine::is_own(&text).then(|| hint.to_owned()));
        }
        let machine = self.user_machine(&record.machine_arn).await?;
        let is_express = machine.is_some_and(|machine| machine.machine_type == "EXPRESS");
        Ok(is_express
            .then(|| "Execution of an EXPRESS state machine cannot be redriven".to_owned()))
    }

    async fn last_event(&self, execution: i64) -> Result<u64, Error> {
        let last = self.shared.store.history(execution, i64::MAX, true, 1).await?;
        let Some(last) = last.first() else { return Ok(0) };
        let event: Event =
            serde_json::from_str(last).map_err(|error| Error::Corrupt(error.into()))?;
        Ok(event.id)
    }
}

fn is_past(from: Timestamp, time: Duration, now: Timestamp) -> bool {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    now.as_millis().saturating_sub(from.as_millis()) > seconds.saturating_mul(1_000)
}

/// See [`ExecutionStore::redrive`].
pub(super) async fn redrive(
    store: &SqliteStore,
    execution: i64,
    event: &Event,
    token: Option<&str>,
) -> Result<bool, Error> {
    let (bodies, _) = stored_events(store, execution, std::slice::from_ref(event), None).await?;
    let token = token.map(str::to_owned);
    store
        .transact(move |connection| {
            let Some((id, at_ms, body)) = bodies.first() else { return Ok(false) };
            let id = i64::try_from(*id).unwrap_or(i64::MAX);
            if !reopen(connection, execution, id)? {
                return is_redriven(connection, execution, id, *at_ms);
            }
            connection.execute(
                "INSERT INTO execution_event (execution, id, at_ms, body) VALUES (?, ?, ?, ?)",
                params![execution, id, at_ms, body],
            )?;
            connection.execute(
                "INSERT INTO execution_redrive (execution, count, at_ms, token) VALUES (?, 1, ?, ?) \
                 ON CONFLICT (execution) DO UPDATE \
                 SET count = count + 1, at_ms = excluded.at_ms, token = excluded.token",
                params![execution, at_ms, token],
            )?;
            Ok(true)
        })
        .await
}

/// Whether the execution had ended without success, with the event before this one.
fn reopen(connection: &Connection, execution: i64, id: i64) -> rusqlite::Result<bool> {
    let reopened = connection.execute(
        "UPDATE execution \
         SET status = 'RUNNING', output = NULL, error = NULL, cause = NULL, stopped_ms = NULL \
         WHERE id = ?1 AND status IN ('FAILED', 'TIMED_OUT', 'ABORTED') \
         AND ?2 = (SELECT MAX(id) + 1 FROM execution_event WHERE execution = ?1)",
        params![execution, id],
    )?;
    Ok(reopened == 1)
}

/// Whether this redrive is there from an earlier attempt.
fn is_redriven(
    connection: &Connection,
    execution: i64,
    id: i64,
    at_ms: i64,
) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM execution_event JOIN execution_redrive USING (execution) \
               WHERE execution = ?1 AND id = ?2 AND execution_event.at_ms = ?3 \
               AND execution_redrive.at_ms = ?3)";
    connection.query_row(sql, params![execution, id, at_ms], |row| row.get(0))
}
