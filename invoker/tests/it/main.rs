//! The invoker against a fake of the agent runtime on loopback, through the real SDK client.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod admission;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentcore::Runtime;
use aws_credential_types::Credentials;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Response};
use axum::routing::post;
use graph::profile::Limits;
use invoker::admission::Rules;
use invoker::{Error, Invoker};
use journal::clock::{Clock, Stamp};
use journal::event::EventStatus;
use journal::id::SessionId;
use journal::lease::{Lease, WhyHeld};
use journal::read;
use journal::sqlite::{Durability, SqliteStore};
use journal::status::Status;
use journal::tally::Reported;
use serde_json::{Value, json};
use workflow::contract::{AgentRequest, InvokeOutcome, InvokeReply, InvokeRequest};

/// The fake's response: status, error type, body; and how much of the body it sends.
#[derive(Clone)]
struct Answer {
    status: u16,
    error_type: &'static str,
    body: Value,
    cut: bool,
}

struct World {
    _folder: tempfile::TempDir,
    store: SqliteStore,
    invoker: Invoker<SqliteStore>,
    calls: Arc<Mutex<Vec<(AgentRequest, HeaderMap)>>>,
}

fn session() -> SessionId {
    "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap()
}

pub(crate) fn now() -> Stamp {
    Stamp::parse("2026-11-21T10:00:00Z").unwrap()
}

pub(crate) fn request(detail: Value) -> InvokeRequest {
    InvokeRequest {
        session_id: session(),
        execution_arn: "arn".to_owned(),
        detail,
        expires_at: now().after(Duration::from_secs(90 * 86_400)).seconds(),
        seen: now(),
        asked_at: now(),
        invocation: 1,
        retry: 0,
        supersedes: 0,
    }
}

fn accepted() -> Answer {
    let body = json!({ "outcome": "accepted", "seen": "2026-11-21T10:00:07.000000001Z" });
    Answer { status: 200, error_type: "", body, cut: false }
}

fn fault(status: u16, error_type: &'static str, message: &str) -> Answer {
    Answer { status, error_type, body: json!({ "message": message }), cut: false }
}

async fn world(answer: Option<Answer>) -> World {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("journal.db"), Durability::Relaxed).unwrap();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    match answer {
        None => drop(listener),
        Some(answer) => {
            let seen = Arc::clone(&calls);
            let serve = move |headers: HeaderMap, body: Bytes| {
                let request = serde_json::from_slice(&body).unwrap();
                seen.lock().unwrap().push((request, headers));
                let answer = answer.clone();
                async move { respond(&answer) }
            };
            let router = Router::new().route("/runtimes/{arn}/invocations", post(serve));
            tokio::spawn(async move { axum::serve(listener, router).await });
        }
    }
    let client = aws_sdk_bedrockagentcore::Client::from_conf(
        aws_sdk_bedrockagentcore::Config::builder()
            .behavior_version_latest()
            .region(aws_sdk_bedrockagentcore::config::Region::new("us-east-1"))
            .credentials_provider(Credentials::from_keys("local", "local", None))
            .endpoint_url(endpoint)
            .build(),
    );
    let arn = "arn:aws:bedrock-agentcore:us-east-1:000000000000:runtime/daybook-local".to_owned();
    let runtime = Runtime { client, arn, qualifier: None };
    let rules = Rules { agents: packs::all().into(), limits: Limits::default() };
    let invoker = Invoker::new(store.clone(), runtime, Clock::fixed(now())).with_rules(rules);
    World { _folder: folder, store, invoker, calls }
}

fn respond(answer: &Answer) -> Response<Body> {
    let text = answer.body.to_string();
    let response = Response::builder()
        .status(answer.status)
        .header("content-type", "application/json")
        .header("x-amzn-errortype", answer.error_type);
    if answer.cut {
        let declared = response.header("content-length", text.len() + 10);
        return declared.body(Body::from_stream(futures_cut(text))).unwrap();
    }
    response.body(Body::from(text)).unwrap()
}

/// A body that ends in an error after its first bytes.
fn futures_cut(
    text: String,
) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static {
    let cut = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    futures_util::stream::iter([Ok(Bytes::from(text)), Err(cut)])
}

impl World {
    async fn invoke(&self, detail: Value) -> Result<InvokeReply, Error> {
        self.invoker.handle(request(detail)).await
    }

    async fn journal(&self) -> Vec<(EventStatus, Option<String>)> {
        let events = read::events(&self.store, &session()).await.unwrap();
        let told = |event: &journal::event::Event| event.error.as_ref().map(ToString::to_string);
        events.iter().map(|event| (event.status, told(event))).collect()
    }
}

