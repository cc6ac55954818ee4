//! The journal's table, for tasks that read and write it.

use asl::history::Failure;
use journal::store::Store;
use serde_json::Value;
use uuid::Uuid;

use super::{Style, with_metadata};
use crate::dynamodb;

/// Performs an action on the table. Immutable records stay so for state machines too.
pub(super) async fn call<S: Store>(
    store: &S,
    style: Style,
    action: &str,
    arguments: &Value,
) -> Result<Value, Failure> {
    match dynamodb::handle_items(store, action, arguments.to_string().as_bytes()).await {
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

/// Error names of the optimised integration: those of the first Java client.
///
/// Source: AWS, "Handling errors in Step Functions workflows" and the API's list of errors. Any other
/// error is `AmazonDynamoDBException`.
fn optimised(code: &str) -> &'static str {
    match code {
        "ConditionalCheckFailedException" => "DynamoDB.ConditionalCheckFailedException",
        "ResourceNotFoundException" => "DynamoDB.ResourceNotFoundException",
        "InternalServerError" => "DynamoDB.InternalServerErrorException",
        "ServiceUnavailable" => "DynamoDB.ServiceUnavailableException",
        _ => "DynamoDB.AmazonDynamoDBException",
    }
}

/// Error names of the SDK integration: those of the second Java client.
///
/// Source: AWS, "Integrating with AWS services using the AWS SDK". Any other error is
/// `DynamoDbException`.
fn sdk(code: &str) -> &'static str {
    match code {
        "ConditionalCheckFailedException" => "DynamoDb.ConditionalCheckFailedException",
        "ResourceNotFoundException" => "DynamoDb.ResourceNotFoundException",
        "InternalServerError" => "DynamoDb.InternalServerErrorException",
        _ => "DynamoDb.DynamoDbException",
    }
}
