//! A journal's file that is removed or replaced while it is open.

use std::error::Error as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use journal::item::Item;
use journal::sqlite::{Durability, OpenError, SqliteStore};
use journal::store::{Condition, Error, Key, Store as _, Written};
use rusqlite::Connection;

fn item(n: u32) -> Item {
    Item::new("SESSION#0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f", format!("OTHER#{n:04}"))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", path.display()))
}

/// Nothing is written, and the reason names the file.
async fn refuses(store: &SqliteStore, n: u32, file: &Path) {
    let refused = store.put(item(n), Condition::Absent).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable(_)), "{refused:?}");
    let why = refused.source().unwrap().to_string();
    assert!(why.contains(&file.display().to_string()), "{why}");
    let problem = store.write_problem().unwrap();
    assert!(problem.is_lasting && problem.why.contains(&file.display().to_string()), "{problem:?}");
}

/// A row that somebody planted leaves no place for the next leaf.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_takes_no_leaf_is_a_problem_of_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let store = SqliteStore::open(&path, Durability::Relaxed).unwrap();
    let start = |n: u32| {
        let sk = format!("EVENT#2026-01-01T00:00:{n:02}.000000000Z");
        Item::new(item(0).pk, sk).with("Status", "SESSION_INITIATED")
    };
    let file = Connection::open(&path).unwrap();
    let plant =
        format!("INSERT INTO log_leaf (n, session, leaf) VALUES ({}, 'x', x'00')", i64::MAX);
    file.execute(&plant, []).unwrap();
    assert!(store.put(start(1), Condition::Absent).await.is_err());
    assert_eq!(store.put(item(1), Condition::Absent).await.unwrap(), Written::Done);
    let problem = store.write_problem().unwrap();
    assert!(!problem.is_lasting && problem.why.contains("takes no leaf"), "{problem:?}");
    file.execute("DELETE FROM log_leaf WHERE session = 'x'", []).unwrap();
    assert_eq!(store.put(start(1), Condition::Absent).await.unwrap(), Written::Done);
    assert_eq!(store.write_problem(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_acknowledged_into_a_removed_or_replaced_file() {
    for ending in ["", "-wal"] {
        for is_replaced in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("journal.db");
            let store = SqliteStore::open(&path, Durability::Fsync).unwrap();
            assert_eq!(store.put(item(1), Condition::Absent).await.unwrap(), Written::Done);
            assert_eq!(store.write_problem(), None);
            let (file, aside) = (beside(&path, ending), folder.path().join("aside"));
            fs::rename(&file, &aside).unwrap();
            if is_replaced {
                fs::copy(&aside, &file).unwrap();
            }
            refuses(&store, 2, &file).await;
            refuses(&store, 2, &file).await;
            fs::rename(&aside, &file).unwrap();
            assert_eq!(store.write_problem().filter(|problem| problem.is_lasting), None);
            assert_eq!(store.put(item(3), Condition::Absent).await.unwrap(), Written::Done);
            assert_eq!(store.write_problem(), None);
            let refused = store.get(Key::new(item(2).pk, item(2).sk)).await.unwrap();
            assert_eq!(refused, None, "what was refused was not written");
            drop(store);
            let again = SqliteStore::open(&path, Durability::Fsync).unwrap();
            for (n, is_there) in [(1, true), (2, false), (3, true)] {
                let found = again.get(Key::new(item(n).pk, item(n).sk)).await.unwrap();
                assert_eq!(found.is_some(), is_there, "{n}");
            }
        }
    }
}

/// Of two readers that take turns, one reads at any time. SQLite alone would never begin the log anew.
#[tokio::test(flavor = "multi_thread")]
async fn overlapping_readers_do_not_let_the_log_grow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let store = SqliteStore::open(&path, Durability::Relaxed).unwrap();
    let create = |connection: &Connection| connection.execute("CREATE TABLE other (a BLOB)", []);
    store.transact(create).await.unwrap();
    let (stop, is_stopped) = std::sync::mpsc::channel::<()>();
    let file = path.clone();
    let reading = std::thread::spawn(move || {
        let open = || Connection::open(&file).unwrap();
        let (one, other) = (open(), open());
        one.execute_batch("BEGIN; SELECT count(*) FROM other").unwrap();
        for (begins, ends) in [(&other, &one), (&one, &other)].iter().cycle() {
            begins.execute_batch("BEGIN; SELECT count(*) FROM other").unwrap();
            ends.execute_batch("COMMIT").unwrap();
            let pause = Duration::from_millis(10);
            if is_stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    });
    let grow = "INSERT INTO other VALUES (zeroblob(4000000))";
    let mut largest = 0;
    for _ in 0..50 {
        store.transact(move |connection| connection.execute(grow, [])).await.unwrap();
        largest = largest.max(store.log_bytes());
    }
    drop(stop);
    reading.join().unwrap();
    assert!(largest < 120_000_000, "{largest} of 200 MB");
    assert!(store.empty_log().await.unwrap());
    assert_eq!(store.log_bytes(), 0);
}

/// As after a kill: the log is there, and nobody has the file open.
#[tokio::test]
async fn what_a_kill_leaves_in_the_log_is_in_the_file_after_a_start() {
    let folder = tempfile::tempdir().unwrap();
    let (path, killed) = (folder.path().join("journal.db"), folder.path().join("killed.db"));
    let store = SqliteStore::open(&path, Durability::Fsync).unwrap();
    for n in 0..10 {
        store.put(item(n), Condition::Absent).await.unwrap();
    }
    for ending in ["", "-wal"] {
        fs::copy(beside(&path, ending), beside(&killed, ending)).unwrap();
    }
    let (again, lock) = SqliteStore::open_alone(&killed, Durability::Fsync, None).unwrap();
    assert_eq!(again.log_bytes(), 0);
    let copy = folder.path().join("copy.db");
    fs::copy(&killed, &copy).unwrap();
    let copied = SqliteStore::open(&copy, Durability::Fsync).unwrap();
    for n in 0..10 {
        let found = copied.get(Key::new(item(n).pk, item(n).sk)).await.unwrap();
        assert_eq!(found, Some(item(n)));
    }
    let second = SqliteStore::open_alone(&killed, Durability::Fsync, None).unwrap_err();
    assert!(matches!(second, OpenError::InUse(_)), "{second}");
    drop(lock);
    SqliteStore::open_alone(&killed, Durability::Fsync, None).unwrap();
}

#[tokio::test]
async fn a_clean_close_leaves_the_file_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let store = SqliteStore::open(&path, Durability::Fsync).unwrap();
    store.put(item(0), Condition::Absent).await.unwrap();
    // A reader's connection is kept for the next read.
    store.get(Key::new(item(0).pk, item(0).sk)).await.unwrap();
    drop(store);
    assert!(!beside(&path, "-wal").exists() && !beside(&path, "-shm").exists());
}
