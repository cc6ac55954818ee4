//! The AWS clients: EventBridge to start a session, Step Functions to see whether its execution
//! lives. The same code speaks to the local endpoint and to AWS; only the configuration differs.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_eventbridge::config::interceptors::BeforeTransmitInterceptorContextMut;
use aws_sdk_eventbridge::config::retry::RetryConfig;
use aws_sdk_eventbridge::config::timeout::TimeoutConfig;
use aws_sdk_eventbridge::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_eventbridge::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_eventbridge::operation::put_events::PutEventsError;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use aws_sdk_sfn::operation::describe_execution::DescribeExecutionError;
use aws_sdk_sfn::types::{ExecutionStatus, HistoryEvent};
use journal::id::SessionId;
use local::names;
use serde_json::{Map, Value};
use telemetry::context::TraceParent;
use telemetry::span::{self, Kind, Span};
use telemetry::{attribute, export};
use workflow::execution::{self, RESUMES_MAX};
use workflow::{rule, trace};

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
    target: Target,
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

/// An execution as it stands, and what it was started with.
#[derive(Clone, Debug)]
pub struct Described {
    /// How it stands.
    pub execution: Execution,
    /// Its input.
    pub input: String,
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
            .timeout_config(timeout.clone());
        let executions = aws_sdk_sfn::config::Builder::from(&config)
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeout);
        let token = context.token.clone().filter(|_| context.target == Target::Local);
        let (events, executions) = match token.map(Bearer) {
            Some(bearer) => (events.interceptor(bearer.clone()), executions.interceptor(bearer)),
            None => (events, executions),
        };
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
            events: aws_sdk_eventbridge::Client::from_conf(events.build()),
            executions: aws_sdk_sfn::Client::from_conf(executions.build()),
            bus,
            state_machine_arn,
            target: context.target,
        }
    }

    /// Whether they speak to an account.
    pub fn is_in_account(&self) -> bool {
        self.target == Target::Aws
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
        if !export::is_on() {
            return self.put_trigger(detail, None).await;
        }
        // What is no context is left to whoever takes the trigger, who says so.
        let Ok(parent) = trace::of_detail(&Value::Object(detail.clone())) else {
            return self.put_trigger(detail, None).await;
        };
        let context = parent.map_or_else(TraceParent::fresh, TraceParent::child);
        let mut detail = detail.clone();
        detail.insert(trace::TRACEPARENT.to_owned(), context.to_string().into());
        let begun_at = span::now();
        let put = self.put_trigger(&detail, Some(context)).await;
        let span = Span::new(context, parent, format!("send {}", rule::SOURCE))
            .of_kind(Kind::Producer)
            .lasting(begun_at, span::now())
            .with(attribute::MESSAGING_SYSTEM, "aws_eventbridge")
            .with(attribute::MESSAGING_OPERATION, "send")
            .with(attribute::MESSAGING_DESTINATION, self.bus.as_str());
        export::record(match &put {
            Ok(id) => span.with(attribute::SESSION_ID, id.as_str()),
            Err(_) => span.failing("not_put"),
        });
        put
    }

    async fn put_trigger(
        &self,
        detail: &Map<String, Value>,
        context: Option<TraceParent>,
    ) -> Result<SessionId, Failure> {
        Ok(self.put(rule::DETAIL_TYPE, detail, context).await?.parse()?)
    }

    /// Puts an answer to a session's question; the poller takes it.
    ///
    /// # Errors
    /// As [`Self::trigger`].
    pub async fn answer(&self, detail: &Map<String, Value>) -> Result<(), Failure> {
        self.put(rule::ANSWER_DETAIL_TYPE, detail, None).await.map(drop)
    }

    /// X-Ray's header says the same as the detail's `traceparent`, for services that know only that.
    async fn put(
        &self,
        kind: &str,
        detail: &Map<String, Value>,
        context: Option<TraceParent>,
    ) -> Result<String, Failure> {
        let entry = PutEventsRequestEntry::builder()
            .source(rule::SOURCE)
            .detail_type(kind)
            .detail(Value::Object(detail.clone()).to_string())
            .event_bus_name(&self.bus)
            .set_trace_header(context.map(TraceParent::to_xray))
            .build();
        let answer = self.events.put_events().entries(entry).send().await;
        let answer = answer.map_err(|error| not_put(&error))?;
        let entry = answer.entries().first().context("the event bus answered nothing")?;
        if let Some(code) = entry.error_code() {
            let message = entry.error_message().unwrap_or("no reason given");
            return Err(Failure::unknown(format!(
                "the event bus refused the event: {code}: {message}"
            )));
        }
        let id = entry.event_id().context("the event bus gave the event no id")?;
        Ok(id.to_owned())
    }

    /// Sends a parked workflow its token; says whether it was still parked.
    ///
    /// # Errors
    /// When nobody answers.
    pub async fn wake(&self, token: &str) -> Result<bool, Failure> {
        let sent = self.executions.send_task_success().task_token(token).output("{}").send().await;
        match sent {
            Ok(_) => Ok(true),
            // It is not parked: it looks by itself.
            Err(SdkError::ServiceError(refusal)) if !refusal.raw().status().is_server_error() => {
                Ok(false)
            }
            Err(error) => {
                Err(Failure::unknown(format!("the workflow was not woken: {}", said(&error))))
            }
        }
    }

    /// Starts an execution with this name, unless there is one.
    ///
    /// # Errors
    /// When it is not started.
    pub async fn start(&self, name: &str, input: &str) -> anyhow::Result<()> {
        let machine = self.state_machine_arn.as_deref().context("no state machine is known")?;
        let request = self.executions.start_execution().state_machine_arn(machine);
        match request.name(name).input(input).send().await {
            Ok(_) => Ok(()),
            Err(error)
                if error.as_service_error().is_some_and(|e| e.is_execution_already_exists()) =>
            {
                Ok(())
            }
            Err(error) => Err(anyhow!("the execution was not started: {}", said(&error))),
        }
    }

    /// The execution that a session began with, looked for among the newest ones by what they were
    /// started with; none if it is not there, or not yet. Those in `others` are known not to be it.
    ///
    /// # Errors
    /// When nobody answers.
    pub async fn began(
        &self,
        id: &SessionId,
        others: &mut BTreeSet<String>,
    ) -> anyhow::Result<Option<String>> {
        let machine = self.state_machine_arn.as_deref().context("no state machine is known")?;
        let listed = self.executions.list_executions().state_machine_arn(machine).send().await;
        for execution in listed.map_err(|error| anyhow!("{}", said(&error)))?.executions() {
            let arn = execution.execution_arn();
            if others.contains(arn) {
                continue;
            }
            let described = self.described(arn).await?;
            let input = described.and_then(|it| serde_json::from_str::<Value>(&it.input).ok());
            if input.is_some_and(|input| input["session_id"] == id.as_str()) {
                return Ok(Some(arn.to_owned()));
            }
            others.insert(arn.to_owned());
        }
        Ok(None)
    }

    /// A session's newest execution, and how often the session was resumed. `first` is the execution
    /// that it began with: what started it may have named it, so that only its first record knows.
    ///
    /// # Errors
    /// When nobody answers.
    pub async fn newest(
        &self,
        id: &SessionId,
        first: Option<&str>,
    ) -> anyhow::Result<Option<(u32, Described)>> {
        let mut newest = None;
        for resumes in 0..=RESUMES_MAX {
            match self.described(&self.arn(id, resumes, first)?).await? {
                Some(described) => newest = Some((resumes, described)),
                None => break,
            }
        }
        Ok(newest)
    }

    /// How the session's newest execution stands: one that is over may have been followed by
    /// another, with which the session was resumed. `first` is as in [`Self::newest`].
    ///
    /// # Errors
    /// When nobody answers.
    pub async fn execution(
        &self,
        id: &SessionId,
        first: Option<&str>,
    ) -> anyhow::Result<Execution> {
        let mut newest = self.stands(&self.arn(id, 0, first)?).await?;
        for resumes in 1..=RESUMES_MAX {
            if !matches!(newest, Execution::Over { .. }) {
                break;
            }
            match self.stands(&self.arn(id, resumes, first)?).await? {
                Execution::Absent => break,
                later => newest = later,
            }
        }
        Ok(newest)
    }

    /// The histories of a session's executions, one after another, without what states were given.
    /// `first` is as in [`Self::newest`].
    ///
    /// # Errors
    /// When nobody answers.
    pub async fn history(
        &self,
        id: &SessionId,
        first: Option<&str>,
    ) -> anyhow::Result<Vec<HistoryEvent>> {
        let mut history = Vec::new();
        for resumes in 0..=RESUMES_MAX {
            let arn = self.arn(id, resumes, first)?;
            let mut pages = self
                .executions
                .get_execution_history()
                .execution_arn(arn)
                .include_execution_data(false)
                .into_paginator()
                .items()
                .send();
            while let Some(event) = pages.next().await {
                match event {
                    Ok(event) => history.push(event),
                    Err(error) => {
                        let refusal = error.as_service_error();
                        if refusal.is_some_and(|refusal| refusal.is_execution_does_not_exist()) {
                            return Ok(history);
                        }
                        return Err(anyhow!("{}", said(&error)));
                    }
                }
            }
        }
        Ok(history)
    }

    fn arn(&self, id: &SessionId, resumes: u32, first: Option<&str>) -> anyhow::Result<String> {
        if let (0, Some(first)) = (resumes, first) {
            return Ok(first.to_owned());
        }
        let machine = self.state_machine_arn.as_deref().context("no state machine is known")?;
        execution_arn(machine, &execution::name(id, resumes))
            .context("STATE_MACHINE_ARN is no state machine's ARN")
    }

    async fn stands(&self, arn: &str) -> anyhow::Result<Execution> {
        let described = self.described(arn).await?;
        Ok(described.map_or(Execution::Absent, |described| described.execution))
    }

    async fn described(&self, arn: &str) -> anyhow::Result<Option<Described>> {
        let answer = match self.executions.describe_execution().execution_arn(arn).send().await {
            Ok(answer) => answer,
            Err(error) if error.as_service_error().is_some_and(is_absent) => {
                return Ok(None);
            }
            Err(error) => return Err(anyhow!("{}", said(&error))),
        };
        let input = answer.input().unwrap_or("{}").to_owned();
        if matches!(answer.status(), ExecutionStatus::Running | ExecutionStatus::PendingRedrive) {
            return Ok(Some(Described { execution: Execution::Running, input }));
        }
        let error = answer.error().map(|name| match answer.cause() {
            Some(cause) => format!("{name}: {cause}"),
            None => name.to_owned(),
        });
        let output = answer.output().and_then(|text| serde_json::from_str(text).ok());
        let status = answer.status().as_str().to_owned();
        let execution = Execution::Over { status, output: output.unwrap_or_default(), error };
        Ok(Some(Described { execution, input }))
    }
}

