//! The JSON of events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Event, EventKind, Failure, Integration, Moment, TaskScheduled};
use crate::definition::StateType;
use crate::time::Timestamp;

/// An event as the API spells it: a type and one member with its details.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Wire {
    timestamp: Option<Timestamp>,
    #[serde(rename = "type")]
    event_type: String,
    id: u64,
    previous_event_id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_started_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_succeeded_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_failed_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_timed_out_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_aborted_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_redriven_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_entered_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_exited_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_scheduled_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_started_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_submitted_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_succeeded_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_failed_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_timed_out_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lambda_function_scheduled_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lambda_function_succeeded_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lambda_function_failed_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lambda_function_timed_out_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evaluation_failed_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map_state_started_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map_iteration_started_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map_iteration_succeeded_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map_iteration_failed_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map_run_started_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map_run_succeeded_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map_run_failed_event_details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map_run_redriven_event_details: Option<Details>,
}

/// The union of all details; each event type uses a few of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Details {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_in_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heartbeat_in_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_details: Option<Completeness>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_details: Option<Completeness>,
    #[serde(skip_serializing_if = "Option::is_none")]
    assigned_variables: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    assigned_variables_details: Option<Completeness>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role_arn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map_run_arn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redrive_count: Option<u64>,
}

/// AWS truncates large values in its replies. This engine never does, because replay needs them
/// whole.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Completeness {
    truncated: bool,
}

/// JSON that is not a supported event.
#[derive(Debug, thiserror::Error)]
pub(super) enum Malformed {
    #[error("unknown event type '{0}'")]
    Type(String),
    #[error("event of type '{0}' has no '{1}'")]
    Missing(String, &'static str),
}

impl Details {
    fn with_input(self, input: String) -> Details {
        Details { input: Some(input), input_details: Some(Completeness::default()), ..self }
    }

    fn with_output(self, output: String) -> Details {
        Details { output: Some(output), output_details: Some(Completeness::default()), ..self }
    }

    fn with_failure(self, failure: Failure) -> Details {
        Details { error: failure.error, cause: failure.cause, ..self }
    }

    fn of_task(integration: Integration) -> Details {
        match integration {
            Integration::Function => Details::default(),
            Integration::Service { resource_type, resource } => Details {
                resource_type: Some(resource_type),
                resource: Some(resource),
                ..Details::default()
            },
        }
    }

