//! What a task calls: a function, the journal's table, the bus, or the agent runtime.

mod agent_core;
mod dynamodb;
mod events;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use states::error_name;
use states::history::Failure;
use uuid::Uuid;

use super::Shared;
use crate::functions::{CallError, FunctionError, Functions};

/// How long a function may run.
///
/// Source: AWS, "Lambda quotas", function timeout.
pub(super) const FUNCTION_LONGEST: Duration = Duration::from_secs(900);

/// What this machine offers to a task, for whoever asked for something else.
const OFFERED: &str = "lambda:invoke and a function's ARN, dynamodb:putItem, getItem and updateItem, \
aws-sdk:dynamodb:putItem, getItem, updateItem and query, events:putEvents, \
aws-sdk:bedrockagentcore:invokeAgentRuntime; all but dynamodb also with .waitForTaskToken";

/// The two ways in which Step Functions hands a service's answer on.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Style {
    /// An integration of its own (`dynamodb:putItem`): the answer with the SDK's metadata.
    Optimised,
    /// The SDK's (`aws-sdk:dynamodb:putItem`): the answer alone.
    Sdk,
}

/// What a task's `Resource` names.
#[derive(Debug, PartialEq)]
enum Service<'a> {
    /// A function by its ARN: what it answers is the task's result.
    Function(&'a str),
    /// A function that the arguments name.
    Invoke,
    /// An action of the table, as the API spells it.
    Table(Style, &'static str),
    PutEvents,
    InvokeAgentRuntime,
}

impl<'a> Service<'a> {
    fn of(resource: &'a str) -> Option<Self> {
        if resource.starts_with("arn:aws:lambda:") {
            return Some(Self::Function(resource));
        }
        let service = resource.strip_prefix("arn:aws:states:::")?;
        let without_token = service.strip_suffix(".waitForTaskToken").unwrap_or(service);
        Some(match without_token {
            "lambda:invoke" => Self::Invoke,
            "events:putEvents" => Self::PutEvents,
            "aws-sdk:bedrockagentcore:invokeAgentRuntime" => Self::InvokeAgentRuntime,
            "aws-sdk:dynamodb:putItem" => Self::Table(Style::Sdk, "PutItem"),
            "aws-sdk:dynamodb:getItem" => Self::Table(Style::Sdk, "GetItem"),
            "aws-sdk:dynamodb:updateItem" => Self::Table(Style::Sdk, "UpdateItem"),
            "aws-sdk:dynamodb:query" => Self::Table(Style::Sdk, "Query"),
            // This integration waits for no token.
            _ => match service {
                "dynamodb:putItem" => Self::Table(Style::Optimised, "PutItem"),
                "dynamodb:getItem" => Self::Table(Style::Optimised, "GetItem"),
                "dynamodb:updateItem" => Self::Table(Style::Optimised, "UpdateItem"),
                _ => return None,
            },
        })
    }
}

/// Does what a task of the execution `caller` asks for.
pub(super) async fn perform(
    shared: &Arc<Shared>,
    caller: &str,
    resource: &str,
    arguments: Value,
) -> Result<Value, Failure> {
    match Service::of(resource) {
        Some(Service::Function(arn)) => invoke(shared, arn, arguments).await,
        Some(Service::Invoke) => {
            let (function, payload) = invocation(&arguments)?;
            Ok(invoked(&invoke(shared, function, payload).await?))
        }
        Some(Service::Table(style, action)) => {
            dynamodb::call(&shared.store, style, action, &arguments).await
        }
        Some(Service::PutEvents) => events::put(shared, caller, arguments).await,
        Some(Service::InvokeAgentRuntime) => {
            agent_core::invoke(shared.services.agent_core.as_ref(), &arguments).await
        }
        None => Err(not_offered(resource, OFFERED)),
    }
}

/// Does what a task asks of a function, where there is nothing else to ask: no journal, no bus, no
/// agents.
///
/// # Errors
/// The task's failure.
pub async fn call_function(
    functions: &Functions,
    resource: &str,
    arguments: Value,
) -> Result<Value, Failure> {
    let failed = |error: CallError| lambda_failure(&error);
    match Service::of(resource) {
        Some(Service::Function(arn)) => functions.call(arn, arguments).await.map_err(failed),
        Some(Service::Invoke) => {
            let (function, payload) = invocation(&arguments)?;
            Ok(invoked(&functions.call(function, payload).await.map_err(failed)?))
        }
        _ => Err(not_offered(resource, "lambda:invoke and a function's ARN")),
    }
}

fn not_offered(resource: &str, offered: &str) -> Failure {
    let cause = format!(
        "The resource '{resource}' is not one that this machine offers. It offers {offered}."
    );
    Failure::new(error_name::RUNTIME, Some(cause))
}

/// The function that the arguments of `lambda:invoke` name, and its payload.
fn invocation(arguments: &Value) -> Result<(&str, Value), Failure> {
    let Some(function) = arguments["FunctionName"].as_str() else {
        let cause = "The field 'FunctionName' is required but was missing";
        return Err(Failure::new(error_name::RUNTIME, Some(cause.to_owned())));
    };
    Ok((function, arguments.get("Payload").cloned().unwrap_or_else(|| json!({}))))
}

/// What `lambda:invoke` hands on of a function's answer.
fn invoked(payload: &Value) -> Value {
    let mut answer = with_metadata(json!({ "ExecutedVersion": "$LATEST", "Payload": payload }));
    answer["StatusCode"] = json!(200);
    answer
}

/// An answer as an optimised integration hands it on.
fn with_metadata(mut answer: Value) -> Value {
    answer["SdkHttpMetadata"] = json!({ "HttpStatusCode": 200 });
    answer["SdkResponseMetadata"] = json!({ "RequestId": Uuid::new_v4().to_string() });
    answer
}

async fn invoke(shared: &Shared, function: &str, payload: Value) -> Result<Value, Failure> {
    let called = shared.services.functions.call(function, payload);
    let answer = shared.clock.timeout(FUNCTION_LONGEST, called).await;
    answer
        .unwrap_or_else(|| Err(FunctionError::timed_out(FUNCTION_LONGEST).into()))
        .map_err(|error| lambda_failure(&error))
}

fn lambda_failure(error: &CallError) -> Failure {
    match error {
        CallError::Failed(failed) => {
            let cause = json!({ "errorType": failed.name, "errorMessage": failed.message });
            Failure::new(&failed.name, Some(cause.to_string()))
        }
        CallError::NotFound(name) => {
            let cause = format!("Function not found: {name} (Service: Lambda, Status Code: 404)");
            Failure::new("Lambda.ResourceNotFoundException", Some(cause))
        }
        CallError::Crashed => Failure::new("Lambda.Unknown", Some(error.to_string())),
        CallError::Throttled => {
            let cause = format!("{error} (Service: Lambda, Status Code: 429)");
            Failure::new("Lambda.TooManyRequestsException", Some(cause))
        }
        CallError::Unreachable(_) => {
            Failure::new("Lambda.SdkClientException", Some(error.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_s_failure_is_spelled_as_lambda_does() {
        let failed = FunctionError::new("JournalUnavailable", "locked");
        assert_eq!(
            lambda_failure(&CallError::Failed(failed)),
            Failure::new(
                "JournalUnavailable",
                Some(r#"{"errorType":"JournalUnavailable","errorMessage":"locked"}"#.to_owned())
            )
        );
    }

    #[test]
    fn a_resource_names_what_this_machine_offers_and_nothing_else() {
        let function = "arn:aws:lambda:us-east-1:000000000000:function:f";
        assert_eq!(Service::of(function), Some(Service::Function(function)));
        for (service, expected) in [
            ("lambda:invoke", Some(Service::Invoke)),
            ("lambda:invoke.waitForTaskToken", Some(Service::Invoke)),
            ("dynamodb:putItem", Some(Service::Table(Style::Optimised, "PutItem"))),
            ("dynamodb:deleteItem", None),
            ("dynamodb:query", None),
            ("dynamodb:putItem.waitForTaskToken", None),
            ("aws-sdk:dynamodb:query", Some(Service::Table(Style::Sdk, "Query"))),
            (
                "aws-sdk:dynamodb:putItem.waitForTaskToken",
                Some(Service::Table(Style::Sdk, "PutItem")),
            ),
            ("events:putEvents.waitForTaskToken", Some(Service::PutEvents)),
            ("aws-sdk:bedrockagentcore:invokeAgentRuntime", Some(Service::InvokeAgentRuntime)),
            ("aws-sdk:bedrockagentcore:stopRuntimeSession", None),
            ("sqs:sendMessage", None),
            ("", None),
        ] {
            assert_eq!(Service::of(&format!("arn:aws:states:::{service}")), expected, "{service}");
        }
    }
}
