//! Execution history: Step Functions' own events, in the JSON that `GetExecutionHistory` answers.
//!
//! An [`Event`] and its JSON are two spellings of one thing, so a shell stores the JSON, serves it
//! unchanged and reads it back to replay. Inputs, outputs and variables are JSON *text* inside it,
//! as AWS has it.

mod wire;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::definition::StateType;
use crate::time::Timestamp;

/// Most events that an execution may have.
///
/// Source: AWS, "Step Functions service quotas", execution event history size.
pub const EVENTS_MAX: u64 = 25_000;

/// One event of an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "wire::Wire", into = "wire::Wire")]
pub struct Event {
    /// 1, 2, 3 … without a gap.
    pub id: u64,
    /// The event that led to this one, 0 for none. Step Functions has its own idea here: see
    /// `execution`.
    pub previous_event_id: u64,
    /// When it was recorded.
    pub timestamp: Timestamp,
    /// What happened.
    pub kind: EventKind,
}

/// What happened. Every `input`, `output`, `parameters` and variable is JSON text.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "names and members are those of the Step Functions API")]
pub enum EventKind {
    ExecutionStarted {
        input: String,
        role_arn: String,
    },
    ExecutionSucceeded {
        output: String,
    },
    ExecutionFailed(Failure),
    ExecutionTimedOut(Failure),
    ExecutionAborted(Failure),
    StateEntered {
        state_type: StateType,
        name: String,
        input: String,
    },
    StateExited {
        state_type: StateType,
        name: String,
        output: String,
        assigned_variables: BTreeMap<String, String>,
    },
    ParallelStateStarted,
    MapStateStarted {
        length: u64,
    },
    /// `ParallelStateSucceeded` or `MapStateSucceeded`.
    ForkSucceeded(StateType),
    /// `ParallelStateFailed` or `MapStateFailed`.
    ForkFailed(StateType),
    MapIteration {
        moment: Moment,
        name: String,
        index: u64,
    },
    MapRunStarted {
        map_run_arn: String,
    },
    MapRunSucceeded,
    MapRunFailed(Failure),
    TaskScheduled(TaskScheduled),
    LambdaFunctionScheduled {
        resource: String,
        input: String,
        timeout_s: Option<u64>,
    },
    TaskStarted(Integration),
    TaskSubmitted(Integration, String),
    TaskSucceeded(Integration, String),
    TaskFailed(Integration, Failure),
    TaskTimedOut(Integration, Failure),
    EvaluationFailed {
        state: String,
        location: Option<String>,
        failure: Failure,
    },
}

/// What happens to an iteration of a `Map`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as the events are called")]
pub enum Moment {
    Started,
    Succeeded,
    Failed,
}

impl Moment {
    const ALL: [Moment; 3] = [Moment::Started, Moment::Succeeded, Moment::Failed];

    const fn name(self) -> &'static str {
        match self {
            Moment::Started => "Started",
            Moment::Succeeded => "Succeeded",
            Moment::Failed => "Failed",
        }
    }
}

/// What a task asks of a service integration.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskScheduled {
    /// `lambda`, `dynamodb`, `aws-sdk:s3` …
    pub resource_type: String,
    /// `invoke`, `invoke.waitForTaskToken` …
    pub resource: String,
    /// The region of the execution.
    pub region: String,
    /// JSON text.
    pub parameters: String,
    /// Seconds the task may take, if its state says.
    pub timeout_s: Option<u64>,
    /// Seconds between heartbeats, if its state says.
    pub heartbeat_s: Option<u64>,
}

/// Through what a task runs: it decides whether its events are `Task…` or `LambdaFunction…` ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Integration {
    /// A function's ARN as `Resource`.
    Function,
    /// A service integration.
    #[expect(missing_docs, reason = "as in TaskScheduled")]
    Service { resource_type: String, resource: String },
}

/// An error's name and its cause; a `Fail` state may leave out either.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The name that `Retry` and `Catch` match.
    pub error: Option<String>,
    /// For people.
    pub cause: Option<String>,
}

impl Failure {
    /// A failure with a name, and with a cause if there is something to say.
    pub fn new(error: impl Into<String>, cause: Option<String>) -> Failure {
        Failure { error: Some(error.into()), cause }
    }
}

impl EventKind {
    /// The event's type, as AWS spells it.
    pub fn type_name(&self) -> String {
        let task = |integration: &Integration, suffix| match integration {
            Integration::Function => format!("LambdaFunction{suffix}"),
            Integration::Service { .. } => format!("Task{suffix}"),
        };
        match self {
            EventKind::ExecutionStarted { .. } => "ExecutionStarted".to_owned(),
            EventKind::ExecutionSucceeded { .. } => "ExecutionSucceeded".to_owned(),
            EventKind::ExecutionFailed(_) => "ExecutionFailed".to_owned(),
            EventKind::ExecutionTimedOut(_) => "ExecutionTimedOut".to_owned(),
            EventKind::ExecutionAborted(_) => "ExecutionAborted".to_owned(),
            EventKind::StateEntered { state_type, .. } => {
                format!("{}StateEntered", state_type.name())
            }
            EventKind::StateExited { state_type, .. } => {
                format!("{}StateExited", state_type.name())
            }
            EventKind::ParallelStateStarted => "ParallelStateStarted".to_owned(),
            EventKind::MapStateStarted { .. } => "MapStateStarted".to_owned(),
            EventKind::ForkSucceeded(state_type) => format!("{}StateSucceeded", state_type.name()),
            EventKind::ForkFailed(state_type) => format!("{}StateFailed", state_type.name()),
            EventKind::MapIteration { moment, .. } => format!("MapIteration{}", moment.name()),
            EventKind::MapRunStarted { .. } => "MapRunStarted".to_owned(),
            EventKind::MapRunSucceeded => "MapRunSucceeded".to_owned(),
            EventKind::MapRunFailed(_) => "MapRunFailed".to_owned(),
            EventKind::TaskScheduled(_) => "TaskScheduled".to_owned(),
            EventKind::LambdaFunctionScheduled { .. } => "LambdaFunctionScheduled".to_owned(),
            EventKind::TaskStarted(integration) => task(integration, "Started"),
            EventKind::TaskSubmitted(integration, _) => task(integration, "Submitted"),
            EventKind::TaskSucceeded(integration, _) => task(integration, "Succeeded"),
            EventKind::TaskFailed(integration, _) => task(integration, "Failed"),
            EventKind::TaskTimedOut(integration, _) => task(integration, "TimedOut"),
            EventKind::EvaluationFailed { .. } => "EvaluationFailed".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
