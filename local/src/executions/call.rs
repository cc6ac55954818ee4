//! What a task calls: a function or the journal's table.

use std::time::Duration;

use journal::sqlite::SqliteStore;
use serde_json::{Value, json};
use states::error_name;
use states::history::Failure;
use uuid::Uuid;

use super::Shared;
use crate::dynamodb;
use crate::functions::CallError;

/// How long a function may run.
///
/// Source: AWS, "Lambda quotas", function timeout.
pub(super) const FUNCTION_LONGEST: Duration = Duration::from_secs(900);

const PUT_ITEM: &str = "arn:aws:states:::dynamodb:putItem";
const INVOKE: &str = "arn:aws:states:::lambda:invoke";
const INVOKE_AND_WAIT: &str = "arn:aws:states:::lambda:invoke.waitForTaskToken";

/// Does what a task asks for.
pub(super) async fn perform(
    shared: &Shared,
    resource: &str,
    arguments: Value,
) -> Result<Value, Failure> {
    match resource {
        PUT_ITEM => put_item(&shared.store, arguments).await,
        INVOKE | INVOKE_AND_WAIT => {
            let Some(function) = arguments["FunctionName"].as_str() else {
                let cause = "The field 'FunctionName' is required but was missing";
                return Err(Failure::new(error_name::RUNTIME, Some(cause.to_owned())));
            };
            let payload = arguments.get("Payload").cloned().unwrap_or_else(|| json!({}));
            let payload = invoke(shared, function, payload).await?;
            Ok(json!({
                "ExecutedVersion": "$LATEST",
                "Payload": payload,
                "SdkHttpMetadata": { "HttpStatusCode": 200 },
                "SdkResponseMetadata": { "RequestId": Uuid::new_v4().to_string() },
                "StatusCode": 200,
            }))
        }
        function if function.starts_with("arn:aws:lambda:") => {
            invoke(shared, function, arguments).await
        }
        other => {
            let cause = format!("The resource '{other}' is not one that this machine offers");
            Err(Failure::new(error_name::RUNTIME, Some(cause)))
        }
    }
}

async fn invoke(shared: &Shared, function: &str, payload: Value) -> Result<Value, Failure> {
    let called = shared.functions.call(function, payload);
    match shared.clock.timeout(FUNCTION_LONGEST, called).await {
        Some(Ok(payload)) => Ok(payload),
        Some(Err(error)) => Err(lambda_failure(&error)),
        None => {
            let limit = FUNCTION_LONGEST.as_secs();
            let cause = json!({
                "errorType": "Sandbox.Timedout",
                "errorMessage": format!("Task timed out after {limit}.00 seconds"),
            });
            Err(Failure::new("Sandbox.Timedout", Some(cause.to_string())))
        }
    }
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
    }
}

async fn put_item(store: &SqliteStore, arguments: Value) -> Result<Value, Failure> {
    match dynamodb::handle(store, "PutItem", arguments.to_string().as_bytes()).await {
        Ok(_) => Ok(json!({
            "SdkHttpMetadata": { "HttpStatusCode": 200 },
            "SdkResponseMetadata": { "RequestId": Uuid::new_v4().to_string() },
        })),
        Err(error) => {
            let cause = format!(
                "{} (Service: DynamoDb, Status Code: {}, Request ID: {})",
                error.message,
                error.status,
                Uuid::new_v4()
            );
            Err(Failure::new(dynamodb_error(error.kind), Some(cause)))
        }
    }
}

/// DynamoDB's errors as Step Functions names them: after the exceptions of the Java client.
///
/// Source: AWS, "Handling errors in Step Functions workflows" and the API's list of errors; what has
/// no exception of its own is `AmazonDynamoDBException`.
fn dynamodb_error(kind: &str) -> &'static str {
    match kind.rsplit('#').next().unwrap_or(kind) {
        "ConditionalCheckFailedException" => "DynamoDB.ConditionalCheckFailedException",
        "ResourceNotFoundException" => "DynamoDB.ResourceNotFoundException",
        "InternalServerError" => "DynamoDB.InternalServerErrorException",
        "ServiceUnavailable" => "DynamoDB.ServiceUnavailableException",
        _ => "DynamoDB.AmazonDynamoDBException",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_s_failure_is_spelled_as_lambda_does() {
        let failed = crate::functions::FunctionError::new("JournalUnavailable", "locked");
        assert_eq!(
            lambda_failure(&CallError::Failed(failed)),
            Failure::new(
                "JournalUnavailable",
                Some(r#"{"errorType":"JournalUnavailable","errorMessage":"locked"}"#.to_owned())
            )
        );
    }
}
