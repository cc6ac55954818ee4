//! `RedriveExecution`, as AWS's clients use it, and through crashes.

use std::path::Path;

use journal::sqlite::{Durability, SqliteStore};
use serde_json::{Value, json};
use stack::functions::File;
use stack::names::STATE_MACHINE_ARN;
use stack::stack::{Config, JOURNAL_FILE, Stack};
use tempfile::TempDir;

use crate::machines::{ROLE, created, ended, sfn};
use crate::stack::{Client, config};

/// A function that fails until the file `ready` is there.
const SCRIPT: &str = r#"if [ -e ready ]; then cat; else
echo '{"errorType":"NotReady","errorMessage":"there is no file"}'; exit 1; fi"#;

async fn started(folder: &TempDir) -> Stack {
    let function = json!({ "command": "/bin/sh", "args": ["-c", SCRIPT] });
    let text = json!({ "functions": { "moody": function } }).to_string();
    let path = |name: &str| (name == "PATH").then(|| "/usr/bin:/bin".to_owned());
    let functions = File::parse(&text, folder.path(), path).unwrap();
    Stack::start(Config { functions, ..config(folder.path(), 1) }).await.unwrap()
}

fn call() -> Value {
    json!({
        "Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": true,
        "Parameters": { "FunctionName": "moody", "Payload.$": "$" },
        "ResultSelector": { "got.$": "$.Payload" },
    })
}

/// A Map with three iterations. The second and the third call a function.
fn map() -> Value {
    json!({
        "Type": "Map", "End": true, "MaxConcurrency": 1,
        "ItemProcessor": { "StartAt": "Which", "States": {
            "Which": { "Type": "Choice", "Default": "Call",
                "Choices": [{ "Variable": "$", "NumericEquals": 1, "Next": "Done" }] },
            "Done": { "Type": "Pass", "Result": "kept", "End": true },
            "Call": call(),
        } },
    })
}

async fn start(client: &Client, machine: &str, input: &Value) -> String {
    let start = json!({ "stateMachineArn": machine, "name": "one", "input": input.to_string() });
    let answer = sfn(client, "StartExecution", start).await;
    answer["executionArn"].as_str().unwrap().to_owned()
}

