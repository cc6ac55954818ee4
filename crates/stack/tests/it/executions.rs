//! Executions of the real state machine: every outcome, every error, every crash.

use std::time::Duration;

use asl::history::Failure;
use journal::principal::Principal;
use serde_json::{Value, json};
use stack::executions::{Callback, RUNNING, SendError, StartError, StopError};
use stack::functions::Answer;

use crate::world::{Folder, SESSION, TIMEOUT, accepted, failed, judged, verdict};

/// Busy at the first check, completed at the second.
pub fn success(kind: &str, n: usize, payload: &Value) -> Answer {
    match (kind, n) {
        ("invoke", _) => accepted(),
        ("check", 0) => judged("BUSY", payload),
        ("check", _) => verdict("COMPLETED", "SUCCEEDED", payload),
        _ => Ok(json!({ "parked": true })),
    }
}

#[tokio::test]
async fn a_successful_session_has_the_specified_history() {
    let folder = Folder::new();
    let world = folder.open(success).await;
    let arn = world.start(SESSION).await;
    let token = world.parked(0).await;
    world.executions.send(&token, Callback::Heartbeat).await.unwrap();
    world.executions.send(&token, Callback::Success(json!({}))).await.unwrap();
    let record = world.ended(&arn).await;
    assert_eq!(record.status, "SUCCEEDED");
    let output: Value = serde_json::from_str(&record.output.unwrap()).unwrap();
    assert_eq!(output["session_id"], SESSION);
    assert_eq!(
        world.path(&arn).await,
        [
            "Begin",
            "InitializeSession",
            "InvokeAgent",
            "CheckStatus",
            "Judge",
            "WaitForCompletion",
            "CheckStatus",
            "Judge",
            "Success"
        ]
    );
    let session = SESSION.parse().unwrap();
    let events = journal::read::events(&world.store, &session).await.unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].execution_arn.as_deref(), Some(arn.as_str()));
    insta::assert_json_snapshot!("history_of_a_success", history(&world, &arn).await);
}

