//! Servers that several sessions share.

use agent::tool::holder::STARTS_MAX;
use agent::tool::{CATEGORY_CONNECTION, Servers};
use graph::outcome::{FailureKind, ToolOutcome};
use serde_json::json;

use super::fixture::{Bench, PATIENT, failed, is_alive, logged, servers_with};

struct Shared {
    dir: tempfile::TempDir,
    servers: Servers,
}

impl Shared {
    fn new(shared: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let servers = servers_with("", &dir.path().join("log"), shared);
        Self { dir, servers }
    }

    fn session(&self) -> Bench {
        Bench::of(tempfile::tempdir().unwrap(), self.servers.clone(), PATIENT)
    }

    fn started(&self) -> Vec<u32> {
        let pids = logged(&self.dir.path().join("log"), "start");
        pids.iter().map(|pid| pid.parse().unwrap()).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_share_a_server_that_says_so() {
    let shared = Shared::new(true);
    let sessions: Vec<Bench> = (0..10).map(|_| shared.session()).collect();
    let calls = sessions.iter().enumerate().map(async |(n, session)| {
        let echoed = session.call("echo", json!({ "n": n })).await;
        assert_eq!(echoed, ToolOutcome::Ok(json!({ "n": n })));
    });
    futures_util::future::join_all(calls).await;
    assert_eq!(shared.started().len(), 1);
    // Closing one session, or all of them, does not stop the server for the next.
    futures_util::future::join_all(sessions.iter().map(|session| session.toolbox.close())).await;
    let next = shared.session();
    assert_eq!(next.call("echo", json!({})).await, ToolOutcome::Ok(json!({})));
    assert_eq!(shared.started().len(), 1);
    let closed = sessions[0].call("echo", json!({})).await;
    failed(closed, FailureKind::NotSent, CATEGORY_CONNECTION);
    // With the configuration goes the server.
    let pid = shared.started()[0];
    drop((shared.servers, sessions, next));
    super::fixture::until("the server ends", || !is_alive(pid)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_shared_only_if_it_says_so() {
    let own = Shared::new(false);
    for session in [own.session(), own.session()] {
        assert_eq!(session.call("echo", json!({})).await, ToolOutcome::Ok(json!({})));
    }
    assert_eq!(own.started().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_breaks_a_shared_server_is_stopped_alone() {
    let shared = Shared::new(true);
    let (breaking, other) = (shared.session(), shared.session());
    for _ in 0..STARTS_MAX {
        failed(breaking.call("dies", json!({})).await, FailureKind::Unknown, CATEGORY_CONNECTION);
    }
    failed(breaking.call("dies", json!({})).await, FailureKind::Refused, CATEGORY_CONNECTION);
    assert_eq!(other.call("echo", json!({})).await, ToolOutcome::Ok(json!({})));
    assert_eq!(shared.started().len(), STARTS_MAX as usize + 1);
}
