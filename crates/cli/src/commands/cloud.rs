//! AWS clients: EventBridge starts sessions, Step Functions reports their executions.
//!
//! The local stack and AWS use the same code with different configuration.

#[cfg(feature = "live")]
mod heads;

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
use control::Action;
use control::halt::HaltRequest;
use journal::halt::Change;
use journal::id::SessionId;
use journal::principal::Name;
use serde_json::{Map, Value, json};
use stack::names;
use telemetry::context::TraceParent;
use telemetry::span::{self, Kind, Span};
use telemetry::{attribute, export};
use workflow::contract::USER_HEADER;
use workflow::execution::{self, RESUMES_MAX};
use workflow::{rule, trace};

use super::actions::{ActionsUrl, Sent};
use super::backoff::{Backoff, throttled};
use crate::args::Target;
use crate::failure::Failure;
use crate::resolve::Context;
use crate::user;

/// Timeout of one request, including retries.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The clients of one target.
#[derive(Clone)]
pub struct Clients {
    events: aws_sdk_eventbridge::Client,
    executions: aws_sdk_sfn::Client,
    bus: String,
    state_machine_arn: Option<String>,
    actions_url: Option<ActionsUrl>,
    actions_bus: Option<String>,
    target: Target,
}

/// The state of an execution.
#[derive(Clone, Debug, PartialEq)]
pub enum Execution {
    /// It does not exist, or not yet.
    Absent,
    Running,
    /// It has ended.
    Over {
        /// `SUCCEEDED`, `FAILED`, `TIMED_OUT` or `ABORTED`.
        status: String,
        /// Null if it has none.
        output: Value,
        /// The error and its cause.
        error: Option<String>,
    },
}

/// An execution's state and input.
#[derive(Clone, Debug)]
pub struct Described {
    pub execution: Execution,
    pub input: String,
}

