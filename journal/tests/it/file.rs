//! A journal's file that is removed or replaced while it is open.

use std::error::Error as _;
use std::fs;
use std::path::{Path, PathBuf};

use journal::item::Item;
use journal::sqlite::{Durability, SqliteStore};
use journal::store::{Condition, Error, Key, Store as _, Written};

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
