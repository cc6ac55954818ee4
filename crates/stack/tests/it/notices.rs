//! Notices of sessions: what a webhook receives, over failures, kills and restarts.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use axum::routing::post;
use graph::agent::Agent;
use journal::sqlite::{Durability, SqliteStore};
use notify::Settings;
use notify::signature::Secret;
use serde_json::{Value, json};
use stack::stack::{Config, Stack};
use tempfile::TempDir;

use crate::people::ASKER;
use crate::stack::{Client, config};
use crate::world::TIMEOUT;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Passes the pauses between attempts quickly.
const SCALE: u32 = 100;

/// A request of a webhook, whose signature was checked.
#[derive(Clone, Debug)]
struct Received {
    id: String,
    body: Value,
}

/// A server that receives webhooks, and replies with these statuses and then with 204.
#[derive(Clone)]
struct Receiver {
    replies: Arc<Mutex<Vec<u16>>>,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Receiver {
    async fn start(replies: &[u16]) -> (Self, String) {
        let replies = replies.iter().rev().copied().collect();
        let receiver = Self { replies: Arc::new(Mutex::new(replies)), received: Arc::default() };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook?key=secret-of-url", listener.local_addr().unwrap());
        let router = Router::new().route("/hook", post(receive)).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (receiver, url)
    }

    fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    async fn until(&self, count: usize) -> Vec<Received> {
        let waiting = async {
            while self.received().len() < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(TIMEOUT, waiting).await.is_err() {
            panic!("{count} expected: {:#?}", self.received());
        }
        self.received()
    }
}

async fn receive(
    State(receiver): State<Receiver>,
    headers: HeaderMap,
    body: String,
) -> axum::response::Response {
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    let (id, at) = (header("webhook-id"), header("webhook-timestamp"));
    let secret: Secret = SECRET.parse().unwrap();
    assert_eq!(header("webhook-signature"), secret.sign(&id, at.parse().unwrap(), &body));
    assert_eq!(header("content-type"), "application/json");
    let body = serde_json::from_str(&body).unwrap();
    receiver.received.lock().unwrap().push(Received { id, body });
    let status = receiver.replies.lock().unwrap().pop().unwrap_or(204);
    let status = StatusCode::from_u16(status).unwrap();
    (status, [("location", "http://elsewhere.example/hook")]).into_response()
}

fn settings(targets: &Value) -> Settings {
    let text = json!({ "link": "https://daybook.example", "targets": targets }).to_string();
    Settings::parse(&text, |_| Some(SECRET.to_owned())).unwrap()
}

fn hook(name: &str, url: &str) -> Value {
    json!({ "name": name, "kind": "webhook", "url": url, "secret_env": "HOOK" })
}

async fn start(folder: &Path, targets: &Value) -> Stack {
    let agents = packs::all().iter().cloned().chain([Agent::of(&ASKER)]).collect();
    let notify = Some(settings(targets));
    Stack::start(Config { agents, notify, ..config(folder, SCALE) }).await.unwrap()
}

/// The deliveries of a session, once there are `count`.
async fn deliveries(client: &Client, session: &str, count: usize) -> Vec<Value> {
    let waiting = async {
        loop {
            let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
            let told = shown["deliveries"].as_array().cloned().unwrap_or_default();
            if told.len() >= count {
                return told;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap()
}

async fn notices(client: &Client) -> Value {
    client.get("/healthz").await.1["notices"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_told_of_results_questions_and_failures() {
    let folder = TempDir::new().unwrap();
    let (receiver, url) = Receiver::start(&[]).await;
    let stack = start(folder.path(), &json!([hook("pager", &url)])).await;
    let client = Client::new(&stack);
    let result = client.trigger(&json!({ "agent": "checkup" })).await;
    receiver.until(1).await;
    let question = client.trigger(&json!({ "agent": "asker", "input": {} })).await;
    receiver.until(2).await;
    let failure = client.trigger(&json!({ "agent": "nobody" })).await;
    let received = receiver.until(3).await;
    let facts: Vec<_> = received
        .iter()
        .map(|it| (&it.body["type"], &it.body["data"]["session_id"], &it.body["data"]["status"]))
        .collect();
    let expected = [
        ("session.concluded", result.as_str(), "SUCCEEDED"),
        ("question.asked", question.as_str(), "WAITING"),
        ("session.failed", failure.as_str(), "FAILED"),
    ];
    for ((kind, session, status), expected) in facts.iter().zip(expected) {
        assert_eq!(
            (*kind, *session, *status),
            (&json!(expected.0), &json!(expected.1), &json!(expected.2))
        );
    }
    let data = &received[0].body["data"];
    assert_eq!(data["agent"], "checkup");
    assert_eq!(data["link"], format!("https://daybook.example/#/session/{result}"));
    assert!(["fine", "not_fine", "open"].contains(&data["verdict"]["value"].as_str().unwrap()));
    let question = &received[1].body["data"]["question"];
    assert!(question["prompt"].is_string() && question["choices"].is_array(), "{question}");
    assert!(received[2].body["data"]["error"].as_str().unwrap().contains("nobody"));
    let told = deliveries(&client, &result, 1).await;
    assert_eq!((&told[0]["target"], &told[0]["outcome"]), (&json!("pager"), &json!("delivered")));
    let (_, verified) = client.get(&format!("/api/sessions/{result}/verify")).await;
    assert!(!verified.to_string().contains("NOTIFY"), "{verified}");
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_outlives_kills_and_is_told_again_until_taken() {
    let folder = TempDir::new().unwrap();
    let (receiver, url) = Receiver::start(&[503]).await;
    let targets = json!([hook("pager", &url)]);
    let stack = start(folder.path(), &targets).await;
    let client = Client::new(&stack);
    let session = client.trigger(&json!({ "agent": "checkup" })).await;
    receiver.until(1).await;
    // As a kill: nothing is shut down.
    drop(stack);
    let stack = start(folder.path(), &targets).await;
    let client = Client::new(&stack);
    let received = receiver.until(2).await;
    assert_eq!(received[0].id, received[1].id, "a receiver recognizes the repeat");
    assert_eq!(received[0].body, received[1].body);
    let delivered = async {
        while deliveries(&client, &session, 1).await.last().unwrap()["outcome"] != "delivered" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, delivered).await.unwrap();
    stack.shutdown().await;
    // Once told, it is not told again, neither by the cursor nor by its record.
    let stack = start(folder.path(), &targets).await;
    let second = Client::new(&stack).trigger(&json!({ "agent": "checkup" })).await;
    let received = receiver.until(3).await;
    assert_eq!(received[2].body["data"]["session_id"], *second);
    stack.shutdown().await;
    let cursor = journal::store::Key::new("OUTBOX", "pager");
    let store = SqliteStore::open(&folder.path().join("journal.db"), Durability::Fsync).unwrap();
    let set = [("Pos".to_owned(), journal::item::Value::N(0))].into();
    let any = journal::store::Condition::at_most("Pos", i64::MAX);
    journal::store::Store::update(&store, cursor, set, any).await.unwrap();
    drop(store);
    let stack = start(folder.path(), &targets).await;
    let third = Client::new(&stack).trigger(&json!({ "agent": "checkup" })).await;
    let received = receiver.until(4).await;
    assert_eq!(received[3].body["data"]["session_id"], *third, "records outlive a lost cursor");
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_fails_delays_no_other_and_is_named() {
    let folder = TempDir::new().unwrap();
    let (_, moved) = Receiver::start(&[307; 20]).await;
    let (gone, gone_url) = Receiver::start(&[410]).await;
    let (receiver, url) = Receiver::start(&[]).await;
    let targets = json!([hook("moved", &moved), hook("gone", &gone_url), hook("pager", &url)]);
    let stack = start(folder.path(), &targets).await;
    let client = Client::new(&stack);
    let session = client.trigger(&json!({ "agent": "checkup" })).await;
    receiver.until(1).await;
    gone.until(1).await;
    let told = deliveries(&client, &session, 4).await;
    let of =
        |target: &str| -> Vec<&Value> { told.iter().filter(|it| it["target"] == target).collect() };
    assert_eq!(of("moved")[0]["outcome"], "failed");
    assert_eq!(
        of("moved")[0]["reason"],
        "it replied 307 to elsewhere.example; redirects are not followed"
    );
    assert_eq!(of("gone")[0]["outcome"], "undelivered");
    assert_eq!(of("pager")[0]["outcome"], "delivered");
    for shown in [notices(&client).await, json!(told)] {
        assert!(!shown.to_string().contains("secret-of-url"), "{shown}");
    }
    assert_eq!(notices(&client).await["undelivered"].as_array().unwrap().len(), 1);
    stack.shutdown().await;
    let stack = start(folder.path(), &targets).await;
    let client = Client::new(&stack);
    let waiting = async {
        while notices(&client).await["undelivered"].as_array().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_target_is_told_of_what_happens_from_then_on() {
    let folder = TempDir::new().unwrap();
    let stack = Stack::start(config(folder.path(), SCALE)).await.unwrap();
    let client = Client::new(&stack);
    client.ended(&client.trigger(&json!({ "agent": "checkup" })).await).await;
    stack.shutdown().await;
    let (receiver, url) = Receiver::start(&[]).await;
    let wanted = json!({
        "name": "pager", "kind": "webhook", "url": url, "secret_env": "HOOK",
        "on": ["diagnosis"], "agents": ["checkup"],
    });
    let stack =
        start(folder.path(), &json!([wanted, { "name": "bus", "kind": "eventbridge" }])).await;
    let client = Client::new(&stack);
    let asked = client.trigger(&json!({ "agent": "asker", "input": {} })).await;
    let told = deliveries(&client, &asked, 1).await;
    assert_eq!(told[0]["target"], "bus");
    let session = client.trigger(&json!({ "agent": "checkup" })).await;
    deliveries(&client, &session, 2).await;
    let received = receiver.received();
    let of: Vec<_> = received.iter().map(|it| &it.body["data"]["session_id"]).collect();
    assert_eq!(of, [&json!(session)]);
    stack.shutdown().await;
}
