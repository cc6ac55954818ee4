//! The targets of the state machine's tasks: functions in containers that may die, and the table.

use std::sync::Arc;
use std::time::Duration;

use asl::history::Failure;
use invoker::Invoker;
use journal::item::Item;
use journal::store::{Condition, Error, Store as _, Written};
use poller::Poller;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use workflow::state_machine;

use crate::process::Process;
use crate::store::SimStore;
use crate::world::World;

/// Values of the placeholders in the state machine's definition.
pub const SUBSTITUTIONS: &[(&str, &str)] = &[
    ("JOURNAL_TABLE_NAME", "journal"),
    ("JOURNAL_TTL_DAYS", "90"),
    ("INVOKER_FUNCTION_ARN", INVOKER),
    ("POLLER_FUNCTION_ARN", POLLER),
    (state_machine::TRIGGER_PRINCIPAL, state_machine::PRINCIPAL_UNKNOWN),
];

const INVOKER: &str = "arn:aws:lambda:us-east-1:000000000000:function:invoker";
const POLLER: &str = "arn:aws:lambda:us-east-1:000000000000:function:poller";

/// The workflow's two functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Invoker,
    Poller,
}

impl Function {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Invoker => "invoker",
            Self::Poller => "poller",
        }
    }
}

/// A function's process, which handles one call at a time.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    pub(crate) function: Function,
    pub(crate) process: Arc<Process>,
    handler: Handler,
}

#[derive(Clone, Debug)]
enum Handler {
    Invoker(Invoker<SimStore>),
    Poller(Poller<SimStore>),
}

impl Container {
    pub(crate) fn invoker(process: Arc<Process>, invoker: Invoker<SimStore>) -> Self {
        Self { function: Function::Invoker, process, handler: Handler::Invoker(invoker) }
    }

    pub(crate) fn poller(process: Arc<Process>, poller: Poller<SimStore>) -> Self {
        Self { function: Function::Poller, process, handler: Handler::Poller(poller) }
    }

    async fn handle(&self, payload: Value) -> Result<Value, Failure> {
        match &self.handler {
            Handler::Invoker(invoker) => match Box::pin(invoker.handle(read(payload)?)).await {
                Ok(reply) => Ok(json!(reply)),
                Err(error) => Err(failure(error.name(), &error.to_string())),
            },
            Handler::Poller(poller) => match Box::pin(poller.handle(read(payload)?)).await {
                Ok(reply) => Ok(json!(reply)),
                Err(error) => Err(failure(error.name(), &error.to_string())),
            },
        }
    }
}

fn read<T: DeserializeOwned>(payload: Value) -> Result<T, Failure> {
    serde_json::from_value(payload)
        .map_err(|error| failure(workflow::error_name::INVALID_REQUEST, &error.to_string()))
}

fn failure(name: &str, message: &str) -> Failure {
    let cause = json!({ "errorType": name, "errorMessage": message });
    Failure::new(name, Some(cause.to_string()))
}

/// Performs a task's call.
pub(crate) async fn perform(
    world: &World,
    states: &Arc<Process>,
    resource: &str,
    arguments: Value,
) -> Result<Value, Failure> {
    if resource.ends_with("dynamodb:putItem") {
        return put_item(world, states, &arguments).await;
    }
    let function = match arguments["FunctionName"].as_str() {
        Some(INVOKER) => Function::Invoker,
        Some(POLLER) => Function::Poller,
        other => unreachable!("the text calls {other:?}"),
    };
    let payload = call(world, function, arguments["Payload"].clone()).await?;
    Ok(json!({ "ExecutedVersion": "$LATEST", "Payload": payload, "StatusCode": 200 }))
}

async fn call(world: &World, function: Function, payload: Value) -> Result<Value, Failure> {
    let (chance, faults) = (world.chance(), world.faults());
    tokio::time::sleep(chance.between(Duration::from_millis(1), Duration::from_millis(300))).await;
    if chance.happens(faults.call_throttled) {
        return Err(failure("Lambda.TooManyRequestsException", "simulated"));
    }
    if chance.happens(faults.call_doubled) {
        let (world, payload) = (world.clone(), payload.clone());
        let delay = chance.between(Duration::ZERO, Duration::from_secs(2));
        world.clone().tasks().spawn(async move {
            tokio::time::sleep(delay).await;
            // The reply of the duplicate call is dropped.
            let _ = Box::pin(run(&world, function, payload)).await;
        });
    }
    let reply = Box::pin(run(world, function, payload)).await;
    if chance.happens(faults.call_unanswered) {
        return Err(failure("Lambda.SdkClientException", "simulated, unanswered"));
    }
    reply
}

async fn run(world: &World, function: Function, payload: Value) -> Result<Value, Failure> {
    let container = world.container(function);
    // A container that dies drops its work.
    let reply = tokio::select! {
        biased;
        () = container.process.death() => None,
        reply = container.handle(payload) => Some(reply),
    };
    match reply {
        Some(reply) => {
            world.give_back(container);
            reply
        }
        // Lambda reports it in different ways; sometimes the task only times out.
        None => match world.chance().below(3) {
            0 => Err(failure("Lambda.ServiceException", "simulated, the container died")),
            1 => Err(failure("Lambda.AWSLambdaException", "simulated, the container died")),
            _ => std::future::pending().await,
        },
    }
}

/// SESSION_INITIATED, written by the state machine. Condition and item come from the definition.
async fn put_item(
    world: &World,
    states: &Arc<Process>,
    arguments: &Value,
) -> Result<Value, Failure> {
    let unreadable = |what: &str| unreachable!("the text's item cannot be read: {what}");
    let item = Item::from_json(&arguments["Item"]).unwrap_or_else(|e| unreadable(&e.to_string()));
    let condition = arguments["ConditionExpression"].as_str();
    assert_eq!(condition, Some("attribute_not_exists(PK) OR ExecutionArn = :me"));
    let me = arguments["ExpressionAttributeValues"][":me"]["S"].as_str().unwrap_or_default();
    let condition = Condition::Any(vec![Condition::Absent, Condition::equals("ExecutionArn", me)]);
    let store = SimStore::new(Arc::clone(world.disk()), Arc::clone(states));
    match store.put(item, condition).await {
        Ok(Written::Done) => Ok(json!({})),
        Ok(Written::Refused(_)) => Err(failure(
            "DynamoDB.ConditionalCheckFailedException",
            "the conditional request failed",
        )),
        Err(Error::Unavailable(_)) => {
            Err(failure("DynamoDB.ProvisionedThroughputExceededException", "simulated"))
        }
        Err(error) => Err(failure("DynamoDB.SdkClientException", &error.to_string())),
    }
}