#[tokio::test]
async fn a_call_is_journaled_before_and_after_it_is_made() {
    let world = world(Some(accepted())).await;
    let reply = world
        .invoke(json!({ "agent": "incident", "input": { "lambda_name": "f" } }))
        .await
        .unwrap();
    assert_eq!(reply.outcome, InvokeOutcome::Accepted);
    assert!(
        reply.seen > Stamp::parse("2026-11-21T10:00:07Z").unwrap(),
        "the reply's stamp was seen"
    );
    let told = [
        (EventStatus::AgentInvocationStarted, None),
        (EventStatus::AgentInvocationSucceeded, None),
    ];
    assert_eq!(world.journal().await, told);
    let calls = world.calls.lock().unwrap();
    let (request, headers) = &calls[0];
    assert_eq!(request.trigger.agent, "incident");
    assert_eq!(headers["x-amzn-bedrock-agentcore-runtime-session-id"], session().as_str());
}

#[tokio::test]
async fn a_retried_invoker_announces_nothing_twice() {
    let world = world(Some(accepted())).await;
    world.invoke(json!({})).await.unwrap();
    world.invoke(json!({})).await.unwrap();
    assert_eq!(world.journal().await.len(), 2);
    let calls = world.calls.lock().unwrap();
    assert_eq!(calls[0].0.invocation_id, calls[1].0.invocation_id);
}

#[tokio::test]
async fn a_refused_call_differs_from_one_maybe_accepted() {
    let refusal = json!({ "error": "InputError: InvalidInput - input field `x`", "seen": "2026-11-21T10:00:01Z" });
    let wrapped = format!("Received error (400) from runtime: {refusal}");
    for (answer, name, failed) in [
        (
            fault(500, "InternalServerException", "oops"),
            "InvocationThrottled",
            Some("ClientError: InternalServerException - oops"),
        ),
        (
            fault(403, "AccessDeniedException", "no"),
            "InvocationFailed",
            Some("ClientError: AccessDeniedException - no"),
        ),
        (
            fault(404, "ResourceNotFoundException", "no runtime"),
            "InvocationFailed",
            Some("ClientError: ResourceNotFoundException - no runtime"),
        ),
        (
            fault(424, "RuntimeClientError", &wrapped),
            "InvocationFailed",
            Some("InputError: InvalidInput - input field `x`"),
        ),
        (fault(424, "RuntimeClientError", "container crashed"), "InvocationUnknown", None),
        (Answer { cut: true, ..accepted() }, "InvocationUnknown", None),
        (Answer { body: json!("?"), ..accepted() }, "InvocationUnknown", None),
    ] {
        let what = format!("{} {}", answer.status, answer.body);
        let world = world(Some(answer)).await;
        let error = world.invoke(json!({})).await.unwrap_err();
        assert_eq!(error.name(), name, "{what}: {error}");
        let mut told = vec![(EventStatus::AgentInvocationStarted, None)];
        told.extend(failed.map(|text| (EventStatus::AgentInvocationFailed, Some(text.to_owned()))));
        assert_eq!(world.journal().await, told, "{what}");
        assert_eq!(world.calls.lock().unwrap().len(), 1, "{what}: one call, no retries of the SDK");
    }
}

#[tokio::test]
async fn a_session_without_a_place_waits_since_it_first_asked() {
    for (status, code, message) in [
        (429, "ThrottlingException", "Rate exceeded"),
        (402, "ServiceQuotaExceededException", "maxVms limit exceeded"),
    ] {
        let world = world(Some(fault(status, code, message))).await;
        let reply = world.invoke(json!({ "agent": "incident" })).await.unwrap();
        assert_eq!(reply.outcome, InvokeOutcome::Queued, "{code}");
        let events = read::events(&world.store, &session()).await.unwrap();
        let told = events[1].detail.as_ref().unwrap();
        assert_eq!(told["outcome"], "queued");
        assert_eq!(told["why"], format!("ClientError: {code} - {message}"));
        assert_eq!(journal::status::status(&events), Status::Waiting);
        let lease = Lease::read(&world.store, &session()).await.unwrap().unwrap();
        let hold = lease.hold().unwrap();
        assert_eq!((hold.why, hold.agent.as_str()), (WhyHeld::Capacity, "incident"));
        assert_eq!((hold.invocation, lease.heartbeat_at), (Some(1), now()));

        // It asks again, and keeps its place.
        let since = now().before(Duration::from_secs(3_600));
        let waiting = Lease { heartbeat_at: since, ..lease };
        waiting.write(&world.store, &session(), request(json!({})).expires_at).await.unwrap();
        let again = InvokeRequest { invocation: 2, ..request(json!({ "agent": "incident" })) };
        let reply = world.invoker.handle(again).await.unwrap();
        assert_eq!(reply.outcome, InvokeOutcome::Queued, "{code}");
        let lease = Lease::read(&world.store, &session()).await.unwrap().unwrap();
        assert_eq!(lease.hold().unwrap().invocation, Some(2));
        assert_eq!(lease.heartbeat_at, since);
    }
}

