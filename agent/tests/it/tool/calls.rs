//! The results of calls.

use std::path::Path;
use std::time::Duration;

use agent::tool::answer::EMPTY_RESPONSE;
use graph::effect::ToolCall;
use graph::outcome::{FailureKind, ToolOutcome};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::fixture::{Bench, DEADLINE, NAME, PATIENT, SECRET, error, failed, is_alive, until};

#[tokio::test]
async fn a_result_is_what_the_server_sent() {
    let bench = Bench::new("ok");
    let arguments = json!({"a": [1, {"b": null}]});
    assert_eq!(bench.call("echo", arguments.clone()).await, ToolOutcome::Ok(arguments));
    for (text, expected) in [("plain", json!("plain")), ("{\"a\": 1}", json!({"a": 1}))] {
        let outcome = bench.call("text", json!({ "text": text })).await;
        assert_eq!(outcome, ToolOutcome::Ok(expected));
    }
    assert_eq!(bench.started().len(), 1, "a server is kept");
}

#[tokio::test]
async fn an_invalid_result_is_an_error_and_never_data() {
    let bench = Bench::new("ok");
    assert_eq!(error(bench.call("empty", json!({})).await), EMPTY_RESPONSE);
    assert_eq!(error(bench.call("fails", json!({})).await), "access denied for ***");
    let large = error(bench.call("large", json!({})).await);
    assert!(large.contains("too large: 10000002 bytes"), "{large}");
    let odd = error(bench.call("odd", json!({})).await);
    assert!(odd.contains("invalid tool result") && !odd.contains("world"), "{odd}");
    let busy = error(bench.call("busy", json!({})).await);
    assert!(busy.contains("the database is down"), "{busy}");
    let broken = error(bench.call("strict", json!({"n": 0})).await);
    assert!(broken.contains("breaks its schema: /n: ") && !broken.contains("zero"), "{broken}");
    assert_eq!(bench.call("strict", json!({"n": 1})).await, ToolOutcome::Ok(json!({"n": 1})));
}

#[tokio::test]
async fn a_call_with_wrong_arguments_never_reaches_the_server() {
    let bench = Bench::new("ok");
    for arguments in [json!({}), json!({"n": "1"}), json!({"n": 1, "m": 2}), json!([]), json!(null)]
    {
        let text = error(bench.call("strict", arguments).await);
        assert!(text.contains("arguments of `strict`"), "{text}");
    }
    failed(bench.call("invented", json!({})).await, FailureKind::Refused, "unknown");
    let outcome = bench.call("reaching", json!({})).await;
    let message = failed(outcome, FailureKind::Refused, "unknown");
    assert!(message.contains("input schema cannot be used"), "{message}");
    assert_eq!(bench.logged("call"), [""; 0]);
    bench.call("strict", json!({"n": 1})).await;
    assert_eq!(bench.logged("call"), ["strict"]);
}

#[tokio::test]
async fn calls_of_one_server_run_concurrently() {
    let bench = Bench::new("ok");
    bench.call("echo", json!({})).await;
    let begun = Instant::now();
    let calls = (0..8).map(|_| bench.call("slow", json!({})));
    for outcome in futures_util::future::join_all(calls).await {
        assert_eq!(outcome, ToolOutcome::Ok(json!({"slept": true})));
    }
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(bench.started().len(), 1);
}

