//! Finds the executions of a file that are not as a stack writes them.

use std::collections::BTreeMap;

use journal::sqlite::SqliteStore;
use journal::sqlite::encrypted::session_of_text;
use journal::store::Error;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row};
use serde::de::IgnoredAny;

use super::packed;
use super::sqlite::{record, select_rows};
use super::store::{ExecutionStore as _, RUNNING};

/// The type of the last event of a history, by the status that it gives.
///
/// Source: AWS, "HistoryEvent" of the Step Functions API.
const LAST_EVENTS: [(&str, &str); 4] = [
    ("SUCCEEDED", "ExecutionSucceeded"),
    ("FAILED", "ExecutionFailed"),
    ("ABORTED", "ExecutionAborted"),
    ("TIMED_OUT", "ExecutionTimedOut"),
];

/// Most damaged executions that are named.
const DAMAGED_MAX: usize = 100;

/// The damaged executions of a file, each in a sentence: with a cell that is not what a stack writes, without its
/// state machine, or with a status that is not that of its history. Queries may pass such a row over, so every row is read. At most [`DAMAGED_MAX`] are named, and one
/// sentence says that there are more.
///
/// # Errors
/// If the file cannot be read.
pub(crate) async fn damaged(store: &SqliteStore) -> Result<Vec<String>, Error> {
    if !store.holds_executions().await? {
        return Ok(Vec::new());
    }
    let damaged = store.read(|connection| {
        let mut damaged = BTreeMap::new();
        let mut statement = connection.prepare(&select_rows(connection)?)?;
        let mut rows = statement.query([])?;
        while damaged.len() <= DAMAGED_MAX
            && let Some(row) = rows.next()?
        {
            if let Err(error) = record(row) {
                damaged.insert(row.get(0)?, error.to_string());
            }
        }
        let events = "SELECT execution, id, at_ms, body FROM execution_event";
        let mut statement = connection.prepare(events)?;
        let mut rows = statement.query([])?;
        while damaged.len() <= DAMAGED_MAX
            && let Some(row) = rows.next()?
        {
            if let Err(error) = event(row) {
                let execution = row.get(0).unwrap_or(i64::MIN);
                damaged.entry(execution).or_insert_with(|| format!("its history: {error}"));
            }
        }
        unlike_history(connection, &mut damaged)?;
        Ok(damaged)
    });
    let mut named = Vec::new();
    for (id, why) in damaged.await?.into_iter().take(DAMAGED_MAX + 1) {
        if named.len() == DAMAGED_MAX {
            named.push("further damaged executions are not listed".to_owned());
            break;
        }
        named.push(format!("{} is damaged: {why}", name_of(store, id).await?));
    }
    Ok(named)
}

/// Names the executions whose status is not what the last event of their history says. Both are written in one commit.
fn unlike_history(
    connection: &Connection,
    damaged: &mut BTreeMap<i64, String>,
) -> Result<(), Error> {
    let sql = "SELECT execution.id, CAST(status AS BLOB), 0, (SELECT body FROM execution_event \
               WHERE execution = execution.id ORDER BY id DESC LIMIT 1) FROM execution";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while damaged.len() <= DAMAGED_MAX
        && let Some(row) = rows.next()?
    {
        let (id, status): (i64, Option<Vec<u8>>) = (row.get(0)?, row.get(1)?);
        let status = String::from_utf8_lossy(status.as_deref().unwrap_or_default()).into_owned();
        if let Some(why) = unlike_last(&status, last_type(row).as_deref()) {
            damaged.entry(id).or_insert(why);
        }
    }
    Ok(())
}

/// The type of the last event; `None` if it is encrypted, or named as damaged already.
fn last_type(row: &Row<'_>) -> Option<String> {
    let text = text_of(row).ok().filter(|text| session_of_text(text).is_none())?;
    let event: serde_json::Value = serde_json::from_str(&text).ok()?;
    event.get("type")?.as_str().map(str::to_owned)
}

fn unlike_last(status: &str, last: Option<&str>) -> Option<String> {
    let last = last?;
    let said = LAST_EVENTS.iter().find(|(_, event)| *event == last);
    let said = said.map_or(RUNNING, |(status, _)| status);
    (said != status).then(|| format!("its status is {status}, but its history ends with {last}"))
}

/// An execution with this row id, as far as its ARN can be read.
async fn name_of(store: &SqliteStore, id: i64) -> Result<String, Error> {
    let arn = store.read(move |connection| {
        let sql = "SELECT CAST(arn AS BLOB) FROM execution WHERE id = ?";
        let bytes: Option<Option<Vec<u8>>> =
            connection.query_row(sql, [id], |row| row.get(0)).optional()?;
        Ok(bytes.flatten().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    });
    Ok(arn.await?.map_or_else(|| format!("execution {id}"), |arn| format!("execution {arn}")))
}

/// Reads an event's row as [`history`](super::store::ExecutionStore::history) would.
fn event(row: &Row<'_>) -> Result<(), String> {
    let numbers = [0, 1, 2].map(|column| row.get::<_, i64>(column));
    numbers.into_iter().collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let text = text_of(row).map_err(|error| error.to_string())?;
    // Encrypted under the session's key, or JSON.
    if session_of_text(&text).is_some() {
        return Ok(());
    }
    serde_json::from_str::<IgnoredAny>(&text).map(|_| ()).map_err(|error| error.to_string())
}

fn text_of(row: &Row<'_>) -> Result<String, Error> {
    match row.get_ref(3)? {
        ValueRef::Blob(bytes) => packed::unpack(bytes),
        _ => Ok(row.get(3)?),
    }
}
