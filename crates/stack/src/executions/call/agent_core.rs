//! Bedrock `AgentCore`: a state machine may invoke an agent without a function between.

use asl::error_name;
use asl::history::Failure;
use aws_sdk_bedrockagentcore::Client;
use aws_sdk_bedrockagentcore::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_bedrockagentcore::operation::invoke_agent_runtime::InvokeAgentRuntimeError;
use aws_sdk_bedrockagentcore::primitives::Blob;
use serde_json::{Value, json};

/// Invokes the agent runtime in the arguments. The response body is a string, as for every response
/// that the SDK reads as a stream.
pub(super) async fn invoke(client: Option<&Client>, arguments: &Value) -> Result<Value, Failure> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
    let Some(arn) = text("AgentRuntimeArn") else {
        let cause = "The field 'AgentRuntimeArn' is required but was missing";
        return Err(Failure::new(error_name::RUNTIME, Some(cause.to_owned())));
    };
    let Some(client) = client else {
        let cause = format!("no agent runtime {arn} exists");
        return Err(Failure::new("BedrockAgentCore.ResourceNotFoundException", Some(cause)));
    };
    let payload = match arguments.get("Payload") {
        Some(Value::String(text)) => text.clone(),
        Some(json) => json.to_string(),
        None => String::new(),
    };
    let response = client
        .invoke_agent_runtime()
        .agent_runtime_arn(arn)
        .set_runtime_session_id(text("RuntimeSessionId"))
        .set_qualifier(text("Qualifier"))
        .content_type("application/json")
        .payload(Blob::new(payload))
        .send()
        .await
        .map_err(failure)?;
    let (session, status) = (response.runtime_session_id, response.status_code);
    let content_type = response.content_type;
    let body = response.response.collect().await.map_err(|error| client_failure(&error))?;
    Ok(json!({
        "ContentType": content_type,
        "Response": String::from_utf8_lossy(&body.into_bytes()),
        "RuntimeSessionId": session,
        "StatusCode": status,
    }))
}

fn failure(error: SdkError<InvokeAgentRuntimeError>) -> Failure {
    let SdkError::ServiceError(context) = &error else {
        return client_failure(&error);
    };
    let (status, error) = (context.raw().status().as_u16(), context.err());
    let name = format!("BedrockAgentCore.{}", error.code().unwrap_or("BedrockAgentCoreException"));
    let message = error.message().unwrap_or_default();
    let cause = format!("{message} (Service: BedrockAgentCore, Status Code: {status})");
    Failure::new(name, Some(cause))
}

/// No response, or an incomplete one.
fn client_failure(error: &dyn std::error::Error) -> Failure {
    Failure::new("BedrockAgentCore.SdkClientException", Some(error.to_string()))
}
