//! Rows that somebody plants into the file of a stopped stack: each is named, and none stops the stack or hides another.

use std::fs;

use rusqlite::Connection;

use crate::harness::{Dev, Ran, run_in};
use crate::log::Journal;

/// What a command printed, whatever its lines.
fn words(ran: &Ran) -> String {
    ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The result of `verify --all`, which must name all of `texts`.
fn named(journal: &Journal, texts: &[&str]) -> Ran {
    let ran = journal.run(&["verify", "--all"]);
    for text in texts {
        assert!(ran.exit == 1 && words(&ran).contains(text), "{text}: {ran:#?}");
    }
    ran
}

/// Runs a session to its end on a new stack.
fn runs_a_session(journal: &Journal) {
    let folder = journal.path("");
    let dev = Dev::start(&folder, &folder.join("data"));
    let at = |arguments: &[&str]| {
        run_in(&folder, &[&["--endpoint", dev.endpoint.as_str()], arguments].concat())
    };
    let ran = at(&["trigger", "--agent", "checkup", "--wait"]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    assert_eq!(at(&["doctor"]).exit, 0);
    assert_eq!(dev.stop("-TERM"), 0);
}

#[test]
fn rows_of_the_tree_that_no_leaf_gives_are_named_and_stop_nothing() {
    let stray = ["1 rows of its tables are neither a leaf nor given by its leaves"];
    for row in ["(0, 6, x'00')", "(3, 0, zeroblob(32))", "(70, 0, x'00')", "('a', 0, x'00')"] {
        let journal = Journal::new();
        journal.change(&format!("INSERT INTO log_node VALUES {row}"));
        named(&journal, &stray);
        runs_a_session(&journal);
    }
    let journal = Journal::new();
    journal.change("INSERT INTO log_leaf (n, session, leaf) VALUES (-7, 'x', x'00')");
    named(&journal, &stray);
}

#[test]
fn a_checkpoint_that_is_planted_is_named_and_hides_no_newer_one() {
    let oldest = "(SELECT note FROM log_checkpoint ORDER BY size LIMIT 1)";
    for (row, problem) in [
        (format!("(1000000000, {oldest})"), "leaves is stored as one of 1000000000"),
        ("(1000000000, 'junk')".to_owned(), "of 1000000000 leaves, a checkpoint cannot be read"),
        ("(-1, x'00')".to_owned(), "of no number leaves, a checkpoint cannot be read"),
    ] {
        let journal = Journal::new();
        journal.change(&format!("INSERT INTO log_checkpoint VALUES {row}"));
        let ran = named(&journal, &[problem]);
        assert!(ran.stdout.contains("6 leaves, 6 of them signed"), "{ran:#?}");
        runs_a_session(&journal);
        let ran = named(&journal, &[problem]);
        assert!(ran.stdout.contains("8 leaves, 8 of them signed"), "{ran:#?}");
    }
    let journal = Journal::new();
    journal
        .change("DELETE FROM log_checkpoint WHERE size = (SELECT max(size) FROM log_checkpoint)");
    named(&journal, &["but one of 6 was signed"]);
    // The stack has a copy, and puts it back.
    let folder = journal.path("");
    let dev = Dev::start(&folder, &folder.join("data"));
    assert_eq!(dev.stop("-TERM"), 0);
    assert_eq!(journal.run(&["verify", "--all"]).exit, 0);
}

/// A BLOB of the same bytes equals no text, so lists pass the record over.
#[test]
fn a_record_whose_index_columns_are_blobs_is_named() {
    for column in ["day", "at"] {
        let journal = Journal::new();
        journal.change(&format!(
            "UPDATE item SET {column} = CAST({column} AS BLOB) WHERE {column} IS NOT NULL"
        ));
        named(&journal, &["✗ damaged 3"]);
        let ran = journal.run(&["verify", &journal.ids[0]]);
        let why = "its place in the index differs from its content";
        assert!(ran.exit == 1 && words(&ran).contains(why), "{ran:#?}");
    }
}

#[test]
fn a_partition_that_no_journal_has_is_named() {
    let journal = Journal::new();
    for pk in ["HALT##x", "SESSIONS#1", "x"] {
        journal.change(&format!(
            "INSERT INTO partition (pk) VALUES ('{pk}'); \
             INSERT INTO item (partition, sk, body) \
             SELECT id, 's', '{{}}' FROM partition WHERE pk = '{pk}'"
        ));
        named(&journal, &[&format!("{pk} was added: a journal has no such partition")]);
    }
}

#[test]
fn an_execution_whose_status_contradicts_its_history_is_named() {
    let journal = Journal::new();
    for status in ["FAILED", "RUNNING"] {
        journal.change(&format!("UPDATE execution SET status = '{status}' WHERE id = 1"));
        let ran = journal.run(&["verify", "--all"]);
        let why = format!("its status is {status}, but its history ends with ExecutionSucceeded");
        assert!(ran.exit == 2 && words(&ran).contains(&why), "{ran:#?}");
    }
}

#[test]
fn a_halt_that_was_changed_or_removed_is_named() {
    let journal = Journal::new();
    let folder = journal.path("");
    let dev = Dev::start(&folder, &folder.join("data"));
    for agent in ["checkup", "incident", "fraud"] {
        let arguments = ["halt", "--agent", agent, "--reason", "a bad release"];
        let before = ["--endpoint", dev.endpoint.as_str()];
        assert_eq!(run_in(&folder, &[&before[..], &arguments].concat()).exit, 0);
    }
    assert_eq!(dev.stop("-TERM"), 0);
    assert_eq!(journal.run(&["verify", "--all"]).exit, 0);
    let doctor = journal.run(&["doctor"]);
    let untouched = fs::read(journal.path("data/journal.db")).unwrap();
    let of = |number: u32| format!("sk = 'HALT#{number:08}'");
    for (sql, problem) in [
        (format!("DELETE FROM item WHERE {}", of(1)), "is in the place of HALT#00000001"),
        (format!("DELETE FROM item WHERE {}", of(2)), "is in the place of HALT#00000002"),
        (format!("DELETE FROM item WHERE {}", of(3)), "HALT#00000003 of halts is missing"),
        ("DELETE FROM item WHERE sk LIKE 'HALT#%'".to_owned(), "HALT#00000001 of halts is missing"),
        (
            format!("UPDATE item SET body = replace(body, 'bad', 'good') WHERE {}", of(2)),
            "was changed",
        ),
        (format!("UPDATE item SET body = '{{}}' WHERE {}", of(3)), "cannot be read"),
    ] {
        fs::write(journal.path("data/journal.db"), &untouched).unwrap();
        for ending in ["-wal", "-shm"] {
            let _ = fs::remove_file(journal.path(&format!("data/journal.db{ending}")));
        }
        journal.change(&sql);
        named(&journal, &[problem]);
    }
    assert!(doctor.exit == 1, "its endpoint is named, and nothing listens there: {doctor:#?}");
    assert!(doctor.stdout.contains("a bad release"), "{doctor:#?}");
}

/// A log under a new name covers what a person saw, and nothing that was written into the file afterwards.
#[test]
fn a_leaf_planted_after_a_rotation_is_not_signed() {
    let journal = Journal::new();
    assert_eq!(journal.run(&["keys", "rotate", "--new-log"]).exit, 0);
    assert_eq!(journal.run(&["verify", "--all"]).exit, 0);
    let leaf = format!(
        r#"["daybook session 1","{}","EVENT#2026-01-01T00:00:00.000000000Z","SESSION_FAILED","{}",0]"#,
        journal::id::SessionId::fresh(),
        "0".repeat(64)
    );
    let connection = Connection::open(journal.path("data/journal.db")).unwrap();
    let insert = "INSERT INTO log_leaf (n, session, leaf) VALUES (6, 'x', ?1)";
    connection.execute(insert, [leaf.as_bytes()]).unwrap();
    drop(connection);
    let folder = journal.path("");
    let dev = Dev::start(&folder, &folder.join("data"));
    let doctor = run_in(&folder, &["--endpoint", &dev.endpoint, "doctor"]);
    assert!(doctor.exit == 1 && words(&doctor).contains("not signed"), "{doctor:#?}");
    assert_eq!(dev.stop("-TERM"), 0);
    assert_eq!(journal.run(&["verify", "--all"]).exit, 1);
}

/// Without a stack, what a stack would say is read from the files, and what cannot be is not called fine.
#[test]
fn doctor_reads_the_files_of_a_stopped_stack() {
    let journal = Journal::new();
    let states = |ran: &Ran| {
        let checks = ran.json().into_iter();
        let of = |check: serde_json::Value, name: &str| check[name].as_str().unwrap().to_owned();
        checks.map(|check| (of(check.clone(), "name"), of(check, "state"))).collect::<Vec<_>>()
    };
    let state = |ran: &Ran, name: &str| {
        states(ran).into_iter().find(|(found, _)| found == name).map(|(_, state)| state).unwrap()
    };
    let doctor = || journal.run(&["doctor", "--json"]);
    let found = doctor();
    for (name, expected) in [
        ("log of sessions", "ok"),
        ("disk", "ok"),
        ("halts", "ok"),
        ("disk budget", "skipped"),
        ("clock", "skipped"),
        ("load", "skipped"),
    ] {
        assert_eq!(state(&found, name), expected, "{name}: {found:#?}");
    }
    let file = Connection::open(journal.path("data/journal.db")).unwrap();
    let empty = "DELETE FROM log_leaf; DELETE FROM log_node; DELETE FROM log_checkpoint;";
    file.execute_batch(empty).unwrap();
    let found = doctor();
    assert_eq!(state(&found, "log of sessions"), "failed", "{found:#?}");
}
