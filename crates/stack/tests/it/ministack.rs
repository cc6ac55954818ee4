//! Runs the workflow's definition on ministack, which has its own Step Functions, Lambda and DynamoDB.
//! Each scenario must have the same history, the same function payloads and the same journal as here.
//!
//! Known differences of ministack 1.5.33 are removed from both histories before the comparison; each
//! place says which. Two missing features are replaced by the nearest one:
//!
//! - `TimeoutSeconds` of a task that waits for a callback must be a number: its definition has one
//!   instead of our expression ([`Course::text`]).
//! - There is no `HeartbeatSeconds`: instead of a missed heartbeat, the task fails with the error name
//!   of one ([`Ministack::send`]).
//!
//! Ministack ignores `TimeoutSeconds` of the whole machine and `Output` of a `Succeed` state. No
//! scenario reaches the first; the second would only show in `Duplicate`.

mod server;

use std::time::Duration;

use serde_json::{Value, json};
use stack::dynamodb;
use stack::executions::Callback;
use stack::functions::Answer;

use crate::world::{self, Folder, SESSION, accepted, failed};
use server::Ministack;

/// A scenario: the functions' responses, and what happens to the workflow while it is parked.
struct Course {
    script: world::Script,
    /// In the order of parking.
    parkings: &'static [Comes],
    /// The parked task's timeout in ministack's definition, in seconds.
    timeout_s: u32,
}

/// What a parked workflow receives.
#[derive(Clone, Copy)]
enum Comes {
    /// A success with its token.
    Success,
    /// Nothing, not even a heartbeat.
    Nothing,
    /// Heartbeats until they are refused.
    Heartbeats,
}

/// The timeout of a scenario that reaches none.
const LONG_S: u32 = 9_000;

#[tokio::test]
async fn a_successful_sessions_history_equals_ministacks() {
    fn script(kind: &str, n: usize, payload: &Value) -> Answer {
        match (kind, n) {
            ("invoke", _) => accepted(),
            ("check", 0) => busy(payload, LONG_S, LONG_S - 1),
            ("check", _) => world::verdict("COMPLETED", "SUCCEEDED", payload),
            _ => Ok(json!({ "parked": true })),
        }
    }
    let parkings = &[Comes::Success];
    let history = same(Course { script, parkings, timeout_s: 60 }).await;
    assert!(history.is_none_or(|history| history.last().unwrap()["type"] == "ExecutionSucceeded"));
}

#[tokio::test]
async fn a_failed_agents_history_equals_ministacks() {
    fn script(kind: &str, n: usize, payload: &Value) -> Answer {
        match (kind, n) {
            ("invoke", _) => accepted(),
            ("check", 0) => busy(payload, LONG_S, LONG_S - 1),
            ("check", _) => world::verdict("FAILED", "FAILED", payload),
            _ => Ok(json!({ "parked": true })),
        }
    }
    let parkings = &[Comes::Success];
    let history = same(Course { script, parkings, timeout_s: 60 }).await;
    assert!(history.is_none_or(|history| history.last().unwrap()["cause"] == "ToolError: X - y"));
}

#[tokio::test]
async fn a_refused_invocations_history_equals_ministacks() {
    fn script(kind: &str, _: usize, payload: &Value) -> Answer {
        match kind {
            "invoke" => failed(workflow::error_name::INVOCATION_FAILED),
            _ => world::verdict("FAILED", "FAILED", payload),
        }
    }
    let history = same(Course { script, parkings: &[], timeout_s: 60 }).await;
    let refused = |event: &Value| event["error"] == workflow::error_name::INVOCATION_FAILED;
    assert!(history.is_none_or(|history| history.iter().any(refused)));
}

#[tokio::test]
async fn a_lost_agents_history_equals_ministacks() {
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
    let history = same(Course { script, parkings, timeout_s: 60 }).await;
    let invoked =
        |event: &&Value| event["type"] == "TaskStateEntered" && event["name"] == "InvokeAgent";
    assert!(history.is_none_or(|history| history.iter().filter(invoked).count() == 2));
}

#[tokio::test]
async fn a_timed_out_sessions_history_equals_ministacks() {
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
    let history = same(Course { script, parkings, timeout_s: 1 }).await;
    assert!(
        history
            .is_none_or(|history| history.iter().any(|event| event["error"] == "States.Timeout"))
    );
}

/// The poller's reply while the agent works: how long to park, and the heartbeat timeout.
fn busy(payload: &Value, timeout_s: u32, heartbeat_s: u32) -> Answer {
    let mut reply = world::judged("BUSY", payload)?;
    reply["watch"]["timeout_s"] = json!(timeout_s);
    reply["watch"]["heartbeat_s"] = json!(heartbeat_s);
    Ok(reply)
}

