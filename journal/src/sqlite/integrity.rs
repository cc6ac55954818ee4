//! Damage of the file itself: what a statement met, and what reading every page finds.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use super::{CREATE, OpenError, SqliteStore, check_version, log, open_reading};
use crate::store;

/// Most findings of a check; one damaged page may cause many.
const FINDINGS_MAX: usize = 20;

/// The first damage that a statement met, kept until the program ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Met(Arc<OnceLock<String>>);

impl Met {
    pub(super) fn note(&self, error: &(dyn StdError + 'static)) {
        if self.0.get().is_none()
            && let Some(damage) = damage(error)
        {
            tracing::error!(error = %damage, "The journal's file is damaged.");
            let _ = self.0.set(damage.to_string());
        }
    }

    pub(super) fn get(&self) -> Option<String> {
        self.0.get().cloned()
    }
}

/// The error of SQLite in a chain of causes that says that the file is damaged.
fn damage<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a rusqlite::Error> {
    let next = |error: &&'a (dyn StdError + 'static)| {
        let error: &'a (dyn StdError + 'static) = *error;
        error.source()
    };
    let causes = std::iter::successors(Some(error), next);
    causes.filter_map(|error| error.downcast_ref::<rusqlite::Error>()).find(|error| {
        let code = error.sqlite_error_code();
        matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
    })
}

/// What a check of the whole file found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Every page was read, and the tables are whole.
    Whole,
    /// What is wrong; at most 20 findings.
    Damaged(Vec<String>),
    /// The time was over before every page was read.
    NotInTime,
}

/// Reads every page of a journal, checks its tables, and compares each index with its table, with SQLite's
/// `integrity_check`: an index that lacks rows hides them from queries.
///
/// # Errors
/// The file cannot be opened as a journal.
pub async fn check_pages(path: &Path, limit: Duration) -> Result<Pages, OpenError> {
    let connection = open_reading(path)?;
    check_version(&connection, path)?;
    let interrupt = connection.get_interrupt_handle();
    let mut checking = tokio::task::spawn_blocking(move || findings(&connection));
    let found = match tokio::time::timeout(limit, &mut checking).await {
        Ok(found) => found,
        Err(_) => {
            interrupt.interrupt();
            checking.await
        }
    };
    Ok(match found {
        Ok(Ok(findings)) if findings.is_empty() => Pages::Whole,
        Ok(Ok(findings)) => Pages::Damaged(findings),
        Ok(Err(error)) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            Pages::NotInTime
        }
        Ok(Err(error)) => Pages::Damaged(vec![error.to_string()]),
        // The check panicked, or the runtime is shutting down.
        Err(error) => Pages::Damaged(vec![error.to_string()]),
    })
}

fn findings(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({FINDINGS_MAX})"))?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    let found: Vec<String> = rows.collect::<Result<_, _>>()?;
    Ok(if found == ["ok"] { Vec::new() } else { found })
}

impl SqliteStore {
    /// What keeps queries from showing what the tables hold: a table, index, view or trigger that is not this journal's,
    /// or an index of the log's leaves that does not have each of them. Takes time with the number of leaves.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn hidden(&self) -> Result<Vec<String>, store::Error> {
        self.read(|connection| {
            let mut problems = foreign(connection)?;
            if connection.table_exists(None, "log_leaf")? {
                problems.extend(stale(connection)?);
                problems.extend(misfiled(connection)?);
            }
            Ok(problems)
        })
        .await
    }
}

/// An object of a schema: its kind and its text.
type Objects = BTreeMap<String, (String, String)>;

fn objects(connection: &Connection) -> rusqlite::Result<Objects> {
    let sql = "SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    rows.collect()
}

/// The objects of the schema that are not as this program creates them. An earlier version may lack some.
fn foreign(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let ours = Connection::open_in_memory()?;
    ours.execute_batch(CREATE)?;
    ours.execute_batch(log::CREATE)?;
    let (ours, found) = (objects(&ours)?, objects(connection)?);
    let differs = |name: &str, object: &(String, String)| match ours.get(name) {
        Some(own) => own != object,
        None => object.0 == "trigger" || object.0 == "view",
    };
    let foreign = found.iter().filter(|(name, object)| differs(name, object));
    Ok(foreign
        .map(|(name, (kind, _))| format!("the {kind} `{name}` is not this journal's"))
        .collect())
}

/// The leaves that a query for their session does not find: a BLOB of the same bytes equals no text.
fn misfiled(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = format!(
        "SELECT n FROM log_leaf WHERE typeof(session) <> 'text' OR typeof(leaf) <> 'blob' \
         OR CASE WHEN json_valid(CAST(leaf AS TEXT)) \
            THEN json_extract(CAST(leaf AS TEXT), '$[1]') END IS NOT session LIMIT {FINDINGS_MAX}"
    );
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([], |row| row.get::<_, i64>(0))?;
    rows.map(|n| Ok(format!("its leaf {} is not filed under its session", n?))).collect()
}

/// Where the leaves' table and its indexes differ.
fn stale(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = format!("SELECT * FROM pragma_integrity_check('log_leaf') LIMIT {FINDINGS_MAX}");
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    let found: Vec<String> = rows.collect::<Result<_, _>>()?;
    Ok(if found == ["ok"] { Vec::new() } else { found })
}
