//! Sessions over redeployments: each goes on with its own version of the agent, waits for it, or is moved.

use std::time::Duration;

use graph::agent::Agent;
use serde_json::{Value, json};
use stack::stack::Stack;
use tempfile::TempDir;

use crate::people::{ASKER, LATER, answer, asked, begin, result, stack_of};
use crate::stack::{Client, statuses};
use crate::world::TIMEOUT;

/// Version 2, which keeps version 1.
fn both() -> Agent {
    Agent::of(&LATER).with_earlier(Agent::of(&ASKER))
}

/// A session of version 1 that waits at its first question, with that question's number.
async fn parked(folder: &TempDir) -> (String, u64) {
    let stack = stack_of(folder.path(), Agent::of(&ASKER), 1).await;
    let client = Client::new(&stack);
    let session = begin(&client, json!({})).await;
    let open = asked(&stack, &client, &session, 0).await;
    stack.shutdown().await;
    (session, open["question_id"].as_u64().unwrap())
}

fn edit(question: u64) -> Value {
    json!({ "question_id": question, "decision": "edit", "arguments": { "model": "policy" } })
}

/// Answers the last question, and returns the result.
async fn finish(stack: &Stack, client: &Client, session: &str, after: u64) -> Value {
    let last = asked(stack, client, session, after).await["question_id"].clone();
    let words = json!({ "question_id": last, "decision": "say", "text": "thanks" });
    assert_eq!(answer(client, session, &words).await.0, 202);
    result(client, session).await
}

async fn shown(client: &Client, session: &str) -> Value {
    client.get(&format!("/api/sessions/{session}")).await.1
}

/// The session, once its agent has lacked its version `times` times.
async fn lacking(client: &Client, session: &str, times: usize) -> Value {
    let looking = async {
        loop {
            let shown = shown(client, session).await;
            if lacked(&shown) == times && shown["session"]["needs_version"].is_object() {
                return shown;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let found = tokio::time::timeout(TIMEOUT, looking).await;
    let Ok(found) = found else { panic!("{:#}", shown(client, session).await) };
    found
}

fn lacked(shown: &Value) -> usize {
    statuses(shown).iter().filter(|status| **status == "AGENT_VERSION_MISSING").count()
}

fn versions(shown: &Value) -> Vec<String> {
    let steps = shown["steps"].as_array().unwrap().iter();
    steps.filter_map(|step| step["version"].as_str().map(str::to_owned)).collect()
}

async fn resume(client: &Client, session: &str, body: &Value) -> (u16, Value) {
    client.post(&format!("/api/sessions/{session}/resume"), body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_with_the_version_it_began_with() {
    let folder = TempDir::new().unwrap();
    let (session, question) = parked(&folder).await;
    let after = stack_of(folder.path(), both(), 1).await;
    let client = Client::new(&after);
    assert_eq!(answer(&client, &session, &edit(question)).await.0, 202);
    let old = finish(&after, &client, &session, question).await;
    assert_eq!((&old["said_by"], &old["called"]), (&json!([]), &json!([{ "model": "policy" }])));
    let shown_old = shown(&client, &session).await;
    assert_eq!(versions(&shown_old), ["1", "1", "1"], "{:#}", shown_old["steps"]);
    let new = begin(&client, json!({})).await;
    let first = asked(&after, &client, &new, 0).await["question_id"].as_u64().unwrap();
    assert_eq!(answer(&client, &new, &edit(first)).await.0, 202);
    assert_eq!(finish(&after, &client, &new, first).await["said_by"], json!(["later"]));
    after.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_without_its_version_waits_until_it_is_moved() {
    let folder = TempDir::new().unwrap();
    let (session, question) = parked(&folder).await;
    // A minute a second: an agent that is silent is lost within two.
    let after = stack_of(folder.path(), Agent::of(&LATER), 60).await;
    let client = Client::new(&after);
    let (status, refused) = resume(&client, &session, &json!({ "as_version": "2" })).await;
    assert_eq!((status, &refused["code"]), (409, &json!("QuestionOpen")), "{refused}");
    assert_eq!(answer(&client, &session, &edit(question)).await.0, 202);
    lacking(&client, &session, 1).await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    let waits = lacking(&client, &session, 1).await;
    let needs = json!({ "version": "1", "registered": ["2"] });
    assert_eq!(waits["session"]["needs_version"], needs);
    assert_eq!((&waits["session"]["status"], lacked(&waits)), (&json!("WAITING"), 1));
    assert!(!statuses(&waits).contains(&"AGENT_LOST"), "{:?}", statuses(&waits));
    let (_, list) = client.get("/api/sessions").await;
    assert_eq!(list["sessions"][0]["needs_version"], needs);
    assert_eq!(resume(&client, &session, &json!({})).await.0, 202);
    lacking(&client, &session, 2).await;
    for (body, code) in [
        (json!({ "as_version": "1" }), "SameVersion"),
        (json!({ "as_version": "" }), "InvalidVersion"),
        (json!({ "as_version": "2\n" }), "InvalidVersion"),
        (json!({ "as": "2" }), "InvalidBody"),
    ] {
        let (_, refused) = resume(&client, &session, &body).await;
        assert_eq!(refused["code"], code, "{body} {refused}");
    }
    let moved = json!({ "as_version": "2", "by": "root", "principal": "token:root" });
    let ana = Client::sending(&after, &[("x-daybook-user", "ana")]);
    let (status, reply) = resume(&ana, &session, &moved).await;
    assert_eq!((status, &reply["step"]), (202, &json!(4)), "{reply}");
    let result = finish(&after, &client, &session, question).await;
    assert_eq!(result["said_by"], json!(["later"]));
    let shown = shown(&client, &session).await;
    assert_eq!(versions(&shown), ["1", "2", "2"]);
    let note = &shown["steps"][3];
    assert_eq!(note["outcome"], json!({ "from": "1", "to": "2" }), "{note:#}");
    let principal = json!({ "kind": "os-user", "name": "ana", "vouched_by": null });
    assert_eq!(note["principal"], principal, "{note:#}");
    after.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_when_its_version_is_back() {
    let folder = TempDir::new().unwrap();
    let (session, question) = parked(&folder).await;
    let without = stack_of(folder.path(), Agent::of(&LATER), 1).await;
    let client = Client::new(&without);
    assert_eq!(answer(&client, &session, &edit(question)).await.0, 202);
    lacking(&client, &session, 1).await;
    without.shutdown().await;
    let without = stack_of(folder.path(), Agent::of(&LATER), 1).await;
    let client = Client::new(&without);
    lacking(&client, &session, 1).await;
    without.shutdown().await;
    let with = stack_of(folder.path(), both(), 1).await;
    let client = Client::new(&with);
    let result = finish(&with, &client, &session, question).await;
    assert_eq!(result["said_by"], json!([]));
    assert_eq!(versions(&shown(&client, &session).await), ["1", "1", "1"]);
    with.shutdown().await;
}
