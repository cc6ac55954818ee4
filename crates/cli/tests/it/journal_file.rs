//! Commands that read a journal, over a fixed one.

use std::path::Path;
use std::time::Duration;

use journal::clock::Clock;
use serde_json::Value;

use crate::fixture::{self, FAILED, SUCCEEDED, WAITING};
use crate::harness::{Ran, free_endpoint, run_in};

/// A folder with the fixed journal in `data`.
async fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fixture::write(&folder.path().join("data"), fixture::began()).await;
    folder
}

/// The same journal, begun a minute ago.
async fn recent_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let began = Clock::system().now().before(Duration::from_secs(60));
    fixture::write(&folder.path().join("data"), began).await;
    folder
}

/// Runs a command over the journal without a stack.
fn over(folder: &Path, arguments: &[&str]) -> Ran {
    let endpoint = free_endpoint();
    let before = ["--endpoint", &endpoint, "--data", "data"];
    run_in(folder, &[&before[..], arguments].concat())
}

fn shown(ran: &Ran) -> &str {
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{ran:#?}");
    let hostile = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!ran.stdout.contains(hostile), "a terminal would obey this: {:?}", ran.stdout);
    let widest = ran.stdout.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(widest <= 80, "{widest} columns: {}", ran.stdout);
    &ran.stdout
}

#[tokio::test]
async fn a_session_is_shown_with_its_steps_and_its_diagnosis() {
    let folder = folder().await;
    insta::assert_snapshot!(shown(&over(folder.path(), &["show", SUCCEEDED, "--steps", "--cost"])));
}

#[tokio::test]
async fn a_failure_is_shown_once_and_in_full() {
    let folder = folder().await;
    insta::assert_snapshot!(shown(&over(folder.path(), &["show", FAILED, "--steps"])));
}

