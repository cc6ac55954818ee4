//! State machines, rules and functions of users, as AWS's clients use them.

use std::time::Duration;

use serde_json::{Value, json};
use stack::functions::File;
use stack::names::{STATE_MACHINE_ARN, execution_arn, machine_arn};
use stack::stack::{Config, Stack};
use tempfile::TempDir;

use crate::stack::{Client, config};
use crate::world::TIMEOUT;

pub const ROLE: &str = "arn:aws:iam::000000000000:role/mine";

async fn started(folder: &TempDir) -> Stack {
    let text = json!({ "functions": { "echo": { "command": "/bin/cat" } } }).to_string();
    let path = |name: &str| (name == "PATH").then(|| "/usr/bin:/bin".to_owned());
    let functions = File::parse(&text, folder.path(), path).unwrap();
    Stack::start(Config { functions, ..config(folder.path(), 1) }).await.unwrap()
}

pub async fn sfn(client: &Client, action: &str, body: Value) -> Value {
    let (status, answer) = client.aws(&format!("AWSStepFunctions.{action}"), &body).await;
    assert_eq!(status, 200, "{action}: {answer}");
    answer
}

async fn events(client: &Client, action: &str, body: Value) -> Value {
    let (status, answer) = client.aws(&format!("AWSEvents.{action}"), &body).await;
    assert_eq!(status, 200, "{action}: {answer}");
    answer
}

/// Creates a machine with one state; returns its ARN.
pub async fn created(client: &Client, name: &str, state: Value) -> String {
    let definition = json!({ "StartAt": "A", "States": { "A": state } }).to_string();
    let body = json!({ "name": name, "definition": definition, "roleArn": ROLE });
    let answer = sfn(client, "CreateStateMachine", body).await;
    answer["stateMachineArn"].as_str().unwrap().to_owned()
}

