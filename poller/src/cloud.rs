//! What the poller reaches beside the journal: the state machine's callbacks and the agent runtime.

use aws_sdk_bedrockagentcore::config::retry::RetryConfig as RuntimeRetries;
use aws_sdk_bedrockagentcore::config::timeout::TimeoutConfig as RuntimeTimeouts;
use aws_sdk_sfn::config::retry::RetryConfig;
use aws_sdk_sfn::config::timeout::TimeoutConfig;
use aws_sdk_sfn::operation::send_task_success::SendTaskSuccessError;
use journal::id::SessionId;

use crate::error::Error;

/// How long one call may take.
const CALL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// How the agent runtime is reached.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// The client.
    pub client: aws_sdk_bedrockagentcore::Client,
    /// The runtime's ARN.
    pub arn: String,
    /// The runtime's endpoint, if not the default one.
    pub qualifier: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Cloud {
    callbacks: aws_sdk_sfn::Client,
    runtime: Runtime,
}

impl Cloud {
    pub(crate) fn new(callbacks: aws_sdk_sfn::Client, runtime: Runtime) -> Self {
        Self { callbacks, runtime }
    }

    /// Sends a token that was just written. One that is no longer waited for is no error.
    pub(crate) async fn wake(&self, token: &str) -> Result<(), Error> {
        let settings = aws_sdk_sfn::config::Config::builder()
            .retry_config(RetryConfig::standard())
            .timeout_config(TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build());
        let sent = self
            .callbacks
            .send_task_success()
            .task_token(token)
            .output("{}")
            .customize()
            .config_override(settings)
            .send()
            .await;
        match sent.map_err(aws_sdk_sfn::error::SdkError::into_service_error) {
            Ok(_)
            | Err(
                SendTaskSuccessError::TaskTimedOut(_) | SendTaskSuccessError::TaskDoesNotExist(_),
            ) => Ok(()),
            Err(error) => Err(Error::Callback(format!("{error:?}"))),
        }
    }

    /// Stops what may still run for a session, so that nothing idles and bills. Fencing makes it
    /// safe without; so a failure is logged and no more.
    pub(crate) async fn stop_session(&self, session: &SessionId) {
        use aws_sdk_bedrockagentcore::operation::stop_runtime_session::StopRuntimeSessionError as E;
        let settings = aws_sdk_bedrockagentcore::config::Config::builder()
            .retry_config(RuntimeRetries::disabled())
            .timeout_config(RuntimeTimeouts::builder().operation_timeout(CALL_TIMEOUT).build());
        let stopped = self
            .runtime
            .client
            .stop_runtime_session()
            .agent_runtime_arn(&self.runtime.arn)
            .set_qualifier(self.runtime.qualifier.clone())
            .runtime_session_id(session.as_str())
            .customize()
            .config_override(settings)
            .send()
            .await;
        match stopped.map_err(aws_sdk_bedrockagentcore::error::SdkError::into_service_error) {
            Ok(_) | Err(E::ResourceNotFoundException(_)) => {}
            Err(error) => {
                tracing::warn!(session_id = %session, ?error, "The runtime session was not stopped.");
            }
        }
    }
}
