//! What users create by API, such as state machines and rules: JSON texts in the SQLite file of the journal.

use journal::sqlite::SqliteStore;
use journal::store::Error;
use rusqlite::{OptionalExtension as _, params};

pub(super) const CREATE: &str = "
CREATE TABLE IF NOT EXISTS user_resource (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
";

/// The resources of a kind, by name.
pub(super) async fn all(
    store: &SqliteStore,
    kind: &'static str,
) -> Result<Vec<(String, String)>, Error> {
    store
        .read(move |connection| {
            let sql = "SELECT name, body FROM user_resource WHERE kind = ? ORDER BY name";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([kind], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
}

/// One resource.
pub(super) async fn one(
    store: &SqliteStore,
    kind: &'static str,
    name: String,
) -> Result<Option<String>, Error> {
    store
        .read(move |connection| {
            let sql = "SELECT body FROM user_resource WHERE kind = ? AND name = ?";
            let mut statement = connection.prepare_cached(sql)?;
            Ok(statement.query_row(params![kind, name], |row| row.get(0)).optional()?)
        })
        .await
}

/// Creates, replaces or (without a body) removes a resource.
pub(super) async fn put(
    store: &SqliteStore,
    kind: &'static str,
    name: String,
    body: Option<String>,
) -> Result<(), Error> {
    store
        .transact(move |connection| {
            match &body {
                Some(body) => connection.execute(
                    "INSERT INTO user_resource (kind, name, body) VALUES (?, ?, ?) \
                     ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body",
                    params![kind, name, body],
                )?,
                None => connection.execute(
                    "DELETE FROM user_resource WHERE kind = ? AND name = ?",
                    params![kind, name],
                )?,
            };
            Ok(())
        })
        .await
}
