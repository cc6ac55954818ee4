//! The AWS JSON endpoint: every reply is one that AWS could send, no request causes an internal
//! error, and none changes a record.
//!
//! An input consists of up to four requests, separated by a line `---`. A request's first line is
//! its `X-Amz-Target`, or method and path for our own API; the rest is the body. The journal
//! contains the golden session and an execution without a runner, so that no agent is started.
//! After an input that wrote something the journal is recreated.

mod world;

use axum::http::Method;
use serde_json::{Value, json};

use world::{Answer, World, with_world};

/// Most requests per input.
const REQUESTS_MAX: usize = 4;

const BETWEEN_REQUESTS: &str = "\n---\n";

/// Longest part of an error message other than quoted input, in bytes.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;

/// Actions that only read, so that a request may be repeated.
const READS: [&str; 12] = [
    "DynamoDB_20120810.Query",
    "DynamoDB_20120810.Scan",
    "DynamoDB_20120810.GetItem",
    "DynamoDB_20120810.DescribeTable",
    "DynamoDB_20120810.ListTables",
    "AWSStepFunctions.DescribeExecution",
    "AWSStepFunctions.ListExecutions",
    "AWSStepFunctions.GetExecutionHistory",
    "AWSStepFunctions.DescribeStateMachine",
    "AWSStepFunctions.ListStateMachines",
    "AWSStepFunctions.ListMapRuns",
    "AWSStepFunctions.DescribeMapRun",
];

/// Actions that write.
const WRITES: [&str; 10] = [
    "DynamoDB_20120810.PutItem",
    "DynamoDB_20120810.UpdateItem",
    "AWSStepFunctions.StartExecution",
    "AWSStepFunctions.StopExecution",
    "AWSStepFunctions.RedriveExecution",
    "AWSStepFunctions.UpdateMapRun",
    "AWSStepFunctions.SendTaskSuccess",
    "AWSStepFunctions.SendTaskFailure",
    "AWSStepFunctions.SendTaskHeartbeat",
    "AWSEvents.PutEvents",
];

/// Sends the requests and checks the replies.
///
/// # Panics
/// A promise is broken.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    with_world(|world| {
        for request in text.split(BETWEEN_REQUESTS).take(REQUESTS_MAX) {
            let (head, body) = request.split_once('\n').unwrap_or((request, ""));
            match head.split_once(' ') {
                Some(("GET", path)) => own_api(world, Method::GET, path, body),
                Some(("POST", path)) => own_api(world, Method::POST, path, body),
                _ => aws(world, head, body),
            }
        }
    });
}

