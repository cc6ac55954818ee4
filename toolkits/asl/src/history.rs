//! Execution history: Step Functions' own events, in the JSON of `GetExecutionHistory`.
//!
//! An [`Event`] and its JSON are equivalent: a program stores the JSON, serves it unchanged, and
//! parses it to replay. As on AWS, inputs, outputs and variables are JSON *text* inside it.

mod wire;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::definition::StateType;
use crate::time::Timestamp;

/// Most events of an execution.
///
/// Source: AWS, "Step Functions service quotas", execution event history size.
pub const EVENTS_MAX: u64 = 25_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "wire::Wire", into = "wire::Wire")]
pub struct Event {
    /// 1, 2, 3 … without gaps.
    pub id: u64,
    /// The event that caused this one, 0 for none. Step Functions has rules of its own for it: see
    /// `execution`.
    pub previous_event_id: u64,
    pub timestamp: Timestamp,
    pub kind: EventKind,
}

/// Every `input`, `output`, `parameters` and variable is JSON text.
#[derive(Clone, Debug, PartialEq)]
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
    /// The execution continues where it ended without success.
    ExecutionRedriven {
        redrive_count: u64,
    },
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
    /// With the state's result, JSON text, if the iterations were executions of their own. AWS does not tell it.
    MapRunSucceeded {
        output: Option<String>,
    },
    MapRunFailed(Failure),
    /// A redriven execution runs the failed iterations of a run again.
    MapRunRedriven {
        map_run_arn: String,
        redrive_count: u64,
    },
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

/// An event of a `Map` iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A task's request to a service integration.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskScheduled {
    /// `lambda`, `dynamodb`, `aws-sdk:s3` …
    pub resource_type: String,
    /// `invoke`, `invoke.waitForTaskToken` …
    pub resource: String,
    pub region: String,
    /// JSON text.
    pub parameters: String,
    /// Timeout in seconds, if the state sets one.
    pub timeout_s: Option<u64>,
    /// Seconds between heartbeats, if the state sets them.
    pub heartbeat_s: Option<u64>,
}

/// How a task runs; decides whether its events are `Task…` or `LambdaFunction…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Integration {
    /// `Resource` is a function's ARN.
    Function,
    Service {
        resource_type: String,
        resource: String,
    },
}

/// An error name and its cause; a `Fail` state may omit either.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The name that `Retry` and `Catch` match.
    pub error: Option<String>,
    pub cause: Option<String>,
}

impl Failure {
    pub fn new(error: impl Into<String>, cause: Option<String>) -> Failure {
        Failure { error: Some(error.into()), cause }
    }
}

impl EventKind {
    /// The event's type as AWS spells it.
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
            EventKind::ExecutionRedriven { .. } => "ExecutionRedriven".to_owned(),
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
            EventKind::MapRunSucceeded { .. } => "MapRunSucceeded".to_owned(),
            EventKind::MapRunFailed(_) => "MapRunFailed".to_owned(),
            EventKind::MapRunRedriven { .. } => "MapRunRedriven".to_owned(),
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
