//! What a task calls: a function, the journal's table, the event bus, or the agent runtime.

mod agent_core;
mod dynamodb;
mod events;

use std::sync::Arc;
use std::time::Duration;

use asl::error_name;
use asl::history::Failure;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{ExecutionStore, Shared};
use crate::functions::{CallError, FunctionError, Functions};
use crate::names;

/// Longest run of a function.
///
/// Source: AWS, "Lambda quotas", function timeout.
pub(super) const FUNCTION_LONGEST: Duration = Duration::from_secs(900);

/// The services that a task can call, for the error of any other one.
const OFFERED: &str = "lambda:invoke and a function's ARN, dynamodb:putItem, getItem and updateItem, \
aws-sdk:dynamodb:putItem, getItem, updateItem and query, events:putEvents, \
aws-sdk:bedrockagentcore:invokeAgentRuntime; all but dynamodb also with .waitForTaskToken";

/// The two response formats of Step Functions' service integrations.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Style {
    /// Optimised integration (`dynamodb:putItem`): the response with SDK metadata.
    Optimised,
    /// SDK integration (`aws-sdk:dynamodb:putItem`): only the response.
    Sdk,
}

/// A task's `Resource`.
#[derive(Debug, PartialEq)]
enum Service<'a> {
    /// A function by its ARN; the task's result is its response.
    Function(&'a str),
    /// `lambda:invoke`; the arguments name the function.
    Invoke,
    /// An action of the table, by its API name.
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
            // This integration does not support task tokens.
            _ => match service {
                "dynamodb:putItem" => Self::Table(Style::Optimised, "PutItem"),
                "dynamodb:getItem" => Self::Table(Style::Optimised, "GetItem"),
                "dynamodb:updateItem" => Self::Table(Style::Optimised, "UpdateItem"),
                _ => return None,
            },
        })
    }
}

/// Calls the service that a task of the execution `caller` names.
pub(super) async fn perform<S: ExecutionStore>(
    shared: &Arc<Shared<S>>,
    caller: &str,
    resource: &str,
    arguments: Value,
) -> Result<Value, Failure> {
    let service = Service::of(resource);
    if !is_workflow(caller) {
        of_users(service.as_ref(), &arguments)?;
    }
    match service {
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

/// Whether an execution is one of the workflow.
fn is_workflow(execution_arn: &str) -> bool {
    execution_arn.starts_with(&names::execution_arn(names::STATE_MACHINE, ""))
}

/// Checks a call of a state machine of a user: records are written by the workflow and its agents alone.
fn of_users(service: Option<&Service<'_>>, arguments: &Value) -> Result<(), Failure> {
    let function = match service {
        Some(Service::Table(_, "PutItem" | "UpdateItem")) => {
            let cause =
                "a state machine of your own reads the journal's table and cannot write to it";
            return Err(Failure::new(error_name::PERMISSIONS, Some(cause.to_owned())));
        }
        Some(Service::Function(arn)) => *arn,
        Some(Service::Invoke) => arguments["FunctionName"].as_str().unwrap_or_default(),
        _ => return Ok(()),
    };
    if is_own(function) {
        let cause =
            format!("a state machine of your own cannot call the workflow's function {function}");
        return Err(Failure::new(error_name::PERMISSIONS, Some(cause)));
    }
    Ok(())
}

/// Whether a name or ARN is that of one of the workflow's functions.
pub(crate) fn is_own(function: &str) -> bool {
    [names::INVOKER_ARN, names::POLLER_ARN]
        .iter()
        .any(|own| crate::functions::name_of(own) == crate::functions::name_of(function))
}

/// Calls the function that a task names, on a host without a journal, an event bus or agents.
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

/// The function and the payload in the arguments of `lambda:invoke`.
fn invocation(arguments: &Value) -> Result<(&str, Value), Failure> {
    let Some(function) = arguments["FunctionName"].as_str() else {
        let cause = "The field 'FunctionName' is required but was missing";
        return Err(Failure::new(error_name::RUNTIME, Some(cause.to_owned())));
    };
    Ok((function, arguments.get("Payload").cloned().unwrap_or_else(|| json!({}))))
}

/// The result of `lambda:invoke` for a function's response.
fn invoked(payload: &Value) -> Value {
    let mut answer = with_metadata(json!({ "ExecutedVersion": "$LATEST", "Payload": payload }));
    answer["StatusCode"] = json!(200);
    answer
}

/// A response with the metadata of an optimised integration.
fn with_metadata(mut answer: Value) -> Value {
    answer["SdkHttpMetadata"] = json!({ "HttpStatusCode": 200 });
    answer["SdkResponseMetadata"] = json!({ "RequestId": Uuid::new_v4().to_string() });
    answer
}

async fn invoke<S>(shared: &Shared<S>, function: &str, payload: Value) -> Result<Value, Failure> {
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
    fn a_functions_failure_has_lambdas_format() {
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
    fn only_supported_resources_have_a_service() {
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
