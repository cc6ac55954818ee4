//! Resuming sessions without an execution.

use std::path::Path;
use std::time::Duration;

use agent::tool::Servers;
use journal::clock::Stamp;
use journal::key;
use journal::lease::Lease;
use journal::read;
use journal::sqlite::{Durability, SqliteStore};
use journal::step::{Step, StepBody};
use serde_json::{Value, json};
use stack::names::{STATE_MACHINE_ARN, execution_arn};
use stack::stack::{Config, JOURNAL_FILE, Stack};
use tempfile::TempDir;

use crate::endpoint::{parking, token};
use crate::stack::{Client, Response, config, statuses};
use crate::world::TIMEOUT;

/// A stack whose checkups block in a server's tool call until a file exists.
async fn gated(folder: &TempDir) -> Stack {
    let script = r#"until test -e "$0"; do sleep 0.02; done"#;
    let server = json!({ "command": "sh", "args": ["-c", script, folder.path().join("gate")] });
    let servers = json!({ "mcpServers": { "gated": server } }).to_string();
    let servers = Servers::parse(&servers, |_| None).unwrap();
    Stack::start(Config { servers, ..config(folder.path(), 1) }).await.unwrap()
}

async fn stop(client: &Client, execution: &str) {
    let execution = json!({ "executionArn": execution_arn("daybook", execution) });
    let (status, answer) = client.aws("AWSStepFunctions.StopExecution", &execution).await;
    assert_eq!(status, 200, "{answer}");
}

async fn resume(client: &Client, session: &str) -> Response {
    client.post(&format!("/api/sessions/{session}/resume"), &json!({})).await
}

/// The names of all executions, oldest first.
async fn executions(client: &Client) -> Vec<String> {
    let body = json!({ "stateMachineArn": STATE_MACHINE_ARN });
    let (_, list) = client.aws("AWSStepFunctions.ListExecutions", &body).await;
    let found = list["executions"].as_array().unwrap().iter().rev();
    found.map(|execution| execution["name"].as_str().unwrap().to_owned()).collect()
}