#[tokio::test]
async fn a_server_that_dies_during_a_call_is_restarted() {
    let bench = Bench::new("ok");
    let message =
        failed(bench.call("dies", json!({})).await, FailureKind::Unknown, "mcp_connection");
    for part in ["exit status: 9", "my secret is ***", "is not known"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(bench.call("echo", json!({})).await, ToolOutcome::Ok(json!({})));
    assert_eq!(bench.started().len(), 2);
}

#[tokio::test]
async fn a_message_that_is_too_long_ends_the_connection() {
    let bench = Bench::new("ok");
    let message =
        failed(bench.call("huge", json!({})).await, FailureKind::Unknown, "mcp_connection");
    assert!(message.contains("a message of more than"), "{message}");
    assert_eq!(bench.call("echo", json!({})).await, ToolOutcome::Ok(json!({})));
    let started = bench.started();
    until("the first server is gone", || !is_alive(started[0])).await;
}

#[tokio::test]
async fn a_call_that_times_out_is_cancelled_on_the_server() {
    let bench = Bench::new("ok");
    bench.call("echo", json!({})).await;
    let within = Duration::from_millis(300);
    let begun = Instant::now();
    let outcome = bench.call_within("hangs", json!({}), within).await;
    assert!(begun.elapsed() >= within && begun.elapsed() < Duration::from_secs(2));
    let message = failed(outcome, FailureKind::Unknown, "mcp_connection");
    assert!(message.contains("did not answer `hangs` within 0.3 s"), "{message}");
    until("the call is cancelled", || !bench.logged("cancelled").is_empty()).await;
    // The server still answers other requests, so the connection stays.
    assert_eq!(bench.call("echo", json!({})).await, ToolOutcome::Ok(json!({})));
    assert_eq!(bench.started().len(), 1);
}

#[tokio::test]
async fn a_server_that_freezes_is_replaced() {
    let bench = Bench::new("ok");
    let outcome = bench.call_within("freezes", json!({}), Duration::from_millis(300)).await;
    failed(outcome, FailureKind::Unknown, "mcp_connection");
    assert_eq!(bench.call("echo", json!({})).await, ToolOutcome::Ok(json!({})));
    let started = bench.started();
    assert_eq!(started.len(), 2);
    assert!(!is_alive(started[0]));
}

#[tokio::test]
async fn a_server_process_gets_only_the_configured_environment() {
    let bench = Bench::new("ok");
    let ToolOutcome::Ok(content) = bench.call("env", json!({})).await else { panic!("a list") };
    let mut names: Vec<_> =
        content["names"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    names.sort_unstable();
    // The test harness may set its own variables for the server process.
    names.retain(|name| !name.starts_with("RUST"));
    assert_eq!(names, ["FIXTURE_LOG", "FIXTURE_MODE", "FIXTURE_SECRET", "HOME"]);
}

#[tokio::test]
async fn no_secret_shows() {
    let bench = Bench::new("ok");
    bench.call("echo", json!({})).await;
    let shown = format!("{:#?}", bench.toolbox);
    assert!(shown.contains(NAME) && !shown.contains(SECRET), "{shown}");
}

#[tokio::test]
async fn the_shipped_server_works_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let incidents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packs/incident/incidents");
    let folder = incidents.join("s3-permission-revoked");
    let file = json!({"mcpServers": {NAME: {
        "command": std::env::current_exe().unwrap(),
        "args": ["tool::fixture::fixture_server", "--exact", "--nocapture"],
        "env": {"FIXTURE_MODE": "aws-diagnostics", "FIXTURE_LOG": dir.path().join("log"),
            "FIXTURE_FOLDER": folder},
    }}});
    let servers = agent::tool::Servers::parse(&file.to_string(), |_| None).unwrap();
    let bench = Bench::of(dir, servers, PATIENT);
    let functions = std::fs::read_dir(folder.join("functions")).unwrap();
    let function = functions.map(|entry| entry.unwrap().file_name()).next().unwrap();
    let arguments = json!({"lambda_name": function.to_str().unwrap()});
    for tool in aws_diagnostics::INFO.tools {
        let outcome = bench.call(tool, arguments.clone()).await;
        assert!(matches!(outcome, ToolOutcome::Ok(Value::Object(_))), "{tool}: {outcome:?}");
    }
    error(bench.call("get_iam_state", json!({"lambda_name": ""})).await);
    error(bench.call("get_iam_state", json!({"lambda_name": "no-such-function"})).await);
    bench.toolbox.close().await;
    until("the server is gone", || !bench.started().into_iter().any(is_alive)).await;
}

#[tokio::test]
async fn an_approved_call_of_a_changed_tool_is_not_made() {
    for (mode, is_made) in [("works", true), ("changes", false)] {
        let bench = Bench::new(mode);
        let call = ToolCall::new(NAME, "echo", json!({"a": 1}));
        let shown = bench.toolbox.offer(&call, DEADLINE).await.unwrap().schema_hash;
        let outcome = bench.toolbox.call_approved(None, &call, shown.as_str(), DEADLINE).await;
        assert_eq!(bench.logged("call").len(), usize::from(is_made), "{outcome:?}");
        if is_made {
            assert_eq!(outcome, ToolOutcome::Ok(json!({"a": 1})));
            continue;
        }
        let ToolOutcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        assert_eq!(
            (failure.kind, failure.category.as_str()),
            (FailureKind::Refused, "tool_changed")
        );
        assert!(failure.message.contains(shown.as_str()), "{failure}");
        assert!(failure.message.contains("the server now offers"), "{failure}");
    }
    let bench = Bench::new("works");
    let gone = ToolCall::new(NAME, "gone", json!({}));
    let outcome = bench.toolbox.call_approved(None, &gone, "ab", DEADLINE).await;
    let ToolOutcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert!(failure.message.contains("has no tool `gone`"), "{failure}");
}
