//! The AWS clients: EventBridge to start a session, Step Functions to see whether its execution
//! lives. The same code speaks to the local endpoint and to AWS; only the configuration differs.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_eventbridge::config::retry::RetryConfig;
use aws_sdk_eventbridge::config::timeout::TimeoutConfig;
use aws_sdk_eventbridge::error::DisplayErrorContext;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use aws_sdk_sfn::types::ExecutionStatus;
use journal::id::SessionId;
use local::names;
use serde_json::{Map, Value};
use workflow::rule;

use crate::args::Target;
use crate::failure::Failure;
use crate::resolve::Context;

/// How long one request may take, retries and all.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The clients of one target.
pub struct Clients {
    events: aws_sdk_eventbridge::Client,
    executions: aws_sdk_sfn::Client,
    bus: String,
    state_machine_arn: Option<String>,
}

/// How an execution stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Execution {
    /// There is none of this name, or not yet.
    Absent,
    /// It runs.
    Running,
    /// It is over: its status, and what it brought.
    Over {
        /// `SUCCEEDED`, `FAILED`, `TIMED_OUT` or `ABORTED`.
        status: String,
        /// Its output; null if it has none.
        output: Value,
        /// The error's name and what is said about it.
        error: Option<String>,
    },
}

impl Clients {
    /// The clients for a context. Nothing is sent yet.
    pub async fn new(context: &Context) -> Self {
        let config = match context.target {
            Target::Local => local(context.endpoint.as_str()),
            Target::Aws => aws_config::load_defaults(BehaviorVersion::latest()).await,
        };
        let timeout = TimeoutConfig::builder().operation_timeout(REQUEST_TIMEOUT).build();
        // A second PutEvents after a lost answer would be a second session.
        let events = aws_sdk_eventbridge::config::Builder::from(&config)
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeout.clone())
            .build();
        let executions = aws_sdk_sfn::config::Builder::from(&config)
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeout)
            .build();
        let (bus, state_machine_arn) = match context.target {
            Target::Local => {
                (names::EVENT_BUS.to_owned(), Some(names::STATE_MACHINE_ARN.to_owned()))
            }
            Target::Aws => {
                let cloud = &context.cloud;
                let bus = cloud.event_bus_name.clone().unwrap_or_else(|| "default".to_owned());
                (bus, cloud.state_machine_arn.clone())
            }
        };
        Self {
            events: aws_sdk_eventbridge::Client::from_conf(events),
            executions: aws_sdk_sfn::Client::from_conf(executions),
            bus,
            state_machine_arn,
        }
    }

    /// Whether executions can be asked about.
    pub fn knows_state_machine(&self) -> bool {
        self.state_machine_arn.is_some()
    }

    /// Puts the trigger event; its id is the session's.
    ///
    /// # Errors
    /// When the bus did not take it, or perhaps did.
    pub async fn trigger(&self, detail: &Map<String, Value>) -> Result<SessionId, Failure> {
        let entry = PutEventsRequestEntry::builder()
            .source(rule::SOURCE)
            .detail_type(rule::DETAIL_TYPE)
            .detail(Value::Object(detail.clone()).to_string())
            .event_bus_name(&self.bus)
            .build();
        let answer = self.events.put_events().entries(entry).send().await;
        let answer = answer.map_err(|error| {
            Failure::unknown(format!(
                "the event bus did not answer: {}",
                DisplayErrorContext(&error)
            ))
            .hint("nothing is known of the event; daybook sessions shows whether it arrived")
        })?;
        let entry = answer.entries().first().context("the event bus answered nothing")?;
        if let Some(code) = entry.error_code() {
            let message = entry.error_message().unwrap_or("no reason given");
            return Err(Failure::unknown(format!(
                "the event bus refused the event: {code}: {message}"
            )));
        }
        let id = entry.event_id().context("the event bus gave the event no id")?;
        Ok(id.parse()?)
    }

    /// How the session's execution stands.
    ///
    /// # Errors
    /// When nobody answers.
    pub async fn execution(&self, id: &SessionId) -> anyhow::Result<Execution> {
        let machine = self.state_machine_arn.as_deref().context("no state machine is known")?;
        let arn =
            execution_arn(machine, id).context("STATE_MACHINE_ARN is no state machine's ARN")?;
        let answer = match self.executions.describe_execution().execution_arn(arn).send().await {
            Ok(answer) => answer,
            Err(error) => {
                let absent = error
                    .as_service_error()
                    .is_some_and(|error| error.is_execution_does_not_exist());
                let said = DisplayErrorContext(&error).to_string();
                return if absent { Ok(Execution::Absent) } else { Err(anyhow!(said)) };
            }
        };
        if matches!(answer.status(), ExecutionStatus::Running | ExecutionStatus::PendingRedrive) {
            return Ok(Execution::Running);
        }
        let error = answer.error().map(|name| match answer.cause() {
            Some(cause) => format!("{name}: {cause}"),
            None => name.to_owned(),
        });
        let output = answer.output().and_then(|text| serde_json::from_str(text).ok());
        let status = answer.status().as_str().to_owned();
        Ok(Execution::Over { status, output: output.unwrap_or_default(), error })
    }
}

/// An execution's name is its session's id.
fn execution_arn(machine: &str, id: &SessionId) -> Option<String> {
    let (before, name) = machine.split_once(":stateMachine:")?;
    Some(format!("{before}:execution:{name}:{id}"))
}

/// Any credentials will do on this machine; the region is part of the names there.
fn local(endpoint: &str) -> SdkConfig {
    let credentials = Credentials::new("local", "local", None, None, "daybook");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(names::REGION))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .endpoint_url(endpoint)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_is_named_by_its_session() {
        let id: SessionId = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap();
        let arn = execution_arn(names::STATE_MACHINE_ARN, &id).unwrap();
        assert_eq!(arn, names::execution_arn(names::STATE_MACHINE, id.as_str()));
        assert_eq!(execution_arn("daybook", &id), None);
    }
}
