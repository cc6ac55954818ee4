//! Halted agents, over whole stacks: nothing begins, and nothing is lost.

use std::path::Path;
use std::time::Duration;

use graph::agent::Agent;
use graph::definition::{Finish, Graph, Node, Route};
use graph::effect::{Chat, Effect, Reply};
use serde_json::{Value, json};
use stack::stack::Stack;
use tempfile::TempDir;

use crate::people::{answer, asked, asker, begin, result, stack_of};
use crate::stack::{Client, statuses};
use crate::world::TIMEOUT;

/// How long an effect of [`WORKER`] takes.
const WORK: Duration = Duration::from_millis(800);

/// Has two effects, one after the other.
static WORKER: Graph<u32> = Graph {
    version: "1",
    ..Graph::new(
        "worker",
        "Works twice.",
        NODES,
        |_, _| Ok(0),
        |_, _| {
            std::thread::sleep(WORK);
            Reply::says("done")
        },
    )
};

const NODES: &[Node<u32>] = &[
    Node { name: "one", to: &["two"], ask: work, fold: |_, _| Route::To("two") },
    Node {
        name: "two",
        to: &[],
        ask: work,
        fold: |_, _| Route::End(Finish::Completed(json!("both"))),
    },
];

fn work(_: &u32, _: &graph::definition::Context<'_>) -> Effect {
    Effect::Chat(Chat::default())
}

async fn worker(folder: &Path, time_scale: u32) -> Stack {
    stack_of(folder, Agent::of(&WORKER), time_scale).await
}

async fn halt(client: &Client, scope: &str) {
    let body = json!({ "scope": scope, "reason": "a bad release" });
    let (status, reply) = client.post("/api/halt", &body).await;
    assert_eq!(status, 202, "{reply}");
}

async fn unhalt(client: &Client, scope: &str) -> Value {
    let (status, reply) = client.post("/api/unhalt", &json!({ "scope": scope })).await;
    assert_eq!(status, 202, "{reply}");
    reply
}

async fn shown(client: &Client, session: &str) -> Value {
    client.get(&format!("/api/sessions/{session}")).await.1
}