/// One request per action, and the requests of the endpoint's tests.
pub fn seeds() -> Vec<Vec<u8>> {
    let arn = stack::names::execution_arn(stack::names::STATE_MACHINE, world::SESSION);
    let machine = stack::names::STATE_MACHINE_ARN;
    let pk = json!({ "S": format!("SESSION#{}", world::SESSION) });
    let table = stack::dynamodb::TABLE_NAME;
    let of_all = json!({
        "TableName": table, "executionArn": arn, "stateMachineArn": machine, "maxResults": 2,
        "Key": { "PK": pk, "SK": { "S": "LEASE" } },
        "Limit": 3,
    });
    let query = json!({
        "TableName": table, "Limit": 2, "ScanIndexForward": false, "ReturnConsumedCapacity": "TOTAL",
        "KeyConditionExpression": "PK = :pk AND begins_with(SK, :sk)",
        "FilterExpression": "attribute_exists(#s) AND size(#s) > :n",
        "ProjectionExpression": "PK, SK, #s",
        "ExpressionAttributeNames": { "#s": "Status" },
        "ExpressionAttributeValues": { ":pk": pk, ":sk": { "S": "EVENT#" }, ":n": { "N": "3" } },
    });
    let by_day = json!({
        "TableName": table, "IndexName": "ByDay", "Select": "COUNT",
        "KeyConditionExpression": "Day = :d AND #t BETWEEN :a AND :b",
        "ExpressionAttributeNames": { "#t": "Timestamp" },
        "ExpressionAttributeValues":
            { ":d": { "S": "DAY#2026-11-21#0" }, ":a": { "S": "2026" }, ":b": { "S": "2027" } },
    });
    let scan = json!({ "TableName": table, "Limit": 5, "Segment": 0, "TotalSegments": 2 });
    let put = json!({
        "TableName": table,
        "Item": { "PK": pk, "SK": { "S": "STEP#00000099" }, "V": { "N": "1" }, "B": { "B": "AA==" } },
        "ConditionExpression": "attribute_not_exists(PK)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    });
    let update = json!({
        "TableName": table, "Key": { "PK": pk, "SK": { "S": "LEASE" } },
        "UpdateExpression": "SET Beat = :b", "ConditionExpression": "Epoch <= :e",
        "ExpressionAttributeValues": { ":b": { "N": "9" }, ":e": { "N": "5" } },
    });
    let start = json!({ "stateMachineArn": machine, "name": "n", "input": "{\"a\":[1]}" });
    let send = json!({ "taskToken": "AAAA", "output": "{}", "error": "E", "cause": "c" });
    let events = json!({ "Entries": [{ "Source": "manual-trigger", "DetailType": "execute-agent",
        "Detail": "{\"agent\":\"checkup\"}", "Time": 1_795_000_000.5, "Resources": ["a"] }] });
    let mut seeds: Vec<_> = READS.iter().map(|target| request(target, &of_all)).collect();
    let dynamodb =
        |action: &str, body: &Value| request(&format!("DynamoDB_20120810.{action}"), body);
    let sfn = |action: &str, body: &Value| request(&format!("AWSStepFunctions.{action}"), body);
    seeds.extend([
        dynamodb("Query", &query),
        dynamodb("Query", &by_day),
        dynamodb("Scan", &scan),
        dynamodb("PutItem", &put) + BETWEEN_REQUESTS + &dynamodb("PutItem", &put),
        dynamodb("UpdateItem", &update) + BETWEEN_REQUESTS + &dynamodb("GetItem", &of_all),
        dynamodb("DeleteItem", &of_all),
        sfn("StartExecution", &start) + BETWEEN_REQUESTS + &sfn("ListExecutions", &of_all),
        sfn("StopExecution", &of_all),
        sfn("SendTaskSuccess", &send),
        sfn("SendTaskFailure", &send),
        sfn("SendTaskHeartbeat", &send),
        request("AWSEvents.PutEvents", &events),
        "\n{".to_owned(),
        format!("GET /api/sessions/{}\n", world::SESSION),
        format!("GET /api/sessions/{}/verify\n", world::SESSION),
        format!("GET /api/compare?a={0}&b=before\n", world::SESSION),
        "GET /api/health?hours=24\n".to_owned(),
        "GET /api/sessions?status=SUCCEEDED&since=2026-11-01T00:00:00Z&agent=assistant\n"
            .to_owned(),
        format!("POST /api/sessions/{}/cancel\n{{\"reason\":\"r\"}}", world::SESSION),
        format!("POST /api/sessions/{}/answer\n{{\"question_id\":3}}", world::SESSION),
        "GET /metrics\n".to_owned(),
        "GET /healthz\n".to_owned(),
    ]);
    seeds.into_iter().map(String::into_bytes).collect()
}

fn request(target: &str, body: &Value) -> String {
    format!("{target}\n{body}")
}

fn aws(world: &mut World, target: &str, body: &str) {
    let Some(answer) = world.send(Method::POST, "/", target, body) else { return };
    let Some(json) = well_formed(&answer, target, body) else { return };
    if !READS.contains(&target) {
        world.is_changed |= answer.status == 200;
        let known = WRITES.contains(&target);
        return assert!(known || answer.status != 200, "{target} is an unknown action");
    }
    let again = world.send(Method::POST, "/", target, body).expect("it was a request before");
    assert_eq!(again.body, answer.body, "reading changes nothing");
    if answer.status == 200 && (target.ends_with(".Query") || target.ends_with(".Scan")) {
        pages(world, target, body, &json);
    }
}

/// Checks that apply to every reply; returns its JSON.
fn well_formed(answer: &Answer, target: &str, body: &str) -> Option<Value> {
    let shown = || format!("{target}\n{body}\n{answer:?}");
    // No request may cause an internal error; an execution without a runner is busy.
    let is_busy = target.starts_with("AWSStepFunctions.S") && answer.status == 503;
    assert!(matches!(answer.status, 200 | 400) || is_busy, "{}", shown());
    assert!(answer.content_type.starts_with("application/x-amz-json-1."), "{}", shown());
    assert_eq!(answer.request_id.len(), 36, "{}", shown());
    let json: Value = serde_json::from_slice(&answer.body).ok()?;
    assert!(json.is_object(), "{}", shown());
    if answer.status == 200 {
        return Some(json);
    }
    let code = json["__type"].as_str().unwrap_or_default();
    let short = code.rsplit('#').next().unwrap_or_default();
    let message = json["message"].as_str().unwrap_or_else(|| panic!("{}", shown()));
    assert!(!short.is_empty() && answer.error_type == short, "{}", shown());
    assert!(message.len() <= 16 * body.len() + MESSAGE_BYTES_MAX, "{}", shown());
    Some(json)
}

/// A page counts its items, and the next page starts where it ends.
fn pages(world: &mut World, target: &str, body: &str, page: &Value) {
    let (shown, read) = (page["Count"].as_u64(), page["ScannedCount"].as_u64());
    assert!(shown.is_some() && shown <= read, "{page}");
    if let Some(items) = page.get("Items").and_then(Value::as_array) {
        assert_eq!(u64::try_from(items.len()).ok(), shown);
    }
    let Some(last) = page.get("LastEvaluatedKey") else { return };
    let mut next: Value = serde_json::from_str(body).expect("it was JSON before");
    next["ExclusiveStartKey"] = last.clone();
    let answer = world.send(Method::POST, "/", target, &next.to_string());
    let answer = answer.expect("it was a request before");
    assert_eq!(answer.status, 200, "{target}\n{next}\n{answer:?}");
    let next: Value = serde_json::from_slice(&answer.body).expect("an answer is JSON");
    assert_ne!(next.get("LastEvaluatedKey"), Some(last), "a page gets further");
}

/// Our own API: JSON with a message and a code, or text. An internal error is allowed only if the
/// input wrote invalid records next to the golden session.
fn own_api(world: &mut World, method: Method, path: &str, body: &str) {
    // This would reach an agent, which is not tested here.
    if path.contains("runtimes") {
        return;
    }
    let reads = method == Method::GET;
    let Some(answer) = world.send(method, path, "", body) else { return };
    assert!(answer.status != 500 || world.is_changed, "{path}\n{body}\n{answer:?}");
    if answer.content_type == "application/json" {
        let json: Value = serde_json::from_slice(&answer.body).expect("an answer is JSON");
        assert!(answer.status < 300 || json["code"].is_string(), "{path}\n{body}\n{json}");
    }
    world.is_changed |= !reads;
}
