//! Client of the agent runtime, Bedrock `AgentCore`, for the Lambda functions.
//!
//! [`Runtime::invoke`](invoke) calls the agent once and distinguishes a refusal from a call that may
//! have been accepted. [`Runtime::stop_session`] stops the runtime session of an ended session.

pub mod invoke;

use std::time::Duration;

use aws_sdk_bedrockagentcore::Client;
use aws_sdk_bedrockagentcore::config::Config;
use aws_sdk_bedrockagentcore::config::retry::RetryConfig;
use aws_sdk_bedrockagentcore::config::timeout::TimeoutConfig;
use aws_sdk_bedrockagentcore::error::SdkError;
use aws_sdk_bedrockagentcore::operation::stop_runtime_session::StopRuntimeSessionError;
use journal::id::SessionId;

/// Timeout of stopping a session.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// An agent runtime and its client.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// The client. Only its endpoint differs between a local stack and the cloud.
    pub client: Client,
    pub arn: String,
    /// The runtime's endpoint; `None` for the default one.
    pub qualifier: Option<String>,
}

impl Runtime {
    /// Stops a session's runtime session, which would otherwise idle and cost money. The end step or a
    /// later claim fences it anyway, so a failure is only logged.
    pub async fn stop_session(&self, session: &SessionId) {
        let timeouts = TimeoutConfig::builder().operation_timeout(STOP_TIMEOUT).build();
        let once = Config::builder().retry_config(RetryConfig::disabled()).timeout_config(timeouts);
        let stopped = self
            .client
            .stop_runtime_session()
            .agent_runtime_arn(&self.arn)
            .set_qualifier(self.qualifier.clone())
            .runtime_session_id(session.as_str())
            .customize()
            .config_override(once)
            .send()
            .await;
        match stopped.map_err(SdkError::into_service_error) {
            Ok(_) | Err(StopRuntimeSessionError::ResourceNotFoundException(_)) => {}
            Err(error) => {
                tracing::warn!(session_id = %session, ?error, "The runtime session was not stopped.");
            }
        }
    }
}
