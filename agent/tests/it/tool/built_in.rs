//! The built-in tools, and the conformance of every source of tools.

use std::time::Duration;

use agent::model::Models;
use agent::progress::Broadcast;
use agent::tool::{BUILT_IN_SERVER, Servers, Toolbox};
use graph::effect::{CATALOGUE, ToolCall, ToolSpec};
use graph::outcome::{FailureKind, ToolOutcome};
use journal::announce::Announcer;
use journal::clock::{Clock, Hlc};
use journal::event::{About, Draft, EventStatus, Writer};
use journal::sqlite::SqliteStore;
use journal::store::{Query, query_all};
use serde_json::{Value, json};

use super::fixture::{Bench, DEADLINE, NAME, PATIENT, error, failed, servers, session};

async fn call(toolbox: &Toolbox<SqliteStore>, tool: &str, arguments: Value) -> ToolOutcome {
    toolbox.call(&ToolCall::built_in(tool, arguments), DEADLINE).await
}

/// The conformance checks of a source of tools.
async fn conforms(toolbox: &Toolbox<SqliteStore>, server: &str, tool: &str) {
    let ask = |tool: &str, arguments: Value| {
        let call = ToolCall::new(server, tool, arguments);
        async move { toolbox.call(&call, DEADLINE).await }
    };
    let ToolOutcome::Ok(content) = ask(CATALOGUE, json!({})).await else { panic!("a list") };
    let specs = ToolSpec::catalogue(&content);
    assert_eq!(specs.len(), content["tools"].as_array().unwrap().len());
    assert!(specs.iter().any(|spec| spec.name == tool));
    assert!(specs.iter().all(|spec| spec.server.as_deref() == Some(server)));
    assert!(specs.iter().all(|spec| spec.input_schema["type"] == "object"));
    let message = failed(ask("invented", json!({})).await, FailureKind::Refused, "unknown");
    assert!(message.contains("`invented`") && message.contains(tool), "{message}");
    assert!(error(ask(tool, json!("no object")).await).contains("nothing was called"));
    assert!(matches!(ask(tool, json!({})).await, ToolOutcome::Ok(_)));
    let at_once = (0..4).map(|_| ask(tool, json!({})));
    for outcome in futures_util::future::join_all(at_once).await {
        assert!(matches!(outcome, ToolOutcome::Ok(_)), "{outcome:?}");
    }
}

#[tokio::test]
async fn every_source_of_tools_conforms() {
    let bench = Bench::new("ok");
    conforms(&bench.toolbox, NAME, "echo").await;
    conforms(&bench.toolbox, BUILT_IN_SERVER, "journal_probe").await;
}

#[tokio::test]
async fn the_configured_servers_exclude_the_bundled_one() {
    let dir = tempfile::tempdir().unwrap();
    let all = Servers::bundled("/bin/false".as_ref(), packs::all()).with(servers("ok", dir.path()));
    let bench = Bench::of(dir, all, PATIENT);
    let outcome = call(&bench.toolbox, "configured_servers", json!({})).await;
    assert_eq!(outcome, ToolOutcome::Ok(json!({"servers": [NAME]})));
}

#[tokio::test]
async fn the_probe_s_record_is_apart_and_expires_with_the_session() {
    let bench = Bench::new("ok");
    let outcome = call(&bench.toolbox, "journal_probe", json!({})).await;
    let ToolOutcome::Ok(content) = outcome else { panic!("{outcome:?}") };
    assert!(content["detail"].as_str().unwrap().contains("written and read back"), "{content}");
    let id = &bench.session.author.session;
    let probes = query_all(&bench.session.store, Query::all(format!("PROBE#{id}"))).await.unwrap();
    assert_eq!(probes.len(), 1);
    assert_eq!(probes[0].number("ExpiresAt").unwrap(), bench.session.author.expires_at);
    let session = query_all(&bench.session.store, Query::all(format!("SESSION#{id}"))).await;
    assert!(session.unwrap().is_empty());
}

#[tokio::test]
async fn the_skew_is_this_clock_minus_the_others() {
    for (ahead_s, ahead) in [(0, 0), (-120, -120_000), (90, 90_000)] {
        let dir = tempfile::tempdir().unwrap();
        let session = session(dir.path());
        let now = session.hlc.clock().now();
        let ours = Hlc::new(Clock::scaled(now, 1).ahead_by(ahead_s * 1_000_000_000), now);
        let session = agent::session::ClaimedSession { hlc: ours.into(), ..session };
        let theirs = Hlc::new(Clock::system(), Default::default());
        let announcer = Announcer {
            store: &session.store,
            hlc: &theirs,
            session: &session.author.session,
            writer: Writer::Invoker,
            expires_at: session.author.expires_at,
        };
        let started = Draft::new(EventStatus::AgentInvocationStarted, About::Attempt(1));
        announcer.announce_once(&started).await.unwrap();
        let toolbox = Toolbox::new(
            session,
            Servers::default(),
            PATIENT,
            Models::default(),
            &Broadcast::default(),
            &json!({}),
        );
        let outcome = call(&toolbox, "clock_skew", json!({})).await;
        let ToolOutcome::Ok(content) = outcome else { panic!("{outcome:?}") };
        let skew_ms = content["skew_ms"].as_i64().unwrap();
        assert!((ahead - 1_000..ahead + 20_000).contains(&skew_ms), "{ahead}: {skew_ms}");
    }
}

#[tokio::test]
async fn the_policy_is_reachable_and_an_unavailable_model_is_not() {
    let bench = Bench::new("ok");
    let outcome = call(&bench.toolbox, "model_reachable", json!({"model": "policy"})).await;
    assert!(matches!(outcome, ToolOutcome::Ok(_)), "{outcome:?}");
    let unreachable = json!({"model": "transcript:/nonexistent"});
    let outcome = call(&bench.toolbox, "model_reachable", unreachable).await;
    let ToolOutcome::Ok(content) = outcome else { panic!("{outcome:?}") };
    let text = content["error"].as_str().unwrap();
    assert!(text.starts_with("model_unavailable: the transcript /nonexistent"), "{text}");
    error(call(&bench.toolbox, "model_reachable", json!({})).await);
}

#[tokio::test]
async fn a_built_in_tool_has_a_timeout() {
    let bench = Bench::new("ok");
    let (release, released) = std::sync::mpsc::channel::<()>();
    let stalled = bench.session.store.transact(move |_| Ok(released.recv_timeout(DEADLINE).ok()));
    let probe = ToolCall::built_in("journal_probe", json!({}));
    let call = async {
        let outcome = bench.toolbox.call(&probe, Duration::from_millis(200)).await;
        release.send(()).unwrap();
        outcome
    };
    let (stalled, outcome) = futures_util::future::join(stalled, call).await;
    stalled.unwrap();
    let message = failed(outcome, FailureKind::Unknown, "unknown");
    assert!(message.contains("within 0.2 s"), "{message}");
}
