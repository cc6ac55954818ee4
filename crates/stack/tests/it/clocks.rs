//! Clocks that are set while sessions run and wait.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use graph::agent::Agent;
use graph::budget::{Budget, Crossed};
use graph::definition::{Attempts, Finish, Graph, Node, Route, Scope};
use graph::effect::{Effect, Reply};
use journal::clock::{Clock, Stamp};
use journal::id::SessionId;
use journal::item::Item;
use journal::key;
use journal::store::{Condition, Store as _, Written};
use journal::wait::Wait;
use serde_json::{Value, json};
use stack::stack::{Config, Stack};
use tempfile::TempDir;

use crate::people::{ASKER, answer, asked, begin, result};
use crate::stack::{Client, config, statuses};
use crate::world::TIMEOUT;

const SECOND_NS: i64 = 1_000_000_000;
const HOUR_NS: i64 = 3_600 * SECOND_NS;
const HALF_A_DAY: Duration = Duration::from_secs(43_200);

/// The speed of the clock of [`NAPPER`]'s stack.
const SCALE: u32 = 20;

/// Sleeps for a minute in its runner, with five minutes of running time.
static NAPPER: Graph<()> = Graph {
    name: "napper",
    version: "1",
    summary: "Sleeps.",
    start: "nap",
    nodes: &[
        Node {
            name: "nap",
            to: &["wake"],
            ask: |(), context| Effect::Sleep(context.now.after(Duration::from_secs(60))),
            fold: |(), _| Route::To("wake"),
        },
        Node {
            name: "wake",
            to: &[],
            ask: |(), _| Effect::Nothing,
            fold: |(), _| Route::End(Finish::Completed(json!("slept"))),
        },
    ],
    init: |_, _| Ok(()),
    budget: Budget { seconds: Some(300), ..Budget::UNLIMITED },
    scope: Scope::Session,
    on_limit: |(), crossed: Crossed| Route::End(crossed.finish()),
    on_limit_to: &[],
    policy: |(), _| Reply::says(""),
    attempts: Attempts::DEFAULT,
    at_most_once: &[],
    critical: &[],
    servers: &[],
    tool_timeout_s: 30,
};

async fn stack(folder: &Path, agent: Agent, clock: Option<Clock>) -> Stack {
    let agents: Arc<[Agent]> = Arc::new([agent]);
    Stack::start(Config { agents, clock, ..config(folder, 1) }).await.unwrap()
}

fn now() -> Stamp {
    Clock::system().now()
}

