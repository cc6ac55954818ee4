//! Backups and restores, also of running stacks and killed in the middle; journals that are missing, copied, damaged or
//! opened twice.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::Value;

use crate::harness::{DEADLINE, Dev, Ran, daybook, free_endpoint, run, run_in};
use crate::page::{check, put_program, root};

/// A folder for a stack, its data and its keys.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// With a stopped stack's journal of some sessions.
    fn with_sessions(count: usize) -> Self {
        let place = Self::new();
        place.run_sessions(count);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn dev(&self) -> Dev {
        Dev::start(self.folder.path(), &self.path("data"))
    }

    fn run_sessions(&self, count: usize) {
        let dev = self.dev();
        (0..count).for_each(|_| drop(self.trigger(&dev)));
        assert_eq!(dev.stop("-TERM"), 0);
    }

    fn trigger(&self, dev: &Dev) -> String {
        let ran = self.at(dev, &["trigger", "--wait", "--json"]);
        ran.json()[0]["session_id"].as_str().unwrap().to_owned()
    }

    fn at(&self, dev: &Dev, arguments: &[&str]) -> Ran {
        run_in(self.folder.path(), &[&["--endpoint", &dev.endpoint], arguments].concat())
    }

    /// Runs a command over a data folder without a stack.
    fn over(&self, data: &str, arguments: &[&str]) -> Ran {
        let endpoint = free_endpoint();
        let before = ["--endpoint", &endpoint, "--data", data];
        run_in(self.folder.path(), &[&before, arguments].concat())
    }

    fn is_sound(&self, data: &str, sessions: usize) {
        let ran = self.over(data, &["verify", "--all", "--json"]);
        assert_eq!(ran.exit, 0, "{ran:#?}");
        assert_eq!(ran.json().last().unwrap()["sessions"], sessions, "{ran:#?}");
    }

    /// A start of the stack that has to fail.
    fn refused_start(&self, data: &Path) -> Ran {
        let mut command = daybook(self.folder.path());
        run(command.arg("--data").arg(data).args(["dev", "--listen", "127.0.0.1:0"]))
    }

    /// A command that is killed after a while, unless it has ended.
    fn killed(&self, arguments: &[&str], after: Duration) {
        let endpoint = free_endpoint();
        let mut command = daybook(self.folder.path());
        command.args(["--endpoint", &endpoint]).args(arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(after);
        let _ = child.kill();
        child.wait().unwrap();
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Makes a journal large enough for a kill in the middle of its copy.
fn pad(journal: &Path) {
    let connection = Connection::open(journal).unwrap();
    connection.execute_batch("CREATE TABLE padding (bytes BLOB)").unwrap();
    for _ in 0..8 {
        connection.execute("INSERT INTO padding VALUES (randomblob(4000000))", []).unwrap();
    }
}

#[test]
fn a_backup_of_a_running_stack_restores_elsewhere() {
    let place = Place::new();
    let dev = place.dev();
    place.trigger(&dev);
    place.trigger(&dev);
    let state = place.path("data/pk-sim/0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f");
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("simulation-1.json"), "{}").unwrap();
    fs::write(place.path("log.pub"), place.over("data", &["keys", "show"]).stdout).unwrap();
    // The stack signs the newest leaves within seconds.
    while place.at(&dev, &["verify", "--all", "--key", "log.pub"]).exit != 0 {
        std::thread::sleep(Duration::from_millis(100));
    }
    let ran = place.at(&dev, &["--json", "backup", "kept.db"]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    let told = &ran.json()[0];
    assert_eq!((&told["verified"]["sessions"], &told["state_files"]), (&2.into(), &1.into()));
    let anchors = told["verified"]["anchors"].to_string();
    assert!(anchors.contains("checkpoint") && anchors.contains("execution"), "{ran:#?}");
    assert_eq!(place.names("."), [".keys", "data", "kept.db", "log.pub"]);
    let mode = fs::metadata(place.path("kept.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = place.at(&dev, &["backup", "kept.db"]);
    assert_eq!(again.exit, 2, "{again:#?}");
    assert!(again.stderr.contains("kept.db exists"), "{again:#?}");
    assert_eq!(dev.stop("-TERM"), 0);
    let ran = place.over("x", &["restore", "kept.db", "--data-dir", "other"]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    place.is_sound("other", 2);
    fs::write(place.path("log.pub"), place.over("data", &["keys", "show"]).stdout).unwrap();
    let restore = ["restore", "kept.db", "--data-dir", "signed", "--key", "log.pub", "--json"];
    let ran = place.over("x", &restore);
    assert_eq!(ran.json()[0]["verified"]["outcomes"]["sound"], 2, "{ran:#?}");
    // Another log's key.
    let other = Place::with_sessions(1).over("data", &["keys", "show"]).stdout;
    fs::write(place.path("log.pub"), other).unwrap();
    let ran = place.over("x", &[&restore[..], &["--replace"]].concat());
    assert_eq!(ran.exit, 1, "{ran:#?}");
    let restored = "other/pk-sim/0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f/simulation-1.json";
    assert_eq!(fs::read_to_string(place.path(restored)).unwrap(), "{}");
    let dev = Dev::start(place.folder.path(), &place.path("other"));
    place.trigger(&dev);
    assert_eq!(dev.stop("-TERM"), 0);
    place.is_sound("other", 3);
}

/// Its records fit together, so only the key that was asked for tells it from a forgery.
#[test]
fn a_restore_puts_nothing_unproven_by_its_key_in_place() {
    let place = Place::with_sessions(1);
    fs::write(place.path("log.pub"), place.over("data", &["keys", "show"]).stdout).unwrap();
    assert_eq!(place.over("data", &["backup", "kept.db"]).exit, 0);
    let kept = Connection::open(place.path("kept.db")).unwrap();
    assert!(kept.execute("DELETE FROM log_checkpoint", []).unwrap() > 0);
    drop(kept);
    let restore = ["restore", "kept.db", "--data-dir", "signed", "--key", "log.pub"];
    let ran = place.over("x", &restore);
    assert_eq!(ran.exit, 2, "{ran:#?}");
    assert!(ran.stderr.contains("does not prove what --key requires"), "{ran:#?}");
    assert!(!place.path("signed/journal.db").exists());
    let ran = place.over("x", &[&restore[..], &["--allow-unproven"]].concat());
    assert_eq!(ran.exit, 2, "{ran:#?}");
    assert!(place.path("signed/journal.db").is_file(), "{ran:#?}");
}

/// Erasing the session would erase nothing in a copy of both.
#[test]
fn an_encrypted_export_does_not_lie_beside_its_key() {
    let place = Place::new();
    let mut command = daybook(place.folder.path());
    let dev = Dev::listening_with(&mut command, &place.path("data"), "127.0.0.1:0", &["--encrypt"]);
    let id = place.trigger(&dev);
    let export = |to: &str| {
        let mut command = daybook(place.folder.path());
        command.args(["--endpoint", &dev.endpoint, "export", &id]);
        let file = fs::File::create(place.path(to)).unwrap();
        command.stdout(file).stderr(Stdio::piped()).output().unwrap()
    };
    let beside = export("data/file.jsonl");
    let said = String::from_utf8_lossy(&beside.stderr).into_owned();
    assert!(said.contains("would lie beside its own key"), "{said}");
    assert_eq!(beside.status.code(), Some(2));
    assert_eq!(fs::read(place.path("data/file.jsonl")).unwrap(), b"");
    let apart = export("file.jsonl");
    let said = String::from_utf8_lossy(&apart.stderr).into_owned();
    assert!(apart.status.success() && said.contains("its contents are encrypted"), "{said}");
    assert_eq!(dev.stop("-TERM"), 0);
}

#[test]
fn sessions_are_written_while_a_backup_is_made() {
    let place = Place::with_sessions(1);
    pad(&place.path("data/journal.db"));
    let dev = place.dev();
    let endpoint = dev.endpoint.clone();
    let mut backup = daybook(place.folder.path());
    backup.args(["--endpoint", &endpoint, "backup", "kept.db"]);
    let mut backup = backup.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let during: Vec<_> = (0..3).map(|_| place.trigger(&dev)).collect();
    assert!(backup.wait().unwrap().success());
    assert_eq!(dev.stop("-TERM"), 0);
    place.is_sound("data", 1 + during.len());
    assert_eq!(place.over("x", &["restore", "kept.db", "--data-dir", "other"]).exit, 0);
    assert_eq!(place.over("other", &["verify", "--all"]).exit, 0);
}

#[test]
fn a_killed_backup_leaves_nothing_or_a_whole_file() {
    let place = Place::with_sessions(1);
    pad(&place.path("data/journal.db"));
    let mut unfinished = 0;
    for n in 0..12 {
        place.killed(&["--data", "data", "backup", "kept.db"], Duration::from_millis(15 + 40 * n));
        if place.path("kept.db").exists() {
            let ran = place.over("x", &["restore", "kept.db", "--data-dir", &format!("r{n}")]);
            assert_eq!(ran.exit, 0, "{ran:#?}");
            fs::remove_file(place.path("kept.db")).unwrap();
        } else {
            unfinished += 1;
        }
    }
    assert!(unfinished > 0, "no kill was in the middle");
    assert_eq!(place.over("data", &["backup", "kept.db"]).exit, 0);
    assert!(!place.path("kept.db.part").exists());
    place.is_sound("data", 1);
}

#[test]
fn a_killed_restore_leaves_nothing_or_a_whole_journal() {
    let place = Place::with_sessions(1);
    pad(&place.path("data/journal.db"));
    assert_eq!(place.over("data", &["backup", "kept.db"]).exit, 0);
    let mut unfinished = 0;
    for n in 0..12 {
        // Into an empty folder, and over another journal.
        let data = format!("r{n}");
        let is_replacing = n % 2 == 1;
        if is_replacing {
            fs::create_dir(place.path(&data)).unwrap();
            fs::copy(place.path("data/journal.db"), place.path(&data).join("journal.db")).unwrap();
        }
        let restore = ["restore", "kept.db", "--data-dir", &data, "--replace"];
        place.killed(&restore, Duration::from_millis(15 + 40 * n));
        let is_whole = place.path(&data).join("journal.db").exists();
        unfinished += usize::from(!is_whole);
        assert!(is_whole || !is_replacing, "a journal is there all the time");
        if is_whole {
            place.is_sound(&data, 1);
        }
        assert_eq!(place.over("x", &restore).exit, 0, "it can be done again");
        place.is_sound(&data, 1);
        fs::remove_dir_all(place.path(&data)).unwrap();
    }
    assert!(unfinished > 0, "no kill was in the middle");
}

#[test]
fn a_restore_asks_before_it_replaces_a_journal() {
    let place = Place::with_sessions(1);
    assert_eq!(place.over("data", &["backup", "kept.db"]).exit, 0);
    let ran = place.over("x", &["restore", "kept.db", "--data-dir", "data"]);
    assert!(ran.exit == 2 && ran.stderr.contains("--replace"), "{ran:#?}");
    let dev = place.dev();
    let ran = place.over("x", &["restore", "kept.db", "--data-dir", "data", "--replace"]);
    assert!(ran.exit == 2 && ran.stderr.contains("another stack uses"), "{ran:#?}");
    place.trigger(&dev);
    assert_eq!(dev.stop("-TERM"), 0);
    let ran = place.over("data", &["--json", "restore", "kept.db", "--replace"]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    let told = &ran.json()[0];
    assert_eq!(told["log"]["state"], "broken", "{ran:#?}");
    let former = told["former_journal"].as_str().unwrap();
    let kept = Connection::open(former).unwrap();
    let starts = "SELECT count(*) FROM item WHERE body LIKE '%SESSION_INITIATED%'";
    assert_eq!(kept.query_row(starts, [], |row| row.get::<_, i64>(0)).unwrap(), 2);
    assert_eq!(place.over("data", &["sessions", "--json"]).json().len(), 1);
}

/// The log is shorter than what was signed; then it grows beyond it, with other sessions.
#[test]
fn a_restored_log_tells_no_second_history() {
    let place = Place::with_sessions(1);
    assert_eq!(place.over("data", &["backup", "kept.db"]).exit, 0);
    place.run_sessions(1);
    let name = |place: &Place| place.over("data", &["keys", "show"]).stdout;
    let before = name(&place);
    let ran = place.over("data", &["restore", "kept.db", "--replace"]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    assert!(ran.stderr.contains("it was set back: it has 2 leaves, but 4 were signed"), "{ran:#?}");
    assert!(ran.stderr.contains("daybook keys rotate --new-log"), "{ran:#?}");
    for _ in 0..2 {
        let dev = place.dev();
        let ran = place.at(&dev, &["doctor"]);
        assert!(ran.exit == 1 && ran.stdout.contains("not signed"), "{ran:#?}");
        let ran = place.at(&dev, &["keys", "rotate", "--new-log"]);
        assert!(ran.exit == 2 && ran.stderr.contains("stop the stack first"), "{ran:#?}");
        place.trigger(&dev);
        assert_eq!(dev.stop("-TERM"), 0);
    }
    let ran = place.over("data", &["verify", "--all"]);
    assert!(ran.exit == 1 && ran.stdout.contains("another history"), "{ran:#?}");
    assert_eq!(place.over("data", &["keys", "rotate", "--new-log"]).exit, 0);
    place.run_sessions(1);
    place.is_sound("data", 4);
    let after = name(&place);
    assert!(after.ends_with(&before), "the former key still verifies: {after}");
    let named = |text: &str| text.split('+').next().unwrap().to_owned();
    assert_ne!(named(&after), named(&before), "the log has another name");
    let folder = fs::read_dir(place.path(".keys")).unwrap().next().unwrap().unwrap().path();
    let key = fs::read_to_string(folder.join("signing.key")).unwrap();
    assert!(key.contains(&named(&after)) && !key.contains(&named(&before)), "{key}");
}

#[test]
fn a_hostile_or_damaged_backup_is_refused() {
    let place = Place::with_sessions(1);
    let prepared = |name: &str, sql: &str| {
        assert_eq!(place.over("data", &["backup", name]).exit, 0);
        let connection = Connection::open(place.path(name)).unwrap();
        connection.execute_batch(sql).unwrap();
    };
    let file = |name: &str| {
        format!(
            "CREATE TABLE IF NOT EXISTS sqlar (name TEXT PRIMARY KEY, mode INT, mtime INT, sz INT, data BLOB); \
             INSERT INTO sqlar VALUES ('{name}', 33152, 0, 1, X'00')"
        )
    };
    for (n, (sql, exit, said)) in [
        (file("pk-sim/../../out"), 2, "the file \"pk-sim/../../out\""),
        (file("/out"), 2, "the file \"/out\""),
        (file("journal.db"), 2, "the file \"journal.db\""),
        (
            "CREATE TRIGGER evil AFTER INSERT ON item BEGIN DELETE FROM item; END".to_owned(),
            2,
            "the trigger evil",
        ),
        ("DELETE FROM item WHERE sk LIKE 'STEP#%'".to_owned(), 1, "the backup is damaged"),
        ("PRAGMA user_version = 9999".to_owned(), 2, "has schema 9999"),
    ]
    .into_iter()
    .enumerate()
    {
        let (name, data) = (format!("b{n}.db"), format!("r{n}"));
        prepared(&name, &sql);
        let ran = place.over("x", &["restore", &name, "--data-dir", &data]);
        assert_eq!(ran.exit, exit, "{sql}: {ran:#?}");
        assert!(ran.stderr.contains(said), "{sql}: {ran:#?}");
        assert_eq!(place.names(&data), ["lock"], "{sql}");
    }
    assert!(!place.path("out").exists());
    let skipped = file("somebody/else");
    prepared("other.db", &skipped);
    let ran = place.over("x", &["restore", "other.db", "--data-dir", "ro"]);
    assert!(ran.exit == 0 && ran.stderr.contains("1 files of MCP servers"), "{ran:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_pages_are_found_by_doctor_backup_and_readyz() {
    let place = Place::with_sessions(2);
    damage(&place.path("data/journal.db"));
    let ran = place.over("data", &["backup", "kept.db"]);
    assert!(ran.exit == 1 && ran.stderr.contains("pages of the journal are damaged"), "{ran:#?}");
    assert!(!place.path("kept.db").exists() && !place.path("kept.db.part").exists());
    let ran = run(daybook(place.folder.path()).args(["--data", "data", "doctor"]));
    assert!(ran.exit == 1 && ran.stdout.contains("the file is damaged"), "{ran:#?}");
    let dev = place.dev();
    // Reading all sessions meets the damage.
    let http = reqwest::Client::builder().no_proxy().timeout(DEADLINE).build().unwrap();
    let get = async |path: &str| {
        let url = format!("{}{path}", dev.endpoint);
        http.get(url).send().await.unwrap().text().await.unwrap()
    };
    get("/api/sessions").await;
    let health = get("/readyz").await;
    assert!(health.contains("integrity"), "{health}");
}

/// Overwrites pages of the table of records.
fn damage(journal: &Path) {
    let connection = Connection::open(journal).unwrap();
    let root: i64 = connection
        .query_row("SELECT rootpage FROM sqlite_master WHERE name = 'item'", [], |row| row.get(0))
        .unwrap();
    let size: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let mut bytes = fs::read(journal).unwrap();
    let at = usize::try_from((root - 1) * size).unwrap();
    let end = at + usize::try_from(size).unwrap();
    bytes[at..end].fill(0xdb);
    fs::write(journal, bytes).unwrap();
}

#[test]
fn a_missing_journal_is_a_question() {
    type Loss = fn(&Path);
    let losses: [(&str, Loss, &str); 3] = [
        ("removed", |data| fs::remove_file(data.join("journal.db")).unwrap(), "is gone, but"),
        (
            "emptied",
            |data| drop(fs::File::create(data.join("journal.db")).unwrap()),
            "is empty, but",
        ),
        (
            "a database without tables",
            |data| {
                fs::remove_file(data.join("journal.db")).unwrap();
                let other = Connection::open(data.join("journal.db")).unwrap();
                other.execute_batch("VACUUM").unwrap();
                other.pragma_update(None, "user_version", 2).unwrap();
            },
            "is empty, but",
        ),
    ];
    for (what, lose, said) in losses {
        let place = Place::with_sessions(1);
        lose(&place.path("data"));
        let ran = place.refused_start(&place.path("data"));
        assert_eq!((ran.exit, ran.stdout.as_str()), (2, ""), "{what}: {ran:#?}");
        assert!(ran.stderr.contains(said) && ran.stderr.contains("--accept-loss"), "{ran:#?}");
        let ran = run(daybook(place.folder.path()).args(["--data", "data", "doctor"]));
        assert!(ran.exit == 1 && ran.stdout.contains(said), "{what}: {ran:#?}");
        let mut command = daybook(place.folder.path());
        let data = place.path("data");
        let dev = Dev::listening_with(&mut command, &data, "127.0.0.1:0", &["--accept-loss"]);
        assert_eq!(dev.stop("-TERM"), 0);
        assert_eq!(place.dev().stop("-TERM"), 0, "{what}: it asks once");
    }
}

#[test]
fn a_removed_write_ahead_log_is_a_question() {
    let place = Place::new();
    let dev = place.dev();
    place.trigger(&dev);
    // What the journal holds is noted each second.
    std::thread::sleep(Duration::from_millis(2_500));
    dev.kill();
    for name in ["journal.db-wal", "journal.db-shm"] {
        fs::remove_file(place.path("data").join(name)).unwrap();
    }
    let ran = place.refused_start(&place.path("data"));
    assert!(ran.exit == 2 && ran.stderr.contains("the end of the journal"), "{ran:#?}");
    let again = place.refused_start(&place.path("data"));
    assert!(again.exit == 2 && again.stderr.contains("--accept-loss"), "{again:#?}");
}

/// SQLite removes a write-ahead log beside an empty database, also for a reader.
#[test]
fn an_emptied_journal_keeps_its_write_ahead_log() {
    let place = Place::new();
    let dev = place.dev();
    place.trigger(&dev);
    dev.kill();
    let (journal, log) = (place.path("data/journal.db"), place.path("data/journal.db-wal"));
    assert!(fs::metadata(&log).unwrap().len() > 0);
    let whole = fs::read(&journal).unwrap();
    drop(fs::File::create(&journal).unwrap());
    for command in [&["sessions"][..], &["backup", "kept.db"], &["verify", "--all"], &["doctor"]] {
        let ran = place.over("data", command);
        assert_ne!(ran.exit, 0, "{ran:#?}");
    }
    assert_eq!(place.refused_start(&place.path("data")).exit, 2);
    fs::write(&journal, whole).unwrap();
    assert_eq!(place.dev().stop("-TERM"), 0);
    place.is_sound("data", 1);
}

/// Another program that writes the file puts the log into it, and nothing is missing.
#[test]
fn a_log_that_another_program_took_over_is_no_question() {
    let place = Place::new();
    let dev = place.dev();
    place.trigger(&dev);
    std::thread::sleep(Duration::from_millis(2_500));
    dev.kill();
    let other = Connection::open(place.path("data/journal.db")).unwrap();
    other.query_row("SELECT count(*) FROM item", [], |row| row.get::<_, i64>(0)).unwrap();
    drop(other);
    assert!(!place.path("data/journal.db-wal").exists());
    assert_eq!(place.dev().stop("-TERM"), 0);
    place.is_sound("data", 1);
}

#[test]
fn two_stacks_never_share_a_file_whatever_its_path() {
    let place = Place::with_sessions(1);
    let file = place.path("data/journal.db");
    for name in ["symbolic", "hard", "folder"] {
        fs::create_dir(place.path(name)).unwrap_or_default();
    }
    std::os::unix::fs::symlink(&file, place.path("symbolic/journal.db")).unwrap();
    fs::hard_link(&file, place.path("hard/journal.db")).unwrap();
    fs::remove_dir(place.path("folder")).unwrap();
    std::os::unix::fs::symlink(place.path("data"), place.path("folder")).unwrap();
    let dev = place.dev();
    for name in ["symbolic", "hard", "folder"] {
        let ran = place.refused_start(&place.path(name));
        assert!(ran.exit == 2 && ran.stderr.contains("another stack uses"), "{name}: {ran:#?}");
    }
    place.trigger(&dev);
    assert_eq!(dev.stop("-TERM"), 0);
    place.is_sound("data", 2);
}

#[test]
fn a_backup_of_an_earlier_schema_restores_and_migrates() {
    let place = Place::new();
    let released = root().join("crates/stack/tests/released/schema-1.db");
    let released = released.to_str().unwrap();
    let ran = place.over("x", &["restore", released, "--data-dir", "data"]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    assert!(ran.stdout.contains("no log of sessions"), "{ran:#?}");
    assert_eq!(place.over("data", &["backup", "kept.db"]).exit, 0);
    place.run_sessions(1);
    place.is_sound("data", 3);
}

#[test]
fn a_copied_journal_of_a_stopped_stack_is_whole() {
    let place = Place::with_sessions(2);
    assert_eq!(place.names("data"), ["journal.db", "lock"], "nothing is beside it");
    fs::create_dir(place.path("copy")).unwrap();
    fs::copy(place.path("data/journal.db"), place.path("copy/journal.db")).unwrap();
    place.is_sound("copy", 2);
}

#[test]
fn a_session_is_imported_while_the_stack_runs() {
    let from = Place::with_sessions(1);
    let listed = from.over("data", &["sessions", "--json"]).json();
    let id = listed[0]["session_id"].as_str().unwrap();
    let exported = from.over("data", &["export", id]).stdout;
    let place = Place::new();
    fs::write(place.path("session.jsonl"), exported).unwrap();
    let dev = place.dev();
    let own = place.trigger(&dev);
    let ran = place.at(&dev, &["import", "session.jsonl", "--json"]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    assert_eq!(place.at(&dev, &["show", id]).exit, 0);
    // The stack signs its leaves, too, without another session.
    let is_signed = || {
        let ran = place.at(&dev, &["verify", id, "--json"]);
        let report: Value = ran.json().remove(0);
        assert_eq!(ran.exit, 0, "{ran:#?}");
        report["word"] == "sound"
    };
    let begun = (0..DEADLINE.as_millis() / 200).any(|_| {
        std::thread::sleep(Duration::from_millis(200));
        is_signed()
    });
    assert!(begun, "the imported session was not signed");
    assert_eq!(place.at(&dev, &["verify", &own]).exit, 0);
    assert_eq!(dev.stop("-TERM"), 0);
    place.is_sound("data", 2);
}

#[test]
fn doctor_shows_the_settings_of_the_running_stack() {
    let place = Place::new();
    let mut command = daybook(place.folder.path());
    command.env("JOURNAL_TTL_DAYS", "7").env("DAYBOOK_MODEL", "openai:theirs");
    command.env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let arguments = ["--durability", "relaxed"];
    let dev = Dev::listening_with(&mut command, &place.path("data"), "127.0.0.1:0", &arguments);
    // This environment says something else, and something invalid.
    let mut doctor = daybook(place.folder.path());
    doctor.env("DAYBOOK_MODEL", "nonsense").env("JOURNAL_TTL_DAYS", "many");
    let ran = run(doctor.args(["--endpoint", &dev.endpoint, "doctor", "--json"]));
    assert_eq!(ran.exit, 0, "{ran:#?}");
    let detail = |name: &str| {
        let found = ran.json().into_iter().find(|check| check["name"] == name).unwrap();
        found["detail"].as_str().unwrap().to_owned()
    };
    assert_eq!(detail("model"), "openai:theirs");
    assert!(detail("environment").contains("kept 7 days, durability relaxed"), "{ran:#?}");
    assert!(detail("integrity").contains("every page was read"), "{ran:#?}");
    assert!(detail("disk").contains("bytes left"), "{ran:#?}");
    assert_eq!(dev.stop("-TERM"), 0);
}

#[test]
fn every_command_of_keeping_md_works() {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    put_program(&bin, "daybook", &format!("exec {} \"$@\"", env!("CARGO_BIN_EXE_daybook")));
    check("docs/keeping.md", folder.path(), &bin, DEADLINE);
}
