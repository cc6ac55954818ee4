//! What is removed on purpose is journaled, and what is held stays.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use journal::clock::Clock;
use journal::export;
use journal::item::Item;
use journal::log::{Decision, Retention};
use journal::sqlite::{Durability, SqliteStore};

use crate::harness::{Dev, Ran, daybook, free_endpoint, run_in};
use crate::log::Journal;

const PRUNE: [&str; 5] = ["prune", "--before", "2100-01-01T00:00:00Z", "--yes", "--json"];

/// The file and its write-ahead log.
fn bytes(journal: &Journal) -> u64 {
    let files = ["data/journal.db", "data/journal.db-wal"];
    files.iter().filter_map(|name| fs::metadata(journal.path(name)).ok()).map(|it| it.len()).sum()
}

#[test]
fn a_prune_is_told_by_the_log_and_the_file_shrinks() {
    let journal = Journal::new();
    let [first, held, last] = &journal.ids[..] else { panic!("three sessions") };
    let hold = ["hold", held, "--label", "case-7", "--reason", "litigation"];
    assert_eq!(journal.run(&hold).exit, 0);
    let before = bytes(&journal);
    let dry = journal.run(&[&PRUNE[..], &["--dry-run"]].concat());
    assert_eq!(dry.json()[0]["would_prune"].as_array().unwrap().len(), 2, "{dry:#?}");
    assert_eq!(journal.run(&["verify", first]).exit, 0);
    let ran = journal.run(&PRUNE);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    let kept = &ran.json()[0]["kept"][0];
    assert_eq!(kept["session_id"], held.as_str(), "{ran:#?}");
    assert_eq!(kept["why"], "`case-7` holds it");
    assert!(bytes(&journal) < before, "{} of {before}", bytes(&journal));
    let all = journal.run(&["verify", "--all"]);
    assert_eq!(all.exit, 0, "{all:#?}");
    assert!(all.stdout.contains("pruned          2"), "{all:#?}");
    let one = journal.run(&["verify", last, "--key", "log.pub", "--json"]);
    assert_eq!((one.exit, &one.json()[0]["state"]), (0, &"pruned".into()), "{one:#?}");
    assert_eq!(one.json()[0]["pruned"]["reason"], "pruned by age");
    assert_eq!(one.json()[0]["anchors"][0], "checkpoint");
    // Released, it goes, unless its label is to be kept.
    let release = ["release", held, "--label", "case-7", "--reason", "settled"];
    assert_eq!(journal.run(&release).exit, 0);
    assert_eq!(journal.run(&release).exit, 2);
    let labelled = journal.run(&[&PRUNE[..], &["--keep-label", "case-7"]].concat());
    assert_eq!(labelled.json()[0]["kept"][0]["why"], "it has the label `case-7`", "{labelled:#?}");
    assert_eq!(journal.run(&PRUNE).json()[0]["pruned"][0], held.as_str());
    assert_eq!(journal.run(&["verify", "--all"]).exit, 0);
}

#[test]
fn a_session_removed_past_the_log_is_still_missing() {
    let journal = Journal::new();
    assert_eq!(journal.run(&["prune", "--before", "2100-01-01T00:00:00Z"]).exit, 64);
    journal.remove(&journal.ids[1]);
    let ran = journal.run(&["verify", "--all"]);
    assert!(ran.exit == 1 && ran.stdout.contains(&journal.ids[1]), "{ran:#?}");
    // With a leaf that claims a prune, and a tree that fits.
    let id = &journal.ids[1];
    journal.change(&format!(
        "INSERT INTO log_leaf (n, session, leaf) SELECT max(n) + 1, '{id}', \
         CAST('[\"daybook retention 1\",\"{id}\",\"prune\",\"' || (SELECT substr(leaf, -78, 64) FROM log_leaf \
         WHERE session = '{id}' ORDER BY n DESC LIMIT 1) || \
         '\",\"2026-11-24T00:00:00.000000000Z\",\"unknown\",\"x\"]' AS BLOB) FROM log_leaf"
    ));
    journal.rebuild_the_tree();
    let ran = journal.run(&["verify", "--all"]);
    assert_ne!(ran.exit, 0, "{ran:#?}");
    assert!(!ran.stdout.contains("~ pruned"), "{ran:#?}");
}

#[test]
fn a_running_stack_prunes_and_imports_again() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let run = |arguments: &[&str]| {
        run_in(folder.path(), &[&["--endpoint", &dev.endpoint], arguments].concat())
    };
    let ran = run(&["trigger", "--wait", "--json", "--agent", "checkup"]);
    let id = ran.json()[0]["session_id"].as_str().unwrap().to_owned();
    let exported = run(&["export", &id]).stdout;
    fs::write(folder.path().join("session.jsonl"), exported).unwrap();
    // Its execution ends a moment after its verdict.
    let is_pruned = |ran: &Ran| ran.json()[0]["pruned"].as_array().is_some_and(|it| !it.is_empty());
    assert!((0..100).any(|_| is_pruned(&run(&PRUNE))));
    assert_eq!(run(&["show", &id]).exit, 2);
    assert_eq!(dev.stop("-TERM"), 0);
    let endpoint = free_endpoint();
    let run = |arguments: &[&str]| {
        let before = ["--endpoint", &endpoint, "--data", "data"];
        run_in(folder.path(), &[&before, arguments].concat())
    };
    assert!(run(&["verify", "--all"]).stdout.contains("pruned          1"));
    assert_eq!(run(&["import", "session.jsonl"]).exit, 0);
    let ran = run(&["verify", &id, "--json"]);
    assert_eq!(ran.json()[0]["state"], "sealed", "{ran:#?}");
    let database = rusqlite::Connection::open(folder.path().join("data/journal.db")).unwrap();
    database.execute("DELETE FROM item", []).unwrap();
    assert_eq!(run(&["verify", "--all"]).exit, 1, "the import was removed past the log");
}

