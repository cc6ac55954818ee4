//! Attackers against levels of verification: what each attack on a whole journal is found by, and by what it is not.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use journal::chain::{Author, Head, append};
use journal::clock::{Clock, Hlc, Stamp};
use journal::id::{Runner, SessionId};
use journal::sqlite::{Durability, SqliteStore};
use journal::step::StepBody;
use rusqlite::{Connection, params};

use crate::harness::{Dev, Ran, daybook, free_endpoint, run_in};

/// A stopped stack's folder with three sessions that have ended, and the public key of its log.
pub struct Journal {
    folder: tempfile::TempDir,
    pub ids: Vec<String>,
}

impl Journal {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ids = sessions(folder.path(), 3);
        let journal = Self { folder, ids };
        let keys = journal.run(&["keys", "show"]);
        fs::write(journal.path("log.pub"), keys.stdout).unwrap();
        journal
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        let endpoint = free_endpoint();
        let before = ["--endpoint", &endpoint, "--data", "data"];
        run_in(self.folder.path(), &[&before, arguments].concat())
    }

    pub fn change(&self, sql: &str) {
        Connection::open(self.path("data/journal.db")).unwrap().execute_batch(sql).unwrap();
    }

    /// Removes a session with all that the stack's tables say of it; its leaves stay.
    pub fn remove(&self, id: &str) {
        let partition = "(SELECT id FROM partition WHERE pk LIKE '%' || '#' || ?1 || '%')";
        let connection = Connection::open(self.path("data/journal.db")).unwrap();
        for sql in [
            format!("DELETE FROM item WHERE partition IN {partition}"),
            "DELETE FROM partition WHERE pk LIKE '%#' || ?1 || '%'".to_owned(),
            "DELETE FROM execution WHERE name LIKE ?1 || '%'".to_owned(),
        ] {
            connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
            connection.execute(&sql, params![id]).unwrap();
        }
    }

    pub fn rebuild_the_tree(&self) {
        rebuild_tree(&Connection::open(self.path("data/journal.db")).unwrap());
    }
}

/// Rebuilds the tree from the remaining leaves, as an attacker who can write the file would.
pub fn rebuild_tree(file: &Connection) {
    file.execute_batch("DELETE FROM log_node; DELETE FROM log_checkpoint;").unwrap();
    let mut statement = file.prepare("SELECT leaf FROM log_leaf ORDER BY n").unwrap();
    let rows = statement.query_map([], |row| row.get::<_, Vec<u8>>(0)).unwrap();
    let leaves: Vec<_> = rows.map(Result::unwrap).collect();
    let mut tree = tlog::Frontier::empty();
    file.execute("UPDATE log_leaf SET n = n + 1000000", []).unwrap();
    for (n, leaf) in (0_i64..).zip(leaves) {
        let renumber = "UPDATE log_leaf SET n = ?1 WHERE leaf = ?2";
        file.execute(renumber, params![n, leaf]).unwrap();
        for (id, hash) in tree.append(tlog::Hash::leaf(&leaf)).unwrap() {
            let index = i64::try_from(id.index).unwrap();
            let insert = "INSERT INTO log_node (level, i, hash) VALUES (?1, ?2, ?3)";
            file.execute(insert, params![id.level, index, hash.as_bytes()]).unwrap();
        }
    }
}

fn sessions(folder: &Path, count: usize) -> Vec<String> {
    let dev = Dev::start(folder, &folder.join("data"));
    let end = |agent: &str| {
        let ran = run_in(
            folder,
            &["--endpoint", &dev.endpoint, "trigger", "--wait", "--json", "--agent", agent],
        );
        ran.json()[0]["session_id"].as_str().unwrap().to_owned()
    };
    // One fails: it has leaves, too.
    let ids = (0..count).map(|n| end(if n == 1 { "incident" } else { "checkup" })).collect();
    assert_eq!(dev.stop("-TERM"), 0);
    ids
}

