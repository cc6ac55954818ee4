//! The agent runtime, Bedrock `AgentCore`: one call, made once.

use aws_sdk_bedrockagentcore::Client;
use aws_sdk_bedrockagentcore::config::retry::RetryConfig;
use aws_sdk_bedrockagentcore::config::timeout::TimeoutConfig;
use aws_sdk_bedrockagentcore::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_bedrockagentcore::operation::invoke_agent_runtime::InvokeAgentRuntimeError;
use aws_sdk_bedrockagentcore::primitives::Blob;
use journal::clock::Stamp;
use journal::error_message::ErrorMessage;
use telemetry::context::TraceParent;
use workflow::contract::{AgentRefusal, AgentReply, AgentRequest};
use workflow::limits::{INVOKE_TIMEOUT, REPLY_BYTES_MAX};

/// How the agent runtime is reached.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// The client; its endpoint is all that differs between one machine and the cloud.
    pub client: Client,
    /// The runtime's ARN.
    pub arn: String,
    /// The runtime's endpoint, if not the default one.
    pub qualifier: Option<String>,
}

/// Why a call brought no reply.
#[derive(Debug)]
pub(crate) enum CallError {
    /// It was certainly not accepted; a later call may be.
    NotAccepted { message: ErrorMessage },
    /// It was refused, by the runtime or by the agent.
    Refused { message: ErrorMessage, seen: Option<Stamp> },
    /// It may have been accepted.
    MayBeAccepted { what: String },
}

impl CallError {
    /// What the journal says about it; nothing if it is neither a success nor a failure.
    pub(crate) fn message(&self) -> Option<ErrorMessage> {
        match self {
            Self::NotAccepted { message } | Self::Refused { message, .. } => Some(message.clone()),
            Self::MayBeAccepted { .. } => None,
        }
    }

    pub(crate) fn seen(&self) -> Option<Stamp> {
        match self {
            Self::Refused { seen, .. } => *seen,
            _ => None,
        }
    }
}

impl Runtime {
    /// Calls the agent once. The SDK's own retries are off: the operation has no idempotency token,
    /// and a second request would be a second invocation.
    ///
    /// `parent` goes along as W3C has it, for what stands between here and the agent; the agent itself
    /// knows it from the request.
    pub(crate) async fn invoke(
        &self,
        request: &AgentRequest,
        parent: TraceParent,
    ) -> Result<AgentReply, CallError> {
        let body = serde_json::to_vec(request).map_err(|error| CallError::Refused {
            message: ErrorMessage::new("InvokerError", "Serialization", &error.to_string()),
            seen: None,
        })?;
        let timeouts = TimeoutConfig::builder().operation_timeout(INVOKE_TIMEOUT).build();
        let once = aws_sdk_bedrockagentcore::config::Config::builder()
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeouts);
        let response = self
            .client
            .invoke_agent_runtime()
            .agent_runtime_arn(&self.arn)
            .set_qualifier(self.qualifier.clone())
            .runtime_session_id(request.session_id.as_str())
            .trace_parent(parent.to_string())
            .content_type("application/json")
            .accept("application/json")
            .payload(Blob::new(body))
            .customize()
            .config_override(once)
            .send()
            .await
            .map_err(judge)?;
        let cut = |what: &dyn std::fmt::Display| CallError::MayBeAccepted {
            what: format!("its answer could not be read: {what}"),
        };
        let answer = response.response.collect().await.map_err(|error| cut(&error))?.into_bytes();
        if answer.len() > REPLY_BYTES_MAX {
            return Err(cut(&format!("{} bytes", answer.len())));
        }
        serde_json::from_slice(&answer).map_err(|error| cut(&error))
    }
}

/// Only a service's own answer and a connection that never came about are certain refusals.
fn judge(error: SdkError<InvokeAgentRuntimeError>) -> CallError {
    match error {
        SdkError::ServiceError(context) => judge_answer(context.err()),
        SdkError::DispatchFailure(failure) => {
            let cause = failure.as_connector_error().map_or_else(|| "unknown".to_owned(), describe);
            // A read timeout also comes as a dispatch failure.
            if !failure.is_timeout()
                && failure.as_connector_error().is_some_and(|error| never_connected(error))
            {
                let message = ErrorMessage::new("InvocationError", "ConnectFailed", &cause);
                return CallError::NotAccepted { message };
            }
            CallError::MayBeAccepted { what: cause }
        }
        SdkError::ConstructionFailure(failure) => {
            let text = format!("{failure:?}");
            let message = ErrorMessage::new("InvocationError", "InvalidRequest", &text);
            CallError::Refused { message, seen: None }
        }
        other => CallError::MayBeAccepted { what: describe(&other) },
    }
}

fn judge_answer(error: &InvokeAgentRuntimeError) -> CallError {
    use InvokeAgentRuntimeError as E;
    let code = error.code().unwrap_or("Unknown");
    let text = error.message().unwrap_or("the agent runtime gave no reason");
    let message = ErrorMessage::new("ClientError", code, text);
    match error {
        E::ThrottlingException(_)
        | E::InternalServerException(_)
        | E::RetryableConflictException(_) => CallError::NotAccepted { message },
        E::RuntimeClientError(_) => judge_container(text),
        _ => CallError::Refused { message, seen: None },
    }
}

/// The container answered with an error: our agent's refusals say so themselves, anything else (a
/// crash, a proxy) leaves open whether the agent had begun.
fn judge_container(text: &str) -> CallError {
    let refusal = text.find('{').and_then(|start| {
        let mut stream =
            serde_json::Deserializer::from_str(&text[start..]).into_iter::<AgentRefusal>();
        stream.next()?.ok()
    });
    match refusal {
        Some(refusal) => CallError::Refused {
            message: ErrorMessage::from_text(&refusal.error),
            seen: Some(refusal.seen),
        },
        None => CallError::MayBeAccepted { what: format!("the agent's container failed: {text}") },
    }
}

fn never_connected(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return io.kind() == std::io::ErrorKind::ConnectionRefused;
        }
        if error.to_string().contains("client error (Connect)") {
            return true;
        }
        cause = error.source();
    }
    false
}

fn describe(error: &(impl std::error::Error + ?Sized)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
