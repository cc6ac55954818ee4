//! A small runner of the workflow engine: runs the real workflow with the functions of a race, and
//! never restarts.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use asl::definition::Definition;
use asl::execution::{Execution, Next, Outcome, Start};
use asl::history::Failure;
use asl::time::Timestamp;
use invoker::Invoker;
use journal::item::Item;
use journal::store::{Condition, Store, Written};
use poller::Poller;
use serde_json::{Value, json};
use sim::interleave::Gate;

use super::stage::Stage;

const SUBSTITUTIONS: &[(&str, &str)] = &[
    ("JOURNAL_TABLE_NAME", "journal"),
    ("JOURNAL_TTL_DAYS", "90"),
    ("INVOKER_FUNCTION_ARN", INVOKER),
    ("POLLER_FUNCTION_ARN", "arn:aws:lambda:us-east-1:000000000000:function:poller"),
    ("TRIGGER_PRINCIPAL", "unknown"),
];

const INVOKER: &str = "arn:aws:lambda:us-east-1:000000000000:function:invoker";

#[derive(Clone)]
pub struct Functions<S> {
    pub invoker: Invoker<Gate<S>>,
    pub poller: Poller<Gate<S>>,
}

/// Runs an execution for the stage's session to its end; returns its output.
pub async fn execute<S: Store>(
    stage: &Stage<S>,
    gate: &Gate<S>,
    functions: &Functions<S>,
    name: &str,
) -> String {
    let mut execution = Execution::new(definition(), start(stage, name)).unwrap();
    let mut called = None;
    loop {
        let now = Timestamp::from_nanos(stage.clock.now().nanos());
        let until = match execution.next(now) {
            Next::Record(events) => {
                events.iter().for_each(|event| execution.apply(event).unwrap());
                continue;
            }
            Next::RunTasks { requests, .. } if called != Some(requests[0].event_id) => {
                let request = &requests[0];
                called = Some(request.event_id);
                let answer =
                    Box::pin(perform(gate, functions, &request.resource, &request.arguments)).await;
                let now = Timestamp::from_nanos(stage.clock.now().nanos());
                let proposal = match answer {
                    Ok(output) => execution.task_succeeded(request.event_id, &output, now),
                    Err(failure) => execution.task_failed(request.event_id, failure, now),
                };
                execution.apply(&proposal.unwrap()).unwrap();
                continue;
            }
            Next::RunTasks { wake_at, .. } => wake_at,
            Next::WaitUntil(at) => at,
            Next::Done(Outcome::Succeeded(output)) => return output,
            Next::Done(other) => return format!("{other:?}"),
        };
        let millis = until.as_millis().saturating_sub(now.as_millis()).max(1);
        tokio::time::sleep(Duration::from_millis(millis.unsigned_abs())).await;
    }
}

fn definition() -> Arc<Definition> {
    static PARSED: OnceLock<Arc<Definition>> = OnceLock::new();
    let parse = || {
        let text = workflow::state_machine::with_substitutions(SUBSTITUTIONS);
        Arc::new(Definition::parse(&text).unwrap())
    };
    Arc::clone(PARSED.get_or_init(parse))
}

fn start<S: Store>(stage: &Stage<S>, name: &str) -> Start {
    let time = stage.began_at.to_string().replace(".000000000Z", "Z");
    let input = json!({ "session_id": stage.session, "time": time, "detail": {} });
    Start {
        execution_arn: format!("arn:aws:states:us-east-1:000000000000:execution:sim:{name}"),
        execution_name: name.to_owned(),
        role_arn: "arn:aws:iam::000000000000:role/sim".to_owned(),
        state_machine_arn: "arn:aws:states:us-east-1:000000000000:stateMachine:sim".to_owned(),
        state_machine_name: "sim".to_owned(),
        input: input.to_string(),
        started_at: Timestamp::from_nanos(stage.clock.now().nanos()),
        token_seed: name.to_owned(),
    }
}

async fn perform<S: Store>(
    gate: &Gate<S>,
    functions: &Functions<S>,
    resource: &str,
    arguments: &Value,
) -> Result<Value, Failure> {
    if resource.ends_with("dynamodb:putItem") {
        return put_item(gate, arguments).await;
    }
    let payload = arguments["Payload"].clone();
    let reply = if arguments["FunctionName"] == INVOKER {
        let request = serde_json::from_value(payload).unwrap();
        let called = Box::pin(functions.invoker.handle(request)).await;
        called.map(|reply| json!(reply)).map_err(|e| failure(e.name(), &e.to_string()))
    } else {
        let request = serde_json::from_value(payload).unwrap();
        let called = Box::pin(functions.poller.handle(request)).await;
        called.map(|reply| json!(reply)).map_err(|e| failure(e.name(), &e.to_string()))
    };
    Ok(json!({ "ExecutedVersion": "$LATEST", "Payload": reply?, "StatusCode": 200 }))
}

async fn put_item<S: Store>(gate: &Gate<S>, arguments: &Value) -> Result<Value, Failure> {
    let item = Item::from_json(&arguments["Item"]).unwrap();
    let condition = arguments["ConditionExpression"].as_str();
    assert_eq!(condition, Some("attribute_not_exists(PK) OR ExecutionArn = :me"));
    let me = arguments["ExpressionAttributeValues"][":me"]["S"].as_str().unwrap();
    let condition = Condition::Any(vec![Condition::Absent, Condition::equals("ExecutionArn", me)]);
    match gate.put(item, condition).await {
        Ok(Written::Done) => Ok(json!({})),
        Ok(Written::Refused(_)) => Err(failure(
            "DynamoDB.ConditionalCheckFailedException",
            "the conditional request failed",
        )),
        Err(error) => Err(failure("DynamoDB.SdkClientException", &error.to_string())),
    }
}

fn failure(name: &str, message: &str) -> Failure {
    let cause = json!({ "errorType": name, "errorMessage": message });
    Failure::new(name, Some(cause.to_string()))
}
