//! Our workflow's text on ministack, which has a Step Functions, a Lambda and a DynamoDB of its own:
//! each course of a session has the same history there as here, calls the functions with the same
//! payloads and leaves the same journal.
//!
//! What ministack (1.5.33) does otherwise is taken off both histories before they are compared, each
//! in the place that says so below. Two things it cannot do, and gets in the nearest form:
//!
//! - A task that waits for a callback takes `TimeoutSeconds` as a number only: its text has one where
//!   ours has an expression ([`Course::text`]).
//! - It knows no `HeartbeatSeconds`: where a heartbeat is missed here, there the task is failed with the
//!   name that this has ([`Ministack::send`]).
//!
//! Its `TimeoutSeconds` of the whole machine and its `Output` of a `Succeed` state do nothing. No course
//! meets the first; the second would only tell in `Duplicate`.

mod server;

use std::time::Duration;

use local::dynamodb;
use local::executions::Callback;
use local::functions::Answer;
use serde_json::{Value, json};

use crate::world::{self, Folder, SESSION, accepted, failed};
use server::Ministack;

/// A session's course: what the functions answer, and what comes to the workflow while it is parked.
struct Course {
    script: world::Script,
    /// In the order of parking.
    parkings: &'static [Comes],
    /// What the parked task's time is in ministack's text, seconds.
    timeout_s: u32,
}

/// What comes to a parked workflow.
#[derive(Clone, Copy)]
enum Comes {
    /// The token, with success.
    Success,
    /// Nothing, not even a heartbeat.
    Nothing,
    /// Heartbeats, for as long as they are taken.
    Heartbeats,
}

/// No timeout of a course that meets none.
const LONG_S: u32 = 9_000;

#[tokio::test]
async fn a_session_that_succeeds_has_the_history_that_it_has_on_ministack() {
    fn script(kind: &str, n: usize, payload: &Value) -> Answer {
        match (kind, n) {
            ("invoke", _) => accepted(),
            ("check", 0) => busy(payload, LONG_S, LONG_S - 1),
            ("check", _) => world::verdict("COMPLETED", "SUCCEEDED", payload),
            _ => Ok(json!({ "parked": true })),
        }
    }
    let parkings = &[Comes::Success];
    let told = same(Course { script, parkings, timeout_s: 60 }).await;
    assert!(told.is_none_or(|told| told.last().unwrap()["type"] == "ExecutionSucceeded"));
}

#[tokio::test]
async fn an_agent_that_fails_has_the_history_that_it_has_on_ministack() {
    fn script(kind: &str, n: usize, payload: &Value) -> Answer {
        match (kind, n) {
            ("invoke", _) => accepted(),
            ("check", 0) => busy(payload, LONG_S, LONG_S - 1),
            ("check", _) => world::verdict("FAILED", "FAILED", payload),
            _ => Ok(json!({ "parked": true })),
        }
    }
    let parkings = &[Comes::Success];
    let told = same(Course { script, parkings, timeout_s: 60 }).await;
    assert!(told.is_none_or(|told| told.last().unwrap()["cause"] == "ToolError: X - y"));
}

#[tokio::test]
async fn an_invocation_that_is_refused_has_the_history_that_it_has_on_ministack() {
    fn script(kind: &str, _: usize, payload: &Value) -> Answer {
        match kind {
            "invoke" => failed(workflow::error_name::INVOCATION_FAILED),
            _ => world::verdict("FAILED", "FAILED", payload),
        }
    }
    let told = same(Course { script, parkings: &[], timeout_s: 60 }).await;
    let refused = |event: &Value| event["error"] == workflow::error_name::INVOCATION_FAILED;
    assert!(told.is_none_or(|told| told.iter().any(refused)));
}

