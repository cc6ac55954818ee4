//! After `kill -9` of the stack, or of an isolated agent, sessions go on at once, not when their silence is noticed.

use std::path::Path;
use std::time::Duration;

use journal::event::EventStatus;
use journal::id::SessionId;
use journal::lease::Lease;
use journal::read;
use journal::sqlite::{Durability, SqliteStore};
use journal::step::StepBody;
use journal::store::{Condition, Store};
use journal::wait::Wait;
use serde_json::json;
use stack::stack::JOURNAL_FILE;

use crate::harness::{DEADLINE, Dev};
use crate::kills::{FUNCTION, Scene, agent_of, put, signal, verified};

/// Far less than the minute after which silence is noticed.
const AT_ONCE: Duration = Duration::from_secs(15);

/// A start of a server that is not over before the kill, in seconds.
const NEVER_S: f32 = 600.0;

/// A stack whose clock is the machine's.
fn dev(scene: &Scene, arguments: &[&str]) -> Dev {
    scene.dev_at(1, arguments)
}

/// Triggers a session whose agent is stuck in its first call of a server.
async fn stuck(scene: &Scene, dev: &Dev) -> SessionId {
    let session = put(&dev.endpoint, &scene.incident(FUNCTION)).await.unwrap();
    scene.shows(&session, EventStatus::AgentBackgroundTaskStarted).await;
    session
}

async fn is_parked(scene: &Scene, session: &SessionId) {
    let journal = scene.journal();
    let parked = async {
        while Wait::read(&journal, session).await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(DEADLINE, parked).await.expect("the workflow parks");
}

/// Starts the stack again; the session goes on at once, to its end.
async fn goes_on(scene: &Scene, session: &SessionId, arguments: &[&str]) {
    scene.server_starts_in(0.0);
    let again = dev(scene, arguments);
    let ends = scene.shows(session, EventStatus::SessionSucceeded);
    tokio::time::timeout(AT_ONCE, ends).await.expect("the session goes on at once");
    assert_eq!(again.stop("-TERM"), 0);
    verified(scene, session);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_session_goes_on_at_the_next_start() {
    let scene = Scene::new(NEVER_S);
    let first = dev(&scene, &[]);
    let session = stuck(&scene, &first).await;
    first.kill();
    goes_on(&scene, &session, &[]).await;
    assert_eq!(scene.claims(&session).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_parked_in_a_call_goes_on_at_the_next_start() {
    let scene = Scene::new(NEVER_S);
    let first = dev(&scene, &[]);
    let session = stuck(&scene, &first).await;
    is_parked(&scene, &session).await;
    first.kill();
    goes_on(&scene, &session, &[]).await;
    assert_eq!(scene.claims(&session).await.len(), 2);
}

/// A clean stop releases the lease, and cannot wake the workflow any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_a_stopped_stack_goes_on_at_the_next_start() {
    let scene = Scene::new(NEVER_S);
    let first = dev(&scene, &[]);
    let session = stuck(&scene, &first).await;
    is_parked(&scene, &session).await;
    assert_eq!(first.stop("-TERM"), 0);
    goes_on(&scene, &session, &[]).await;
}

/// The agent has not claimed the session when the stack dies: its process is still starting.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_that_was_killed_before_its_claim() {
    if !is_built("agent") {
        return;
    }
    let scene = Scene::new(0.0);
    let first = dev(&scene, &["--isolate"]);
    let session = put(&first.endpoint, &scene.incident(FUNCTION)).await.unwrap();
    scene.shows(&session, EventStatus::AgentInvocationStarted).await;
    first.kill();
    goes_on(&scene, &session, &["--isolate"]).await;
}

/// The workflow waits for the first heartbeat of an invocation that died without a claim.
#[tokio::test(flavor = "multi_thread")]
async fn an_invocation_without_a_claim_is_repeated_at_the_next_start() {
    let scene = Scene::new(NEVER_S);
    let first = dev(&scene, &[]);
    let session = stuck(&scene, &first).await;
    is_parked(&scene, &session).await;
    first.kill();
    forget_the_agent(&scene, &session).await;
    goes_on(&scene, &session, &[]).await;
    assert_eq!(scene.claims(&session).await.len(), 1);
}

/// Removes what the agent wrote: its steps, its events and its lease.
async fn forget_the_agent(scene: &Scene, session: &SessionId) {
    let path = scene.data().join(JOURNAL_FILE);
    let store = SqliteStore::open(&path, Durability::Relaxed).unwrap();
    let lease = Lease::read(&store, session).await.unwrap().unwrap();
    let delete = "DELETE FROM item WHERE sk LIKE 'STEP#%' OR sk = 'LEASE' OR body LIKE '%AGENT_BACKGROUND_TASK%'";
    store.transact(|connection| connection.execute(delete, [])).await.unwrap();
    let unclaimed = Lease::unclaimed(0, lease.heartbeat_at).to_item(session, 4_000_000_000);
    store.put(unclaimed, Condition::Absent).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_a_killed_isolated_agent_goes_on_at_once() {
    if !is_built("agent") {
        return;
    }
    let scene = Scene::new(NEVER_S);
    let dev = dev(&scene, &["--isolate"]);
    let session = stuck(&scene, &dev).await;
    is_parked(&scene, &session).await;
    // The process has the path of the servers' file, not its text.
    let agent = agent_of(&dev).await;
    assert!(signal("-KILL", agent), "it had ended");
    let claims = async {
        while scene.claims(&session).await.len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(AT_ONCE, claims).await.expect("another agent claims the session at once");
    assert_eq!(dev.stop("-TERM"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_waits_for_a_person_stays_suspended() {
    let scene = Scene::new(0.0);
    let first = dev(&scene, &[]);
    let session = put(&first.endpoint, &json!({ "agent": "assistant" })).await.unwrap();
    scene.shows(&session, EventStatus::AgentBackgroundTaskSuspended).await;
    is_parked(&scene, &session).await;
    first.kill();
    let before = scene.statuses(&session).await;
    let again = dev(&scene, &[]);
    // Another session, from trigger to verdict, shows that this stack has taken up what it found.
    let other = put(&again.endpoint, &scene.incident(FUNCTION)).await.unwrap();
    scene.shows(&other, EventStatus::SessionSucceeded).await;
    again.kill();
    assert_eq!(scene.statuses(&session).await, before);
    assert_eq!(scene.claims(&session).await.len(), 1);
    let newest = read::newest_step(&scene.journal(), &session).await.unwrap().unwrap();
    assert!(matches!(newest.body, StepBody::Ask { .. }), "{newest:?}");
}

fn is_built(program: &str) -> bool {
    let is_built = Path::new(env!("CARGO_BIN_EXE_daybook")).with_file_name(program).exists();
    if !is_built {
        eprintln!("skipped: build it with `cargo build -p agent --features container`");
    }
    is_built
}
