//! Servers do not outlive the process that started them.

use std::process::{Command, Stdio};

use graph::outcome::{FailureKind, ToolOutcome};
use serde_json::json;

use super::fixture::{Bench, failed, is_alive, logged, until};

#[tokio::test]
async fn closing_lets_a_server_exit_by_itself() {
    let bench = Bench::new("ok");
    bench.call("echo", json!({})).await;
    bench.toolbox.close().await;
    assert_eq!(bench.logged("stop").len(), 1);
    assert!(!is_alive(bench.started()[0]));
    let outcome = bench.call("echo", json!({})).await;
    failed(outcome, FailureKind::NotSent, "mcp_connection");
    assert_eq!(bench.started().len(), 1);
}

#[tokio::test]
async fn closing_kills_a_server_that_does_not_exit() {
    let bench = Bench::new("stubborn");
    bench.call("echo", json!({})).await;
    bench.toolbox.close().await;
    assert!(!is_alive(bench.started()[0]));
}

#[tokio::test]
async fn dropping_the_toolbox_kills_its_servers() {
    let bench = Bench::new("stubborn");
    bench.call("echo", json!({})).await;
    let started = bench.started();
    drop(bench);
    until("the server is gone", || !is_alive(started[0])).await;
}

#[tokio::test]
async fn an_abandoned_start_leaves_no_server_behind() {
    let bench = Bench::new("silent");
    tokio::select! {
        outcome = bench.call("echo", json!({})) => panic!("{outcome:?}"),
        () = until("the server has started", || !bench.started().is_empty()) => {}
    }
    until("the server is gone", || !is_alive(bench.started()[0])).await;
}

/// After `kill -9` of an agent its servers die too, even those that ignore their closed stdin.
#[tokio::test]
async fn a_server_dies_with_a_killed_agent() {
    let dir = tempfile::tempdir().unwrap();
    let mut agent = Command::new(std::env::current_exe().unwrap())
        .args(["tool::fixture::fixture_server", "--exact", "--nocapture"])
        .env("FIXTURE_MODE", "parent")
        .env("FIXTURE_LOG", dir.path().join("log"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let log = dir.path().join("child");
    until("the agent has called its server", || !logged(&log, "ready").is_empty()).await;
    let server: u32 = logged(&log, "start")[0].parse().unwrap();
    assert!(is_alive(server));
    agent.kill().unwrap();
    agent.wait().unwrap();
    until("the server is gone", || !is_alive(server)).await;
}

#[tokio::test]
async fn the_children_of_a_server_are_killed_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let script = format!("sleep 600 & echo $! > {}; wait", pid.display());
    let file = json!({"mcpServers": {"fixture": {"command": "/bin/sh", "args": ["-c", script]}}});
    let servers = agent::tool::Servers::parse(&file.to_string(), |_| None).unwrap();
    let brief = std::time::Duration::from_secs(3);
    let timeouts = agent::tool::Timeouts { connect: brief, init: brief };
    let bench = Bench::of(dir, servers, timeouts);
    let outcome = bench.call("echo", json!({})).await;
    assert!(matches!(outcome, ToolOutcome::Failed(_)), "{outcome:?}");
    let grandchild: u32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    until("what it started is gone", || !is_alive(grandchild)).await;
}
