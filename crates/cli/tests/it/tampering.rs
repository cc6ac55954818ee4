//! Attacks on a journal file: no verification calls it sound, and a damaged session hides no other.

use std::path::Path;

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
    let ids = [end(&[]), end(&["--agent", "nobody"])];
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
