//! The poller's AWS clients beside the journal: the state machine's callbacks and the agent runtime.

use agentcore::Runtime;
use aws_sdk_sfn::config::retry::RetryConfig;
use aws_sdk_sfn::config::timeout::TimeoutConfig;
use aws_sdk_sfn::operation::send_task_success::SendTaskSuccessError;
use control::{Execution, Executions, Refused, Workflow};

use crate::error::Error;

/// Timeout of one call.
const CALL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// Largest input of an execution, in bytes.
///
/// Source: AWS, "Quotas for Step Functions", maximum input or output size.
const INPUT_BYTES_MAX: usize = 256 * 1024;

#[derive(Clone, Debug)]
pub(crate) struct Cloud {
    callbacks: aws_sdk_sfn::Client,
    pub(crate) runtime: Runtime,
    /// Needed to resume sessions only.
    pub(crate) state_machine_arn: Option<String>,
}

impl Cloud {
    pub(crate) fn new(callbacks: aws_sdk_sfn::Client, runtime: Runtime) -> Self {
        Self { callbacks, runtime, state_machine_arn: None }
    }

    /// Sends a token; returns whether the workflow was still waiting with it.
    pub(crate) async fn wake(&self, token: &str) -> Result<bool, Error> {
        self.send(token).await.map_err(Error::Callback)
    }

    async fn send(&self, token: &str) -> Result<bool, String> {
        let settings = settings();
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

/// Retries do no harm: a token is taken once, and an execution's name is given once.
fn settings() -> aws_sdk_sfn::config::Builder {
    aws_sdk_sfn::config::Config::builder()
        .retry_config(RetryConfig::standard())
        .timeout_config(TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build())
}

fn unavailable(error: impl std::fmt::Debug) -> control::Error {
    control::Error::Executions(format!("Step Functions did not answer: {error:?}").into())
}

impl Executions for Cloud {
    fn arn(&self, name: &str) -> Result<String, control::Error> {
        let machine = self.state_machine_arn.as_deref();
        let arn = machine.and_then(|machine| workflow::execution::arn(machine, name));
        let missing = "STATE_MACHINE_ARN is not set to the ARN of a state machine";
        arn.ok_or_else(|| control::Error::Executions(missing.into()))
    }

    async fn describe(&self, arn: &str) -> Result<Option<Execution>, control::Error> {
        let request = self.callbacks.describe_execution().execution_arn(arn).customize();
        match request.config_override(settings()).send().await {
            Ok(answer) => {
                use aws_sdk_sfn::types::ExecutionStatus::{PendingRedrive, Running};
                let is_running = matches!(answer.status(), Running | PendingRedrive);
                let input = answer.input().unwrap_or("{}").to_owned();
                Ok(Some(Execution { is_running, input }))
            }
            Err(error) => match error.into_service_error() {
                error if error.is_execution_does_not_exist() => Ok(None),
                error => Err(unavailable(error)),
            },
        }
    }

    async fn start(&self, name: &str, input: &str) -> Result<String, control::Error> {
        if input.len() > INPUT_BYTES_MAX {
            return Err(Refused::InputTooLarge(input.len()).into());
        }
        let request = self.callbacks.start_execution().name(name).input(input);
        let request = request.set_state_machine_arn(self.state_machine_arn.clone()).customize();
        match request.config_override(settings()).send().await {
            Ok(started) => Ok(started.execution_arn().to_owned()),
            Err(error) => match error.into_service_error() {
                error if error.is_execution_already_exists() => self.arn(name),
                error => Err(unavailable(error)),
            },
        }
    }
}