/// The session, once its workflow waits for the end of a halt.
async fn held(stack: &Stack, client: &Client, session: &str) -> Value {
    let arn = stack::names::execution_arn("daybook", session);
    let looking = async {
        loop {
            if let Some(record) = stack.executions().describe(&arn).await.unwrap() {
                let history = stack.executions().history(record.id, None, true, 4).await.unwrap();
                let is_parked = history.first().is_some_and(|it| it.contains("TaskSubmitted"));
                let waits = |it: &String| it.contains(r#"\"timeout_s\":1200"#);
                if is_parked && history.iter().any(waits) {
                    return shown(client, session).await;
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let found = tokio::time::timeout(TIMEOUT, looking).await;
    let Ok(found) = found else { panic!("{:#}", shown(client, session).await) };
    found
}

fn count(shown: &Value, status: &str) -> usize {
    statuses(shown).iter().filter(|it| **it == status).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_a_halted_agent_waits_for_its_end() {
    let folder = TempDir::new().unwrap();
    // A minute a second: an agent that is silent is lost within two.
    let stack = worker(folder.path(), 60).await;
    let client = Client::sending(&stack, &[("x-daybook-user", "ana")]);
    halt(&client, "agent:worker").await;
    let session = client.trigger(&json!({ "agent": "worker" })).await;
    held(&stack, &client, &session).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let waits = shown(&client, &session).await;
    assert_eq!(count(&waits, "AGENT_INVOCATION_STARTED"), 1, "{:?}", statuses(&waits));
    assert_eq!(count(&waits, "AGENT_LOST"), 0);
    assert_eq!(waits["steps"], json!([]), "nothing begins");
    let text = waits["events"].to_string();
    assert!(text.contains("os-user:ana") && text.contains("a bad release"), "{text}");
    let (_, health) = client.get("/healthz").await;
    assert_eq!(health["halts"][0]["by"], "os-user:ana", "{health}");
    assert_eq!(unhalt(&client, "agent:worker").await["woken"], 1);
    let result = tokio::time::timeout(Duration::from_secs(10), result(&client, &session)).await;
    assert_eq!(result.expect("woken at once"), "both");
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_under_way_ends_and_none_begins() {
    let folder = TempDir::new().unwrap();
    let stack = worker(folder.path(), 1).await;
    let client = Client::new(&stack);
    let session = client.trigger(&json!({ "agent": "worker" })).await;
    let claimed = async {
        while shown(&client, &session).await["steps"].as_array().is_none_or(Vec::is_empty) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, claimed).await.unwrap();
    halt(&client, "all").await;
    let halted = held(&stack, &client, &session).await;
    let steps = halted["steps"].as_array().unwrap().len();
    assert!(steps < 3, "the second effect does not begin: {:#}", halted["steps"]);
    unhalt(&client, "all").await;
    assert_eq!(result(&client, &session).await, "both");
    let shown = shown(&client, &session).await;
    assert_eq!(count(&shown, "AGENT_LOST"), 0, "{:?}", statuses(&shown));
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_taken_while_its_agent_is_halted() {
    let folder = TempDir::new().unwrap();
    let stack = asker(folder.path()).await;
    let client = Client::new(&stack);
    let session = begin(&client, json!({})).await;
    let open = asked(&stack, &client, &session, 0).await;
    halt(&client, "all").await;
    let id = open["question_id"].clone();
    let body = json!({ "question_id": id, "decision": "reject", "reason": "no" });
    assert_eq!(answer(&client, &session, &body).await.0, 202);
    let halted = held(&stack, &client, &session).await;
    let steps = halted["steps"].as_array().unwrap().len();
    assert_eq!(steps, 3, "claim, question, answer: {:#}", halted["steps"]);
    unhalt(&client, "all").await;
    let after = id.as_u64().unwrap();
    let last = asked(&stack, &client, &session, after).await["question_id"].clone();
    let body = json!({ "question_id": last, "decision": "say", "text": "bye" });
    assert_eq!(answer(&client, &session, &body).await.0, 202);
    result(&client, &session).await;
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_leaves_a_halt_in_force() {
    let folder = TempDir::new().unwrap();
    let stack = worker(folder.path(), 1).await;
    let client = Client::new(&stack);
    halt(&client, "all").await;
    halt(&client, "agent:worker").await;
    let session = client.trigger(&json!({ "agent": "worker" })).await;
    held(&stack, &client, &session).await;
    stack.shutdown().await;
    let stack = worker(folder.path(), 1).await;
    let client = Client::new(&stack);
    assert_eq!(client.get("/api/halts").await.1["halts"].as_array().unwrap().len(), 2);
    unhalt(&client, "all").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let waits = held(&stack, &client, &session).await;
    assert_eq!(waits["steps"], json!([]), "the other halt is in force");
    unhalt(&client, "agent:worker").await;
    assert_eq!(result(&client, &session).await, "both");
    let shown = shown(&client, &session).await;
    assert_eq!(count(&shown, "AGENT_LOST"), 0, "{:?}", statuses(&shown));
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_halt_is_refused_by_name() {
    let folder = TempDir::new().unwrap();
    let stack = worker(folder.path(), 1).await;
    let client = Client::new(&stack);
    for (route, body, code) in [
        ("halt", json!({ "scope": "agent:workr", "reason": "x" }), "NoAgent"),
        ("halt", json!({ "scope": "all" }), "InvalidReason"),
        ("halt", json!({ "scope": "worker", "reason": "x" }), "InvalidBody"),
        ("halt", json!({ "scope": "all", "reason": "x", "by": "root" }), "InvalidBody"),
        ("unhalt", json!({ "scope": "agent:worker" }), "NotHalted"),
    ] {
        let (_, refused) = client.post(&format!("/api/{route}"), &body).await;
        assert_eq!(refused["code"], code, "{body} {refused}");
        let names = refused["error"].as_str().unwrap().contains("did you mean `worker`?");
        assert_eq!(names, code == "NoAgent", "{refused}");
    }
    stack.shutdown().await;
}