#[test]
fn a_whole_journal_verifies_with_its_signed_log() {
    let journal = Journal::new();
    let ran = journal.run(&["verify", "--all"]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    assert!(ran.stdout.contains("✓ sound           3"), "{ran:#?}");
    assert!(ran.stdout.contains("6 leaves, 6 of them signed by daybook.local/"), "{ran:#?}");
    let ran = journal.run(&["verify", &journal.ids[0], "--key", "log.pub"]);
    assert!(ran.exit == 0 && ran.stdout.contains("a signed checkpoint"), "{ran:#?}");
}

#[test]
fn a_removed_session_is_named_whoever_rebuilds_the_tree() {
    let journal = Journal::new();
    journal.remove(&journal.ids[1]);
    let ran = journal.run(&["verify", "--all"]);
    assert_eq!(ran.exit, 1, "{ran:#?}");
    assert!(ran.stdout.contains(&journal.ids[1]), "{ran:#?}");
    // Its leaves, too: the tree no longer continues the checkpoint.
    journal.change(&format!("DELETE FROM log_leaf WHERE session = '{}'", journal.ids[1]));
    assert_eq!(journal.run(&["verify", "--all"]).exit, 1);
    // With a tree that fits, and without the checkpoints in the file.
    journal.rebuild_the_tree();
    let ran = journal.run(&["verify", "--all"]);
    assert_eq!(ran.exit, 1, "{ran:#?}");
    assert!(ran.stdout.contains("it was set back: it has 4 leaves"), "{ran:#?}");
}

#[test]
fn an_earlier_copy_of_the_journal_is_named() {
    let journal = Journal::new();
    let copy = format!("VACUUM INTO '{}'", journal.path("copy.db").display());
    journal.change(&copy);
    sessions(journal.folder.path(), 1);
    for file in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        let _ = fs::remove_file(journal.path("data").join(file));
    }
    fs::rename(journal.path("copy.db"), journal.path("data/journal.db")).unwrap();
    let ran = journal.run(&["verify", "--all"]);
    assert_eq!(ran.exit, 1, "{ran:#?}");
    assert!(ran.stdout.contains("it was set back"), "{ran:#?}");
    let ran = journal.run(&["verify", &journal.ids[0]]);
    assert_eq!(ran.exit, 1, "{ran:#?}");
}

/// The stack must not sign what was written while it was stopped.
#[test]
fn a_leaf_of_another_writer_is_not_signed() {
    let journal = Journal::new();
    let leaf = format!(
        r#"["daybook session 1","{}","EVENT#2026-01-01T00:00:00.000000000Z","SESSION_FAILED","{}",0]"#,
        journal::id::SessionId::fresh(),
        "0".repeat(64)
    );
    let connection = Connection::open(journal.path("data/journal.db")).unwrap();
    let insert = "INSERT INTO log_leaf (n, session, leaf) VALUES (6, 'x', ?1)";
    connection.execute(insert, params![leaf.as_bytes()]).unwrap();
    drop(connection);
    journal.rebuild_the_tree();
    let keys = fs::read_dir(journal.path(".keys")).unwrap().next().unwrap().unwrap().path();
    for is_marking_key_lost in [false, true] {
        if is_marking_key_lost {
            fs::remove_file(keys.join("leaf.key")).unwrap();
        }
        let dev = Dev::start(journal.folder.path(), &journal.path("data"));
        let asked =
            |command: &str| run_in(journal.folder.path(), &["--endpoint", &dev.endpoint, command]);
        let ran = asked("doctor");
        assert!(ran.exit == 1 && ran.stdout.contains("leaf 6 was not written by"), "{ran:#?}");
        assert_eq!(dev.stop("-TERM"), 0);
    }
    let ran = journal.run(&["verify", "--all", "--json"]);
    assert_eq!(ran.exit, 1, "{ran:#?}");
    let note = fs::read_to_string(keys.join("checkpoint")).unwrap();
    assert_eq!(note.lines().nth(1), Some("6"), "{note}");
}

