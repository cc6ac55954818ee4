//! The list of sessions over HTTP: parameters, pages and errors.

use std::time::Duration;

use graph::profile::Limits;
use journal::store::Store as _;
use serde_json::{Value, json};
use stack::stack::{Config, Stack};
use tempfile::TempDir;

use crate::endpoint::parking;
use crate::stack::{Client, config};
use crate::world::TIMEOUT;

fn ids(list: &Value) -> Vec<&str> {
    let sessions = list["sessions"].as_array().unwrap();
    sessions.iter().map(|session| session["session_id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_honours_its_parameters_and_its_pages_join() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    for _ in 0..5 {
        client.trigger(&json!({"agent": "checkup"})).await;
    }
    client.trigger(&json!({"agent": "no-such"})).await;
    // The trigger is accepted before the session's first record exists.
    let listed = async {
        loop {
            let (_, whole) = client.get("/api/sessions").await;
            if ids(&whole).len() == 6 {
                return whole;
            }
            stack.store().changed(Duration::from_millis(20)).await;
        }
    };
    let whole = tokio::time::timeout(TIMEOUT, listed).await.unwrap();
    assert_eq!(
        (ids(&whole).len(), &whole["more"], &whole["searched"]),
        (6, &json!(null), &json!(6))
    );
    let mut paged = Vec::new();
    let mut after = String::new();
    loop {
        let (status, page) = client.get(&format!("/api/sessions?limit=2&after={after}")).await;
        assert_eq!(status, 200, "{page}");
        paged.extend(ids(&page).into_iter().map(str::to_owned));
        let Some(more) = page["more"].as_str() else { break };
        after = more.replace(':', "%3A");
    }
    assert_eq!(paged, ids(&whole));
    for (query, expected) in [
        ("status=FAILED,SUCCEEDED&status=WAITING&status=RUNNING&status=INITIATED", 6),
        ("status=REJECTED", 0),
        ("agent=nobody&status=&text=", 0),
        ("text=NO-SUCH+agent", 0),
        ("since=1h", 6),
        ("until=1h", 0),
        ("until=2000-01-01T00%3A00%3A00Z", 0),
        ("something=else", 6),
    ] {
        let (status, list) = client.get(&format!("/api/sessions?{query}")).await;
        assert_eq!((status, ids(&list).len()), (200, expected), "{query}: {list}");
    }
    let id = ids(&whole)[3];
    let (_, one) = client.get(&format!("/api/sessions?text={}", id[2..30].to_uppercase())).await;
    assert_eq!(ids(&one), [id]);
    for query in
        ["status=BROKEN", "since=yesterday", "until=1", "limit=many", "after=1", "after=%20~%20"]
    {
        let (status, refused) = client.get(&format!("/api/sessions?{query}")).await;
        assert_eq!(status, 400, "{query}: {refused}");
    }
    let (_, counted) = client.get("/api/histogram").await;
    let began =
        counted["buckets"].as_array().unwrap().iter().map(|bucket| bucket["began"].as_u64());
    assert_eq!(began.map(Option::unwrap).sum::<u64>(), 6, "{counted}");
    for query in ["bucket=1s", "since=3000d", "bucket=2000-01-01T00:00:00Z"] {
        let (status, refused) = client.get(&format!("/api/histogram?{query}")).await;
        assert_eq!(status, 400, "{query}: {refused}");
    }
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_session_keeps_its_agent_title_and_input() {
    let folder = TempDir::new().unwrap();
    let admission = Limits::of("incident", 1);
    let stack = Stack::start(Config { admission, ..config(folder.path(), 1) }).await.unwrap();
    let client = Client::new(&stack);
    let input = json!({"incident_id": "i", "lambda_name": "sync", "error_type": "ETIMEDOUT"});
    let rejected = json!({"agent": "incident", "input": input});
    let first = client.trigger(&rejected).await;
    client.ended(&first).await;
    for (detail, filter, status) in [
        (&rejected, "status=REJECTED&agent=incident&state=failed", "REJECTED"),
        (&json!({"agent": "no-such", "input": input}), "agent=no-such", "FAILED"),
        (
            &json!({"agent": "incident", "input": input, "x": 1}),
            "text=InvalidTrigger&agent=incident&state=ERROR",
            "FAILED",
        ),
    ] {
        let id = client.trigger(detail).await;
        client.ended(&id).await;
        let (_, list) = client.get(&format!("/api/sessions?{filter}")).await;
        assert_eq!(ids(&list), [id.as_str()], "{filter}: {list}");
        let session = &list["sessions"][0];
        assert_eq!((&session["agent"], &session["status"]), (&detail["agent"], &json!(status)));
        let title =
            if session["agent"] == "incident" { json!("sync · ETIMEDOUT") } else { Value::Null };
        assert_eq!((&session["title"], &session["result"]), (&title, &Value::Null));
        let (_, shown) = client.get(&format!("/api/sessions/{id}")).await;
        assert_eq!(shown["session"], *session);
        let events = shown["events"].as_array().unwrap();
        assert!(events.iter().any(|event| event["detail"]["input"] == input), "{shown}");
    }
    let (_, health) = client.get("/api/health").await;
    assert_eq!(health["health"]["agents"][0]["name"], "incident", "{health}");
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incident_refused_for_its_input_has_a_state() {
    let folder = TempDir::new().unwrap();
    let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
    let client = Client::new(&stack);
    let id = client.trigger(&json!({"agent": "incident", "input": {"incident_id": "i"}})).await;
    client.ended(&id).await;
    let (_, list) = client.get("/api/sessions?agent=incident&state=error").await;
    assert_eq!(ids(&list), [id.as_str()], "{list}");
    let session = &list["sessions"][0];
    assert_eq!(
        (&session["status"], &session["incident_state"]),
        (&json!("FAILED"), &json!("ERROR"))
    );
    assert!(session["error"].as_str().unwrap().starts_with("InputError: "), "{session}");
    let (_, none) = client.get("/api/sessions?agent=incident&state=DIAGNOSED").await;
    assert_eq!(ids(&none), [""; 0], "{none}");
    stack.shutdown().await;
}