#[tokio::test]
async fn an_agent_that_is_lost_has_the_history_that_it_has_on_ministack() {
    fn script(kind: &str, n: usize, payload: &Value) -> Answer {
        match (kind, n) {
            ("invoke", _) => accepted(),
            ("check", 0) => busy(payload, LONG_S, 5),
            ("check", 1) => {
                assert_eq!(payload["woken"], "silence");
                world::judged("LOST", payload)
            }
            ("check", 2) => busy(payload, LONG_S, LONG_S - 1),
            ("check", _) => world::verdict("COMPLETED", "SUCCEEDED", payload),
            _ => Ok(json!({ "parked": true })),
        }
    }
    let parkings = &[Comes::Nothing, Comes::Success];
    let told = same(Course { script, parkings, timeout_s: 60 }).await;
    let invoked =
        |event: &&Value| event["type"] == "TaskStateEntered" && event["name"] == "InvokeAgent";
    assert!(told.is_none_or(|told| told.iter().filter(invoked).count() == 2));
}

#[tokio::test]
async fn a_session_that_runs_out_of_time_has_the_history_that_it_has_on_ministack() {
    fn script(kind: &str, n: usize, payload: &Value) -> Answer {
        match (kind, n) {
            ("invoke", _) => accepted(),
            ("check", 0) => busy(payload, 200, 199),
            ("check", _) => {
                assert_eq!(payload["woken"], "timeout");
                world::verdict("TIMED_OUT", "TIMED_OUT", payload)
            }
            _ => Ok(json!({ "parked": true })),
        }
    }
    let parkings = &[Comes::Heartbeats];
    let told = same(Course { script, parkings, timeout_s: 1 }).await;
    assert!(told.is_none_or(|told| told.iter().any(|event| event["error"] == "States.Timeout")));
}

/// The poller's reply while the agent is at work: how long to park, and how long to bear silence.
fn busy(payload: &Value, timeout_s: u32, heartbeat_s: u32) -> Answer {
    let mut reply = world::judged("BUSY", payload)?;
    reply["watch"]["timeout_s"] = json!(timeout_s);
    reply["watch"]["heartbeat_s"] = json!(heartbeat_s);
    Ok(reply)
}

/// What a course leaves behind, as far as both tell it.
#[derive(Debug, PartialEq)]
struct Left {
    history: Vec<Value>,
    calls: Vec<(String, Value)>,
    journal: Value,
}

/// Has a session take a course here and there, and returns the history that both have; `None` if this
/// run has no ministack.
async fn same(course: Course) -> Option<Vec<Value>> {
    let ministack = Ministack::start(&course.text(), course.script).await?;
    let (ours, theirs) = (here(&course).await, there(&course, ministack).await);
    assert_eq!(ours.history, theirs.history);
    assert_eq!(ours.calls, theirs.calls);
    assert_eq!(ours.journal, theirs.journal);
    Some(ours.history)
}