#[tokio::test]
async fn a_failed_connection_was_certainly_not_accepted() {
    let world = world(None).await;
    let error = world.invoke(json!({})).await.unwrap_err();
    assert_eq!(error.name(), "InvocationThrottled", "{error}");
    let journal = world.journal().await;
    assert_eq!(journal[1].0, EventStatus::AgentInvocationFailed);
    assert!(
        journal[1].1.as_ref().unwrap().starts_with("InvocationError: ConnectFailed"),
        "{journal:?}"
    );
}

#[tokio::test]
async fn a_malformed_detail_fails_before_anything_is_called() {
    let world = world(Some(accepted())).await;
    let error = world.invoke(json!({ "agnet": "incident" })).await.unwrap_err();
    assert_eq!(error.name(), "InvalidTrigger");
    let journal = world.journal().await;
    assert_eq!(journal.len(), 1);
    assert!(
        journal[0].1.as_ref().unwrap().starts_with("InvalidTrigger: InvalidField - detail.agnet")
    );
    assert!(world.calls.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_detail_that_is_too_large_is_rejected_with_its_verdict() {
    let world = world(Some(accepted())).await;
    let reply = world.invoke(json!({ "input": { "x": "y".repeat(100_000) } })).await.unwrap();
    assert_eq!(reply.outcome, InvokeOutcome::Rejected);
    let journal = world.journal().await;
    assert_eq!(journal[0].0, EventStatus::SessionRejected);
    assert!(
        journal[0].1.as_ref().unwrap().starts_with("Rejected: TooLarge - detail: 100018 bytes")
    );
    assert!(world.calls.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_session_without_admission_is_rejected_uninvoked() {
    let world = world(Some(accepted())).await;
    let other = Other::claims(&world, "i-1").await;
    let detail = json!({ "agent": "incident", "input": { "incident_id": "i-1" } });
    let reply = world.invoke(detail).await.unwrap();
    assert_eq!(reply.outcome, InvokeOutcome::Rejected);
    let why = format!(
        "Rejected: Duplicate - session {} already has the deduplication key `i-1`",
        other.0
    );
    assert_eq!(world.journal().await, [(EventStatus::SessionRejected, Some(why))]);
    assert!(world.calls.lock().unwrap().is_empty());
}

/// Another session that was admitted under a key.
struct Other(SessionId);

impl Other {
    async fn claims(world: &World, key: &str) -> Self {
        let detail = json!({ "agent": "incident", "dedupe_key": key });
        let request = InvokeRequest { session_id: SessionId::fresh(), ..request(detail) };
        let session = request.session_id.clone();
        world.invoker.handle(request).await.unwrap();
        world.calls.lock().unwrap().clear();
        Self(session)
    }
}

#[tokio::test]
async fn an_admission_is_journaled() {
    let world = world(Some(accepted())).await;
    let detail = json!({ "agent": "incident", "input": { "incident_id": "i-1" } });
    world.invoke(detail.clone()).await.unwrap();
    world.invoke(detail).await.unwrap();
    let events = read::events(&world.store, &session()).await.unwrap();
    let detail = events[0].detail.as_ref().unwrap();
    assert_eq!(detail["admitted"]["dedupe_key"], "i-1");
    assert!(detail["admitted"]["slot"].as_u64().unwrap() < 20, "{detail}");
    assert_eq!(events.len(), 2, "a second attempt tells nothing new");
}

#[tokio::test]
async fn a_session_that_never_starts_keeps_agent_title_and_input() {
    let input = json!({ "incident_id": "i-1", "lambda_name": "sync", "error_type": "ETIMEDOUT" });
    let duplicate = json!({ "agent": "incident", "input": input });
    let malformed = json!({ "agent": "incident", "input": input, "agnet": 1 });
    let unreachable = duplicate.clone();
    let mut large = duplicate.clone();
    large["input"]["x"] = json!("y".repeat(100_000));
    for (what, detail, runtime) in [
        ("duplicate", duplicate, Some(accepted())),
        ("malformed", malformed, Some(accepted())),
        ("unreachable", unreachable, None),
        ("large", large, Some(accepted())),
    ] {
        let world = world(runtime).await;
        if what == "duplicate" {
            Other::claims(&world, "i-1").await;
        }
        let _ = world.invoke(detail).await;
        let events = read::events(&world.store, &session()).await.unwrap();
        let told = events.iter().rev().find_map(|event| event.detail.as_ref()).unwrap();
        assert_eq!(told["agent"], "incident", "{what}: {told}");
        assert_eq!(told["title"], "sync · ETIMEDOUT", "{what}: {told}");
        match what {
            "large" => assert!(told["input"]["omitted"].as_str().unwrap().contains("bytes")),
            _ => assert_eq!(told["input"], input, "{what}: {told}"),
        }
        let reported = Reported::of(&events);
        assert_eq!(reported.agent.as_deref(), Some("incident"), "{what}");
        assert_eq!(reported.title.as_deref(), Some("sync · ETIMEDOUT"), "{what}");
    }
}
