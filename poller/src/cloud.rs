//! The poller's AWS clients beside the journal: the state machine's callbacks and the agent runtime.

use agentcore::Runtime;
use aws_sdk_sfn::config::retry::RetryConfig;
use aws_sdk_sfn::config::timeout::TimeoutConfig;
use aws_sdk_sfn::operation::send_task_success::SendTaskSuccessError;
use control::Workflow;

use crate::error::Error;

/// Timeout of one call.
const CALL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(crate) struct Cloud {
    callbacks: aws_sdk_sfn::Client,
    pub(crate) runtime: Runtime,
}

impl Cloud {
    pub(crate) fn new(callbacks: aws_sdk_sfn::Client, runtime: Runtime) -> Self {
        Self { callbacks, runtime }
    }

    /// Sends a token; returns whether the workflow was still waiting with it.
    pub(crate) async fn wake(&self, token: &str) -> Result<bool, Error> {
        self.send(token).await.map_err(Error::Callback)
    }

    async fn send(&self, token: &str) -> Result<bool, String> {
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
            Ok(_) => Ok(true),
            Err(
                SendTaskSuccessError::TaskTimedOut(_) | SendTaskSuccessError::TaskDoesNotExist(_),
            ) => Ok(false),
            Err(error) => Err(format!("{error:?}")),
        }
    }
}

impl Workflow for Cloud {
    async fn wake(&self, token: &str) -> Result<bool, control::Error> {
        self.send(token).await.map_err(|why| control::Error::Executions(why.into()))
    }
}