/// Answers both questions of the agent, after the clock was set by `by_ns`.
async fn answer_after_a_step(by_ns: i64) {
    let folder = TempDir::new().unwrap();
    let clock = Clock::scaled(now(), 1);
    let stack = stack(folder.path(), Agent::of(&ASKER), Some(clock.clone())).await;
    let client = Client::new(&stack);
    let session = begin(&client, json!({})).await;
    let first = asked(&stack, &client, &session, 0).await["question_id"].as_u64().unwrap();
    clock.step(by_ns);
    let reject = json!({ "question_id": first, "decision": "reject" });
    assert_eq!(answer(&client, &session, &reject).await.0, 202, "{by_ns}");
    let last = asked(&stack, &client, &session, first).await["question_id"].clone();
    let words = json!({ "question_id": last, "decision": "say", "text": "thanks" });
    let (status, answered) = answer(&client, &session, &words).await;
    assert_eq!((status, &answered["woken"]), (202, &json!(true)), "{by_ns}");
    assert_eq!(result(&client, &session).await["answers"][0]["decision"], "reject");
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answered_session_goes_on_after_any_clock_step() {
    let steps = [-5 * SECOND_NS, -HOUR_NS, 3 * HOUR_NS];
    futures_util::future::join_all(steps.map(answer_after_a_step)).await;
}

async fn steps_noticed(client: &Client, count: u64) -> Value {
    let looking = async {
        loop {
            let (_, health) = client.get("/healthz").await;
            if health["clock"]["steps"].as_u64() >= Some(count) {
                return health["clock"].clone();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, looking).await.expect("the step is noticed")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_step_uses_no_budget_and_loses_no_agent() {
    let folder = TempDir::new().unwrap();
    for by_ns in [3 * HOUR_NS, -HOUR_NS] {
        let clock = Clock::scaled(now(), SCALE);
        let folder = folder.path().join(by_ns.to_string());
        let stack = stack(&folder, Agent::of(&NAPPER), Some(clock.clone())).await;
        let client = Client::new(&stack);
        let session = client.trigger(&json!({ "agent": "napper" })).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        clock.step(by_ns);
        let noticed = steps_noticed(&client, 1).await;
        let by_ms = noticed["newest"]["by_ms"].as_i64().unwrap();
        assert!((by_ms - by_ns / 1_000_000).abs() < 10_000, "{noticed}");
        assert_eq!(result(&client, &session).await, "slept", "{by_ns}");
        let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
        assert!(!statuses(&shown).contains(&"AGENT_LOST"), "{shown:#}");
        let elapsed_ms = shown["session"]["elapsed_ms"].as_u64().unwrap();
        assert!((60_000..120_000).contains(&elapsed_ms), "{by_ns}: {elapsed_ms}");
        stack.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_that_was_ahead_gives_new_sessions_the_right_time() {
    let folder = TempDir::new().unwrap();
    let ahead = Clock::scaled(now().after(HALF_A_DAY), 1);
    let before = stack(folder.path(), Agent::of(&ASKER), Some(ahead)).await;
    let client = Client::new(&before);
    let old = begin(&client, json!({})).await;
    let first = asked(&before, &client, &old, 0).await["question_id"].as_u64().unwrap();
    before.shutdown().await;

    let after = stack(folder.path(), Agent::of(&ASKER), None).await;
    let client = Client::new(&after);
    let noticed = steps_noticed(&client, 1).await;
    assert!(noticed["newest"]["by_ms"].as_i64().unwrap() < -43_000_000, "{noticed}");
    let (_, list) = client.get("/api/sessions").await;
    assert_eq!(list["sessions"][0]["session_id"], *old, "a session of the future is listed");
    let new = begin(&client, json!({})).await;
    asked(&after, &client, &new, 0).await;
    let id: SessionId = new.parse().unwrap();
    let newest = journal::read::newest_step(after.store(), &id).await.unwrap().unwrap();
    assert!(newest.stamp.since(now()) < Duration::from_secs(5), "{}", newest.stamp);

    let reject = json!({ "question_id": first, "decision": "reject" });
    assert_eq!(answer(&client, &old, &reject).await.0, 202);
    let last = asked(&after, &client, &old, first).await["question_id"].clone();
    let words = json!({ "question_id": last, "decision": "say", "text": "thanks" });
    assert_eq!(answer(&client, &old, &words).await.0, 202);
    assert_eq!(result(&client, &old).await["answers"][0]["decision"], "reject");
    after.shutdown().await;
}

/// Earlier versions ordered waits by time: after a step back, a closed token stayed in the item.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_left_with_a_closed_token_is_woken() {
    let folder = TempDir::new().unwrap();
    let stack = stack(folder.path(), Agent::of(&ASKER), None).await;
    let client = Client::new(&stack);
    let session = begin(&client, json!({})).await;
    let id: SessionId = session.parse().unwrap();
    let first = asked(&stack, &client, &session, 0).await["question_id"].as_u64().unwrap();
    let closed = Wait::read(stack.store(), &id).await.unwrap().unwrap();
    let reject = json!({ "question_id": first, "decision": "reject" });
    assert_eq!(answer(&client, &session, &reject).await.0, 202);
    let last = asked(&stack, &client, &session, first).await["question_id"].clone();
    let item = Item::new(key::session(&id), key::WAIT)
        .with("Token", closed.token.as_str())
        .with("ParkedAt", now().after(HALF_A_DAY).to_string());
    let any = Condition::at_most("Turn", "~");
    assert_eq!(stack.store().put(item, any).await.unwrap(), Written::Done);
    let words = json!({ "question_id": last, "decision": "say", "text": "thanks" });
    let (status, answered) = answer(&client, &session, &words).await;
    assert_eq!((status, &answered["woken"]), (202, &json!(true)), "{answered}");
    assert_eq!(result(&client, &session).await["answers"][0]["decision"], "reject");
    stack.shutdown().await;
}

/// An agent that is invoked after the step stamps by the new time; its workflow counts on by the one before.
#[tokio::test(flavor = "multi_thread")]
async fn a_sleep_after_a_clock_step_takes_no_longer() {
    let folder = TempDir::new().unwrap();
    let clock = Clock::scaled(now(), 50);
    let stack = stack(folder.path(), Agent::of(&ASKER), Some(clock.clone())).await;
    let client = Client::new(&stack);
    let session = begin(&client, json!({ "naps": true })).await;
    let first = asked(&stack, &client, &session, 0).await["question_id"].as_u64().unwrap();
    clock.step(3 * HOUR_NS);
    let approve = json!({ "question_id": first, "decision": "approve" });
    assert_eq!(answer(&client, &session, &approve).await.0, 202);
    // The nap of five minutes takes six seconds, three hours would take almost four minutes.
    let napped = async {
        loop {
            let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
            let open = &shown["session"]["open_question"];
            if open.to_string().contains("Anything else?") {
                return open["question_id"].clone();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let last = tokio::time::timeout(TIMEOUT, napped).await.expect("the nap ends");
    let words = json!({ "question_id": last, "decision": "say", "text": "thanks" });
    assert_eq!(answer(&client, &session, &words).await.0, 202);
    result(&client, &session).await;
    stack.shutdown().await;
}