#[test]
fn a_prune_that_is_killed_leaves_a_verified_journal() {
    let journal = Journal::new();
    let endpoint = free_endpoint();
    for pause_ms in [5, 15, 30, 60, 120] {
        let before = ["--endpoint", &endpoint, "--data", "data"];
        let mut prune = daybook(journal.path("data").parent().unwrap())
            .args([&before[..], &PRUNE].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(pause_ms));
        prune.kill().unwrap();
        prune.wait().unwrap();
        let ran = journal.run(&["verify", "--all"]);
        assert!(ran.exit != 1, "{ran:#?}");
    }
    assert_eq!(journal.run(&PRUNE).exit, 0);
    // A start signs what a killed prune has left.
    let dev = Dev::start(journal.path("data").parent().unwrap(), &journal.path("data"));
    assert_eq!(dev.stop("-TERM"), 0);
    let ran = journal.run(&["verify", "--all"]);
    assert!(ran.exit == 0 && ran.stdout.contains("pruned          3"), "{ran:#?}");
}

#[test]
fn an_expired_session_is_removed_unless_it_is_held() {
    let journal = Journal::new();
    let hold = ["hold", &journal.ids[0], "--label", "case-7", "--reason", "litigation"];
    assert_eq!(journal.run(&hold).exit, 0);
    // A hundred days take a few seconds.
    let folder = journal.path("data").parent().unwrap().to_owned();
    let mut dev = daybook(&folder);
    dev.args(["--data", "data", "dev", "--listen", "127.0.0.1:0", "--time-scale", "3000000"]);
    let dev = Dev::ready(&mut dev);
    let pruned = || journal.run(&["verify", "--all"]).stdout.contains("pruned          2");
    let wait = || std::thread::sleep(Duration::from_millis(200));
    assert!((0..150).any(|_| pruned() || {
        wait();
        false
    }));
    assert_eq!(dev.stop("-TERM"), 0);
    let ran = journal.run(&["verify", "--all"]);
    assert!(ran.exit == 0 && ran.stdout.contains("sound           1"), "{ran:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leaf_of_another_writer_releases_nothing() {
    let journal = Journal::new();
    let id = &journal.ids[0];
    let hold = ["hold", id, "--label", "case-7", "--reason", "litigation"];
    assert_eq!(journal.run(&hold).exit, 0);
    // As whoever writes the file, without the key that marks leaves.
    let file = journal.path("data/journal.db");
    let store = SqliteStore::open(&file, Durability::Relaxed).unwrap();
    let release = Retention {
        session: id.parse().unwrap(),
        decision: Decision::Release("case-7".parse().unwrap()),
        at: Clock::system().now(),
        by: "os-user:ann".parse().unwrap(),
        reason: "settled".to_owned(),
    };
    store.hold(release).await.unwrap();
    drop(store);
    let ran = journal.run(&PRUNE);
    assert_eq!(ran.exit, 2, "{ran:#?}");
    assert!(ran.stderr.contains("not what this stack has written"), "{ran:#?}");
    assert!(journal.run(&["show", id]).stdout.contains("SUCCEEDED"));
}

#[test]
fn a_pruned_session_returns_only_as_it_was() {
    let journal = Journal::new();
    let id = &journal.ids[0];
    let exported = journal.run(&["export", id]).stdout;
    fs::write(journal.path("whole.jsonl"), &exported).unwrap();
    let whole = export::read(exported.as_bytes()).unwrap();
    let is_verdict =
        |item: &Item| item.text_opt("Status").is_some_and(|it| it == "SESSION_SUCCEEDED");
    let cut: Vec<_> = whole.records.into_iter().filter(|item| !is_verdict(item)).collect();
    let mut file = Vec::new();
    export::write(&id.parse().unwrap(), &cut, &mut file).unwrap();
    fs::write(journal.path("cut.jsonl"), file).unwrap();
    assert_eq!(journal.run(&PRUNE).exit, 0);
    let ran = journal.run(&["import", "cut.jsonl"]);
    assert_eq!(ran.exit, 1, "{ran:#?}");
    assert!(ran.stderr.contains("but has a leaf here"), "{ran:#?}");
    assert_eq!(journal.run(&["verify", "--all"]).exit, 0);
    assert_eq!(journal.run(&["import", "whole.jsonl"]).exit, 0);
}
