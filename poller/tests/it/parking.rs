//! Parking the workflow on a token, and records written meanwhile.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use journal::id::SessionId;
use journal::lease::{Hold, WhyHeld, hold};
use journal::step::Ending;
use journal::wait::{Turn, Wait};
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

/// Another session, which has waited for a place for this many seconds.
async fn waits_for_a_place(world: &World, id: &str, seconds: u64) {
    let session: SessionId = id.parse().unwrap();
    let held = Hold { why: WhyHeld::Capacity, agent: "a".to_owned(), invocation: Some(1) };
    let since = world.now().before(std::time::Duration::from_secs(seconds));
    let expires_at = world.expires_at();
    hold(&world.store, &session, 0, held, since, expires_at).await.unwrap();
    let turn = Turn { resumes: 0, checks: 1, retry: 0 };
    Wait::write(&world.store, &session, id, turn, expires_at).await.unwrap();
}

#[tokio::test]
async fn an_ended_session_offers_its_place_to_the_longest_wait() {
    const SECOND: &str = "0290a5c4-7b1e-7cc3-98c4-dc0c0c07398f";
    const FIRST: &str = "0390a5c4-7b1e-7cc3-98c4-dc0c0c07398f";
    let (world, asked) = world().await;
    waits_for_a_place(&world, SECOND, 60).await;
    waits_for_a_place(&world, FIRST, 3_600).await;
    world.agent_ends(Ending::Completed).await;
    assert_eq!(world.check().await.status, Judgement::Completed);
    let asked = asked.lock().unwrap();
    let woken: Vec<_> = asked.iter().map(|(_, body)| body["taskToken"].clone()).collect();
    assert_eq!(woken, [json!(FIRST)]);
}
