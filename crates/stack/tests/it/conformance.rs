//! The conformance suite of the execution store, on SQLite.

use journal::sqlite::{Durability, SqliteStore};
use stack::executions::conformance;

#[tokio::test(flavor = "multi_thread")]
async fn a_sqlite_file_passes_the_execution_store_suite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    conformance::all(SqliteStore::open(&path, Durability::Relaxed).unwrap()).await;
}
