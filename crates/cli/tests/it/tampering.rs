//! Attacks on a journal file: no verification calls it sound, and a damaged session hides no other.

use std::path::Path;
use std::time::Duration;

use journal::chain::{Author, Head, append};
use journal::clock::{Clock, Hlc, Stamp};
use journal::export::{self, Here};
use journal::id::{Runner, SessionId};
use journal::read;
use journal::sqlite::{Durability, SqliteStore};
use journal::step::StepBody;
use rusqlite::{Connection, params};

use crate::harness::{Dev, Ran, daybook, free_endpoint, run, run_in};

/// A stopped stack's folder with two sessions that have ended.
fn folder() -> (tempfile::TempDir, [String; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let end = |arguments: &[&str]| {
        let before = ["--endpoint", &dev.endpoint, "trigger", "--wait", "--json"];
        let ran = run_in(folder.path(), &[&before, arguments].concat());
        ran.json()[0]["session_id"].as_str().unwrap().to_owned()
    };
    // The second one fails, so its execution has no output.
    let ids = [end(&[]), end(&["--detail", r#"{"agent": 7}"#])];
    assert_eq!(dev.stop("-TERM"), 0);
    (folder, ids)
}

fn over(folder: &Path, arguments: &[&str]) -> Ran {
    let endpoint = free_endpoint();
    run_in(folder, &[&["--endpoint", &endpoint, "--data", "data"], arguments].concat())
}

fn change(folder: &Path, sql: &str, session: &str) -> usize {
    let connection = Connection::open(folder.join("data/journal.db")).unwrap();
    let partition = "partition = (SELECT id FROM partition WHERE pk = 'SESSION#' || ?1)";
    connection.execute(&sql.replace("OF_IT", partition), params![session]).unwrap()
}

const VERDICTS: &str = "json_extract(body, '$.Status.S') LIKE 'SESSION_%' \
                        AND json_extract(body, '$.Status.S') <> 'SESSION_INITIATED'";

#[test]
fn every_anchor_at_hand_is_consulted() {
    let (folder, ids) = folder();
    for id in &ids {
        let sound = over(folder.path(), &["verify", id]);
        assert_eq!(sound.exit, 0, "{sound:#?}");
        assert!(sound.stdout.contains("✓ sound"), "{}", sound.stdout);
        assert!(sound.stdout.contains("named by the execution"), "{}", sound.stdout);
    }
    for id in &ids {
        let sql = format!("DELETE FROM item WHERE OF_IT AND {VERDICTS}");
        assert_eq!(change(folder.path(), &sql, id), 1);
        let ran = over(folder.path(), &["verify", id, "--json"]);
        assert_eq!(ran.exit, 1, "{ran:#?}");
        let report = &ran.json()[0];
        assert_eq!((&report["sound"], &report["outcome"]), (&false.into(), &"damaged".into()));
        assert!(ran.stdout.contains("the verdict is missing: the execution names"), "{ran:#?}");
        // With everything that follows the first record, too, and with its expiry in the past.
        let first = "sk > (SELECT min(sk) FROM item WHERE OF_IT)";
        change(folder.path(), &format!("DELETE FROM item WHERE {first} AND OF_IT"), id);
        let past = "UPDATE item SET body = json_set(body, '$.ExpiresAt.N', '1') WHERE OF_IT";
        change(folder.path(), past, id);
        let ran = over(folder.path(), &["verify", id]);
        assert_eq!(ran.exit, 1, "{ran:#?}");
    }
}

/// A BLOB of the same bytes is greater than any text, so that all readers but an unbounded one pass it over.
#[test]
fn a_record_that_queries_pass_over_is_named() {
    for sql in [
        "UPDATE item SET sk = CAST(sk AS BLOB) WHERE OF_IT AND sk >= 'STEP#00000002'",
        "UPDATE item SET day = NULL WHERE OF_IT AND sk LIKE 'EVENT#%'",
        "UPDATE item SET at = '1971-01-01T00:00:00.000000000Z' WHERE OF_IT AND day IS NOT NULL",
    ] {
        let (folder, [id, _]) = folder();
        let head = over(folder.path(), &["verify", &id, "--json"]).json()[0]["head"].clone();
        assert!(change(folder.path(), sql, &id) > 0);
        let ran = over(folder.path(), &["verify", &id, "--head", head.as_str().unwrap()]);
        assert_eq!(ran.exit, 1, "{sql}: {ran:#?}");
    }
}

#[test]
fn a_forged_output_contradicts_the_history() {
    let (folder, [id, _]) = folder();
    let forged = "UPDATE execution SET output = json_set(output, '$.head', printf('%064d', 7)) WHERE name = ?1";
    assert_eq!(change(folder.path(), forged, &id), 1);
    let ran = over(folder.path(), &["verify", &id]);
    assert_eq!(ran.exit, 1, "{ran:#?}");
}

/// The page, the list and the verification agree on which of two verdicts counts.
#[test]
fn a_later_verdict_changes_no_result_and_is_damage() {
    let (folder, [_, id]) = folder();
    let status = || {
        let listed = over(folder.path(), &["sessions", "--json"]).json();
        listed.iter().find(|session| session["session_id"] == id.as_str()).unwrap()["status"]
            .clone()
    };
    let before = status();
    assert_ne!(before, "SUCCEEDED");
    let connection = Connection::open(folder.path().join("data/journal.db")).unwrap();
    let (partition, sk, body): (i64, String, String) = connection
        .query_row(
            &format!(
                "SELECT partition, sk, body FROM item WHERE partition = \
                 (SELECT id FROM partition WHERE pk = 'SESSION#' || ?1) AND {VERDICTS}"
            ),
            params![id],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&body).unwrap();
    json["PK"] = serde_json::json!({ "S": format!("SESSION#{id}") });
    json["SK"] = serde_json::json!({ "S": sk });
    let item = journal::item::Item::from_json(&json).unwrap();
    let event = journal::event::Event::from_item(&item).unwrap();
    let later = journal::item::Item { sk: journal::key::event(event.stamp.next()), ..item }
        .with("Timestamp", event.stamp.next().to_string())
        .with("Status", "SESSION_SUCCEEDED")
        .with("Step", 2_u32)
        .hashed();
    let at = later.text_opt("Timestamp").unwrap();
    let insert = "INSERT INTO item (partition, sk, body, day, at) VALUES (?1, ?2, ?3, ?4, ?5)";
    let body = serde_json::to_string(&later.attributes).unwrap();
    let values = params![partition, later.sk, body, later.text_opt("Day"), at];
    connection.execute(insert, values).unwrap();
    assert_eq!(status(), before);
    let ran = over(folder.path(), &["verify", &id]);
    assert!(ran.exit == 1 && ran.stdout.contains(&later.sk), "{ran:#?}");
}

#[test]
fn only_payloads_of_no_session_and_odd_keys_are_strays() {
    let (folder, [id, _]) = folder();
    let connection = Connection::open(folder.path().join("data/journal.db")).unwrap();
    let add = |pk: &str| {
        connection.execute(&format!("INSERT INTO partition (pk) VALUES ({pk})"), []).unwrap();
        connection.last_insert_rowid()
    };
    let fill = |partition: i64| {
        let insert = "INSERT INTO item (partition, sk, body) VALUES (?1, 'PART#0000', '{}')";
        connection.execute(insert, params![partition]).unwrap();
    };
    fill(add(&format!("'BLOB#{id}#abc'")));
    // Without items, a partition is nothing.
    add("'BLOB#nobody#abc'");
    let strays = || {
        let ran = over(folder.path(), &["verify", "--all", "--json"]);
        let whole = ran.json().pop().unwrap();
        (ran.exit, whole["strays"].as_array().unwrap().len())
    };
    assert_eq!(strays(), (0, 0));
    let nobody = journal::id::SessionId::fresh();
    fill(add(&format!("'BLOB#{nobody}#abc'")));
    fill(add(&format!("CAST('SESSION#{id}' AS BLOB)")));
    assert_eq!(strays(), (1, 2));
}

/// A trigger may name the execution, so that only a record says which one it is.
#[test]
fn an_anchor_is_found_whatever_the_first_event_says() {
    let (folder, [id, _]) = folder();
    for sql in [
        "UPDATE execution SET arn = replace(arn, name, 'by-hand'), name = 'by-hand' WHERE name = ?1",
        "UPDATE item SET body = replace(body, 'daybook:' || ?1, 'daybook:by-hand') \
         WHERE OF_IT AND body LIKE '%ExecutionArn%'",
        "INSERT INTO item (partition, sk, body) \
         SELECT id, 'EVENT#2020-01-01T00:00:00.000000000Z', '{\"Status\":{\"S\":\"AGENT_LOST\"}}' \
         FROM partition WHERE pk = 'SESSION#' || ?1",
    ] {
        assert_eq!(change(folder.path(), sql, &id), 1, "{sql}");
    }
    let ran = over(folder.path(), &["verify", &id]);
    assert!(ran.exit == 1 && ran.stdout.contains("named by the execution"), "{ran:#?}");
}

#[test]
fn without_an_anchor_nothing_is_called_sound() {
    let (folder, [id, _]) = folder();
    let exported = over(folder.path(), &["export", &id]).stdout;
    std::fs::write(folder.path().join("file.jsonl"), &exported).unwrap();
    let ran = over(folder.path(), &["verify", "--file", "file.jsonl"]);
    assert!(ran.exit == 0 && !ran.stdout.contains('✓'), "{ran:#?}");
    assert!(ran.stdout.contains("~ consistent") && ran.stdout.contains("no anchor"), "{ran:#?}");
    let report = over(folder.path(), &["verify", &id, "--json"]).json().remove(0);
    assert_eq!(report["anchors"], serde_json::json!(["execution", "checkpoint"]));
    assert_eq!(report["word"], "sound");
    let head = report["head"].as_str().unwrap();
    let ran = over(folder.path(), &["verify", "--file", "file.jsonl", "--head", head]);
    assert!(ran.exit == 0 && ran.stdout.contains("✓ sound"), "{ran:#?}");
}

#[tokio::test]
async fn a_damaged_record_is_named_and_hides_no_session() {
    for (what, body) in [
        ("invalid UTF-8", "CAST(x'7b2241223a7b2253223a22ff227d7d' AS TEXT)"),
        ("a BLOB", "CAST(body AS BLOB)"),
        ("no JSON object", "'[1]'"),
        ("a wrong type", "json_set(body, '$.Timestamp', json('{\"BOOL\":true}'))"),
    ] {
        let (folder, ids) = folder();
        // The first event, by which a session is listed, or the verdict.
        for (id, order) in ids.iter().zip(["ASC", "DESC"]) {
            let event = format!(
                "SELECT pos FROM item WHERE OF_IT AND sk LIKE 'EVENT#%' ORDER BY sk {order} LIMIT 1"
            );
            let one = format!("UPDATE item SET body = {body} WHERE pos = ({event})");
            assert_eq!(change(folder.path(), &one, id), 1, "{what}");
            let ran = over(folder.path(), &["verify", id]);
            assert_eq!(ran.exit, 1, "{what}: {ran:#?}");
            assert!(ran.stdout.contains("EVENT#"), "{what}: {ran:#?}");
        }
        let listed = over(folder.path(), &["sessions", "--json"]);
        assert_eq!(listed.exit, 0, "{what}: {listed:#?}");
        let listed = listed.json();
        for id in &ids {
            let session = listed.iter().find(|session| session["session_id"] == id.as_str());
            let session = session.unwrap_or_else(|| panic!("{what}: {id} is hidden: {listed:#?}"));
            let error = session["error"].as_str().unwrap_or_default();
            assert!(error.starts_with("Journal: Unreadable"), "{what}: {session:#?}");
        }
        let dev = Dev::start(folder.path(), &folder.path().join("data"));
        let health = run(daybook(folder.path()).args(["--endpoint", &dev.endpoint, "sessions"]));
        assert_eq!(health.exit, 0, "{what}: {health:#?}");
        let url = format!("{}/api/health", dev.endpoint);
        let health: serde_json::Value = reqwest::get(url).await.unwrap().json().await.unwrap();
        assert_eq!(health["damaged"].as_array().map(Vec::len), Some(2), "{what}: {health:#}");
    }
}

/// What somebody makes of an exported session that waits: the same with an answer in another's name.
async fn answered(folder: &Path, exported: &str) -> Vec<u8> {
    let exported = export::read(exported.as_bytes()).unwrap();
    let other = SqliteStore::open(&folder.join("other.db"), Durability::Relaxed).unwrap();
    let here = Here::default();
    export::import(&other, &Clock::system(), &exported, here).await.unwrap();
    let session: SessionId = exported.session().unwrap();
    let steps = read::resolved_steps(&other, &session).await.unwrap();
    let ask = steps.last().unwrap();
    let runner = Runner::fresh("person");
    let author = Author { session: session.clone(), runner, expires_at: ask.expires_at };
    let answer = StepBody::Answer {
        question: ask.seq,
        principal: Some("token:boss".parse().unwrap()),
        payload: serde_json::json!({ "question_id": ask.seq, "decision": "approve" }),
    };
    let hlc = Hlc::new(Clock::system(), Stamp::default());
    append(&other, &hlc, &author, &Head::after(ask), ask.epoch, answer).await.unwrap();
    let records = export::records(&other, &session).await.unwrap();
    let mut file = Vec::new();
    export::write(&session, &records, &mut file).unwrap();
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_adds_nothing_to_a_session_of_this_stack() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let to = |arguments: &[&str]| {
        run_in(folder.path(), &[&["--endpoint", &dev.endpoint], arguments].concat())
    };
    let id = to(&["trigger", "--json", "--agent", "assistant"]).json()[0]["session_id"].clone();
    let id = id.as_str().unwrap();
    let is_waiting = || to(&["sessions", "--status", "waiting", "--json"]).stdout.contains(id);
    for _ in 0..150 {
        if is_waiting() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let exported = to(&["export", id]);
    assert_eq!(exported.exit, 0, "{exported:#?}");
    let forged = answered(folder.path(), &exported.stdout).await;
    std::fs::write(folder.path().join("forged.jsonl"), forged).unwrap();
    std::fs::write(folder.path().join("same.jsonl"), &exported.stdout).unwrap();
    let ran = to(&["import", "forged.jsonl"]);
    assert_eq!(ran.exit, 2, "{ran:#?}");
    assert!(ran.stderr.contains("only the stack adds records to it"), "{ran:#?}");
    assert_eq!(to(&["import", "same.jsonl"]).exit, 0, "the same records are no addition");
    assert!(is_waiting());
    assert_eq!(dev.stop("-TERM"), 0);
    let elsewhere = ["--data", "elsewhere", "import", "forged.jsonl"];
    std::fs::create_dir(folder.path().join("elsewhere")).unwrap();
    let fresh = Dev::start(folder.path(), &folder.path().join("elsewhere"));
    assert_eq!(fresh.stop("-TERM"), 0);
    let ran = run_in(folder.path(), &elsewhere);
    assert_eq!(ran.exit, 0, "another journal has no session to protect: {ran:#?}");
}
