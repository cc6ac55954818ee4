//! A person's actions: over the function's URL, over the bus, and in a callback's output.

use journal::event::EventStatus;
use journal::halt::Halts;
use journal::read;
use journal::step::StepBody;
use serde_json::{Value, json};

use crate::parking;
use crate::sealing::{World, world};

const MACHINE: &str = "arn:aws:states:us-east-1:123456789012:stateMachine:daybook";

const CALLER: &str = "arn:aws:sts::123456789012:assumed-role/Operators/alice";

/// A request as Lambda makes it of one to a function's URL.
fn request(path: &str, iam: &Value, body: &str) -> Value {
    json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
        "headers": { "x-daybook-user": "root", "content-type": "application/json" },
        "requestContext": {
            "accountId": "123456789012", "authentication": null,
            "authorizer": { "iam": iam },
            "http": { "method": "POST", "path": path, "protocol": "HTTP/1.1" },
        },
        "body": body, "isBase64Encoded": false,
    })
}

fn caller() -> Value {
    json!({ "accountId": "123456789012", "callerId": "AROA", "userArn": CALLER })
}

async fn reply(world: &World, request: Value) -> (u64, Value) {
    let reply = world.poller.serve(request).await.unwrap();
    let body = serde_json::from_str(reply["body"].as_str().unwrap()).unwrap();
    (reply["statusCode"].as_u64().unwrap(), body)
}

/// The principal of the newest step, an answer; `None` while the question is open.
async fn answerer(world: &World) -> Option<String> {
    let step = read::newest_step(&world.store, &world.session).await.unwrap().unwrap();
    match step.body {
        StepBody::Answer { principal, .. } => Some(principal.unwrap().to_string()),
        _ => None,
    }
}

#[tokio::test]
async fn an_answer_over_the_url_records_the_callers_arn() {
    let world = world();
    world.agent_asks().await;
    let path = format!("/api/sessions/{}/answer", world.session);
    let said = json!({ "question_id": 2, "decision": "approve", "principal": "token:root",
        "requestContext": { "authorizer": { "iam": { "userArn": "arn:aws:iam::1:root" } } } });
    let (status, body) = reply(&world, request(&path, &caller(), &said.to_string())).await;
    assert_eq!((status, &body["step"]), (202, &json!(3)), "{body}");
    assert_eq!(answerer(&world).await, Some(format!("aws-arn:{CALLER}")));
    let path = format!("/api/sessions/{}/cancel", world.session);
    let (status, body) = reply(&world, request(&path, &caller(), "")).await;
    assert_eq!(status, 202, "{body}");
    let events = read::events(&world.store, &world.session).await.unwrap();
    let cancelled = events.iter().find(|it| it.status == EventStatus::CancelRequested).unwrap();
    assert_eq!(cancelled.principal.as_ref().unwrap().name(), Some(CALLER));
}