#[test]
fn an_exported_session_proves_itself_with_the_public_key() {
    let journal = Journal::new();
    for id in &journal.ids {
        let exported = journal.run(&["export", id]).stdout;
        fs::write(journal.path("file.jsonl"), &exported).unwrap();
        let alone = tempfile::tempdir().unwrap();
        for name in ["file.jsonl", "log.pub"] {
            fs::copy(journal.path(name), alone.path().join(name)).unwrap();
        }
        let check = ["verify", "--file", "file.jsonl", "--key", "log.pub"];
        let ran = run_in(alone.path(), &check);
        assert!(ran.exit == 0 && ran.stdout.contains("✓ sound"), "{ran:#?}");
        // Another log's key, and a file whose checkpoint was taken out.
        let other = Journal::new();
        fs::copy(other.path("log.pub"), alone.path().join("log.pub")).unwrap();
        assert_eq!(run_in(alone.path(), &check).exit, 1);
        fs::copy(journal.path("log.pub"), alone.path().join("log.pub")).unwrap();
        let mut lines: Vec<_> = exported.lines().map(str::to_owned).collect();
        let mut witness: serde_json::Value = serde_json::from_str(lines.last().unwrap()).unwrap();
        witness["witness"].as_object_mut().unwrap().remove("log");
        *lines.last_mut().unwrap() = witness.to_string();
        fs::write(alone.path().join("file.jsonl"), lines.join("\n") + "\n").unwrap();
        let ran = run_in(alone.path(), &check);
        assert!(ran.exit == 2 && ran.stdout.contains("? not provable"), "{ran:#?}");
    }
}