/// A stack beyond loopback asks for its token where AWS has a signature.
#[derive(Clone)]
struct Bearer(String);

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer")
    }
}

impl Intercept for Bearer {
    fn name(&self) -> &'static str {
        "Bearer"
    }

    fn modify_before_transmit(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let value = format!("Bearer {}", self.0);
        context.request_mut().headers_mut().try_insert("authorization", value)?;
        Ok(())
    }
}

fn is_absent(error: &DescribeExecutionError) -> bool {
    error.is_execution_does_not_exist()
}

/// Whether the event may have been put is the first thing to say: a second try may be a second
/// session.
fn not_put(error: &SdkError<PutEventsError>) -> Failure {
    let said = said(error);
    let never_sent = match error {
        SdkError::ConstructionFailure(_) => true,
        SdkError::ServiceError(refusal) => !refusal.raw().status().is_server_error(),
        SdkError::DispatchFailure(failure) => failure.is_user() || failure.is_other(),
        _ => false,
    };
    if never_sent {
        Failure::unknown(format!("the event was not put: {said}"))
            .hint("check region and credentials with: aws sts get-caller-identity")
    } else {
        Failure::unknown(format!("the event bus did not answer: {said}")).hint(
            "whether it took the event is not known; look at the executions before trying again",
        )
    }
}

/// What AWS says went wrong, else the causes from the second on: the first only names their kind.
pub fn said<E>(error: &SdkError<E>) -> String
where
    E: std::error::Error + ProvideErrorMetadata + 'static,
{
    if let Some(code) = error.code() {
        return format!("{code}: {}", error.message().unwrap_or("no reason given"));
    }
    let mut texts: Vec<String> = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let text = error.to_string();
        if !texts.iter().any(|known| known.contains(&text)) {
            texts.push(text);
        }
        cause = error.source();
    }
    if texts.is_empty() { error.to_string() } else { texts.join(": ") }
}

fn execution_arn(machine: &str, execution: &str) -> Option<String> {
    let (before, name) = machine.split_once(":stateMachine:")?;
    Some(format!("{before}:execution:{name}:{execution}"))
}

/// Any credentials will do on this machine; the region is part of the names there.
pub(super) fn local(endpoint: &str) -> SdkConfig {
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
    fn an_execution_s_arn_is_made_of_its_machine_s() {
        let arn = execution_arn(names::STATE_MACHINE_ARN, "one").unwrap();
        assert_eq!(arn, names::execution_arn(names::STATE_MACHINE, "one"));
        assert_eq!(execution_arn("daybook", "one"), None);
    }
}
