//! Events about sessions on a bus, which fails at first.

use std::sync::{Arc, Mutex};

use aws_credential_types::Credentials;
use aws_sdk_eventbridge::config::retry::RetryConfig;
use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use journal::step::Ending;
use notify::bus::{ATTEMPTS_MAX, Notices};
use notify::delivery::of_session;
use poller::Poller;
use serde_json::{Value, json};
use workflow::contract::Watch;

use crate::parking;
use crate::sealing::World;

type Put = Arc<Mutex<Vec<Value>>>;

/// A poller whose bus refuses the first entries, and then records them.
async fn poller(world: &World, refusals: usize) -> (Poller<journal::sqlite::SqliteStore>, Put) {
    let put = Put::default();
    let (seen, left) = (Arc::clone(&put), Arc::new(Mutex::new(refusals)));
    let serve = move |body: Bytes| {
        let body: Value = serde_json::from_slice(&body).unwrap();
        let mut left = left.lock().unwrap();
        let reply = if *left > 0 {
            *left -= 1;
            json!({ "FailedEntryCount": 1, "Entries": [{ "ErrorCode": "InternalFailure", "ErrorMessage": "down" }] })
        } else {
            seen.lock().unwrap().push(body["Entries"][0].clone());
            json!({ "FailedEntryCount": 0, "Entries": [{ "EventId": "e" }] })
        };
        async move { (StatusCode::OK, reply.to_string()) }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", post(serve))).await });
    let config = aws_sdk_eventbridge::Config::builder()
        .behavior_version_latest()
        .region(aws_sdk_eventbridge::config::Region::new("us-east-1"))
        .credentials_provider(Credentials::from_keys("local", "local", None))
        .retry_config(RetryConfig::disabled())
        .endpoint_url(endpoint)
        .build();
    let client = aws_sdk_eventbridge::Client::from_conf(config);
    let link = Some("https://daybook.example/".to_owned());
    let notices = Notices::new(client, "agents".to_owned(), Arc::new([]), link);
    (world.poller.clone().with_notices(Some(notices)), put)
}

fn request(world: &World, mode: &str) -> Value {
    let now = "2026-11-21T10:00:00Z";
    json!({
        "mode": mode, "session_id": world.session, "execution_arn": "arn",
        "expires_at": 1_800_000_000, "seen": now, "now": now, "woken": "not",
        "token": "a-token", "watch": Watch { invocation: 1, seq: 2, ..Watch::default() },
    })
}

#[tokio::test]
async fn a_verdict_is_put_on_the_bus_once_it_takes_it() {
    let (world, _) = parking::world().await;
    let (poller, put) = poller(&world, 1).await;
    world.agent_ends(Ending::Completed).await;
    let refused = poller.serve(request(&world, "check")).await.unwrap_err();
    assert_eq!(refused.name(), "JournalUnavailable", "the state machine sends it again: {refused}");
    for _ in 0..3 {
        let reply = poller.serve(request(&world, "check")).await.unwrap();
        assert_eq!(reply["status"], "COMPLETED", "{reply}");
    }
    let put = put.lock().unwrap().clone();
    let [entry] = &put[..] else { panic!("{put:#?}") };
    let facts = ["Source", "DetailType", "EventBusName"].map(|name| entry[name].clone());
    assert_eq!(facts, [json!("daybook.session"), json!("Session Concluded"), json!("agents")]);
    let detail: Value = serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap();
    assert_eq!(detail["session_id"], json!(world.session));
    assert_eq!(detail["link"], format!("https://daybook.example/#/session/{}", world.session));
    let told = of_session(&world.store, &world.session).await.unwrap();
    let outcomes: Vec<_> = told.iter().map(|it| it.outcome.as_str()).collect();
    assert_eq!(outcomes, ["failed", "delivered"]);
}

#[tokio::test]
async fn a_bus_that_refuses_ends_no_session() {
    let (world, _) = parking::world().await;
    let (poller, put) = poller(&world, 100).await;
    world.agent_ends(Ending::Failed).await;
    for _ in 1..ATTEMPTS_MAX {
        poller.serve(request(&world, "check")).await.unwrap_err();
    }
    let reply = poller.serve(request(&world, "check")).await.unwrap();
    assert_eq!(reply["status"], "FAILED", "{reply}");
    let told = of_session(&world.store, &world.session).await.unwrap();
    assert_eq!(told.last().unwrap().outcome.reason(), Some("InternalFailure: down"));
    assert_eq!(told.last().unwrap().outcome.as_str(), "undelivered");
    assert!(put.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_question_is_put_on_the_bus_when_the_workflow_parks() {
    let (world, _) = parking::world().await;
    let (poller, put) = poller(&world, 0).await;
    world.agent_asks().await;
    poller.serve(request(&world, "check")).await.unwrap();
    for _ in 0..2 {
        poller.serve(request(&world, "park")).await.unwrap();
    }
    let put = put.lock().unwrap().clone();
    let [entry] = &put[..] else { panic!("{put:#?}") };
    assert_eq!(entry["DetailType"], "Question Asked");
    let detail: Value = serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&detail["question"]["prompt"], &detail["agent"]),
        (&json!("Go on?"), &json!("asker"))
    );
}
