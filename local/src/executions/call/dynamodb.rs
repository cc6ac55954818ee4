//! The journal's table, as far as a state machine may read and write it.

use journal::sqlite::SqliteStore;
use serde_json::Value;
use states::history::Failure;
use uuid::Uuid;

use super::{Style, with_metadata};
use crate::dynamodb;

/// Has the table do an action. What is immutable there stays so, whoever asks.
pub(super) async fn call(
    store: &SqliteStore,
    style: Style,
    action: &str,
    arguments: &Value,
) -> Result<Value, Failure> {
    match dynamodb::handle(store, action, arguments.to_string().as_bytes()).await {
        Ok(answer) if style == Style::Optimised => Ok(with_metadata(answer)),
        Ok(answer) => Ok(answer),
        Err(error) => {
            let code = error.kind.rsplit('#').next().unwrap_or(error.kind);
            let (message, status, request) = (error.message, error.status, Uuid::new_v4());
            let (name, cause) = match style {
                Style::Optimised => (
                    optimised(code),
                    format!(
                        "{message} (Service: AmazonDynamoDBv2; Status Code: {status}; Error Code: {code}; Request ID: {request}; Proxy: null)"
                    ),
                ),
                Style::Sdk => (
                    sdk(code),
                    format!(
                        "{message} (Service: DynamoDb, Status Code: {status}, Request ID: {request})"
                    ),
                ),
            };
            Err(Failure::new(name, Some(cause)))
        }
    }
}

/// Errors as the optimised integration names them: after the exceptions of the first Java client.
///
/// Source: AWS, "Handling errors in Step Functions workflows" and the API's list of errors; what has
/// no exception of its own is `AmazonDynamoDBException`.
fn optimised(code: &str) -> &'static str {
    match code {
        "ConditionalCheckFailedException" => "DynamoDB.ConditionalCheckFailedException",
        "ResourceNotFoundException" => "DynamoDB.ResourceNotFoundException",
        "InternalServerError" => "DynamoDB.InternalServerErrorException",
        "ServiceUnavailable" => "DynamoDB.ServiceUnavailableException",
        _ => "DynamoDB.AmazonDynamoDBException",
    }
}

/// Errors as the SDK's integration names them: after the exceptions of the second Java client.
///
/// Source: AWS, "Integrating with AWS services using the AWS SDK"; what has no exception of its own
/// is the service's, `DynamoDbException`.
fn sdk(code: &str) -> &'static str {
    match code {
        "ConditionalCheckFailedException" => "DynamoDb.ConditionalCheckFailedException",
        "ResourceNotFoundException" => "DynamoDb.ResourceNotFoundException",
        "InternalServerError" => "DynamoDb.InternalServerErrorException",
        _ => "DynamoDb.DynamoDbException",
    }
}