    fn failure(self) -> Failure {
        Failure { error: self.error, cause: self.cause }
    }
}

impl From<Event> for Wire {
    fn from(event: Event) -> Wire {
        let mut wire = Wire {
            timestamp: Some(event.timestamp),
            event_type: event.kind.type_name(),
            id: event.id,
            previous_event_id: event.previous_event_id,
            ..Wire::default()
        };
        let details = details_of(event.kind);
        // AWS's event of a run that succeeded has no details.
        let has_details = wire.event_type != "MapRunSucceeded" || details.output.is_some();
        if let Some(member) = wire.member().filter(|_| has_details) {
            *member = Some(details);
        }
        wire
    }
}

fn details_of(kind: EventKind) -> Details {
    let empty = Details::default();
    match kind {
        EventKind::ExecutionStarted { input, role_arn } => {
            Details { role_arn: Some(role_arn), ..empty }.with_input(input)
        }
        EventKind::ExecutionSucceeded { output } => empty.with_output(output),
        EventKind::ExecutionFailed(failure)
        | EventKind::ExecutionTimedOut(failure)
        | EventKind::ExecutionAborted(failure) => empty.with_failure(failure),
        EventKind::ExecutionRedriven { redrive_count } => {
            Details { redrive_count: Some(redrive_count), ..empty }
        }
        EventKind::StateEntered { name, input, .. } => {
            Details { name: Some(name), ..empty }.with_input(input)
        }
        EventKind::StateExited { name, output, assigned_variables, .. } => {
            let details = Details { name: Some(name), ..empty }.with_output(output);
            if assigned_variables.is_empty() {
                return details;
            }
            Details {
                assigned_variables: Some(assigned_variables),
                assigned_variables_details: Some(Completeness::default()),
                ..details
            }
        }
        EventKind::MapStateStarted { length } => Details { length: Some(length), ..empty },
        EventKind::MapIteration { name, index, .. } => {
            Details { name: Some(name), index: Some(index), ..empty }
        }
        EventKind::MapRunStarted { map_run_arn } => {
            Details { map_run_arn: Some(map_run_arn), ..empty }
        }
        EventKind::MapRunFailed(failure) => empty.with_failure(failure),
        EventKind::MapRunRedriven { map_run_arn, redrive_count } => {
            Details { map_run_arn: Some(map_run_arn), redrive_count: Some(redrive_count), ..empty }
        }
        EventKind::ParallelStateStarted
        | EventKind::ForkSucceeded(_)
        | EventKind::ForkFailed(_) => empty,
        EventKind::MapRunSucceeded { output: None } => empty,
        EventKind::MapRunSucceeded { output: Some(output) } => empty.with_output(output),
        EventKind::TaskScheduled(task) => Details {
            resource_type: Some(task.resource_type),
            resource: Some(task.resource),
            region: Some(task.region),
            parameters: Some(task.parameters),
            timeout_in_seconds: task.timeout_s,
            heartbeat_in_seconds: task.heartbeat_s,
            ..empty
        },
        EventKind::LambdaFunctionScheduled { resource, input, timeout_s } => {
            Details { resource: Some(resource), timeout_in_seconds: timeout_s, ..empty }
                .with_input(input)
        }
        EventKind::TaskStarted(integration) => Details::of_task(integration),
        EventKind::TaskSubmitted(integration, output)
        | EventKind::TaskSucceeded(integration, output) => {
            Details::of_task(integration).with_output(output)
        }
        EventKind::TaskFailed(integration, failure)
        | EventKind::TaskTimedOut(integration, failure) => {
            Details::of_task(integration).with_failure(failure)
        }
        EventKind::EvaluationFailed { state, location, failure } => {
            Details { state: Some(state), location, ..empty }.with_failure(failure)
        }
    }
}

impl Wire {
    /// The details member of the event's type; a few types have none.
    fn member(&mut self) -> Option<&mut Option<Details>> {
        Some(match self.event_type.as_str() {
            "ExecutionStarted" => &mut self.execution_started_event_details,
            "ExecutionSucceeded" => &mut self.execution_succeeded_event_details,
            "ExecutionFailed" => &mut self.execution_failed_event_details,
            "ExecutionTimedOut" => &mut self.execution_timed_out_event_details,
            "ExecutionAborted" => &mut self.execution_aborted_event_details,
            "ExecutionRedriven" => &mut self.execution_redriven_event_details,
            "TaskScheduled" => &mut self.task_scheduled_event_details,
            "TaskStarted" => &mut self.task_started_event_details,
            "TaskSubmitted" => &mut self.task_submitted_event_details,
            "TaskSucceeded" => &mut self.task_succeeded_event_details,
            "TaskFailed" => &mut self.task_failed_event_details,
            "TaskTimedOut" => &mut self.task_timed_out_event_details,
            "LambdaFunctionScheduled" => &mut self.lambda_function_scheduled_event_details,
            "LambdaFunctionSucceeded" => &mut self.lambda_function_succeeded_event_details,
            "LambdaFunctionFailed" => &mut self.lambda_function_failed_event_details,
            "LambdaFunctionTimedOut" => &mut self.lambda_function_timed_out_event_details,
            "EvaluationFailed" => &mut self.evaluation_failed_event_details,
            "MapStateStarted" => &mut self.map_state_started_event_details,
            "MapIterationStarted" => &mut self.map_iteration_started_event_details,
            "MapIterationSucceeded" => &mut self.map_iteration_succeeded_event_details,
            "MapIterationFailed" => &mut self.map_iteration_failed_event_details,
            "MapRunStarted" => &mut self.map_run_started_event_details,
            "MapRunSucceeded" => &mut self.map_run_succeeded_event_details,
            "MapRunFailed" => &mut self.map_run_failed_event_details,
            "MapRunRedriven" => &mut self.map_run_redriven_event_details,
            name if name.ends_with("StateEntered") => &mut self.state_entered_event_details,
            name if name.ends_with("StateExited") => &mut self.state_exited_event_details,
            _ => return None,
        })
    }
}

impl TryFrom<Wire> for Event {
    type Error = Malformed;

