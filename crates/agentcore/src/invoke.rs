//! Invokes the agent with one call, without retries.

use aws_sdk_bedrockagentcore::config::Config;
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

use crate::Runtime;

/// Why a call returned no reply, by whether the agent may have been invoked.
#[derive(Debug)]
pub enum CallError {
    /// It was certainly not accepted; a retry may be.
    NotAccepted { message: ErrorMessage },
    /// It was certainly not accepted: the runtime has no place for another session, or takes no more requests for
    /// now. That can last for hours.
    NoCapacity { message: ErrorMessage },
    /// The runtime or the agent refused it.
    Refused {
        message: ErrorMessage,
        /// The newest stamp that the agent had seen, if the agent refused.
        seen: Option<Stamp>,
    },
    /// It may have been accepted.
    MayBeAccepted { what: String },
}

impl CallError {
    /// The error to journal; `None` if the call may have been accepted.
    pub fn message(&self) -> Option<ErrorMessage> {
        match self {
            Self::NotAccepted { message }
            | Self::NoCapacity { message }
            | Self::Refused { message, .. } => Some(message.clone()),
            Self::MayBeAccepted { .. } => None,
        }
    }

    /// The newest stamp that the agent had seen, if it returned one.
    pub fn seen(&self) -> Option<Stamp> {
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
    /// `parent` is sent as a W3C `traceparent` for proxies in between; the agent reads it from the
    /// request.
    ///
    /// # Errors
    /// [`CallError`], by whether the agent may have been invoked.
    pub async fn invoke(
        &self,
        request: &AgentRequest,
        parent: TraceParent,
    ) -> Result<AgentReply, CallError> {
        let body = serde_json::to_vec(request).map_err(|error| CallError::Refused {
            message: ErrorMessage::new("InvokerError", "Serialization", &error.to_string()),
            seen: None,
        })?;
        let timeouts = TimeoutConfig::builder().operation_timeout(INVOKE_TIMEOUT).build();
        let once = Config::builder().retry_config(RetryConfig::disabled()).timeout_config(timeouts);
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
            what: format!("its response could not be read: {what}"),
        };
        let answer = response.response.collect().await.map_err(|error| cut(&error))?.into_bytes();
        if answer.len() > REPLY_BYTES_MAX {
            return Err(cut(&format!("{} bytes", answer.len())));
        }
        serde_json::from_slice(&answer).map_err(|error| cut(&error))
    }
}

/// Only a response of the service and a failed connection are certain refusals.
fn judge(error: SdkError<InvokeAgentRuntimeError>) -> CallError {
    match error {
        SdkError::ServiceError(context) => judge_answer(context.err()),
        SdkError::DispatchFailure(failure) => {
            let cause = failure.as_connector_error().map_or_else(|| "unknown".to_owned(), describe);
            // A read timeout is also a dispatch failure.
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
        // Source: Bedrock AgentCore API reference, `InvokeAgentRuntime`, errors. The message of the second is
        // `maxVms limit exceeded` when the account has as many runtime sessions as it may.
        E::ThrottlingException(_) | E::ServiceQuotaExceededException(_) => {
            CallError::NoCapacity { message }
        }
        E::InternalServerException(_) | E::RetryableConflictException(_) => {
            CallError::NotAccepted { message }
        }
        E::RuntimeClientError(_) => judge_container(text),
        _ => CallError::Refused { message, seen: None },
    }
}

/// The container responded with an error. A refusal of the agent is marked as one; after any other
/// error, such as a crash or a proxy's, the agent may have started.
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
