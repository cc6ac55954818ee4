//! Sessions whose workflow ends without a verdict in the journal.

use serde_json::{Value, json};
use stack::stack::{Config, Stack};
use tempfile::TempDir;

use crate::stack::{Client, config, statuses};
use crate::world::TIMEOUT;

/// A stack whose workflow goes from the first record straight to this state.
async fn broken_off(folder: &TempDir, state: Value) -> Stack {
    let text = workflow::state_machine::with_substitutions(&[]);
    let mut text: Value = serde_json::from_str(&text).unwrap();
    let mut first = text["States"]["InitializeSession"].take();
    first["Next"] = json!("Off");
    first.as_object_mut().unwrap().remove("Catch");
    text["StartAt"] = json!("InitializeSession");
    text["States"] = json!({ "InitializeSession": first, "Off": state });
    let workflow = Some(text.to_string());
    Stack::start(Config { workflow, ..config(folder.path(), 1) }).await.unwrap()
}

async fn verdict(client: &Client, session: &str) -> Value {
    let looking = async {
        loop {
            let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
            let ended = shown["session"]["ended_at"].is_string() || shown["ended_at"].is_string();
            if ended {
                return shown;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, looking).await.expect("a verdict")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_workflow_breaks_still_gets_its_verdict() {
    let folder = TempDir::new().unwrap();
    let fails = json!({ "Type": "Fail", "Error": "Broken", "Cause": "on purpose" });
    let stack = broken_off(&folder, fails).await;
    let client = Client::new(&stack);
    let session = client.trigger(&json!({})).await;
    let shown = verdict(&client, &session).await;
    assert_eq!(statuses(&shown), ["SESSION_INITIATED", "SESSION_FAILED"], "{shown:#}");
    assert!(shown.to_string().contains("ExecutionFailed - stale watchdog timeout"), "{shown:#}");
    assert!(shown.to_string().contains(r#""error_category":"stale""#), "{shown:#}");
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_stopped_before_its_start_gets_its_verdict() {
    let folder = TempDir::new().unwrap();
    let stack = broken_off(&folder, json!({ "Type": "Wait", "Seconds": 3_600, "End": true })).await;
    let client = Client::new(&stack);
    let session = client.trigger(&json!({})).await;
    let arn = stack::names::execution_arn("daybook", &session);
    let (status, _) =
        client.aws("AWSStepFunctions.StopExecution", &json!({ "executionArn": arn })).await;
    assert_eq!(status, 200);
    let shown = verdict(&client, &session).await;
    assert!(shown.to_string().contains("ExecutionStopped - stale watchdog timeout"), "{shown:#}");
    stack.shutdown().await;
}
