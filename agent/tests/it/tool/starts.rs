//! Servers that cannot be started or used: the failure and its time.

use std::time::Duration;

use agent::tool::catalogue::TOOLS_MAX;
use agent::tool::connection::STARTS_AT_ONCE;
use agent::tool::holder::STARTS_MAX;
use agent::tool::{Servers, Timeouts, offer};
use graph::effect::{CATALOGUE, ToolCall, ToolSpec};
use graph::outcome::{FailureKind, ToolOutcome};
use journal::clock::Clock;
use serde_json::json;
use tokio::time::Instant;

use super::fixture::{Bench, DEADLINE, NAME, PATIENT, failed, is_alive, logged, servers, until};

/// Short, but long enough for a server to start on a loaded machine.
const BRIEF: Timeouts = Timeouts { connect: Duration::from_secs(10), init: Duration::from_secs(3) };

#[tokio::test]
async fn a_silent_server_fails_at_the_deadline() {
    let modes = ["silent", "babbles", "silent-about-tools"];
    let given_up = modes.map(async |mode| {
        let bench = Bench::with(mode, BRIEF);
        let begun = Instant::now();
        let outcome = bench.call("echo", json!({})).await;
        assert!(begun.elapsed() < BRIEF.init + Duration::from_secs(8), "{mode}");
        let message = failed(outcome, FailureKind::NotSent, "mcp_connection");
        assert!(message.contains("did not finish the handshake within 3 s"), "{message}");
        assert_eq!(message.contains("`Listening on port 8080`"), mode == "babbles", "{message}");
        until("the server is killed", || !bench.started().into_iter().any(is_alive)).await;
    });
    futures_util::future::join_all(given_up).await;
}

#[tokio::test]
async fn only_so_many_servers_start_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let script = r#"echo "start $$" >>"$0"; exec sleep 300"#;
    let file = json!({"mcpServers": {NAME: {"command": "sh", "args": ["-c", script, log]}}});
    let servers = Servers::parse(&file.to_string(), |_| None).unwrap();
    let timeouts = Timeouts { init: Duration::from_millis(500), ..BRIEF };
    let calls = (0..STARTS_AT_ONCE + 8).map(async |_| {
        let bench = Bench::of(tempfile::tempdir().unwrap(), servers.clone(), timeouts);
        failed(bench.call("echo", json!({})).await, FailureKind::NotSent, "mcp_connection");
    });
    let calls = futures_util::future::join_all(calls);
    tokio::pin!(calls);
    let mut most = 0;
    loop {
        tokio::select! {
            _ = &mut calls => break,
            () = tokio::time::sleep(Duration::from_millis(50)) => {
                let started = logged(&log, "start");
                let alive = started.iter().filter(|pid| is_alive(pid.parse().unwrap())).count();
                most = most.max(alive);
            }
        }
    }
    assert!((2..=STARTS_AT_ONCE).contains(&most), "{most}");
    let started = logged(&log, "start").len();
    assert_eq!(started, STARTS_AT_ONCE + 8);
}

#[tokio::test]
async fn stderr_of_a_server_is_quoted_without_secrets() {
    let bench = Bench::new("exits");
    let outcome = bench.call("echo", json!({})).await;
    let message = failed(outcome, FailureKind::NotSent, "mcp_connection");
    for part in [
        "`fixture`",
        "exit status: 3",
        "cannot open the folder; my secret is ***",
        "daybook tools fixture",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[tokio::test]
async fn a_server_that_dies_in_the_handshake_fails_the_connection() {
    let outcome = Bench::new("dies-in-handshake").call("echo", json!({})).await;
    failed(outcome, FailureKind::NotSent, "mcp_connection");
}

#[tokio::test]
async fn a_server_that_answers_wrongly_fails_the_handshake() {
    for (mode, why) in [
        ("refuses", "no licence"),
        ("misunderstands", "handshake"),
        ("lists-for-ever", "on more than 32 pages"),
    ] {
        let outcome = Bench::new(mode).call("echo", json!({})).await;
        let message = failed(outcome, FailureKind::NotSent, "mcp_init");
        assert!(message.contains(why), "{message}");
    }
}

#[tokio::test]
async fn a_missing_command_fails_the_connection() {
    let file = json!({"mcpServers": {NAME: {"command": "/nonexistent/server"}}});
    let servers = Servers::parse(&file.to_string(), |_| None).unwrap();
    let bench = Bench::of(tempfile::tempdir().unwrap(), servers, PATIENT);
    let outcome = bench.call("echo", json!({})).await;
    let message = failed(outcome, FailureKind::NotSent, "mcp_connection");
    assert!(message.contains("check its command; its command: /nonexistent/server"), "{message}");
}

#[tokio::test]
async fn a_server_that_is_not_configured_is_refused() {
    let bench = Bench::new("ok");
    let call = ToolCall::new("elsewhere", "echo", json!({}));
    let outcome = bench.toolbox.call(&call, DEADLINE).await;
    let message = failed(outcome, FailureKind::Refused, "mcp_connection");
    assert!(message.contains("known servers: fixture"), "{message}");
    assert!(bench.started().is_empty(), "a server is started at its first use");
}

#[tokio::test]
async fn restarts_of_a_server_are_bounded() {
    let bench = Bench::new("exits");
    for _ in 0..STARTS_MAX {
        let outcome = bench.call("echo", json!({})).await;
        failed(outcome, FailureKind::NotSent, "mcp_connection");
    }
    let outcome = bench.call("echo", json!({})).await;
    failed(outcome, FailureKind::Refused, "mcp_connection");
    assert_eq!(bench.started().len(), STARTS_MAX as usize);
}

#[tokio::test]
async fn calls_waiting_for_the_same_start_share_its_failure() {
    let bench = Bench::new("exits");
    let calls = (0..4).map(|_| bench.call("echo", json!({})));
    for outcome in futures_util::future::join_all(calls).await {
        failed(outcome, FailureKind::NotSent, "mcp_connection");
    }
    assert_eq!(bench.started().len(), 1);
}

#[tokio::test]
async fn a_server_lists_its_tools_over_several_pages() {
    let bench = Bench::new("ok");
    let ToolOutcome::Ok(content) = bench.call(CATALOGUE, json!({})).await else {
        panic!("a list");
    };
    let tools = ToolSpec::catalogue(&content);
    assert!(tools.len() == 14 && tools.len() < TOOLS_MAX, "{content}");
    assert!(tools.iter().all(|tool| tool.server.as_deref() == Some(NAME)));
    assert_eq!(tools[13].name, "strict");
    assert_eq!(tools[13].input_schema["required"], json!(["n"]));
    assert_eq!(content["unusable"][0]["name"], "reaching");
}

#[tokio::test]
async fn a_server_without_tools_has_an_empty_list() {
    let bench = Bench::new("lists-nothing");
    assert_eq!(bench.call(CATALOGUE, json!({})).await, ToolOutcome::Ok(json!({"tools": []})));
}

#[tokio::test]
async fn a_server_s_tools_can_be_listed_outside_a_session() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let servers = servers("ok", &log);
    let ask = |name: &'static str| {
        let servers = &servers;
        async move { offer(servers, name, &json!({}), PATIENT, &Clock::system()).await }
    };
    let ToolOutcome::Ok(content) = ask(NAME).await else { panic!("a list") };
    assert_eq!(ToolSpec::catalogue(&content).len(), 14);
    assert_eq!(logged(&log, "stop").len(), 1);
    failed(ask("elsewhere").await, FailureKind::Refused, "mcp_connection");
}