/// The session, once its journal has the event.
async fn shown_with(client: &Client, session: &str, event: &str) -> Value {
    let looking = async {
        loop {
            let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
            if shown["events"].is_array() && statuses(&shown).contains(&event) {
                return shown;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, looking).await.expect(event)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_waits_for_an_agent_that_still_works() {
    let folder = TempDir::new().unwrap();
    let stack = gated(&folder).await;
    let client = Client::new(&stack);
    let session = client.trigger(&json!({})).await;
    shown_with(&client, &session, "AGENT_INVOCATION_SUCCEEDED").await;
    stop(&client, &session).await;
    let (one, other) = tokio::join!(resume(&client, &session), resume(&client, &session));
    assert_eq!((one.0, other.0), (202, 202), "{one:?} {other:?}");
    let resumed = format!("{session}-resume-1");
    assert_eq!(executions(&client).await, [session.clone(), resumed.clone()]);
    stop(&client, &resumed).await;
    let (status, again) = resume(&client, &session).await;
    assert_eq!((status, &again["woken"]), (202, &json!(false)), "{again}");
    std::fs::write(folder.path().join("gate"), "").unwrap();
    let resumed = format!("{session}-resume-2");
    let execution = client.ended(&resumed).await;
    let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
    let statuses = statuses(&shown);
    assert_eq!(execution["status"], "FAILED", "the gated server is not an MCP server: {shown:#}");
    assert_eq!(statuses.last(), Some(&"SESSION_FAILED"), "{statuses:?}");
    for once in ["AGENT_INVOCATION_STARTED", "AGENT_BACKGROUND_TASK_STARTED"] {
        assert_eq!(statuses.iter().filter(|status| **status == once).count(), 1, "{statuses:?}");
    }
    assert!(!statuses.contains(&"AGENT_LOST"), "{statuses:?}");
    let (status, answer) = resume(&client, &session).await;
    assert_eq!((status, &answer["code"]), (409, &json!("SessionEnded")), "{answer}");
    assert_eq!(executions(&client).await.len(), 3);
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resuming_a_cancelled_session_ends_it_without_its_agent() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    let session = client.trigger(&json!({})).await;
    token(&stack, &session).await;
    // It was invoked; the watchdog would end a session that was not.
    let lease = Lease::unclaimed(0, stack.clock().now());
    let expires_at = stack.clock().now().after(Duration::from_secs(90 * 86_400)).seconds();
    lease.create(stack.store(), &session.parse().unwrap(), expires_at).await.unwrap();
    stop(&client, &session).await;
    assert_eq!(client.post(&format!("/api/sessions/{session}/cancel"), &json!({})).await.0, 202);
    assert_eq!(resume(&client, &session).await.0, 202);
    let execution = client.ended(&format!("{session}-resume-1")).await;
    assert_eq!(execution["status"], "SUCCEEDED", "{execution:#}");
    let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
    let requested = ["SESSION_INITIATED", "CANCEL_REQUESTED", "RESUME_REQUESTED"];
    assert_eq!(statuses(&shown), [&requested[..], &["SESSION_CANCELLED"]].concat());
    stack.shutdown().await;
}

/// The agent died with its execution, after any step: resuming leads to the same end, and repeats no
/// recorded effect.
#[tokio::test(flavor = "multi_thread")]
async fn every_journal_prefix_without_an_execution_can_be_resumed() {
    let whole = TempDir::new().unwrap();
    let stack = Stack::start(config(whole.path(), 1)).await.unwrap();
    let client = Client::new(&stack);
    let session = client.trigger(&json!({})).await;
    client.ended(&session).await;
    let steps = steps(&stack, &session).await;
    stack.shutdown().await;
    for kept in 0..=steps.len() {
        let folder = TempDir::new().unwrap();
        for file in std::fs::read_dir(whole.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
        cut(folder.path(), &steps[..kept]).await;
        let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
        let client = Client::new(&stack);
        let (status, answer) = resume(&client, &session).await;
        assert_eq!(status, 202, "after {kept} steps: {answer}");
        let execution = client.ended(&format!("{session}-resume-1")).await;
        assert_eq!(execution["status"], "SUCCEEDED", "after {kept} steps: {execution:#}");
        let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
        assert_eq!(statuses(&shown).last(), Some(&"SESSION_SUCCEEDED"), "after {kept} steps");
        let again = self::steps(&stack, &session).await;
        assert_eq!(again[..kept], steps[..kept]);
        assert_eq!(outcomes(&again), outcomes(&steps), "after {kept} steps");
        stack.shutdown().await;
    }
}

async fn steps(stack: &Stack, session: &str) -> Vec<Step<Value>> {
    read::resolved_steps(stack.store(), &session.parse().unwrap()).await.unwrap()
}

/// The effects with an outcome, one entry per outcome.
fn outcomes(steps: &[Step<Value>]) -> Vec<String> {
    let mut effects: Vec<_> = steps
        .iter()
        .filter(|step| matches!(step.body, StepBody::Outcome { .. }))
        .map(|step| format!("{:?}", step.body.effect()))
        .collect();
    effects.sort_unstable();
    effects
}

/// Forgets all but the first steps, and the lease. The only execution was stopped.
async fn cut(data: &Path, kept: &[Step<Value>]) {
    let store = SqliteStore::open(&data.join(JOURNAL_FILE), Durability::Relaxed).unwrap();
    let step = key::step(u32::try_from(kept.len()).unwrap());
    // Before the first step there is the first event.
    let event = kept.last().map(|step| key::event(step.stamp));
    let event = event.unwrap_or_else(|| key::event(Stamp::default()));
    let work = move |connection: &rusqlite::Connection| {
        connection.execute(
            "DELETE FROM item WHERE (sk LIKE 'STEP#%' AND sk > ?1) OR sk IN ('LEASE', 'WAIT') \
             OR (sk LIKE 'EVENT#%' AND sk > ?2 AND body NOT LIKE '%SESSION_INITIATED%')",
            [&step, &event],
        )?;
        connection.execute("UPDATE execution SET status = 'ABORTED', output = NULL", [])
    };
    store.transact(work).await.unwrap();
}
