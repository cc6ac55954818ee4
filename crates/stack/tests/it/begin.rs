//! `POST /api/sessions`, the list of agents, and the changes of a list.

use journal::store::Store as _;
use reqwest::Method;
use serde_json::{Value, json};
use stack::stack::Stack;
use tempfile::TempDir;

use crate::endpoint::parking;
use crate::stack::{Client, Response, config, read};
use crate::stream::{Sent, read_to};
use crate::world::TIMEOUT;

/// Sends a start with these headers.
async fn start(client: &Client, headers: &[(&str, &str)], body: &Value) -> Response {
    let mut request = client.request(Method::POST, "/api/sessions").body(body.to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    read(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_idempotency_key_starts_one_session() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    let (body, key) = (json!({ "agent": "checkup" }), ("idempotency-key", "k 1"));
    let keyed = [key];
    let sent = (start(&client, &keyed, &body), start(&client, &keyed, &body));
    let ((first_status, first), (second_status, second)) = tokio::join!(sent.0, sent.1);
    assert_eq!(first["session_id"], second["session_id"], "{first} {second}");
    // Neither of two concurrent requests with the same time need be the later one.
    assert!([first_status, second_status].iter().all(|status| [200, 202].contains(status)));
    let (status, third) = start(&client, &keyed, &body).await;
    assert_eq!((status, &third["is_new"]), (200, &json!(false)), "{third}");
    assert_eq!(third["session_id"], first["session_id"]);
    let (status, reused) = start(&client, &[key], &json!({ "agent": "incident" })).await;
    assert_eq!((status, &reused["code"]), (409, &json!("IdempotencyKeyReused")), "{reused}");
    let of_alice = [key, ("x-daybook-user", "alice")];
    let (_, other) = start(&client, &of_alice, &body).await;
    assert_ne!(other["session_id"], first["session_id"], "a key belongs to its caller");
    let (_, unkeyed) = start(&client, &[], &body).await;
    let (_, again) = start(&client, &[], &body).await;
    assert_ne!(unkeyed["session_id"], again["session_id"]);
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_is_checked_before_there_is_a_session() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    let long = "x".repeat(256);
    let checkup = json!({ "agent": "checkup" });
    for (headers, body, expected, code) in [
        (vec![], json!([]), 400, "InvalidTrigger"),
        (vec![], json!({ "agent": 7 }), 400, "InvalidTrigger"),
        (vec![], json!({ "agent": "checkup", "inputs": {} }), 400, "InvalidTrigger"),
        (vec![], json!({ "agent": "nobody" }), 400, "UnknownAgent"),
        (vec![("idempotency-key", "")], checkup.clone(), 400, "InvalidIdempotencyKey"),
        (vec![("idempotency-key", long.as_str())], checkup.clone(), 400, "InvalidIdempotencyKey"),
        (vec![("origin", "https://evil.example")], checkup.clone(), 403, "Forbidden"),
        (vec![("host", "evil.example")], checkup, 403, "Forbidden"),
    ] {
        let (status, refused) = start(&client, &headers, &body).await;
        assert_eq!((status, &refused["code"]), (expected, &json!(code)), "{body}: {refused}");
    }
    let (_, list) = client.get("/api/sessions").await;
    assert_eq!(list["sessions"], json!([]));
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_records_its_caller_as_a_trigger_does() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let alice = Client::sending(&stack, &[("x-daybook-user", "alice")]);
    let (_, begun) = start(&alice, &[], &json!({ "agent": "checkup" })).await;
    let triggered = alice.trigger(&json!({ "agent": "checkup" })).await;
    let recorded = async |session: &str| {
        crate::endpoint::token(&stack, session).await;
        let (_, shown) = alice.get(&format!("/api/sessions/{session}")).await;
        shown["events"][0]["principal"].clone()
    };
    let by = recorded(begun["session_id"].as_str().unwrap()).await;
    assert_eq!(by["name"], "alice", "{by}");
    assert_eq!(by, recorded(&triggered).await);
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agents_are_listed_with_schemas_and_valid_examples() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    let (status, listed) = client.get("/api/agents").await;
    assert_eq!((status, &listed["can_start"]), (200, &json!(true)));
    for agent in listed["agents"].as_array().unwrap() {
        let schema = &agent["input_schema"];
        assert!(schema.is_object(), "{agent}");
        for example in schema["examples"].as_array().into_iter().flatten() {
            let properties = schema["properties"].as_object().unwrap();
            assert!(example.as_object().unwrap().keys().all(|name| properties.contains_key(name)));
        }
    }
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_followed_by_its_changed_rows() {
    let folder = TempDir::new().unwrap();
    let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
    let client = Client::new(&stack);
    let first = client.trigger(&json!({ "agent": "checkup" })).await;
    client.ended(&first).await;
    let stream = client.request(Method::GET, "/api/changes").send().await.unwrap();
    let holds = |sent: &Sent, id: &str| {
        let order = sent.data["order"].as_array().into_iter().flatten();
        sent.kind == "sessions" && order.clone().any(|known| known == id)
    };
    let (events, stream) = read_to(stream, |sent| holds(sent, &first)).await;
    assert_eq!(events[0].data["sessions"].as_array().map(Vec::len), Some(1));
    let second = client.trigger(&json!({ "agent": "checkup" })).await;
    let (events, _) = read_to(stream, |sent| holds(sent, &second)).await;
    let rows: Vec<_> =
        events.iter().flat_map(|it| it.data["sessions"].as_array().unwrap()).collect();
    assert!(rows.iter().all(|row| row["session_id"] == second.as_str()), "only what changed");
    let refused = client.get("/api/changes?status=BROKEN").await;
    assert_eq!(refused.0, 400, "{}", refused.1);
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_found_by_input_verdict_and_tool() {
    let folder = TempDir::new().unwrap();
    let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
    let client = Client::new(&stack);
    let session = client.trigger(&json!({ "agent": "checkup" })).await;
    let ended = async {
        loop {
            let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
            if shown["session"]["verdict"].is_string() {
                return shown["session"]["verdict"].as_str().unwrap().to_owned();
            }
            stack.store().changed(std::time::Duration::from_millis(20)).await;
        }
    };
    let verdict = tokio::time::timeout(TIMEOUT, ended).await.unwrap().replace(' ', "+");
    for (query, expected) in [
        (format!("verdict={}", verdict.to_uppercase()), 1),
        ("verdict=unheard+of".to_owned(), 0),
        ("tool=configured_servers".to_owned(), 1),
        ("tool=no_such_tool".to_owned(), 0),
        (format!("text={verdict}"), 1),
    ] {
        let (status, list) = client.get(&format!("/api/sessions?{query}")).await;
        let found = list["sessions"].as_array().map(Vec::len);
        assert_eq!((status, found), (200, Some(expected)), "{query}");
    }
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_compressed_for_clients_that_accept_it() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    for path in ["/", "/page/list.js", "/api/agents"] {
        let request = client.request(Method::GET, path).header("accept-encoding", "zstd");
        let answer = request.send().await.unwrap();
        assert_eq!(answer.headers()["content-encoding"], "zstd", "{path}");
        assert_eq!(answer.headers()["vary"], "accept-encoding");
        let plain = client.request(Method::GET, path).send().await.unwrap();
        assert!(!plain.headers().contains_key("content-encoding"), "{path}");
        let plain = plain.bytes().await.unwrap();
        assert!(answer.bytes().await.unwrap().len() * 2 < plain.len(), "{path}");
    }
    stack.shutdown().await;
}
