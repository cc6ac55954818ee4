//! Every service that a task can call, called by custom state machines in whole stacks.

use std::path::Path;

use serde_json::{Value, json};
use stack::functions::File;
use stack::names::{RUNTIME_ARN, STATE_MACHINE_ARN};
use stack::stack::{Config, Stack};
use tempfile::TempDir;
use workflow::contract::AgentRequest;
use workflow::trigger::Trigger;

use crate::stack::{Client, config, statuses};
use crate::world::{SESSION, TIMEOUT};

/// A stack with a custom state machine and its functions.
struct Own {
    folder: TempDir,
    stack: Stack,
    client: Client,
}

impl Own {
    async fn start(states: Value, functions: Value) -> Self {
        let folder = TempDir::new().unwrap();
        let first = states.as_object().unwrap().keys().next().unwrap();
        let machine = json!({ "QueryLanguage": "JSONata", "StartAt": first, "States": states });
        let functions = json!({ "functions": functions }).to_string();
        let path = |name: &str| (name == "PATH").then(|| "/usr/bin:/bin".to_owned());
        let config = Config {
            workflow: Some(machine.to_string()),
            functions: File::parse(&functions, folder.path(), path).unwrap(),
            ..config(folder.path(), 1)
        };
        let stack = Stack::start(config).await.unwrap();
        let client = Client::new(&stack);
        Self { folder, stack, client }
    }

    async fn begin(&self, name: &str, input: &Value) {
        let request = json!({ "stateMachineArn": STATE_MACHINE_ARN, "name": name, "input": input.to_string() });
        let (status, answer) = self.client.aws("AWSStepFunctions.StartExecution", &request).await;
        assert_eq!(status, 200, "{answer}");
    }

    async fn run(&self, input: &Value) -> Value {
        self.begin("once", input).await;
        self.client.ended("once").await
    }
}

/// A task that calls a service and returns its response.
fn task(resource: &str, arguments: Value) -> Value {
    json!({
        "Type": "Task", "Resource": format!("arn:aws:states:::{resource}"),
        "Arguments": arguments, "End": true,
    })
}

fn shell(script: &str) -> Value {
    json!({ "command": "sh", "args": ["-c", script], "timeout_s": 60 })
}

