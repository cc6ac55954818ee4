//! The watchdog's AWS clients beside the journal: executions and the agent runtime.

use agentcore::Runtime;
use aws_sdk_sfn::operation::describe_execution::DescribeExecutionError;
use aws_sdk_sfn::types::ExecutionStatus;
use journal::clock::Stamp;
use journal::id::SessionId;
use telemetry::context::TraceParent;
use workflow::error_name::EXECUTION_BROKEN;
use workflow::execution::{RESUMES_MAX, name};
use workflow::trace;

use crate::error::Error;
use crate::judge::{Execution, How};

/// Timeout of one call.
const CALL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct Cloud {
    pub executions: aws_sdk_sfn::Client,
    pub runtime: Runtime,
}

impl Cloud {
    /// The state of a session's newest execution; `first` is the ARN of its first one.
    pub(crate) async fn newest_execution(
        &self,
        session: &SessionId,
        first: &str,
    ) -> Result<Execution, Error> {
        let mut newest = Execution::Absent;
        let mut arn = first.to_owned();
        for resumes in 1..=RESUMES_MAX + 1 {
            match self.describe(&arn).await? {
                Execution::Absent => break,
                found => newest = found,
            }
            let Some((machine, _)) = first.rsplit_once(':') else { break };
            arn = format!("{machine}:{}", name(session, resumes));
        }
        Ok(newest)
    }

    /// The span of the execution's trigger, if its input has one and can be read.
    pub(crate) async fn traceparent(&self, arn: &str) -> Option<TraceParent> {
        use aws_sdk_sfn::config::timeout::TimeoutConfig;
        let timeouts = TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build();
        let settings = aws_sdk_sfn::config::Config::builder().timeout_config(timeouts);
        let described = self.executions.describe_execution().execution_arn(arn);
        let described = described.customize().config_override(settings).send().await.ok()?;
        let input: serde_json::Value = serde_json::from_str(described.input()?).ok()?;
        trace::of_detail(&input["detail"]).ok()?
    }

    async fn describe(&self, arn: &str) -> Result<Execution, Error> {
        use aws_sdk_sfn::config::retry::RetryConfig;
        use aws_sdk_sfn::config::timeout::TimeoutConfig;
        let settings = aws_sdk_sfn::config::Config::builder()
            .retry_config(RetryConfig::standard())
            .timeout_config(TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build());
        let described = self
            .executions
            .describe_execution()
            .execution_arn(arn)
            .customize()
            .config_override(settings)
            .send()
            .await;
        let described = match described.map_err(aws_sdk_sfn::error::SdkError::into_service_error) {
            Ok(described) => described,
            Err(DescribeExecutionError::ExecutionDoesNotExist(_)) => return Ok(Execution::Absent),
            Err(error) => return Err(Error::Executions(format!("{error:?}"))),
        };
        let stopped_at = described.stop_date().map_or(0, |at| at.to_millis().unwrap_or(0));
        let ended = |how| Execution::Ended { how, at: Stamp::from_millis(stopped_at) };
        Ok(match described.status() {
            ExecutionStatus::Succeeded => ended(How::Succeeded),
            ExecutionStatus::Failed if described.error() == Some(EXECUTION_BROKEN) => {
                ended(How::Broken)
            }
            ExecutionStatus::Failed => ended(How::Failed),
            ExecutionStatus::TimedOut => ended(How::TimedOut),
            ExecutionStatus::Aborted => ended(How::Aborted),
            // An execution that awaits a redrive may run again; unknown statuses are left alone.
            _ => Execution::Running,
        })
    }
}