async fn types(client: &Client, arn: &str) -> Vec<String> {
    let history = sfn(client, "GetExecutionHistory", json!({ "executionArn": arn })).await;
    let events = history["events"].as_array().unwrap();
    events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

async fn refused(client: &Client, body: Value) -> (String, String) {
    let (status, refused) = client.aws("AWSStepFunctions.RedriveExecution", &body).await;
    assert_eq!(status, 400, "{refused}");
    let text = |name: &str| refused[name].as_str().unwrap().to_owned();
    (text("__type"), text("message"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_execution_is_redriven_and_says_so() {
    let folder = TempDir::new().unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let machine = created(&client, "moody", map()).await;
    let arn = start(&client, &machine, &json!([1, 2, 3])).await;
    let failed = ended(&client, &arn).await;
    assert_eq!((&failed["status"], &failed["error"]), (&json!("FAILED"), &json!("NotReady")));
    assert_eq!(
        (&failed["redriveStatus"], &failed["redriveCount"]),
        (&json!("REDRIVABLE"), &json!(0))
    );
    assert!(failed.get("redriveStatusReason").is_none() && failed.get("redriveDate").is_none());
    let before = types(&client, &arn).await;

    std::fs::write(folder.path().join("ready"), "").unwrap();
    let request = json!({ "executionArn": arn, "clientToken": "mine" });
    let redriven = sfn(&client, "RedriveExecution", request.clone()).await;
    let done = ended(&client, &arn).await;
    assert_eq!(done["output"], r#"["kept",{"got":2},{"got":3}]"#, "{done}");
    assert_eq!(
        (&done["redriveCount"], &done["redriveDate"]),
        (&json!(1), &redriven["redriveDate"])
    );
    assert_eq!(done["redriveStatusReason"], "Execution is SUCCEEDED and cannot be redriven");
    assert!(done.get("error").is_none() && done.get("cause").is_none(), "{done}");
    let after = types(&client, &arn).await;
    assert_eq!(after[..before.len()], before);
    assert_eq!(after[before.len()..before.len() + 2], ["ExecutionRedriven", "TaskScheduled"]);

    // The same request again, and another one.
    assert_eq!(sfn(&client, "RedriveExecution", request).await, redriven);
    let (code, message) = refused(&client, json!({ "executionArn": arn })).await;
    assert_eq!(code, "ExecutionNotRedrivable");
    assert_eq!(message, "Execution is SUCCEEDED and cannot be redriven");

    for (filter, expected) in [("REDRIVEN", 1), ("NOT_REDRIVEN", 0)] {
        let list = json!({ "stateMachineArn": machine, "redriveFilter": filter });
        let listed = sfn(&client, "ListExecutions", list).await;
        assert_eq!(listed["executions"].as_array().unwrap().len(), expected, "{filter}");
    }
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_redriven_is_refused_with_its_reason() {
    let folder = TempDir::new().unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let unknown = format!("{}:none", STATE_MACHINE_ARN.replace("stateMachine", "execution"));
    for (body, expected) in [
        (json!({ "executionArn": unknown }), "ExecutionDoesNotExist"),
        (json!({ "executionArn": "mine" }), "InvalidArn"),
        (json!({ "executionArn": unknown, "clientToken": "x".repeat(65) }), "ValidationException"),
    ] {
        let (code, _) = refused(&client, body).await;
        assert!(code.ends_with(expected), "{code}");
    }
    let slow =
        created(&client, "slow", json!({ "Type": "Wait", "Seconds": 600, "End": true })).await;
    let arn = start(&client, &slow, &json!({})).await;
    let running = sfn(&client, "DescribeExecution", json!({ "executionArn": arn })).await;
    assert_eq!(running["redriveStatusReason"], "Execution is RUNNING and cannot be redriven");
    assert_eq!(refused(&client, json!({ "executionArn": arn })).await.0, "ExecutionNotRedrivable");

    // An aborted one runs again, and is in the list of running ones.
    sfn(&client, "StopExecution", json!({ "executionArn": arn })).await;
    sfn(&client, "RedriveExecution", json!({ "executionArn": arn })).await;
    let list = json!({ "stateMachineArn": slow, "statusFilter": "RUNNING" });
    let listed = sfn(&client, "ListExecutions", list).await;
    assert_eq!(listed["executions"][0]["redriveCount"], 1, "{listed}");

    let fails = json!({ "StartAt": "A", "States": { "A": { "Type": "Fail" } } }).to_string();
    let express =
        json!({ "name": "quick", "definition": fails, "roleArn": ROLE, "type": "EXPRESS" });
    let express = sfn(&client, "CreateStateMachine", express).await;
    let arn = start(&client, express["stateMachineArn"].as_str().unwrap(), &json!({})).await;
    let failed = ended(&client, &arn).await;
    assert_eq!(failed["redriveStatus"], "NOT_REDRIVABLE");
    assert!(refused(&client, json!({ "executionArn": arn })).await.1.contains("EXPRESS"));
    stack.shutdown().await;
}

/// Stops the stack as a crash would after each event of a redriven execution.
#[tokio::test(flavor = "multi_thread")]
async fn a_redriven_execution_continues_from_every_event() {
    let folder = TempDir::new().unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let machine = created(&client, "moody", map()).await;
    let arn = start(&client, &machine, &json!([1, 2, 3])).await;
    ended(&client, &arn).await;
    std::fs::write(folder.path().join("ready"), "").unwrap();
    sfn(&client, "RedriveExecution", json!({ "executionArn": arn })).await;
    let whole = ended(&client, &arn).await;
    let events = types(&client, &arn).await;
    stack.shutdown().await;
    let redriven = events.iter().position(|it| it == "ExecutionRedriven").unwrap();
    for kept in redriven + 1..events.len() {
        cut(folder.path(), kept).await;
        let stack = started(&folder).await;
        let client = Client::new(&stack);
        let again = ended(&client, &arn).await;
        assert_eq!(again["output"], whole["output"], "after {kept} events");
        assert_eq!(again["redriveCount"], 1, "after {kept} events");
        assert_eq!(types(&client, &arn).await, events, "after {kept} events");
        stack.shutdown().await;
    }
}

async fn cut(data: &Path, kept: usize) {
    let store = SqliteStore::open(&data.join(JOURNAL_FILE), Durability::Relaxed).unwrap();
    let work = move |connection: &rusqlite::Connection| {
        connection.execute("DELETE FROM execution_event WHERE id > ?", [kept as i64])?;
        connection.execute(
            "UPDATE execution SET status = 'RUNNING', output = NULL, stopped_ms = NULL",
            [],
        )
    };
    store.transact(work).await.unwrap();
}