fn output(execution: &Value) -> Value {
    assert_eq!(execution["status"], "SUCCEEDED", "{execution:#}");
    serde_json::from_str(execution["output"].as_str().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_gets_the_payload_and_responds() {
    let mut call = task("lambda:invoke", json!({ "FunctionName": "count", "Payload": [1, 2, 3] }));
    call["Output"] = json!("{% $states.result.Payload %}");
    let functions = json!({ "count": shell(r#"printf '{"bytes": %s}' "$(wc -c)""#) });
    let own = Own::start(json!({ "Call": call }), functions).await;
    assert_eq!(output(&own.run(&json!({})).await), json!({ "bytes": "[1,2,3]".len() }));
    own.stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catch_matches_the_error_that_a_command_reports() {
    let mut call = task("lambda:invoke", json!({ "FunctionName": "order" }));
    call["Catch"] = json!([{
        "ErrorEquals": ["NoStock"], "Output": "{% $parse($states.errorOutput.Cause) %}", "Next": "Caught",
    }]);
    let states = json!({ "Call": call, "Caught": { "Type": "Succeed" } });
    let said = r#"echo '{"errorType": "NoStock", "errorMessage": "sold out"}'; exit 1"#;
    let own = Own::start(states, json!({ "order": shell(said) })).await;
    assert_eq!(
        output(&own.run(&json!({})).await),
        json!({ "errorType": "NoStock", "errorMessage": "sold out" })
    );
    own.stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_is_called_by_its_functions_arn() {
    let own_url = Own::start(json!({ "Done": { "Type": "Succeed" } }), json!({})).await;
    let call = json!({
        "Type": "Task", "Resource": "arn:aws:lambda:us-east-1:000000000000:function:away", "End": true,
    });
    // Any server will do; this one refuses the request.
    let url = format!("{}/api/sessions/none/cancel", own_url.stack.url());
    let own = Own::start(json!({ "Call": call }), json!({ "away": { "url": url } })).await;
    let execution = own.run(&json!({})).await;
    assert_eq!(execution["error"], "Lambda.Unknown", "{execution:#}");
    let cause = execution["cause"].as_str().unwrap();
    assert!(cause.contains("the function's URL answered with status 4"), "{cause}");
    own.stack.shutdown().await;
    own_url.stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_task_continues_when_its_token_is_sent() {
    let mut call = task(
        "lambda:invoke.waitForTaskToken",
        json!({ "FunctionName": "ask", "Payload": "{% $states.context.Task.Token %}" }),
    );
    call["TimeoutSeconds"] = json!(TIMEOUT.as_secs());
    let ask = shell("cat >token.part && mv token.part token");
    let own = Own::start(json!({ "Call": call }), json!({ "ask": ask })).await;
    own.begin("once", &json!({})).await;
    let file = own.folder.path().join("token");
    let asked = async {
        while !file.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, asked).await.expect("the function is called");
    let token: String = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let success = json!({ "taskToken": token, "output": r#"{"said": "yes"}"# });
    let (status, answer) = own.client.aws("AWSStepFunctions.SendTaskSuccess", &success).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(output(&own.client.ended("once").await), json!({ "said": "yes" }));
    own.stack.shutdown().await;
}

/// The key of an item, and the item.
fn item(sk: &str, more: &Value) -> Value {
    let mut item = json!({ "PK": { "S": format!("SESSION#{SESSION}") }, "SK": { "S": sk } });
    item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    item
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_writes_reads_and_queries_the_journals_table() {
    let table = "daybook-journal";
    let absent = "attribute_not_exists(PK)";
    let note = item("WAIT", &json!({ "Note": { "S": "one" } }));
    let key = item("WAIT", &json!({}));
    let states = json!({
        "Put": task("dynamodb:putItem", json!({ "TableName": table, "Item": note, "ConditionExpression": absent })),
        "Update": task("aws-sdk:dynamodb:updateItem", json!({
            "TableName": table, "Key": key, "UpdateExpression": "SET Note = :two",
            "ConditionExpression": "Note = :one",
            "ExpressionAttributeValues": { ":one": { "S": "one" }, ":two": { "S": "two" } },
        })),
        "Get": task("dynamodb:getItem", json!({ "TableName": table, "Key": key })),
        "Query": task("aws-sdk:dynamodb:query", json!({
            "TableName": table, "KeyConditionExpression": "PK = :session",
            "ExpressionAttributeValues": { ":session": { "S": format!("SESSION#{SESSION}") } },
        })),
    });
    let mut states = states;
    for (state, next, assigned) in
        [("Put", "Update", "put"), ("Update", "Get", "updated"), ("Get", "Query", "got")]
    {
        states[state].as_object_mut().unwrap().remove("End");
        states[state]["Next"] = json!(next);
        states[state]["Assign"] = json!({ assigned: "{% $states.result %}" });
    }
    states["Query"]["Output"] = json!([
        "{% $exists($put.SdkHttpMetadata) %}",
        "{% $updated %}",
        "{% $got.Item.Note %}",
        "{% $states.result %}",
    ]);
    let own = Own::start(states, json!({})).await;
    let two = item("WAIT", &json!({ "Note": { "S": "two" } }));
    assert_eq!(
        output(&own.run(&json!({})).await),
        json!([true, {}, { "S": "two" }, { "Count": 1, "Items": [two], "ScannedCount": 1 }])
    );
    own.stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_machine_cannot_change_immutable_records() {
    let table = "daybook-journal";
    let event =
        item("EVENT#2026-11-21T10:30:00.000000000Z", &json!({ "Status": { "S": "forged" } }));
    for (resource, arguments, error) in [
        (
            "dynamodb:putItem",
            json!({ "TableName": table, "Item": event }),
            "DynamoDB.AmazonDynamoDBException",
        ),
        (
            "aws-sdk:dynamodb:updateItem",
            json!({
                "TableName": table, "Key": { "PK": event["PK"], "SK": event["SK"] },
                "UpdateExpression": "SET Detail = :new", "ConditionExpression": "attribute_not_exists(PK)",
                "ExpressionAttributeValues": { ":new": { "S": "forged" } },
            }),
            "DynamoDb.DynamoDbException",
        ),
        (
            "dynamodb:getItem",
            json!({ "TableName": "another", "Key": { "PK": event["PK"], "SK": event["SK"] } }),
            "DynamoDB.ResourceNotFoundException",
        ),
    ] {
        let own = Own::start(json!({ "Call": task(resource, arguments) }), json!({})).await;
        let execution = own.run(&json!({})).await;
        assert_eq!(
            (&execution["status"], &execution["error"]),
            (&json!("FAILED"), &json!(error)),
            "{execution:#}"
        );
        own.stack.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_put_by_a_state_machine_starts_an_execution() {
    let entry = json!({
        "Source": "manual-trigger", "DetailType": "execute-agent", "Detail": { "child": true },
    });
    let mut put = task("events:putEvents", json!({ "Entries": [entry] }));
    put["Output"] = json!("{% $states.result.Entries[0].EventId %}");
    let states = json!({
        "Which": {
            "Type": "Choice", "Default": "Put",
            "Choices": [{ "Condition": "{% $exists($states.input.detail.child) %}", "Next": "Child" }],
        },
        "Put": put,
        "Child": { "Type": "Succeed" },
    });
    let own = Own::start(states, json!({})).await;
    let id = output(&own.run(&json!({})).await);
    let child = output(&own.client.ended(id.as_str().unwrap()).await);
    assert_eq!((&child["session_id"], &child["detail"]), (&id, &json!({ "child": true })));
    own.stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_refused_by_the_bus_fails_the_task() {
    let put =
        task("events:putEvents", json!({ "Entries": [{ "DetailType": "d", "Detail": "{}" }] }));
    let own = Own::start(json!({ "Put": put }), json!({})).await;
    let execution = own.run(&json!({})).await;
    assert_eq!(execution["error"], "EventBridge.FailedEntry", "{execution:#}");
    let cause: Value = serde_json::from_str(execution["cause"].as_str().unwrap()).unwrap();
    assert_eq!(cause["Entries"][0]["ErrorCode"], "InvalidArgument");
    own.stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_machine_invokes_an_agent_directly() {
    let mut call = task(
        "aws-sdk:bedrockagentcore:invokeAgentRuntime",
        json!({
            "AgentRuntimeArn": RUNTIME_ARN, "RuntimeSessionId": SESSION, "Payload": "{% $states.input %}",
        }),
    );
    call["Output"] = json!("{% $parse($states.result.Response).outcome %}");
    let own = Own::start(json!({ "Call": call }), json!({})).await;
    let now = own.stack.clock().now();
    let request = AgentRequest {
        session_id: SESSION.parse().unwrap(),
        invocation_id: "invocation".to_owned(),
        attempt: 1,
        supersedes: 0,
        trigger: Trigger::parse(&json!({"agent": "checkup"})).unwrap(),
        expires_at: now.seconds() + 86_400,
        seen: now,
    };
    let request = serde_json::to_value(request).unwrap();
    assert_eq!(output(&own.run(&request).await), json!("accepted"));
    let (_, shown) = own.client.get(&format!("/api/sessions/{SESSION}")).await;
    assert!(statuses(&shown).contains(&"AGENT_ENTRYPOINT_STARTED"), "{shown:#}");
    own.stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_runtime_fails_the_task_with_awss_error() {
    let call = task(
        "aws-sdk:bedrockagentcore:invokeAgentRuntime",
        json!({ "AgentRuntimeArn": RUNTIME_ARN.replace("daybook", "other"), "Payload": {} }),
    );
    let own = Own::start(json!({ "Call": call }), json!({})).await;
    let execution = own.run(&json!({})).await;
    assert_eq!(execution["error"], "BedrockAgentCore.ResourceNotFoundException", "{execution:#}");
    own.stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsupported_resource_fails_with_the_supported_ones() {
    let call = task("sqs:sendMessage", json!({ "QueueUrl": "q", "MessageBody": "m" }));
    let own = Own::start(json!({ "Call": call }), json!({})).await;
    let execution = own.run(&json!({})).await;
    assert_eq!(execution["error"], "States.Runtime");
    let cause = execution["cause"].as_str().unwrap();
    for words in [
        "sqs:sendMessage",
        "lambda:invoke",
        "aws-sdk:dynamodb",
        "events:putEvents",
        "invokeAgentRuntime",
    ] {
        assert!(cause.contains(words), "{words}: {cause}");
    }
    own.stack.shutdown().await;
}

#[test]
fn commands_are_relative_to_the_functions_file() {
    let file = json!({ "functions": { "f": { "command": "./f" } } }).to_string();
    let file = File::parse(&file, Path::new("/srv/functions"), |_| None).unwrap();
    assert!(format!("{file:?}").contains("/srv/functions/./f"));
}