    fn try_from(mut wire: Wire) -> Result<Event, Malformed> {
        let details = wire.member().and_then(Option::take).unwrap_or_default();
        let timestamp = wire
            .timestamp
            .ok_or_else(|| Malformed::Missing(wire.event_type.clone(), "timestamp"))?;
        let kind = kind_of(&wire.event_type, details)?;
        Ok(Event { id: wire.id, previous_event_id: wire.previous_event_id, timestamp, kind })
    }
}

fn kind_of(event_type: &str, details: Details) -> Result<EventKind, Malformed> {
    let need = |member: Option<String>, name| {
        member.ok_or_else(|| Malformed::Missing(event_type.to_owned(), name))
    };
    Ok(match event_type {
        "ExecutionStarted" => EventKind::ExecutionStarted {
            input: need(details.input, "input")?,
            role_arn: need(details.role_arn, "roleArn")?,
        },
        "ExecutionSucceeded" => {
            EventKind::ExecutionSucceeded { output: need(details.output, "output")? }
        }
        "ExecutionFailed" => EventKind::ExecutionFailed(details.failure()),
        "ExecutionTimedOut" => EventKind::ExecutionTimedOut(details.failure()),
        "ExecutionAborted" => EventKind::ExecutionAborted(details.failure()),
        "ExecutionRedriven" => EventKind::ExecutionRedriven {
            redrive_count: details
                .redrive_count
                .ok_or_else(|| Malformed::Missing(event_type.to_owned(), "redriveCount"))?,
        },
        "TaskScheduled" => EventKind::TaskScheduled(TaskScheduled {
            resource_type: need(details.resource_type, "resourceType")?,
            resource: need(details.resource, "resource")?,
            region: need(details.region, "region")?,
            parameters: need(details.parameters, "parameters")?,
            timeout_s: details.timeout_in_seconds,
            heartbeat_s: details.heartbeat_in_seconds,
        }),
        "LambdaFunctionScheduled" => EventKind::LambdaFunctionScheduled {
            resource: need(details.resource, "resource")?,
            input: need(details.input, "input")?,
            timeout_s: details.timeout_in_seconds,
        },
        "EvaluationFailed" => EventKind::EvaluationFailed {
            state: need(details.state.clone(), "state")?,
            location: details.location.clone(),
            failure: details.failure(),
        },
        name => {
            if let Some(kind) = fork_kind(name, &details) {
                return kind;
            }
            return state_kind(name, details)
                .unwrap_or_else(|details| task_kind(event_type, *details));
        }
    })
}

/// Events of a `Parallel` or `Map` other than state entry and exit.
fn fork_kind(event_type: &str, details: &Details) -> Option<Result<EventKind, Malformed>> {
    let missing = |name| Malformed::Missing(event_type.to_owned(), name);
    Some(match event_type {
        "ParallelStateStarted" => Ok(EventKind::ParallelStateStarted),
        "MapStateStarted" => details
            .length
            .map(|length| EventKind::MapStateStarted { length })
            .ok_or_else(|| missing("length")),
        "MapRunStarted" => details
            .map_run_arn
            .clone()
            .map(|map_run_arn| EventKind::MapRunStarted { map_run_arn })
            .ok_or_else(|| missing("mapRunArn")),
        "MapRunSucceeded" => Ok(EventKind::MapRunSucceeded { output: details.output.clone() }),
        "MapRunFailed" => Ok(EventKind::MapRunFailed(details.clone().failure())),
        "MapRunRedriven" => match (details.map_run_arn.clone(), details.redrive_count) {
            (Some(map_run_arn), Some(redrive_count)) => {
                Ok(EventKind::MapRunRedriven { map_run_arn, redrive_count })
            }
            (None, _) => Err(missing("mapRunArn")),
            (_, None) => Err(missing("redriveCount")),
        },
        "ParallelStateSucceeded" => Ok(EventKind::ForkSucceeded(StateType::Parallel)),
        "ParallelStateFailed" => Ok(EventKind::ForkFailed(StateType::Parallel)),
        "MapStateSucceeded" => Ok(EventKind::ForkSucceeded(StateType::Map)),
        "MapStateFailed" => Ok(EventKind::ForkFailed(StateType::Map)),
        name => {
            let moment = name.strip_prefix("MapIteration")?;
            let moment = Moment::ALL.into_iter().find(|known| known.name() == moment)?;
            match (&details.name, details.index) {
                (Some(name), Some(index)) => {
                    Ok(EventKind::MapIteration { moment, name: name.clone(), index })
                }
                (None, _) => Err(missing("name")),
                (_, None) => Err(missing("index")),
            }
        }
    })
}

/// State entry and exit; returns the details if the event is neither.
fn state_kind(
    event_type: &str,
    details: Details,
) -> Result<Result<EventKind, Malformed>, Box<Details>> {
    let missing = |name| Malformed::Missing(event_type.to_owned(), name);
    for state_type in StateType::ALL {
        match event_type.strip_prefix(state_type.name()) {
            Some("StateEntered") => {
                return Ok(match (details.name, details.input) {
                    (Some(name), Some(input)) => {
                        Ok(EventKind::StateEntered { state_type, name, input })
                    }
                    (None, _) => Err(missing("name")),
                    (_, None) => Err(missing("input")),
                });
            }
            Some("StateExited") => {
                let assigned_variables = details.assigned_variables.unwrap_or_default();
                return Ok(match (details.name, details.output) {
                    (Some(name), Some(output)) => {
                        Ok(EventKind::StateExited { state_type, name, output, assigned_variables })
                    }
                    (None, _) => Err(missing("name")),
                    (_, None) => Err(missing("output")),
                });
            }
            _ => {}
        }
    }
    Err(Box::new(details))
}

fn task_kind(event_type: &str, details: Details) -> Result<EventKind, Malformed> {
    let missing = |name| Malformed::Missing(event_type.to_owned(), name);
    let (what, integration) = if let Some(what) = event_type.strip_prefix("LambdaFunction") {
        (what, Integration::Function)
    } else if let Some(what) = event_type.strip_prefix("Task") {
        let resource_type = details.resource_type.clone().ok_or_else(|| missing("resourceType"))?;
        let resource = details.resource.clone().ok_or_else(|| missing("resource"))?;
        (what, Integration::Service { resource_type, resource })
    } else {
        return Err(Malformed::Type(event_type.to_owned()));
    };
    Ok(match what {
        "Started" => EventKind::TaskStarted(integration),
        "Submitted" => {
            EventKind::TaskSubmitted(integration, details.output.ok_or_else(|| missing("output"))?)
        }
        "Succeeded" => {
            EventKind::TaskSucceeded(integration, details.output.ok_or_else(|| missing("output"))?)
        }
        "Failed" => EventKind::TaskFailed(integration, details.failure()),
        "TimedOut" => EventKind::TaskTimedOut(integration, details.failure()),
        _ => return Err(Malformed::Type(event_type.to_owned())),
    })
}