/// A history without the values that differ in each run.
async fn history(world: &crate::world::World, arn: &str) -> Vec<Value> {
    let mut history = world.history(arn).await;
    for event in &mut history {
        event["timestamp"] = json!("<time>");
        let mut text = event.to_string();
        for (start, end) in
            [("2026-11-21T10:", "Z"), (r#"RequestId\":\""#, "\\"), (r#"token\":\""#, "\\")]
        {
            text = mask(&text, start, end);
        }
        *event = serde_json::from_str(&text).unwrap();
    }
    history
}

fn mask(text: &str, start: &str, end: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(start) {
        masked.push_str(&rest[..at + start.len()]);
        rest = &rest[at + start.len()..];
        let to = rest.find(end).unwrap();
        masked.push('*');
        rest = &rest[to..];
    }
    masked + rest
}

#[tokio::test]
async fn a_failed_session_fails_the_execution_with_its_verdict() {
    fn script(kind: &str, _: usize, payload: &Value) -> Answer {
        match kind {
            "invoke" => failed(workflow::error_name::INVOCATION_FAILED),
            _ => {
                assert_eq!(payload["failure"]["Error"], workflow::error_name::INVOCATION_FAILED);
                let cause = payload["failure"]["Cause"].as_str().unwrap();
                assert_eq!(
                    cause,
                    r#"{"errorType":"InvocationFailed","errorMessage":"as scripted"}"#
                );
                verdict("FAILED", "FAILED", payload)
            }
        }
    }
    let folder = Folder::new();
    let world = folder.open(script).await;
    let arn = world.start(SESSION).await;
    let record = world.ended(&arn).await;
    assert_eq!(record.status, "FAILED");
    assert_eq!(record.error.as_deref(), Some("SessionFailed"));
    assert_eq!(record.cause.as_deref(), Some("ToolError: X - y"));
    assert_eq!(record.output, None);
}

#[tokio::test]
async fn a_lost_agent_is_invoked_again() {
    fn script(kind: &str, n: usize, payload: &Value) -> Answer {
        match (kind, n) {
            ("invoke", _) => accepted(),
            ("check", 0) => judged("LOST", payload),
            _ => verdict("COMPLETED", "SUCCEEDED", payload),
        }
    }
    let folder = Folder::new();
    let world = folder.open(script).await;
    let arn = world.start(SESSION).await;
    assert_eq!(world.ended(&arn).await.status, "SUCCEEDED");
    assert_eq!(world.called(), ["invoke", "check", "invoke", "check"]);
}

#[tokio::test]
async fn a_lost_agent_is_invoked_again_with_the_lost_epoch() {
    fn script(kind: &str, n: usize, payload: &Value) -> Answer {
        match (kind, n) {
            ("invoke", _) => accepted(),
            ("check", 0) => {
                let mut reply = judged("LOST", payload)?;
                reply["watch"]["epoch"] = json!(4);
                reply["watch"]["invocation"] = json!(5);
                Ok(reply)
            }
            _ => verdict("COMPLETED", "SUCCEEDED", payload),
        }
    }
    let folder = Folder::new();
    let world = folder.open(script).await;
    let arn = world.start(SESSION).await;
    assert_eq!(world.ended(&arn).await.status, "SUCCEEDED");
    let calls = world.calls.lock().unwrap();
    let invoked = calls.iter().filter(|(kind, _)| kind == "invoke");
    let named: Vec<_> = invoked
        .map(|(_, payload)| (payload["supersedes"].clone(), payload["invocation"].clone()))
        .collect();
    assert_eq!(named, [(json!(0), json!(1)), (json!(4), json!(5))]);
}

#[tokio::test]
async fn an_invocation_with_unknown_outcome_is_not_repeated() {
    fn script(kind: &str, _: usize, payload: &Value) -> Answer {
        match kind {
            "invoke" => failed(workflow::error_name::INVOCATION_UNKNOWN),
            _ => {
                assert_eq!(payload["failure"], Value::Null, "no failure");
                verdict("COMPLETED", "SUCCEEDED", payload)
            }
        }
    }
    let folder = Folder::new();
    let world = folder.open(script).await;
    let arn = world.start(SESSION).await;
    assert_eq!(world.ended(&arn).await.status, "SUCCEEDED");
    assert_eq!(world.called(), ["invoke", "check"]);
}

#[tokio::test]
async fn cancelled_and_rejected_sessions_succeed_as_executions() {
    fn cancelled(kind: &str, _: usize, payload: &Value) -> Answer {
        if kind == "invoke" { accepted() } else { verdict("CANCELLED", "CANCELLED", payload) }
    }
    fn rejected(kind: &str, _: usize, payload: &Value) -> Answer {
        if kind == "invoke" { accepted() } else { verdict("REJECTED", "REJECTED", payload) }
    }
    for (script, last) in [(cancelled as crate::world::Script, "Cancelled"), (rejected, "Rejected")]
    {
        let folder = Folder::new();
        let world = folder.open(script).await;
        let arn = world.start(SESSION).await;
        assert_eq!(world.ended(&arn).await.status, "SUCCEEDED");
        assert_eq!(world.path(&arn).await.last().unwrap(), last);
    }
}

#[tokio::test]
async fn a_throttled_invoker_is_retried() {
    fn script(kind: &str, n: usize, payload: &Value) -> Answer {
        match (kind, n) {
            ("invoke", 0 | 1) => failed(workflow::error_name::INVOCATION_THROTTLED),
            ("invoke", _) => accepted(),
            _ => verdict("COMPLETED", "SUCCEEDED", payload),
        }
    }
    let folder = Folder::new();
    let world = folder.open(script).await;
    let arn = world.start(SESSION).await;
    assert_eq!(world.ended(&arn).await.status, "SUCCEEDED");
    let calls = world.calls.lock().unwrap();
    let retries: Vec<_> =
        calls.iter().take(3).map(|(_, payload)| payload["retry"].clone()).collect();
    assert_eq!(retries, [json!(0), json!(1), json!(2)]);
}

#[tokio::test]
async fn a_missed_heartbeat_and_a_timeout_lead_to_a_check() {
    fn script(kind: &str, n: usize, payload: &Value) -> Answer {
        match (kind, n) {
            ("invoke", _) => accepted(),
            ("check", 0) => judged("BUSY", payload),
            ("check", 1) => {
                assert_eq!(payload["woken"], "silence");
                let mut reply = judged("WAITING", payload)?;
                reply["watch"]["timeout_s"] = json!(20);
                reply["watch"]["heartbeat_s"] = json!(19);
                Ok(reply)
            }
            ("check", 2) => verdict("COMPLETED", "SUCCEEDED", payload),
            _ => Ok(json!({})),
        }
    }
    let folder = Folder::new();
    let world = folder.open(script).await;
    let arn = world.start(SESSION).await;
    assert_eq!(world.ended(&arn).await.status, "SUCCEEDED");
    assert!(world.types(&arn).await.contains(&"TaskTimedOut".to_owned()));
}

#[tokio::test]
async fn a_second_delivery_of_an_event_ends_as_a_duplicate() {
    let folder = Folder::new();
    let world = folder.open(success).await;
    let first = world.start(SESSION).await;
    let token = world.parked(0).await;
    let second = world.start("another-name").await;
    let record = world.ended(&second).await;
    assert_eq!(record.status, "SUCCEEDED");
    assert_eq!(world.path(&second).await, ["Begin", "InitializeSession", "Duplicate"]);
    let failed = world
        .history(&second)
        .await
        .into_iter()
        .find(|event| event["type"] == "TaskFailed")
        .unwrap();
    let details = &failed["taskFailedEventDetails"];
    assert_eq!(details["error"], "DynamoDB.ConditionalCheckFailedException");
    assert!(details["cause"].as_str().unwrap().starts_with("The conditional request failed"));
    world.executions.send(&token, Callback::Success(json!({}))).await.unwrap();
    assert_eq!(world.ended(&first).await.status, "SUCCEEDED");
}

#[tokio::test]
async fn a_poller_that_keeps_failing_has_the_session_closed() {
    fn script(kind: &str, _: usize, payload: &Value) -> Answer {
        match kind {
            "invoke" => accepted(),
            "check" => failed(workflow::error_name::JOURNAL_DAMAGED),
            _ => {
                assert_eq!(payload["failure"]["Error"], workflow::error_name::JOURNAL_DAMAGED);
                verdict("FAILED", "FAILED", payload)
            }
        }
    }
    let folder = Folder::new();
    let world = folder.open(script).await;
    let arn = world.start(SESSION).await;
    assert_eq!(world.ended(&arn).await.status, "FAILED");
    assert_eq!(world.called(), ["invoke", "check", "close"]);
}

#[tokio::test]
async fn a_start_is_idempotent_while_the_execution_runs() {
    let folder = Folder::new();
    let world = folder.open(success).await;
    let arn = world.start(SESSION).await;
    let token = world.parked(0).await;
    assert_eq!(world.start(SESSION).await, arn);
    let start = |name: &str, input: &str| {
        let request = stack::executions::Request { name: name.to_owned(), input: input.to_owned() };
        world.executions.start(request)
    };
    assert!(matches!(start(SESSION, "{}").await, Err(StartError::AlreadyExists(_))));
    assert!(matches!(start("a b", "{}").await, Err(StartError::InvalidName(_))));
    assert!(matches!(start("", "{}").await, Err(StartError::InvalidName(_))));
    assert!(matches!(start("x", "{").await, Err(StartError::InvalidInput(_))));
    let large = format!("\"{}\"", "x".repeat(262_144));
    assert!(matches!(start("x", &large).await, Err(StartError::TooLarge(_))));
    world.executions.send(&token, Callback::Success(json!({}))).await.unwrap();
    let record = world.ended(&arn).await;
    assert!(matches!(start(SESSION, &record.input).await, Err(StartError::AlreadyExists(_))));
}

#[tokio::test]
async fn a_token_is_good_once_and_for_its_own_task() {
    let folder = Folder::new();
    let world = folder.open(success).await;
    let arn = world.start(SESSION).await;
    let token = world.parked(0).await;
    let send = |token: String| async move { token };
    let mut forged = token.clone();
    forged.replace_range(forged.len() - 4.., "0000");
    let absent = token.replacen(&token[..2], "62", 1);
    for (token, expected) in [
        ("nonsense".to_owned(), "InvalidToken"),
        (forged, "InvalidToken"),
        (absent, "DoesNotExist"),
    ] {
        let refusal = world.executions.send(&send(token).await, Callback::Heartbeat).await;
        assert!(format!("{:?}", refusal.unwrap_err()).starts_with(expected), "{expected}");
    }
    world.executions.send(&token, Callback::Success(json!({}))).await.unwrap();
    let again = world.executions.send(&token, Callback::Success(json!({}))).await;
    assert!(matches!(again, Err(SendError::TimedOut)), "{again:?}");
    world.ended(&arn).await;
    let late = world.executions.send(&token, Callback::Heartbeat).await;
    assert!(matches!(late, Err(SendError::TimedOut)), "{late:?}");
}

#[tokio::test]
async fn a_stopped_execution_is_aborted_and_stays_so() {
    let folder = Folder::new();
    let world = folder.open(success).await;
    let arn = world.start(SESSION).await;
    world.parked(0).await;
    let failure = Failure::new("Stop", Some("by hand".to_owned()));
    let at = world.executions.stop(&arn, failure.clone()).await.unwrap();
    let record = world.ended(&arn).await;
    assert_eq!((record.status.as_str(), record.stopped_at), ("ABORTED", Some(at)));
    assert_eq!(record.error.as_deref(), Some("Stop"));
    assert_eq!(world.executions.stop(&arn, failure.clone()).await.unwrap(), at);
    let absent = arn.replace(SESSION, "nobody");
    assert!(matches!(
        world.executions.stop(&absent, failure).await,
        Err(StopError::DoesNotExist(_))
    ));
}

#[tokio::test]
async fn a_crashing_and_a_missing_function_fail_like_lambda_s() {
    fn script(kind: &str, _: usize, payload: &Value) -> Answer {
        match kind {
            "invoke" => panic!("on purpose"),
            _ => {
                assert_eq!(payload["failure"]["Error"], "Lambda.Unknown");
                verdict("FAILED", "FAILED", payload)
            }
        }
    }
    let folder = Folder::new();
    let world = folder.open(script).await;
    let arn = world.start(SESSION).await;
    assert_eq!(world.ended(&arn).await.status, "FAILED");
}

#[tokio::test]
async fn a_reply_that_is_too_large_is_a_data_limit_error() {
    fn script(kind: &str, _: usize, payload: &Value) -> Answer {
        match kind {
            "invoke" => Ok(json!("x".repeat(300_000))),
            _ => {
                assert_eq!(payload["failure"]["Error"], "States.DataLimitExceeded");
                verdict("FAILED", "FAILED", payload)
            }
        }
    }
    let folder = Folder::new();
    let world = folder.open(script).await;
    let arn = world.start(SESSION).await;
    assert_eq!(world.ended(&arn).await.status, "FAILED");
}

#[tokio::test]
async fn an_execution_continues_after_a_stop_and_a_start() {
    let folder = Folder::new();
    let world = folder.open(success).await;
    let arn = world.start(SESSION).await;
    let token = world.parked(0).await;
    world.close().await;
    let world = folder.open(success_after_park).await;
    assert_eq!(world.executions.describe(&arn).await.unwrap().unwrap().status, RUNNING);
    world.executions.send(&token, Callback::Success(json!({}))).await.unwrap();
    assert_eq!(world.ended(&arn).await.status, "SUCCEEDED");
}

fn success_after_park(kind: &str, _: usize, payload: &Value) -> Answer {
    match kind {
        "check" => verdict("COMPLETED", "SUCCEEDED", payload),
        _ => success(kind, 0, payload),
    }
}

/// Answers only from its input, as the real functions do: it keeps no state.
fn stateless(kind: &str, _: usize, payload: &Value) -> Answer {
    match kind {
        "invoke" => accepted(),
        "check" if payload["woken"] == "not" => {
            let mut reply = judged("BUSY", payload)?;
            reply["watch"]["heartbeat_s"] = json!(3);
            Ok(reply)
        }
        "check" => verdict("COMPLETED", "SUCCEEDED", payload),
        _ => Ok(json!({})),
    }
}

/// Cuts a run's history after each event and restarts: the end is always the same.
#[tokio::test]
async fn every_prefix_of_a_history_leads_to_the_same_end() {
    let folder = Folder::new();
    let world = folder.open(stateless).await;
    let arn = world.start(SESSION).await;
    let whole = world.ended(&arn).await;
    let (path, events) = (world.path(&arn).await, world.history(&arn).await.len());
    let id = whole.id;
    for kept in 0..events {
        let (arn, events) = (arn.clone(), i64::try_from(kept).unwrap());
        world
            .store
            .transact(move |connection| {
                connection.execute(
                    "DELETE FROM execution_event WHERE execution = ?1 AND id > ?2",
                    [id, events],
                )?;
                connection.execute(
                    "UPDATE execution SET status = 'RUNNING', output = NULL, stopped_ms = NULL \
                     WHERE arn = ?1",
                    [arn],
                )
            })
            .await
            .unwrap();
        let again = folder.open_beside(&world, stateless).await;
        let record = again.ended(&whole.arn).await;
        assert_eq!(record.status, "SUCCEEDED", "after {kept} events");
        assert_eq!(record.output, whole.output, "after {kept} events");
        assert_eq!(again.path(&whole.arn).await, path, "after {kept} events");
        tokio::time::timeout(TIMEOUT, again.close()).await.unwrap();
    }
}

#[tokio::test]
async fn a_matching_event_starts_a_session_with_its_id() {
    let folder = Folder::new();
    let world = folder.open(success).await;
    let entry = json!({
        "Source": "manual-trigger", "DetailType": "execute-agent",
        "Detail": r#"{"agent":"incident","input":{"text":"a \"quoted\" <id>"}}"#,
    });
    let other = json!({ "Source": "other", "DetailType": "execute-agent", "Detail": "{}" });
    let bad = json!({ "Source": "manual-trigger", "DetailType": "execute-agent", "Detail": "[]" });
    let answer = world
        .bus
        .put_events(&json!({ "Entries": [entry, other, bad] }), &Principal::Unknown)
        .await
        .unwrap();
    assert_eq!(answer["FailedEntryCount"], 1);
    assert_eq!(answer["Entries"][2]["ErrorCode"], "MalformedDetail");
    let id = answer["Entries"][0]["EventId"].as_str().unwrap();
    let arn = stack::names::execution_arn("daybook", id);
    let record = world.executions.describe(&arn).await.unwrap().unwrap();
    let input: Value = serde_json::from_str(&record.input).unwrap();
    assert_eq!(input["session_id"], id);
    assert_eq!(input["detail"]["input"]["text"], "a \"quoted\" <id>");
    assert!(input["time"].as_str().unwrap().ends_with('Z'));
    let all = world.executions.list(None, None, 10).await.unwrap();
    assert_eq!(all.len(), 1);
}

#[tokio::test]
async fn many_executions_run_side_by_side() {
    let folder = Folder::new();
    let world = folder.open(stateless).await;
    let entry =
        json!({ "Source": "manual-trigger", "DetailType": "execute-agent", "Detail": "{}" });
    let entries: Vec<_> = std::iter::repeat_n(entry, 10).collect();
    for _ in 0..5 {
        world.bus.put_events(&json!({ "Entries": entries }), &Principal::Unknown).await.unwrap();
    }
    let done = async {
        while world.executions.list(Some(RUNNING), None, 1).await.unwrap().len() == 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, done).await.unwrap();
    assert_eq!(world.executions.counts().await.unwrap(), [("SUCCEEDED".to_owned(), 50)]);
}