impl Clients {
    /// Creates the clients; sends nothing.
    pub async fn new(context: &Context) -> Self {
        let config = match context.target {
            Target::Local => local(context.endpoint.as_str()),
            Target::Aws => aws_config::load_defaults(BehaviorVersion::latest()).await,
        };
        let timeout = TimeoutConfig::builder().operation_timeout(REQUEST_TIMEOUT).build();
        // Retrying PutEvents after a lost response could start a second session.
        let events = aws_sdk_eventbridge::config::Builder::from(&config)
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeout.clone());
        let executions = aws_sdk_sfn::config::Builder::from(&config)
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeout);
        let (events, executions) = match context.target {
            Target::Local => {
                let caller = Caller { token: context.token.clone(), user: user::name() };
                (events.interceptor(caller.clone()), executions.interceptor(caller))
            }
            Target::Aws => (events, executions),
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
        // An emulator serves a function's URL at another address than the stack names.
        let actions_url = context.cloud.actions_url.as_deref().filter(|_| !context.is_emulated);
        let actions_url = actions_url.map(|url| ActionsUrl::new(url, &config));
        Self {
            events: aws_sdk_eventbridge::Client::from_conf(events.build()),
            executions: aws_sdk_sfn::Client::from_conf(executions.build()),
            bus,
            state_machine_arn,
            actions_url,
            actions_bus: context.cloud.actions_bus.clone(),
            target: context.target,
        }
    }

    /// Whether they call AWS.
    pub fn is_in_account(&self) -> bool {
        self.target == Target::Aws
    }

    /// Whether the state machine's ARN is known.
    pub fn knows_state_machine(&self) -> bool {
        self.state_machine_arn.is_some()
    }

    /// Puts the trigger event; its id is the session's.
    ///
    /// # Errors
    /// When the bus refuses the event, or its response is lost.
    pub async fn trigger(&self, detail: &Map<String, Value>) -> Result<SessionId, Failure> {
        if !export::is_on() {
            return self.put_trigger(detail, None).await;
        }
        // An invalid trace context is rejected by the stack, with a reason.
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
        Ok(self.put(&self.bus, rule::DETAIL_TYPE, detail, context).await?.parse()?)
    }

    /// Has the account's poller perform a person's action: over its URL, which passes the caller on, or over
    /// the bus for actions. A stack that names neither is a local one, or has one bus for everything.
    ///
    /// # Errors
    /// When the caller may not use it, or the poller refuses the action.
    pub async fn act(&self, session: &SessionId, action: &Action) -> Result<Sent, Failure> {
        if let Some(url) = &self.actions_url {
            return url.send(session, action).await.map(Sent::Done);
        }
        let bus = self.actions_bus.as_deref().unwrap_or(&self.bus);
        let rule = rule::ACTIONS.iter().find(|rule| rule.action == action.name());
        let kind = rule.map(|rule| rule.detail_type).context("the action has no rule")?;
        let mut detail = action.body();
        detail["session_id"] = json!(session);
        let detail = detail.as_object().cloned().unwrap_or_default();
        self.put(bus, kind, &detail, None).await.map(|_| Sent::Put)
    }

    /// Has the account's poller halt or unhalt agents. Over a bus, nobody would learn whether it did.
    ///
    /// # Errors
    /// When no URL of the poller is known, the caller may not use it, or the poller refuses.
    pub async fn change_halts(
        &self,
        change: Change,
        request: &HaltRequest,
    ) -> Result<Value, Failure> {
        let Some(url) = &self.actions_url else {
            let problem = format!("{} requires the URL of the poller's function", change.as_str());
            return Err(
                Failure::unknown(problem).hint("set ACTIONS_URL to the stack's output ActionsUrl")
            );
        };
        url.change_halts(change, request).await
    }

    /// Sends the trace context in X-Ray's header too, for services that ignore the detail's `traceparent`.
    async fn put(
        &self,
        bus: &str,
        kind: &str,
        detail: &Map<String, Value>,
        context: Option<TraceParent>,
    ) -> Result<String, Failure> {
        let entry = PutEventsRequestEntry::builder()
            .source(rule::SOURCE)
            .detail_type(kind)
            .detail(Value::Object(detail.clone()).to_string())
            .event_bus_name(bus)
            .set_trace_header(context.map(TraceParent::to_xray))
            .build();
        let mut backoff = Backoff::default();
        let answer = loop {
            let answer = self.events.put_events().entries(entry.clone()).send().await;
            let Some(why) = throttled(&answer) else { break answer };
            if !backoff.pause(&why).await {
                return Err(Failure::unknown(format!("the event bus admits no event now: {why}"))
                    .hint("no event was taken; try again later. `daybook doctor` shows a local stack's load"));
            }
        };
        let answer = answer.map_err(|error| not_put(&error))?;
        let entry = answer.entries().first().context("the event bus returned no entry")?;
        if let Some(code) = entry.error_code() {
            let message = entry.error_message().unwrap_or("no reason given");
            return Err(Failure::unknown(format!(
                "the event bus refused the event: {code}: {message}"
            )));
        }
        let id = entry.event_id().context("the event bus returned no event id")?;
        Ok(id.to_owned())
    }

    /// Finds a session's first execution among the newest ones by their input; `None` if it does not exist
    /// yet. `others` caches executions of other sessions.
    ///
    /// # Errors
    /// When a request fails.
    pub async fn began(
        &self,
        id: &SessionId,
        others: &mut BTreeSet<String>,
    ) -> anyhow::Result<Option<String>> {
        let machine = self.state_machine_arn.as_deref().context("STATE_MACHINE_ARN is not set")?;
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

    /// The state of the session's newest execution: a resumed session has several. `first` is the ARN of
    /// the first one, which only the session's first record has if the caller chose its name.
    ///
    /// # Errors
    /// When a request fails.
    pub async fn execution(
        &self,
        id: &SessionId,
        first: Option<&str>,
    ) -> anyhow::Result<Execution> {
        let mut newest = self.state(&self.arn(id, 0, first)?).await?;
        for resumes in 1..=RESUMES_MAX {
            if !matches!(newest, Execution::Over { .. }) {
                break;
            }
            match self.state(&self.arn(id, resumes, first)?).await? {
                Execution::Absent => break,
                later => newest = later,
            }
        }
        Ok(newest)
    }

    /// The concatenated histories of a session's executions, without inputs and outputs. `first` is as in
    /// [`Self::execution`].
    ///
    /// # Errors
    /// When a request fails.
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
        self.execution_arn(&execution::name(id, resumes))
    }

    /// The ARN of the execution with this name.
    ///
    /// # Errors
    /// When no state machine is known.
    pub fn execution_arn(&self, name: &str) -> anyhow::Result<String> {
        let machine = self.state_machine_arn.as_deref().context("STATE_MACHINE_ARN is not set")?;
        execution::arn(machine, name).context("STATE_MACHINE_ARN is not the ARN of a state machine")
    }

    async fn state(&self, arn: &str) -> anyhow::Result<Execution> {
        let described = self.described(arn).await?;
        Ok(described.map_or(Execution::Absent, |described| described.execution))
    }

    /// # Errors
    /// When the request fails.
    pub async fn described(&self, arn: &str) -> anyhow::Result<Option<Described>> {
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

/// Adds what a local stack asks of its callers: its token, and their user.
#[derive(Clone)]
struct Caller {
    token: Option<String>,
    user: Option<Name>,
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Caller")
    }
}

impl Intercept for Caller {
    fn name(&self) -> &'static str {
        "Caller"
    }

    fn modify_before_transmit(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let headers = context.request_mut().headers_mut();
        if let Some(token) = &self.token {
            headers.try_insert("authorization", format!("Bearer {token}"))?;
        }
        if let Some(user) = &self.user {
            headers.try_insert(USER_HEADER, user.as_str().to_owned())?;
        }
        Ok(())
    }
}

fn is_absent(error: &DescribeExecutionError) -> bool {
    error.is_execution_does_not_exist()
}

/// Distinguishes events that were not put from those that may have been: retrying the latter could start
/// a second session.
fn not_put(error: &SdkError<PutEventsError>) -> Failure {
    let said = said(error);
    let never_sent = match error {
        SdkError::ConstructionFailure(_) => true,
        SdkError::ServiceError(refusal) => !refusal.raw().status().is_server_error(),
        SdkError::DispatchFailure(failure) => failure.is_user() || failure.is_other(),
        _ => false,
    };
    if never_sent {
        Failure::unknown(format!("cannot put the event: {said}"))
            .hint("check region and credentials with: aws sts get-caller-identity")
    } else {
        Failure::unknown(format!("the event bus did not answer: {said}"))
            .hint("it may have taken the event; check the executions before you try again")
    }
}

/// AWS's error code and message, or else the causes without the first, which only names their kind.
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

/// The local stack accepts any credentials; its region is part of its resource names.
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
    fn an_execution_arn_derives_from_its_state_machine() {
        let arn = execution::arn(names::STATE_MACHINE_ARN, "one").unwrap();
        assert_eq!(arn, names::execution_arn(names::STATE_MACHINE, "one"));
        assert_eq!(execution::arn("daybook", "one"), None);
    }
}
