//! The endpoint's protocols, as clients use them.

use journal::chain::{Author, Head, append};
use journal::clock::{Hlc, Stamp};
use journal::id::Runner;
use journal::item::Hash;
use journal::step::{EffectKind, EffectRef, StepBody};
use reqwest::Method;
use serde_json::{Value, json};
use stack::names::{RUNTIME_ARN, STATE_MACHINE_ARN, execution_arn};
use stack::stack::{Config, JOURNAL_FILE, Stack};
use tempfile::TempDir;
use workflow::state_machine;

use crate::stack::{Client, config, read, statuses};
use crate::world::SESSION;

/// The real workflow without its agent: sessions park until a test acts on them.
pub fn without_agent() -> String {
    let mut definition: Value = serde_json::from_str(state_machine::TEXT).unwrap();
    definition["States"]["InitializeSession"]["Next"] = json!("CheckStatus");
    definition.to_string()
}

pub async fn parking(folder: &TempDir) -> Stack {
    let workflow = Some(without_agent());
    Stack::start(Config { workflow, ..config(folder.path(), 1) }).await.unwrap()
}

/// The token of a session's parked workflow.
pub async fn token(stack: &Stack, session: &str) -> String {
    let id = session.parse().unwrap();
    for _ in 0..500 {
        if let Some(wait) = journal::wait::Wait::read(stack.store(), &id).await.unwrap() {
            return wait.token;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the workflow does not park");
}

/// Masks times and request ids, which differ in each run.
fn masked(mut value: Value) -> Value {
    mask(&mut value);
    value
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "startDate" | "stopDate" | "creationDate" | "timestamp" => {
                        assert!(value.is_f64() || value.is_u64(), "{name}: {value}");
                        *value = json!("<time>");
                    }
                    "nextToken" => *value = json!("<token>"),
                    "definition" => *value = json!("<definition>"),
                    "input" | "output" if value.is_string() => *value = json!("<json>"),
                    _ => mask(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(mask),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_step_functions_api_answers_as_aws_does() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    let sfn = |action: &str, body: Value| {
        let target = format!("AWSStepFunctions.{action}");
        let client = &client;
        async move {
            let (status, body) = client.aws(&target, &body).await;
            json!({ "status": status, "body": masked(body) })
        }
    };
    let machine = json!({ "stateMachineArn": STATE_MACHINE_ARN });
    let input = json!({ "session_id": SESSION, "time": "2026-11-21T10:30:00Z", "detail": {} });
    let start = json!({
        "stateMachineArn": STATE_MACHINE_ARN, "name": SESSION, "input": input.to_string(),
    });
    let execution = json!({ "executionArn": execution_arn("daybook", SESSION) });
    let mut golden = Vec::new();
    golden.push(("start", sfn("StartExecution", start.clone()).await));
    token(&stack, SESSION).await;
    golden.push(("start again", sfn("StartExecution", start).await));
    golden.push(("describe", sfn("DescribeExecution", execution.clone()).await));
    golden.push(("list", sfn("ListExecutions", machine.clone()).await));
    let mut page = execution.clone();
    page["maxResults"] = json!(2);
    page["includeExecutionData"] = json!(false);
    golden.push(("history", sfn("GetExecutionHistory", page).await));
    let mut stop = execution.clone();
    stop["error"] = json!("Stop");
    stop["cause"] = json!("by hand");
    golden.push(("stop", sfn("StopExecution", stop.clone()).await));
    golden.push(("stop again", sfn("StopExecution", stop).await));
    golden.push(("describe stopped", sfn("DescribeExecution", execution).await));
    golden.push(("machine", sfn("DescribeStateMachine", machine).await));
    golden.push(("machines", sfn("ListStateMachines", json!({})).await));
    insta::assert_json_snapshot!("step_functions", golden);
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_histories_come_in_pages() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    let mut sessions = Vec::new();
    for _ in 0..5 {
        sessions.push(client.trigger(&json!({})).await);
    }
    sessions.reverse();
    let mut names = Vec::new();
    let mut body = json!({
        "stateMachineArn": STATE_MACHINE_ARN, "maxResults": 2, "statusFilter": "RUNNING",
    });
    loop {
        let (_, page) = client.aws("AWSStepFunctions.ListExecutions", &body).await;
        let executions = page["executions"].as_array().unwrap();
        names.extend(executions.iter().map(|e| e["name"].as_str().unwrap().to_owned()));
        match page.get("nextToken") {
            Some(token) => body["nextToken"] = token.clone(),
            None => break,
        }
    }
    assert_eq!(names, sessions);
    token(&stack, &sessions[0]).await;
    for reverse in [false, true] {
        let arn = execution_arn("daybook", &sessions[0]);
        let mut ids = Vec::new();
        let mut body = json!({ "executionArn": arn, "maxResults": 3, "reverseOrder": reverse });
        loop {
            let (_, page) = client.aws("AWSStepFunctions.GetExecutionHistory", &body).await;
            let events = page["events"].as_array().unwrap();
            ids.extend(events.iter().map(|event| event["id"].as_u64().unwrap()));
            match page.get("nextToken") {
                Some(token) => body["nextToken"] = token.clone(),
                None => break,
            }
        }
        if reverse {
            ids.reverse();
        }
        let count = u64::try_from(ids.len()).unwrap();
        assert!(count > 10);
        assert_eq!(ids, (1..=count).collect::<Vec<_>>());
    }
    stack.shutdown().await;
}

async fn check(client: &Client, target: &str, body: Value, code: &str) {
    let (status, answer) = client.aws(target, &body).await;
    let found = answer["__type"].as_str().unwrap_or_default();
    assert_eq!(found.rsplit('#').next().unwrap(), code, "{target} {body}: {answer}");
    assert_eq!(status, 400, "{target} {body}");
    assert!(answer["message"].as_str().is_some_and(|said| !said.is_empty()), "{target}: {answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_events_and_unknown_actions_get_the_error_that_aws_gives() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    for (target, code) in [
        ("AWSStepFunctions.CreateActivity", "UnknownOperationException"),
        ("AWSEvents.PutPermission", "UnknownOperationException"),
        ("S3.PutObject", "UnknownOperationException"),
        ("", "UnknownOperationException"),
        ("DynamoDB_20120810.DeleteTable", "AccessDeniedException"),
        ("DynamoDB_20120810.Nonsense", "UnknownOperationException"),
    ] {
        check(&client, target, json!({ "TableName": "daybook-journal" }), code).await;
    }
    let eleven: Vec<_> = (0..11).map(|_| json!({})).collect();
    let elsewhere =
        json!({ "Source": "s", "DetailType": "d", "Detail": "{}", "EventBusName": "mine" });
    for (body, code) in [
        (json!([]), "SerializationException"),
        (json!({}), "ValidationException"),
        (json!({ "Entries": [] }), "ValidationException"),
        (json!({ "Entries": eleven }), "ValidationException"),
        (json!({ "Entries": ["x"] }), "SerializationException"),
        (json!({ "Entries": [{ "Source": 1 }] }), "SerializationException"),
        (json!({ "Entries": [elsewhere] }), "ResourceNotFoundException"),
    ] {
        check(&client, "AWSEvents.PutEvents", body, code).await;
    }
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_of_executions_get_the_error_that_aws_gives() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    let session = client.trigger(&json!({})).await;
    let absent = execution_arn("daybook", "nobody");
    let with = |name: &str, value: Value| {
        let mut body = json!({ "stateMachineArn": STATE_MACHINE_ARN });
        body[name] = value;
        body
    };
    let (list, start) = ("ListExecutions", "StartExecution");
    for (action, body, code) in [
        ("DescribeExecution", json!({}), "ValidationException"),
        ("DescribeExecution", json!({ "executionArn": 1 }), "SerializationException"),
        ("DescribeExecution", json!({ "executionArn": "x" }), "InvalidArn"),
        ("DescribeExecution", json!({ "executionArn": absent }), "ExecutionDoesNotExist"),
        ("StopExecution", json!({ "executionArn": absent }), "ExecutionDoesNotExist"),
        ("DescribeStateMachine", with("stateMachineArn", json!("x")), "InvalidArn"),
        (list, with("stateMachineArn", json!("arn:x")), "StateMachineDoesNotExist"),
        (list, with("statusFilter", json!("X")), "ValidationException"),
        (list, with("maxResults", json!(1001)), "ValidationException"),
        (list, with("nextToken", json!("x")), "InvalidToken"),
        (start, with("name", json!("a/b")), "InvalidName"),
        (start, with("input", json!("{")), "InvalidExecutionInput"),
        (start, with("name", json!(session)), "ExecutionAlreadyExists"),
    ] {
        check(&client, &format!("AWSStepFunctions.{action}"), body, code).await;
    }
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_tokens_get_the_error_that_aws_gives() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    let session = client.trigger(&json!({})).await;
    let token = token(&stack, &session).await;
    for (action, body, code) in [
        ("SendTaskSuccess", json!({ "taskToken": token }), "ValidationException"),
        ("SendTaskSuccess", json!({ "taskToken": token, "output": "{" }), "InvalidOutput"),
        ("SendTaskHeartbeat", json!({ "taskToken": "x" }), "InvalidToken"),
        ("SendTaskFailure", json!({ "taskToken": format!("{token}0") }), "InvalidToken"),
    ] {
        check(&client, &format!("AWSStepFunctions.{action}"), body, code).await;
    }
    let execution = json!({ "executionArn": execution_arn("daybook", &session) });
    client.aws("AWSStepFunctions.StopExecution", &execution).await;
    let late = json!({ "taskToken": token, "output": "{}" });
    check(&client, "AWSStepFunctions.SendTaskSuccess", late, "TaskTimedOut").await;
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_mirror_the_protocol_and_name_the_error() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    for content_type in ["application/x-amz-json-1.0", "application/x-amz-json-1.1"] {
        let response = client
            .request(Method::POST, "/")
            .header("x-amz-target", "AWSStepFunctions.DescribeExecution")
            .header("content-type", content_type)
            .body("{not json")
            .send()
            .await
            .unwrap();
        let headers = response.headers();
        assert_eq!(headers["content-type"], content_type);
        assert_eq!(headers["x-amzn-errortype"], "SerializationException");
        assert_eq!(headers["x-amzn-requestid"].len(), 36);
    }
    let large = client.request(Method::POST, "/").body("x".repeat(5_000_000));
    assert_eq!(read(large).await.0, 413);
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_refused() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    let ours = stack.url();
    for (header, value, expected) in [
        ("host", "evil.example", 403),
        ("origin", "https://evil.example", 403),
        ("origin", "http://localhost:1", 403),
        ("origin", "null", 403),
        ("origin", ours.as_str(), 200),
        ("host", "localhost:4599", 200),
    ] {
        for path in ["/healthz", "/api/sessions"] {
            let request = client.request(Method::GET, path).header(header, value);
            assert_eq!(read(request).await.0, expected, "{header}: {value}");
        }
    }
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_metrics_report_the_stacks_state() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    let (_, mut health) = client.get("/healthz").await;
    let told = health.as_object_mut().unwrap();
    let storage = told.remove("storage").unwrap();
    for name in ["journal_bytes", "disk_left_bytes", "disk_total_bytes", "disk_left_bytes_min"] {
        assert!(storage[name].as_u64().is_some_and(|bytes| bytes > 0), "{storage}");
    }
    let load = told.remove("load").unwrap();
    assert_eq!((&load["at_work"], &load["at_work_max"]), (&json!(0), &json!(10_000)), "{load}");
    let settings = told.remove("settings").unwrap();
    assert_eq!((&settings["model"], &settings["ttl_days"]), (&json!("policy"), &json!(90)));
    let data = folder.path().canonicalize().unwrap();
    let problem = "no folder for its key is set";
    let version = env!("CARGO_PKG_VERSION");
    let clock = json!({ "steps": 0, "newest": null });
    let expected = json!({
        "status": "ok", "data": data, "version": version, "log_problem": problem, "clock": clock,
        "agents": packs::all().iter().map(|agent| agent.name()).collect::<Vec<_>>(),
        "problems": {}, "halts": [], "notices": null,
    });
    assert_eq!(health, expected);
    client.trigger(&json!({})).await;
    let (_, metrics) = client.get("/metrics").await;
    assert!(metrics.as_str().unwrap().contains("daybook_executions{status=\"RUNNING\"} 1\n"));
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_without_its_file_is_neither_ready_nor_alive() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    let checks = ["/livez", "/readyz", "/healthz"];
    for path in checks {
        assert_eq!(client.get(path).await.0, 200, "{path}");
    }
    let (file, aside) = (folder.path().join(JOURNAL_FILE), folder.path().join("aside"));
    std::fs::rename(&file, &aside).unwrap();
    for path in checks {
        let (status, body) = client.get(path).await;
        assert_eq!((status, &body["status"]), (503, &json!("failing")), "{path}: {body}");
        assert!(body.to_string().contains("is gone"), "{path}: {body}");
    }
    std::fs::rename(&aside, &file).unwrap();
    for path in checks {
        assert_eq!(client.get(path).await.0, 200, "{path}");
    }
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runtime_errors_are_those_of_agentcore() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    let arn = RUNTIME_ARN.replace(':', "%3A").replace('/', "%2F");
    let call = |arn: &str, what: &str, session: &str, body: &'static str| {
        let request = client
            .request(Method::POST, &format!("/runtimes/{arn}/{what}"))
            .header("X-Amzn-Bedrock-AgentCore-Runtime-Session-Id", session)
            .body(body);
        async move {
            let response = request.send().await.unwrap();
            let kind = response.headers().get("x-amzn-errortype").cloned();
            let kind = kind.map(|kind| kind.to_str().unwrap().to_owned()).unwrap_or_default();
            (response.status().as_u16(), kind, response.text().await.unwrap())
        }
    };
    for (arn, what, session, status, kind) in [
        ("arn%3Aother", "invocations", SESSION, 404, "ResourceNotFoundException"),
        (arn.as_str(), "invocations", "short", 400, "ValidationException"),
        (arn.as_str(), "invocations", SESSION, 424, "RuntimeClientError"),
        (arn.as_str(), "stopruntimesession", SESSION, 404, "ResourceNotFoundException"),
    ] {
        let (found, found_kind, body) = call(arn, what, session, "{}").await;
        assert_eq!((found, found_kind.as_str()), (status, kind), "{what} {session}: {body}");
        assert!(serde_json::from_str::<Value>(&body).unwrap()["message"].is_string());
    }
    let (_, _, body) = call(&arn, "invocations", SESSION, "{}").await;
    assert!(body.contains("Received error (400) from runtime: {"), "{body}");
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_can_cancel_a_session() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    let session = client.trigger(&json!({})).await;
    token(&stack, &session).await;
    let path = format!("/api/sessions/{session}");
    let (status, answer) =
        client.post(&format!("{path}/cancel"), &json!({ "reason": "enough" })).await;
    assert_eq!((status, &answer["session_id"]), (202, &json!(session)), "{answer}");
    let execution = client.ended(&session).await;
    assert_eq!(execution["status"], "SUCCEEDED", "{execution:#}");
    let (_, shown) = client.get(&path).await;
    assert_eq!(statuses(&shown), ["SESSION_INITIATED", "CANCEL_REQUESTED", "SESSION_CANCELLED"]);
    for (what, expected) in [("cancel", 409), ("resume", 409), ("answer", 400)] {
        let (status, answer) = client.post(&format!("{path}/{what}"), &json!({})).await;
        assert_eq!(status, expected, "{what}: {answer}");
    }
    let answer = json!({ "question_id": 1, "decision": "approve" });
    assert_eq!(client.post(&format!("{path}/answer"), &answer).await.0, 409);
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_requests_of_a_person_are_refused() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    let session = client.trigger(&json!({})).await;
    token(&stack, &session).await;
    assert_eq!(client.get("/api/sessions/nobody").await.0, 400);
    assert_eq!(client.get(&format!("/api/sessions/{SESSION}")).await.0, 404);
    let resume = format!("/api/sessions/{session}/resume");
    assert_eq!(client.post(&resume, &json!({})).await.0, 202);
    stack.shutdown().await;
}

/// Journals a question as an agent does, on a session without one.
async fn ask(stack: &Stack, session: &str) -> u32 {
    let hlc = Hlc::new(stack.clock().clone(), Stamp::default());
    let author = Author {
        session: session.parse().unwrap(),
        runner: Runner::fresh("agent"),
        expires_at: stack.clock().now().seconds() + 1_000_000,
    };
    let claim = StepBody::Claim {
        supersedes: 0,
        agent: "checkup".to_owned(),
        graph_version: "1".to_owned(),
        input: Some(json!({})),
    };
    let claim = append(stack.store(), &hlc, &author, &Head::genesis(), 1, claim).await.unwrap();
    let question = json!({ "prompt": "Go on?", "choices": ["approve", "reject", "say"] });
    let ask = StepBody::Ask {
        effect: EffectRef {
            node: "ask".to_owned(),
            kind: EffectKind::Ask,
            digest: Hash::genesis(),
            call: 0,
        },
        expires_at: stack.clock().now().after(std::time::Duration::from_secs(1_000)),
        payload: json!({ "question": question, "about": "graph" }),
    };
    append(stack.store(), &hlc, &author, &Head::after(&claim), 1, ask).await.unwrap().seq
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_takes_one_valid_answer() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    let session = client.trigger(&json!({})).await;
    token(&stack, &session).await;
    let question = ask(&stack, &session).await;
    let path = format!("/api/sessions/{session}/answer");
    for (answer, status, code) in [
        (json!({ "question_id": 1, "decision": "approve" }), 409, "WrongQuestion"),
        (json!({ "question_id": question, "decision": "edit" }), 400, "InvalidAnswer"),
        (json!({ "question_id": question, "decision": "say" }), 400, "InvalidAnswer"),
        (json!({ "question_id": question, "decision": "expired" }), 400, "InvalidAnswer"),
        (json!({ "question_id": question, "decision": "perhaps" }), 400, "InvalidAnswer"),
        (json!({ "decision": "approve" }), 409, "WrongQuestion"),
    ] {
        let (found, body) = client.post(&path, &answer).await;
        assert_eq!((found, &body["code"]), (status, &json!(code)), "{answer}: {body}");
    }
    let answer = json!({ "question_id": question, "decision": "approve", "reason": "fine" });
    let (status, body) = client.post(&path, &answer).await;
    assert_eq!((status, &body["step"]), (202, &json!(question + 1)), "{body}");
    let (status, body) = client.post(&path, &answer).await;
    assert_eq!(status, 409, "{body}");
    let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
    assert!(statuses(&shown).contains(&"INPUT_RECEIVED"), "{shown:#}");
    assert_eq!(shown["steps"][2]["kind"], "answer");
    assert_eq!(shown["steps"][2]["outcome"], answer);
    stack.shutdown().await;
}