#[tokio::test]
async fn sessions_are_compared_with_the_first_difference_marked() {
    let folder = folder().await;
    let ran = over(folder.path(), &["compare", SUCCEEDED, FAILED, SUCCEEDED]);
    let text = shown(&ran);
    for said in ["A  0190a5c4", "B  11f2c3d4", "different paths", "the same path"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let ran = over(folder.path(), &["--json", "compare", SUCCEEDED, SUCCEEDED]);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(found["comparison"]["first_difference"], Value::Null, "{found}");
}

#[tokio::test]
async fn a_page_is_not_opened_where_no_stack_serves_it() {
    let folder = folder().await;
    let ran = over(folder.path(), &["open", SUCCEEDED]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (2, ""), "{ran:#?}");
    assert!(ran.stderr.contains("daybook dev"), "{}", ran.stderr);
}

/// It began at a fixed time, so how long it has been waiting is cut out.
#[tokio::test]
async fn an_open_question_is_shown_with_its_context() {
    let folder = folder().await;
    let ran = over(folder.path(), &["show", WAITING, "--payloads"]);
    let lines: Vec<_> = shown(&ran)
        .lines()
        .map(|line| match line.trim_start() {
            line if line.starts_with("‖ WAITING") => "‖ WAITING …",
            line if line.starts_with('├') => "├ … ┤",
            line if line.starts_with("‖ has been waiting") => "‖ has been waiting …",
            _ => line,
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[tokio::test]
async fn the_json_of_a_session_is_stable() {
    let folder = folder().await;
    let ran = over(folder.path(), &["show", SUCCEEDED, "--steps", "--json"]);
    assert!(!ran.stdout.contains(|c: char| c.is_control() && c != '\n'));
    insta::assert_json_snapshot!(ran.json());
    let failed = over(folder.path(), &["show", FAILED, "--json"]).json().remove(0);
    assert_eq!(failed["status"], "FAILED");
    assert_eq!(failed["error_category"], "mcp_connection");
    assert_eq!(failed["incident_state"], "ERROR");
    assert_eq!(failed["result"], Value::Null);
    let waiting = over(folder.path(), &["show", WAITING, "--json"]).json().remove(0);
    assert_eq!(waiting["status"], "WAITING");
    assert_eq!(waiting.get("incident_state"), None, "it is no incident");
    insta::assert_json_snapshot!(waiting["open_question"]);
}

#[tokio::test]
async fn a_session_is_found_by_its_id_prefix() {
    let folder = recent_folder().await;
    let whole = over(folder.path(), &["show", SUCCEEDED, "--json"]);
    assert_eq!(over(folder.path(), &["show", &SUCCEEDED[..8], "--json"]).stdout, whole.stdout);
    let absent = over(folder.path(), &["show", "abcdef"]);
    assert_eq!(absent.exit, 2);
    assert!(absent.stderr.contains("no session `abcdef`"), "{}", absent.stderr);
    assert_eq!(over(folder.path(), &["show", "abc"]).exit, 64, "too short to mean one");
    assert_eq!(over(folder.path(), &["show", "../../etc"]).exit, 64);
}

#[tokio::test]
async fn tail_of_an_ended_session_exits_with_its_result() {
    let folder = folder().await;
    let succeeded = over(folder.path(), &["tail", SUCCEEDED]);
    assert_eq!(succeeded.exit, 0, "{succeeded:#?}");
    assert!(succeeded.stdout.contains("✓ SUCCEEDED") && succeeded.stdout.contains("Root cause"));
    let failed = over(folder.path(), &["tail", FAILED, "--json"]);
    assert_eq!(failed.exit, 1, "{failed:#?}");
    let lines = failed.json();
    assert_eq!(lines.last().unwrap()["type"], "session");
    assert!(lines[..lines.len() - 1].iter().all(|line| line["type"] == "event"));
    let waiting = over(folder.path(), &["tail", WAITING]);
    assert_eq!(waiting.exit, 2, "{waiting:#?}");
    assert!(waiting.stdout.contains("Question #3"), "{}", waiting.stdout);
    assert!(waiting.stderr.contains("hint: the session waits"), "{}", waiting.stderr);
}

#[tokio::test]
async fn answering_requires_a_running_stack() {
    let folder = folder().await;
    let ran = over(folder.path(), &["answer", WAITING, "--approve"]);
    assert_eq!(ran.exit, 2);
    assert!(ran.stderr.contains("nothing listens"), "{}", ran.stderr);
    let ran = over(folder.path(), &["answer", FAILED, "--approve"]);
    assert!(ran.stderr.contains("no question is open"), "{}", ran.stderr);
}

#[tokio::test]
async fn a_session_survives_export_and_import() {
    let folder = folder().await;
    for id in [SUCCEEDED, FAILED, WAITING] {
        let exported = over(folder.path(), &["export", id]);
        let lines = exported.json();
        let (witness, records) = lines.split_last().unwrap();
        assert_eq!(witness["witness"]["session_id"], id);
        assert!(records.iter().all(|line| line["hash"].as_str().unwrap().len() == 64));
        std::fs::write(folder.path().join("session.jsonl"), &exported.stdout).unwrap();
        let elsewhere = ["--endpoint", "http://127.0.0.1:9", "--data", "elsewhere"];
        let import = || {
            run_in(
                folder.path(),
                &[&elsewhere[..], &["import", "session.jsonl", "--json"]].concat(),
            )
        };
        let first = import().json()[0].clone();
        assert_eq!(first["written"], records.len());
        let state = if id == WAITING { "open" } else { "sealed" };
        assert_eq!((&first["state"], &first["outcome"]), (&state.into(), &"sound".into()));
        assert_eq!(import().json()[0]["present"], records.len(), "importing again changes nothing");
        let again = run_in(folder.path(), &[&elsewhere[..], &["export", id]].concat());
        assert_eq!(again.stdout, exported.stdout);
    }
}

#[tokio::test]
async fn verifying_names_what_was_changed() {
    let folder = folder().await;
    let sound = over(folder.path(), &["verify", SUCCEEDED, "--json"]);
    let report = &sound.json()[0];
    assert_eq!((sound.exit, report["state"].as_str()), (0, Some("sealed")));
    let head = report["head"].as_str().unwrap();
    assert_eq!(over(folder.path(), &["verify", SUCCEEDED, "--head", head]).exit, 0);
    let other = over(folder.path(), &["verify", SUCCEEDED, "--head", &"0".repeat(64)]);
    assert_eq!(other.exit, 1, "{other:#?}");
    assert!(other.stdout.contains("✗ damaged"), "{}", other.stdout);
    assert!(over(folder.path(), &["verify", WAITING]).stdout.contains("open, tail unprotected"));

    let exported = over(folder.path(), &["export", SUCCEEDED]).stdout;
    let file = folder.path().join("tampered.jsonl");
    let lines: Vec<_> = exported.lines().collect();
    let tampered =
        lines.iter().map(|line| line.replace("\"invoker\"", "\"inv0ker\"")).collect::<Vec<_>>();
    let without = [&lines[..3], &lines[4..]].concat();
    for (text, named) in [(tampered.join("\n"), "was changed"), (without.join("\n"), "removed")] {
        std::fs::write(&file, text).unwrap();
        let ran = over(folder.path(), &["verify", "--file", "tampered.jsonl"]);
        assert_eq!(ran.exit, 1, "{ran:#?}");
        assert!(ran.stdout.contains(named), "{}", ran.stdout);
        let ran = over(folder.path(), &["--json", "import", "tampered.jsonl"]);
        assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""), "{ran:#?}");
        let elsewhere = ["--endpoint", &free_endpoint(), "--data", "other"];
        let ran = run_in(folder.path(), &[&elsewhere[..], &["import", "tampered.jsonl"]].concat());
        assert_eq!(ran.exit, 1, "{ran:#?}");
        assert!(ran.stderr.contains(named), "{}", ran.stderr);
        assert!(!folder.path().join("other").exists(), "nothing is written");
    }
}

#[tokio::test]
async fn sessions_are_filtered() {
    let folder = recent_folder().await;
    let ids = |arguments: &[&str]| -> Vec<String> {
        let ran = over(folder.path(), &[&["sessions", "--json"], arguments].concat());
        assert_eq!(ran.exit, 0, "{ran:#?}");
        ran.json().iter().map(|line| line["session_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&[]), [WAITING, FAILED, SUCCEEDED]);
    assert_eq!(ids(&["--limit", "1"]), [WAITING]);
    assert_eq!(ids(&["--status", "failed"]), [FAILED]);
    assert_eq!(ids(&["--agent", "incident"]), [FAILED, SUCCEEDED]);
    assert!(ids(&["--agent", "nobody"]).is_empty());
    assert!(ids(&["--since", "1s"]).is_empty());
    let listed = over(folder.path(), &["sessions"]);
    let stood_in = "answered in part by the policy: openai:m failed (bedrock_transient)";
    assert!(listed.stdout.contains(stood_in), "{}", listed.stdout);
    let tailed = over(folder.path(), &["tail", SUCCEEDED]);
    assert!(tailed.stdout.contains(stood_in), "{tailed:#?}");
    let heading = listed.stdout.lines().next().unwrap();
    assert_eq!(heading.split_whitespace().count(), 5, "{heading}");
    assert!(shown(&listed).contains(WAITING));
}

#[tokio::test]
async fn stamps_far_ahead_of_this_clock_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let began = Clock::system().now().after(Duration::from_secs(3_600));
    fixture::write(&folder.path().join("data"), began).await;
    let ran = over(folder.path(), &["show", SUCCEEDED]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    assert!(ran.stderr.contains("ahead of this machine's clock"), "{ran:#?}");
}