#[tokio::test]
async fn a_request_to_the_url_without_a_caller_is_refused() {
    let world = world();
    world.agent_asks().await;
    let path = format!("/api/sessions/{}/answer", world.session);
    let said = json!({ "question_id": 2, "decision": "approve" }).to_string();
    for iam in [json!(null), json!({}), json!({ "userArn": "" }), json!({ "userArn": 7 })] {
        let (status, body) = reply(&world, request(&path, &iam, &said)).await;
        assert_eq!((status, &body["code"]), (403, &json!("Forbidden")), "{iam}");
    }
    let (path, longer) = (path.as_str(), format!("{path}/more"));
    for (path, body, status) in [
        ("/api/sessions/x/answer", "{}", 400),
        ("/api/sessions", "{}", 404),
        (longer.as_str(), "{}", 404),
        (path, "{", 400),
        (path, "{}", 400),
        (path, r#"{"question_id": 1, "decision": "approve"}"#, 409),
    ] {
        assert_eq!(reply(&world, request(path, &caller(), body)).await.0, status, "{path} {body}");
    }
    assert_eq!(answerer(&world).await, None, "the question is open");
}

/// The agent may send the token, too.
#[tokio::test]
async fn in_an_account_no_callback_answers_a_question() {
    let world = world();
    world.agent_asks().await;
    let said = json!({ "question_id": 2, "decision": "approve", "principal": "token:root" });
    let in_account = world.poller.clone().ignoring_answers_of_callbacks();
    world.called_back(&in_account, said.clone()).await;
    assert_eq!(answerer(&world).await, None);
    world.called_back(&world.poller, said).await;
    assert_eq!(answerer(&world).await.as_deref(), Some("unknown"), "a local one does");
}

/// The bus delivers an event again if its first delivery failed.
#[tokio::test]
async fn a_move_by_event_is_taken_once_and_resumes_each_time() {
    let (world, _) = parking::world().await;
    world.agent_asks().await;
    let said = json!({ "session_id": world.session, "question_id": 2, "decision": "approve" });
    let answered = world.poller.serve(json!({ "answer": said })).await.unwrap();
    assert_eq!(answered, json!({ "taken": { "step": 3 } }));
    let poller = world.poller.clone().with_state_machine(Some(MACHINE.to_owned()));
    let detail = json!({ "session_id": world.session, "as_version": "2", "principal": "token:x" });
    for _ in 0..2 {
        let replied = poller.serve(json!({ "resume": detail })).await.unwrap();
        assert_eq!(replied, json!({ "resumed": {} }));
    }
    let step = read::newest_step(&world.store, &world.session).await.unwrap().unwrap();
    assert_eq!((step.seq, journal::version::is_move(&step)), (4, true));
    assert_eq!(step.body.principal().unwrap().to_string(), "unknown");
    let events = read::events(&world.store, &world.session).await.unwrap();
    let requests = events.iter().filter(|it| it.status == EventStatus::ResumeRequested);
    assert_eq!(requests.count(), 1);
    let unnamed = json!({ "session_id": world.session, "as_version": 2 });
    let refused = poller.serve(json!({ "resume": unnamed })).await.unwrap();
    assert!(refused["refused"]["reason"].as_str().unwrap().starts_with("invalid"), "{refused}");
}

#[tokio::test]
async fn a_cancellation_by_event_has_no_known_principal() {
    let world = world();
    world.agent_asks().await;
    let detail = json!({ "session_id": world.session, "reason": "enough", "principal": "token:x" });
    let replied = world.poller.serve(json!({ "cancel": detail })).await.unwrap();
    assert_eq!(replied, json!({ "cancelled": {} }));
    let events = read::events(&world.store, &world.session).await.unwrap();
    let cancelled = events.iter().find(|it| it.status == EventStatus::CancelRequested).unwrap();
    assert_eq!(cancelled.principal.as_ref().unwrap().to_string(), "unknown");
    let refused = world.poller.serve(json!({ "cancel": { "session_id": 7 } })).await.unwrap();
    assert!(refused["refused"]["reason"].as_str().unwrap().starts_with("detail.session_id"));
}

#[tokio::test]
async fn a_halt_over_the_url_has_the_callers_arn() {
    let world = world();
    let poller = world.poller.clone().with_agents(["checkup".to_owned()]);
    let change = async |path: &str, body: &Value| {
        let asked = request(path, &caller(), &body.to_string());
        let reply = Box::pin(poller.serve(asked)).await.unwrap();
        let body: Value = serde_json::from_str(reply["body"].as_str().unwrap()).unwrap();
        (reply["statusCode"].as_u64().unwrap(), body)
    };
    let all = json!({ "scope": "all", "reason": "a bad release" });
    let (status, halted) = change("/api/halt", &all).await;
    assert_eq!((status, &halted["record"]), (202, &json!(1)), "{halted}");
    let in_force = Halts::read(&world.store).await.unwrap().in_force;
    assert_eq!(
        (in_force.len(), in_force[0].by.as_str()),
        (1, format!("aws-arn:{CALLER}").as_str())
    );
    let misspelt = json!({ "scope": "agent:chekup", "reason": "x" });
    let (status, refused) = change("/api/halt", &misspelt).await;
    assert!(status >= 400 && refused["error"].to_string().contains("checkup"), "{refused}");
    for wrong in [json!({}), json!({ "scope": "everything" }), json!({ "scope": "all", "by": "x" })]
    {
        assert_eq!(change("/api/halt", &wrong).await.0, 400, "{wrong}");
    }
    assert_eq!(change("/api/halt", &json!({ "scope": "all", "reason": "" })).await.0, 400);
    let (status, unhalted) = change("/api/unhalt", &json!({ "scope": "all" })).await;
    assert_eq!((status, &unhalted["halts"]), (202, &json!([])), "{unhalted}");
    let nobody = request("/api/halt", &json!(null), &all.to_string());
    assert_eq!(poller.serve(nobody).await.unwrap()["statusCode"], 403);
    assert!(Halts::read(&world.store).await.unwrap().in_force.is_empty());
}