pub async fn ended(client: &Client, arn: &str) -> Value {
    let waiting = async {
        loop {
            let execution = sfn(client, "DescribeExecution", json!({ "executionArn": arn })).await;
            if execution["status"] != "RUNNING" {
                return execution;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.expect("the execution ends")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_state_machine_is_created_run_and_deleted() {
    let folder = TempDir::new().unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let arn =
        created(&client, "mine", json!({ "Type": "Pass", "Result": { "a": 1 }, "End": true }))
            .await;
    assert_eq!(arn, machine_arn("mine"));
    let listed = sfn(&client, "ListStateMachines", json!({})).await;
    let names: Vec<_> =
        listed["stateMachines"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["daybook", "mine"]);
    let machine = json!({ "stateMachineArn": arn });
    let described = sfn(&client, "DescribeStateMachine", machine.clone()).await;
    assert_eq!((&described["status"], &described["roleArn"]), (&json!("ACTIVE"), &json!(ROLE)));

    let start = json!({ "stateMachineArn": arn, "name": "one", "input": "{}" });
    let execution = sfn(&client, "StartExecution", start).await["executionArn"].clone();
    assert_eq!(execution, execution_arn("mine", "one"));
    let end = ended(&client, execution.as_str().unwrap()).await;
    assert_eq!((&end["status"], &end["output"]), (&json!("SUCCEEDED"), &json!(r#"{"a":1}"#)));
    let history = sfn(&client, "GetExecutionHistory", json!({ "executionArn": execution })).await;
    let types: Vec<_> =
        history["events"].as_array().unwrap().iter().map(|event| &event["type"]).collect();
    assert_eq!(
        types,
        ["ExecutionStarted", "PassStateEntered", "PassStateExited", "ExecutionSucceeded"]
    );
    let of_mine = sfn(&client, "ListExecutions", machine.clone()).await;
    assert_eq!(of_mine["executions"].as_array().unwrap().len(), 1);
    let of_workflow =
        sfn(&client, "ListExecutions", json!({ "stateMachineArn": STATE_MACHINE_ARN })).await;
    assert_eq!(of_workflow["executions"], json!([]));

    let (_, page) = client.get("/api/executions").await;
    assert_eq!(page["machines"], json!([{ "name": "mine", "type": "STANDARD" }]));
    let shown = &page["executions"][0];
    assert_eq!((&shown["name"], &shown["machine"]), (&json!("one"), &json!("mine")), "{page}");
    let (_, one) = client.get(&format!("/api/execution?arn={}", execution.as_str().unwrap())).await;
    assert_eq!(one["execution"]["output"], r#"{"a":1}"#);
    assert_eq!(one["history"].as_array().unwrap().len(), 4, "{one}");
    assert_eq!(client.get("/api/execution?arn=none").await.0, 404);

    let definition = json!({ "StartAt": "B", "States": { "B": { "Type": "Succeed" } } });
    let update = json!({ "stateMachineArn": arn, "definition": definition.to_string() });
    sfn(&client, "UpdateStateMachine", update).await;
    let of_execution = json!({ "executionArn": execution });
    let ran = sfn(&client, "DescribeStateMachineForExecution", of_execution).await;
    assert!(ran["definition"].as_str().unwrap().contains("Pass"), "{ran}");

    sfn(&client, "DeleteStateMachine", machine.clone()).await;
    let (status, refused) = client.aws("AWSStepFunctions.StartExecution", &machine).await;
    assert_eq!(status, 400);
    assert!(refused["__type"].as_str().unwrap().ends_with("StateMachineDoesNotExist"), "{refused}");
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_execution_continues_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let wait = json!({ "Type": "Wait", "Seconds": 1, "End": true });
    let arn = created(&client, "slow", wait).await;
    let start = json!({ "stateMachineArn": arn, "name": "one" });
    let execution = sfn(&client, "StartExecution", start).await["executionArn"].clone();
    stack.shutdown().await;
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let end = ended(&client, execution.as_str().unwrap()).await;
    assert_eq!(end["status"], "SUCCEEDED");
    assert_eq!(end["stateMachineArn"], arn);
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_by_hand_with_a_wrong_session_id_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    for id in ["", "nobody"] {
        let input = json!({ "session_id": id, "time": "2026-11-21T10:30:00Z", "detail": {} });
        let start = json!({
            "stateMachineArn": STATE_MACHINE_ARN, "name": "by-hand", "input": input.to_string(),
        });
        let (status, refused) = client.aws("AWSStepFunctions.StartExecution", &start).await;
        assert_eq!(status, 400, "{refused}");
        assert!(
            refused["__type"].as_str().unwrap().ends_with("InvalidExecutionInput"),
            "{refused}"
        );
    }
    let table = json!({ "TableName": "daybook-journal" });
    let (_, scanned) = client.aws("DynamoDB_20120810.Scan", &table).await;
    assert_eq!(scanned["Count"], 0, "{scanned}");
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_definition_is_refused_as_on_aws() {
    let folder = TempDir::new().unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let body = json!({ "name": "bad", "definition": "{}", "roleArn": ROLE });
    let (status, refused) = client.aws("AWSStepFunctions.CreateStateMachine", &body).await;
    assert_eq!(status, 400);
    assert_eq!(
        refused["message"],
        "Invalid State Machine Definition: 'SCHEMA_VALIDATION_FAILED: These fields are required: [States, StartAt] at /'"
    );
    let checked =
        sfn(&client, "ValidateStateMachineDefinition", json!({ "definition": "{}" })).await;
    assert_eq!(
        (&checked["result"], &checked["diagnostics"][0]["location"]),
        (&json!("FAIL"), &json!("/"))
    );
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_starts_a_users_state_machine() {
    let folder = TempDir::new().unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let pass = json!({ "Type": "Pass", "End": true });
    let arn = created(&client, "ordered", pass).await;
    let pattern = json!({ "source": ["shop"], "detail": { "total": [{ "numeric": [">", 10] }] } });
    let rule = json!({ "Name": "orders", "EventPattern": pattern.to_string() });
    events(&client, "PutRule", rule).await;
    let target = json!({
        "Id": "1", "Arn": arn,
        "InputTransformer": {
            "InputPathsMap": { "total": "$.detail.total" }, "InputTemplate": r#"{"sum": <total>}"#,
        },
    });
    let put = events(&client, "PutTargets", json!({ "Rule": "orders", "Targets": [target] })).await;
    assert_eq!(put["FailedEntryCount"], 0, "{put}");
    let entry = |total: u32| json!({ "Source": "shop", "DetailType": "order", "Detail": json!({ "total": total }).to_string() });
    events(&client, "PutEvents", json!({ "Entries": [entry(5), entry(50)] })).await;
    let list = sfn(&client, "ListExecutions", json!({ "stateMachineArn": arn })).await;
    let executions = list["executions"].as_array().unwrap();
    assert_eq!(executions.len(), 1, "only one event matches");
    let end = ended(&client, executions[0]["executionArn"].as_str().unwrap()).await;
    assert_eq!(end["output"], r#"{"sum":50}"#);
    let (status, _) = client.aws("AWSEvents.DeleteRule", &json!({ "Name": "orders" })).await;
    assert_eq!(status, 400, "it has targets");
    events(&client, "RemoveTargets", json!({ "Rule": "orders", "Ids": ["1"] })).await;
    events(&client, "DeleteRule", json!({ "Name": "orders" })).await;
    assert_eq!(events(&client, "ListRules", json!({})).await["Rules"], json!([]));
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pattern_is_tested_against_an_event() {
    let folder = TempDir::new().unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let event = json!({
        "id": "1", "account": "0", "source": "shop", "time": "2026-11-21T10:30:00Z",
        "region": "us-east-1", "resources": [], "detail-type": "order", "detail": {},
    });
    let test =
        |pattern: Value| json!({ "EventPattern": pattern.to_string(), "Event": event.to_string() });
    let matched = events(&client, "TestEventPattern", test(json!({ "source": ["shop"] }))).await;
    assert_eq!(matched, json!({ "Result": true }));
    let wrong = test(json!({ "source": [{ "wildcard": "a**" }] }));
    let (status, refused) = client.aws("AWSEvents.TestEventPattern", &wrong).await;
    assert_eq!(status, 400);
    assert_eq!(
        refused["message"],
        "Event pattern is not valid. Reason: Consecutive wildcard characters at pos 2"
    );
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lambdas_invoke_calls_a_function_but_not_the_workflows() {
    let folder = TempDir::new().unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let path = |name: &str| format!("/2015-03-31/functions/{name}/invocations");
    assert_eq!(client.post(&path("echo"), &json!({ "a": 1 })).await, (200, json!({ "a": 1 })));
    assert_eq!(client.post(&path("none"), &json!({})).await.0, 404);
    assert_eq!(client.post(&path("daybook-poller"), &json!({})).await.0, 403);
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_state_machine_cannot_write_to_the_journal() {
    let folder = TempDir::new().unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let put = json!({
        "Type": "Task", "Resource": "arn:aws:states:::dynamodb:putItem", "End": true,
        "Parameters": { "TableName": "daybook", "Item": { "PK": { "S": "SESSION#x" }, "SK": { "S": "STEP#1" } } },
    });
    let arn = created(&client, "writer", put).await;
    let start = json!({ "stateMachineArn": arn, "name": "one" });
    let execution = sfn(&client, "StartExecution", start).await["executionArn"].clone();
    let end = ended(&client, execution.as_str().unwrap()).await;
    assert_eq!((&end["status"], &end["error"]), (&json!("FAILED"), &json!("States.Permissions")));
    stack.shutdown().await;
}

/// Source: AWS, "TestState", and "Using TestState API to test a state".
#[tokio::test(flavor = "multi_thread")]
async fn a_state_is_tested_alone_with_mocked_or_real_tasks() {
    let folder = TempDir::new().unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let test = async |state: Value, more: Value| {
        let mut body = json!({ "definition": state.to_string(), "roleArn": ROLE });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        sfn(&client, "TestState", body).await
    };
    let choice = json!({
        "Type": "Choice",
        "Choices": [{ "Variable": "$.number", "NumericEquals": 1, "Next": "Equals" }],
        "Default": "Other",
    });
    let number = |number: u32| json!({ "input": json!({ "number": number }).to_string() });
    let equals = test(choice.clone(), number(1)).await;
    assert_eq!(
        equals,
        json!({ "status": "SUCCEEDED", "output": r#"{"number":1}"#, "nextState": "Equals" })
    );
    assert_eq!(test(choice, number(2)).await["nextState"], "Other");

    let pass = json!({
        "Type": "Pass", "QueryLanguage": "JSONata", "Output": "{% $before + $states.input.number %}",
        "End": true,
    });
    let variables = json!({ "variables": r#"{"before": 40}"#, "input": r#"{"number": 2}"# });
    assert_eq!(test(pass, variables).await, json!({ "status": "SUCCEEDED", "output": "42" }));

    let task = json!({
        "Type": "Task", "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": { "FunctionName": "echo", "Payload.$": "$" }, "ResultSelector": { "x.$": "$.Payload" },
        "Retry": [{ "ErrorEquals": ["Busy"], "MaxAttempts": 1 }],
        "Catch": [{ "ErrorEquals": ["Lost"], "Next": "Cleanup" }], "Next": "Done",
    });
    let real = test(task.clone(), json!({ "input": r#"{"a":1}"# })).await;
    assert_eq!(
        (&real["output"], &real["nextState"]),
        (&json!(r#"{"x":{"a":1}}"#), &json!("Done")),
        "{real}"
    );
    let mocked = json!({ "mock": { "result": r#"{"Payload": 7}"# }, "inspectionLevel": "DEBUG" });
    let mocked = test(task.clone(), mocked).await;
    assert_eq!(mocked["output"], r#"{"x":7}"#);
    assert_eq!(mocked["inspectionData"]["result"], r#"{"Payload":7}"#);
    for (error, status, next) in [
        ("Busy", "RETRIABLE", Value::Null),
        ("Lost", "CAUGHT_ERROR", json!("Cleanup")),
        ("Odd", "FAILED", Value::Null),
    ] {
        let mock = json!({ "mock": { "errorOutput": { "error": error, "cause": "c" } } });
        let answer = test(task.clone(), mock).await;
        assert_eq!((&answer["status"], &answer["nextState"]), (&json!(status), &next), "{answer}");
        assert_eq!((&answer["error"], &answer["cause"]), (&json!(error), &json!("c")), "{answer}");
    }
    let machine = json!({ "StartAt": "A", "QueryLanguage": "JSONata", "States": {
        "A": { "Type": "Pass", "Output": "{% 1 + 1 %}", "Next": "B" }, "B": { "Type": "Succeed" },
    } });
    let named = test(machine, json!({ "stateName": "A" })).await;
    assert_eq!(named, json!({ "status": "SUCCEEDED", "output": "2", "nextState": "B" }));
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_starts_the_version_that_it_names() {
    let folder = TempDir::new().unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let pass = |result: u32| json!({ "Type": "Pass", "Result": result, "End": true });
    let arn = created(&client, "mine", pass(1)).await;
    let machine = json!({ "stateMachineArn": arn });
    let one = sfn(&client, "PublishStateMachineVersion", machine.clone()).await;
    assert_eq!(one["stateMachineVersionArn"], format!("{arn}:1"));
    let again = sfn(&client, "PublishStateMachineVersion", machine.clone()).await;
    assert_eq!(again, one, "the same revision is the same version");
    let definition = json!({ "StartAt": "A", "States": { "A": pass(2) } }).to_string();
    let update = json!({ "stateMachineArn": arn, "definition": definition, "publish": true });
    let updated = sfn(&client, "UpdateStateMachine", update).await;
    assert_eq!(updated["stateMachineVersionArn"], format!("{arn}:2"));
    let listed = sfn(&client, "ListStateMachineVersions", machine.clone()).await;
    assert_eq!(listed["stateMachineVersions"].as_array().unwrap().len(), 2);

    let routes = |number: u32| json!([{ "stateMachineVersionArn": format!("{arn}:{number}"), "weight": 100 }]);
    let alias = json!({ "name": "PROD", "routingConfiguration": routes(1) });
    let alias = sfn(&client, "CreateStateMachineAlias", alias).await;
    let alias = alias["stateMachineAliasArn"].as_str().unwrap().to_owned();
    assert_eq!(alias, format!("{arn}:PROD"));
    let output = async |arn: &str, name: &str| {
        let start = json!({ "stateMachineArn": arn, "name": name });
        let execution = sfn(&client, "StartExecution", start).await["executionArn"].clone();
        ended(&client, execution.as_str().unwrap()).await["output"].clone()
    };
    assert_eq!(output(&alias, "a").await, "1");
    assert_eq!(output(&format!("{arn}:2"), "b").await, "2");
    assert_eq!(output(&arn, "c").await, "2");
    let update = json!({ "stateMachineAliasArn": alias, "routingConfiguration": routes(2) });
    sfn(&client, "UpdateStateMachineAlias", update).await;
    assert_eq!(output(&alias, "d").await, "2");
    let version = json!({ "stateMachineVersionArn": format!("{arn}:2") });
    let (status, refused) =
        client.aws("AWSStepFunctions.DeleteStateMachineVersion", &version).await;
    assert_eq!(status, 400, "an alias names it");
    assert!(refused["__type"].as_str().unwrap().ends_with("ConflictException"), "{refused}");
    sfn(&client, "DeleteStateMachineAlias", json!({ "stateMachineAliasArn": alias })).await;
    sfn(&client, "DeleteStateMachineVersion", version).await;
    for other in [format!("{arn}:7"), arn.replace("us-east-1", "eu-west-1"), "mine".to_owned()] {
        sfn(&client, "DeleteStateMachine", json!({ "stateMachineArn": other })).await;
        sfn(&client, "DescribeStateMachine", machine.clone()).await;
    }
    sfn(&client, "DeleteStateMachine", machine.clone()).await;
    let listed = sfn(&client, "ListStateMachineVersions", machine).await;
    assert_eq!(listed["stateMachineVersions"], json!([]));
    stack.shutdown().await;
}
