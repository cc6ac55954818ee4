//! Parking the workflow on a token, and records written meanwhile.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use journal::step::Ending;
use journal::wait::Wait;
use serde_json::{Value, json};
use workflow::contract::Judgement;

use crate::sealing::{World, world_at};

/// A request to the state machine's endpoint: the action and its body.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// A world with a fake endpoint that records callbacks. Every execution is running.
pub async fn world() -> (World, Asked) {
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    let serve = move |headers: HeaderMap, body: Bytes| {
        let action = headers["x-amz-target"].to_str().unwrap().to_owned();
        seen.lock().unwrap().push((action, serde_json::from_slice(&body).unwrap()));
        async { r#"{"status":"RUNNING"}"# }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/", post(serve));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (world_at(&endpoint), asked)
}

#[tokio::test]
async fn a_session_that_ends_while_parking_wakes_the_workflow() {
    let (world, asked) = world().await;
    world.agent_ends(Ending::Completed).await;
    let reply = world.park("a-token").await;
    assert_eq!((reply.status, reply.verdict), (Judgement::Busy, None));
    let expected = ("AWSStepFunctions.SendTaskSuccess", json!("a-token"));
    let asked = asked.lock().unwrap();
    let found: Vec<_> =
        asked.iter().map(|(action, body)| (action.as_str(), body["taskToken"].clone())).collect();
    assert_eq!(found, [expected]);
}

#[tokio::test]
async fn while_the_agent_is_at_work_the_token_waits_in_the_journal() {
    let (world, asked) = world().await;
    let reply = world.park("a-token").await;
    assert_eq!(reply.status, Judgement::Busy);
    let wait = Wait::read(&world.store, &world.session).await.unwrap().unwrap();
    assert_eq!(wait.token, "a-token");
    assert!(asked.lock().unwrap().is_empty());
}