impl Course {
    /// The workflow's text as ministack can run it.
    fn text(&self) -> String {
        let expression = r#""TimeoutSeconds": "{% $watch.timeout_s %}""#;
        let text = world::text();
        assert_eq!(text.matches(expression).count(), 1, "it is the parked task's alone");
        text.replace(expression, &format!(r#""TimeoutSeconds": {}"#, self.timeout_s))
    }
}

async fn here(course: &Course) -> Left {
    let folder = Folder::new();
    let world = folder.open(course.script).await;
    let arn = world.start(SESSION).await;
    for (n, comes) in course.parkings.iter().enumerate() {
        let token = world.parked(n).await;
        match comes {
            Comes::Success => {
                world.executions.send(&token, Callback::Success(json!({}))).await.unwrap();
            }
            Comes::Nothing => {}
            Comes::Heartbeats => {
                while world.executions.send(&token, Callback::Heartbeat).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }
    world.ended(&arn).await;
    let body = query().to_string();
    let journal = dynamodb::handle(&world.store, "Query", body.as_bytes()).await.unwrap();
    let calls = world.calls.lock().unwrap().clone();
    let left = left(&world.history(&arn).await, calls, &journal);
    world.close().await;
    left
}

async fn there(course: &Course, ministack: Ministack) -> Left {
    let arn = ministack.begin(SESSION).await;
    for (n, comes) in course.parkings.iter().enumerate() {
        let token = world::parked(&ministack.calls, n).await;
        ministack.send(&token, *comes).await;
    }
    let history = ministack.history_at_its_end(&arn).await;
    let journal = ministack.ask("DynamoDB_20120810.Query", &query()).await.unwrap();
    let calls = ministack.calls.lock().unwrap().clone();
    left(&history, calls, &journal)
}

/// Asks for a session's records.
fn query() -> Value {
    json!({
        "TableName": dynamodb::TABLE_NAME,
        "KeyConditionExpression": "PK = :session",
        "ExpressionAttributeValues": { ":session": { "S": format!("SESSION#{SESSION}") } },
    })
}

fn left(history: &[Value], calls: Vec<(String, Value)>, journal: &Value) -> Left {
    let mut history: Vec<Value> = history.iter().filter_map(told).collect();
    forget_output_of_default(&mut history);
    let calls = calls.into_iter().map(|(kind, payload)| (kind, plain(&payload))).collect();
    Left { history, calls, journal: plain(&journal["Items"]) }
}

/// An event as far as both engines tell it: its type, and of its details the state's name, input,
/// output, error, cause and resource. Ministack tells neither `previousEventId` nor the variables that
/// a state assigns nor what a task is scheduled with; times, and with them ids, are each run's own.
fn told(event: &Value) -> Option<Value> {
    let kind = event["type"].as_str().unwrap();
    // Ministack tells that a task is scheduled and how it ended, and nothing of what lies between.
    if ["TaskStarted", "TaskSubmitted"].contains(&kind) {
        return None;
    }
    let members = event.as_object().unwrap();
    let (_, details) = members.iter().find(|(name, _)| name.ends_with("EventDetails")).unwrap();
    // A task that runs out of time has failed, to ministack, and of what in a sentence of its own.
    let mut told = json!({ "type": if kind == "TaskTimedOut" { "TaskFailed" } else { kind } });
    for member in ["name", "input", "output", "error", "cause"] {
        if let Some(value) = details.get(member) {
            told[member] = text(value);
        }
    }
    if ["States.Timeout", "States.HeartbeatTimeout"].map(Value::from).contains(&told["error"]) {
        told.as_object_mut().unwrap().remove("cause");
    }
    if let Some(resource) = details["resource"].as_str() {
        let service = details["resourceType"].as_str().unwrap_or_default();
        told["resource"] = match resource.strip_prefix("arn:") {
            Some(_) => json!(resource),
            None => json!(format!("arn:aws:states:::{service}:{resource}")),
        };
    }
    Some(told)
}

/// Ministack passes a `Choice` state's input on when the default is taken, whatever its `Output` says.
/// Only `Judge`'s matters, which hands the verdict on; `Failure` reads it from a variable.
fn forget_output_of_default(history: &mut [Value]) {
    for at in 1..history.len() {
        if history[at]["type"] == "FailStateEntered" {
            history[at].as_object_mut().unwrap().remove("input");
            history[at - 1].as_object_mut().unwrap().remove("output");
        }
    }
}

/// A text that may be of JSON.
fn text(value: &Value) -> Value {
    let parsed = value.as_str().and_then(|text| serde_json::from_str(text).ok());
    plain(&parsed.unwrap_or_else(|| value.clone()))
}

/// A value without what is a run's own (tokens, times), without what ministack leaves out of a service's
/// answer, and with numbers by value.
fn plain(value: &Value) -> Value {
    const EACH_RUN_S: [&str; 4] = ["asked_at", "now", "invoked_at", "token"];
    const HERE_ALONE: [&str; 3] = ["ExecutedVersion", "SdkHttpMetadata", "SdkResponseMetadata"];
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !HERE_ALONE.contains(&name.as_str()));
            let plain = kept.map(|(name, value)| match name.as_str() {
                own if EACH_RUN_S.contains(&own) => (name.clone(), json!("*")),
                // What the functions are told of a failure is itself JSON text.
                "Cause" => (name.clone(), text(value)),
                _ => (name.clone(), plain(value)),
            });
            Value::Object(plain.collect())
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Number(number) => json!(number.as_f64()),
        other => other.clone(),
    }
}