/// What a scenario leaves behind, in comparable form.
#[derive(Debug, PartialEq)]
struct Left {
    history: Vec<Value>,
    calls: Vec<(String, Value)>,
    journal: Value,
}

/// Runs a scenario on both engines and returns their common history; `None` if this run has no
/// ministack.
async fn same(course: Course) -> Option<Vec<Value>> {
    let ministack = Ministack::start(&course.text(), course.script).await?;
    let (ours, theirs) = (here(&course).await, there(&course, ministack).await);
    assert_eq!(ours.history, theirs.history);
    assert_eq!(ours.calls, theirs.calls);
    assert_eq!(ours.journal, theirs.journal);
    Some(ours.history)
}

impl Course {
    /// The workflow's definition in a form that ministack can run.
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

/// The query for a session's records.
fn query() -> Value {
    json!({
        "TableName": dynamodb::TABLE_NAME,
        "KeyConditionExpression": "PK = :session",
        "ExpressionAttributeValues": { ":session": { "S": format!("SESSION#{SESSION}") } },
    })
}

fn left(history: &[Value], calls: Vec<(String, Value)>, journal: &Value) -> Left {
    let mut history: Vec<Value> = history.iter().filter_map(comparable).collect();
    forget_output_of_default(&mut history);
    let calls = calls.into_iter().map(|(kind, payload)| (kind, plain(&payload))).collect();
    let mut journal = plain(&journal["Items"]);
    for start in journal.as_array_mut().unwrap().iter_mut().filter_map(|it| it.get_mut("WallTime"))
    {
        *start = json!("the start of the execution, which differs in each run");
    }
    Left { history, calls, journal }
}

/// The comparable part of an event: its type, and the state's name, input, output, error, cause and
/// resource. Ministack has neither `previousEventId` nor assigned variables nor a scheduled task's
/// parameters. Times and ids differ in each run.
fn comparable(event: &Value) -> Option<Value> {
    let kind = event["type"].as_str().unwrap();
    // Ministack records a task's schedule and end, and nothing between.
    if ["TaskStarted", "TaskSubmitted"].contains(&kind) {
        return None;
    }
    let members = event.as_object().unwrap();
    let (_, details) = members.iter().find(|(name, _)| name.ends_with("EventDetails")).unwrap();
    // On ministack a task that times out has failed, with a cause in its own words.
    let mut event = json!({ "type": if kind == "TaskTimedOut" { "TaskFailed" } else { kind } });
    for member in ["name", "input", "output", "error", "cause"] {
        if let Some(value) = details.get(member) {
            event[member] = text(value);
        }
    }
    if ["States.Timeout", "States.HeartbeatTimeout"].map(Value::from).contains(&event["error"]) {
        event.as_object_mut().unwrap().remove("cause");
    }
    if let Some(resource) = details["resource"].as_str() {
        let service = details["resourceType"].as_str().unwrap_or_default();
        event["resource"] = match resource.strip_prefix("arn:") {
            Some(_) => json!(resource),
            None => json!(format!("arn:aws:states:::{service}:{resource}")),
        };
    }
    Some(event)
}

/// Ministack passes a `Choice` state's input on when the default is taken, whatever its `Output` is.
/// Only `Judge` has such an output: it passes the verdict on, and `Failure` reads it from a variable.
fn forget_output_of_default(history: &mut [Value]) {
    for at in 1..history.len() {
        if history[at]["type"] == "FailStateEntered" {
            history[at].as_object_mut().unwrap().remove("input");
            history[at - 1].as_object_mut().unwrap().remove("output");
        }
    }
}

/// A text, parsed if it is JSON.
fn text(value: &Value) -> Value {
    let parsed = value.as_str().and_then(|text| serde_json::from_str(text).ok());
    plain(&parsed.unwrap_or_else(|| value.clone()))
}

/// A value without tokens and times, which differ in each run, and without the response fields that
/// ministack omits. Numbers are compared by value.
fn plain(value: &Value) -> Value {
    const EACH_RUN_S: [&str; 4] = ["asked_at", "now", "invoked_at", "token"];
    const HERE_ALONE: [&str; 3] = ["ExecutedVersion", "SdkHttpMetadata", "SdkResponseMetadata"];
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !HERE_ALONE.contains(&name.as_str()));
            let plain = kept.map(|(name, value)| match name.as_str() {
                own if EACH_RUN_S.contains(&own) => (name.clone(), json!("*")),
                // The functions get a failure as a JSON text.
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
