//! Journals of earlier versions open, and their sessions verify. `tests/released` has a small file of each schema version
//! that was released: a release that changes the schema adds a file which the version before has written.

use std::fs;
use std::path::{Path, PathBuf};

use journal::clock::Clock;
use journal::log::Trust;
use journal::sqlite::{Durability, Migrated, OpenError, SCHEMA, SqliteStore};
use journal::verify::Outcome;
use stack::stack::{JOURNAL_FILE, Stack, StartError};
use stack::store::Database;
use stack::verifier::Verifier;
use tempfile::TempDir;

use crate::stack::{Client, config};

/// The sessions in each file: one succeeded, one failed.
const SESSIONS: usize = 2;

fn released(schema: i64) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/released");
    folder.join(format!("schema-{schema}.db"))
}

/// A data folder with a journal of this version.
fn folder(schema: i64) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::copy(released(schema), folder.path().join(JOURNAL_FILE)).unwrap();
    folder
}

async fn is_sound(folder: &Path, sessions: usize) {
    let database = Database::open_read_only(&folder.join(JOURNAL_FILE)).unwrap();
    let mut verifier = Verifier::new(database, None, Trust::default(), None).await.unwrap();
    let named = verifier.read_all().await.unwrap();
    assert_eq!((named.sessions.len(), named.strays.len()), (sessions, 0));
    assert!(verifier.audit.problems.is_empty(), "{:?}", verifier.audit.problems);
    for session in &named.sessions {
        let found = verifier.report(session, &[], Clock::system().now()).await.unwrap().unwrap();
        assert_eq!(found.report.outcome(), Outcome::Sound, "{:?}", found.report);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_of_each_released_version_opens_and_goes_on() {
    for schema in 1..=SCHEMA {
        // The version at work has a file once it is released.
        if schema == SCHEMA && !released(schema).exists() {
            continue;
        }
        let folder = folder(schema);
        is_sound(folder.path(), SESSIONS).await;
        let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
        let expected = (schema < SCHEMA).then_some(Migrated { from: schema, to: SCHEMA });
        assert_eq!(stack.store().migrated(), expected);
        let log = stack.store().log().await.unwrap().unwrap();
        assert_eq!(log.head.size, 2 * SESSIONS as u64, "each start and each end has a leaf");
        let client = Client::new(&stack);
        let begun = client.trigger(&serde_json::json!({ "agent": "checkup" })).await;
        client.ended(&begun).await;
        stack.shutdown().await;
        is_sound(folder.path(), SESSIONS + 1).await;
        // Once is enough.
        let again = Stack::start(config(folder.path(), 1)).await.unwrap();
        assert_eq!(again.store().migrated(), None);
        again.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_of_a_later_version_is_refused_by_name() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(JOURNAL_FILE);
    drop(SqliteStore::open(&path, Durability::Relaxed).unwrap());
    let later = rusqlite::Connection::open(&path).unwrap();
    later.pragma_update(None, "user_version", SCHEMA + 1).unwrap();
    drop(later);
    let before = fs::read(&path).unwrap();
    let refused = Stack::start(config(folder.path(), 1)).await.unwrap_err();
    assert!(matches!(refused, StartError::Journal(OpenError::Newer { .. })), "{refused}");
    let said = refused.to_string();
    assert!(said.contains(&format!("has schema {}", SCHEMA + 1)), "{said}");
    assert!(said.contains(&format!("supports {SCHEMA}")), "{said}");
    assert_eq!(fs::read(&path).unwrap(), before, "the file is as it was");
}

/// A kill in the middle of a migration leaves the earlier version.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_fails_leaves_the_earlier_version() {
    let folder = folder(1);
    let path = folder.path().join(JOURNAL_FILE);
    let connection = rusqlite::Connection::open(&path).unwrap();
    // The log's table is there already, in another form, so that no leaf can be added.
    connection
        .execute_batch("CREATE TABLE log_leaf (n INTEGER PRIMARY KEY, session TEXT)")
        .unwrap();
    Stack::start(config(folder.path(), 1)).await.unwrap_err();
    let version = |connection: &rusqlite::Connection| -> i64 {
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(version(&connection), 1);
    connection.execute_batch("DROP TABLE log_leaf").unwrap();
    drop(connection);
    let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
    assert_eq!(stack.store().migrated(), Some(Migrated { from: 1, to: SCHEMA }));
    stack.shutdown().await;
}