#[test]
fn earlier_checkpoints_verify_after_a_rotation() {
    let journal = Journal::new();
    let exported = journal.run(&["export", &journal.ids[0]]).stdout;
    fs::write(journal.path("file.jsonl"), exported).unwrap();
    assert_eq!(journal.run(&["keys", "rotate"]).exit, 0);
    sessions(journal.folder.path(), 1);
    let ran = journal.run(&["verify", "--all"]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    let keys = journal.run(&["keys", "show"]).stdout;
    assert_eq!(keys.lines().count(), 2, "{keys}");
    fs::write(journal.path("log.pub"), keys).unwrap();
    let ran = journal.run(&["verify", "--file", "file.jsonl", "--key", "log.pub"]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
}

#[test]
fn two_histories_of_one_log_are_named() {
    let journal = Journal::new();
    let key = fs::read_dir(journal.path(".keys")).unwrap().next().unwrap().unwrap().path();
    fs::copy(key.join("checkpoint"), journal.path("kept")).unwrap();
    let ran = journal.run(&["verify", "--all", "--checkpoint", "kept"]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    // The same tree, signed by somebody else under the log's name.
    let kept = fs::read(journal.path("kept")).unwrap();
    let checkpoint = tlog::SignedCheckpoint::parse(&kept).unwrap().checkpoint().clone();
    let forger =
        tlog::SignerKey::from_seed(checkpoint.origin().as_str().parse().unwrap(), &[7; 32]);
    let signature = forger.sign(&checkpoint.to_string());
    let forged = tlog::SignedCheckpoint::new(checkpoint, signature).unwrap();
    fs::write(journal.path("forged"), forged.to_string()).unwrap();
    let ran = journal.run(&["verify", "--all", "--checkpoint", "forged"]);
    assert!(ran.exit == 1 && ran.stdout.contains("no known key signed"), "{ran:#?}");
    // Who holds the key signs another history; only the kept checkpoint shows it.
    fs::remove_dir_all(journal.path("data")).unwrap();
    fs::remove_file(key.join("checkpoint")).unwrap();
    sessions(journal.folder.path(), 4);
    assert_eq!(journal.run(&["verify", "--all"]).exit, 0);
    let ran = journal.run(&["verify", "--all", "--checkpoint", "kept"]);
    assert!(ran.exit == 1 && ran.stdout.contains("another history"), "{ran:#?}");
}

/// Who holds the log's key can sign a second history, but a witness cosigns one only.
#[test]
fn a_witness_cosigns_one_history() {
    let journal = Journal::new();
    let mut serve = daybook(journal.folder.path());
    serve.args(["--data", "witness", "witness", "serve", "--listen", "127.0.0.1:0"]);
    let mut witness = serve
        .args(["--log", "log.pub"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(witness.stdout.take().unwrap()).lines();
    let url = lines.next().unwrap().unwrap().strip_prefix("ready ").unwrap().to_owned();
    let key = lines.next().unwrap().unwrap();
    let cosigning = |count: usize| {
        let mut command = daybook(journal.folder.path());
        command.env("DAYBOOK_WITNESSES", format!("{key} {url}"));
        let dev = Dev::listening(&mut command, &journal.path("data"), "127.0.0.1:0");
        let trigger = ["--endpoint", &dev.endpoint, "trigger", "--wait", "--json"];
        let ids: Vec<_> = (0..count)
            .map(|_| {
                let ran = run_in(journal.folder.path(), &trigger);
                ran.json()[0]["session_id"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(dev.stop("-TERM"), 0);
        ids
    };
    let id = cosigning(1).remove(0);
    let check = ["verify", &id, "--key", "log.pub", "--witness", &key];
    let ran = journal.run(&check);
    assert!(ran.exit == 0 && ran.stdout.contains("a cosigned checkpoint"), "{ran:#?}");
    // An export has the cosignature, too.
    let exported = journal.run(&["export", &id]).stdout;
    fs::write(journal.path("file.jsonl"), exported).unwrap();
    let of_file = ["verify", "--file", "file.jsonl", "--key", "log.pub", "--witness", &key];
    assert_eq!(journal.run(&of_file).exit, 0);
    // Another history of the same log, signed by its key.
    fs::remove_dir_all(journal.path("data")).unwrap();
    let key_folder = fs::read_dir(journal.path(".keys")).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(key_folder.join("checkpoint")).unwrap();
    let id = cosigning(5).remove(0);
    let check = ["verify", &id, "--key", "log.pub", "--witness", &key];
    let ran = journal.run(&check);
    assert!(ran.exit == 2 && ran.stdout.contains("did not cosign"), "{ran:#?}");
    witness.kill().unwrap();
    witness.wait().unwrap();
}

#[test]
fn a_session_of_a_log_that_is_gone_is_never_sound() {
    let journal = Journal::new();
    let key = journal.path("log.pub");
    let key = key.to_str().unwrap();
    let sound = journal.run(&["verify", &journal.ids[0], "--key", key]);
    assert_eq!(sound.exit, 0, "{sound:#?}");
    journal.change("DROP TABLE log_leaf; DROP TABLE log_node; DROP TABLE log_checkpoint");
    for arguments in [&["--key", key][..], &[]] {
        let gone = journal.run(&[&["verify", journal.ids[0].as_str()], arguments].concat());
        assert_eq!(gone.exit, 1, "{gone:#?}");
        assert!(gone.stdout.contains("it is gone"), "{gone:#?}");
    }
    // Without the kept checkpoint, only `--key` says that there must be a log.
    fs::remove_dir_all(journal.path(".keys")).unwrap();
    let asked = journal.run(&["verify", &journal.ids[0], "--key", key]);
    assert_eq!(asked.exit, 2, "{asked:#?}");
    let all = journal.run(&["verify", "--all", "--key", key]);
    assert_ne!(all.exit, 0, "{all:#?}");
}

/// Leaves an index of the journal without the rows of a condition, with its own text.
fn make_stale(journal: &Journal, index: &str, lacking: &str) {
    let open = || Connection::open(journal.path("data/journal.db")).unwrap();
    let sql: String = open()
        .query_row("SELECT sql FROM sqlite_schema WHERE name = ?", [index], |row| row.get(0))
        .unwrap();
    let and = if sql.contains(" WHERE ") { "AND" } else { "WHERE" };
    let set = |text: &str| {
        let connection = open();
        connection.execute_batch("PRAGMA writable_schema = ON").unwrap();
        let update = "UPDATE sqlite_schema SET sql = ? WHERE name = ?";
        connection.execute(update, params![text, index]).unwrap();
    };
    set(&format!("{sql} {and} NOT ({lacking})"));
    open().execute_batch(&format!("REINDEX {index}")).unwrap();
    set(&sql);
}

#[test]
fn an_index_that_hides_rows_is_named() {
    let journal = Journal::new();
    let id = &journal.ids[1];
    make_stale(&journal, "log_leaf_by_session", &format!("session = '{id}'"));
    for arguments in
        [&["verify", "--all"][..], &["verify", "--all", "--key", "log.pub"], &["verify", id]]
    {
        let ran = journal.run(arguments);
        assert_eq!(ran.exit, 1, "{ran:#?}");
    }
    assert_ne!(journal.run(&["backup", "kept.db"]).exit, 0);
    let prune = ["prune", "--before", "2100-01-01T00:00:00Z", "--yes"];
    let ran = journal.run(&prune);
    assert!(journal.run(&["show", id]).exit == 0, "nothing is removed: {ran:#?}");

    let journal = Journal::new();
    make_stale(&journal, "item_by_day", "at LIKE '%1Z'");
    make_stale(&journal, "item_by_day_with_status", "at LIKE '%1Z' OR at LIKE '%0Z'");
    let hides = "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'";
    let file = Connection::open(journal.path("data/journal.db")).unwrap();
    let hidden: i64 = file.query_row(hides, [], |row| row.get(0)).unwrap();
    assert_eq!(journal.run(&["verify", "--all"]).exit, i32::from(hidden > 0));
}

#[test]
fn a_schema_of_another_writer_is_named() {
    for change in [
        "CREATE TRIGGER quiet BEFORE INSERT ON item BEGIN SELECT RAISE(IGNORE); END",
        "CREATE VIEW more AS SELECT * FROM item",
        "ALTER TABLE item RENAME TO kept; CREATE VIEW item AS SELECT * FROM kept",
        "DROP INDEX log_leaf_by_session;
         CREATE INDEX log_leaf_by_session ON log_leaf(session) WHERE n > 1",
    ] {
        let journal = Journal::new();
        journal.change(change);
        let ran = journal.run(&["verify", "--all"]);
        assert_eq!(ran.exit, 1, "{change}: {ran:#?}");
        assert!(one_line(&ran).contains("is not this journal's"), "{change}: {ran:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_without_a_leaf_is_named() {
    let journal = Journal::new();
    let file = journal.path("data/journal.db");
    let store = SqliteStore::open(&file, Durability::Relaxed).unwrap();
    let (session, runner) = (SessionId::fresh(), Runner::fresh("agent"));
    let author = Author { session, runner, expires_at: 4_000_000_000 };
    let claim = StepBody::Claim {
        supersedes: 0,
        agent: "checkup".to_owned(),
        graph_version: "1".to_owned(),
        input: None,
    };
    let hlc = Hlc::new(Clock::system(), Stamp::default());
    append(&store, &hlc, &author, &Head::genesis(), 1, claim).await.unwrap();
    drop(store);
    let ran = journal.run(&["verify", "--all"]);
    assert_eq!(ran.exit, 1, "{ran:#?}");
    assert!(one_line(&ran).contains("the log of sessions has no leaf for it"), "{ran:#?}");
}

/// The output without the breaks of its lines.
fn one_line(ran: &Ran) -> String {
    ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn an_emptied_journal_does_not_satisfy_a_key() {
    let journal = Journal::new();
    journal.change(
        "DELETE FROM item; DELETE FROM partition; DELETE FROM log_leaf; DELETE FROM log_node;
         DELETE FROM log_checkpoint; DELETE FROM execution_event; DELETE FROM execution",
    );
    fs::remove_dir_all(journal.path(".config")).unwrap_or_default();
    let ran = journal.run(&["verify", "--all", "--key", "log.pub"]);
    assert_ne!(ran.exit, 0, "{ran:#?}");
}
