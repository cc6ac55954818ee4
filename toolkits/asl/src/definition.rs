//! A parsed and validated state machine definition.
//!
//! [`Definition::parse`] checks that every `Next` names a state, that every state is reachable,
//! that each state has only fields of its type, and that all expressions compile. The rest of the
//! crate relies on these checks.

mod choice;
mod dataset;
mod fields;
mod flow;
mod json;
mod outline;
mod parse;
mod resource;
mod template;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::expression::Language;
use crate::intrinsic::CallError;
use crate::jsonata::CompileError;
use crate::jsonpath::{Path, PathError, Reference};

pub(crate) use choice::Rule;
pub(crate) use dataset::{Reader, Writer};
pub use json::Unreadable;
pub(crate) use json::json_problem;
pub use outline::{OutlineEdge, OutlineState};
pub(crate) use resource::Resource;
pub(crate) use template::{Slot, Template, accept};

/// Largest `TimeoutSeconds` of a task, and longest `Wait`, in seconds. Also the timeout of a task
/// that sets none.
///
/// Source: AWS, "Task workflow state", `TimeoutSeconds` (about three years).
pub const SECONDS_MAX: u64 = 99_999_999;
/// Longest name of a state, in characters.
///
/// Source: AWS, "Step Functions service quotas".
pub const STATE_NAME_CHARS_MAX: usize = 80;
/// Longest name of a variable, in characters.
///
/// Source: AWS, "Passing data between states with variables", limits.
pub const VARIABLE_NAME_CHARS_MAX: usize = 80;
/// Longest definition, in bytes.
///
/// Source: AWS, "Step Functions service quotas", maximum request size.
pub const DEFINITION_BYTES_MAX: usize = 1024 * 1024;
/// Deepest nesting of `Parallel` and `Map` states.
pub const MACHINES_NESTED_MAX: usize = 16;

/// Workflow type. AWS does not let an express workflow wait for a callback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workflow {
    /// Keeps its history and may wait for callbacks.
    #[default]
    Standard,
    /// Runs for at most five minutes and returns its result to the caller.
    Express,
}

/// A validated state machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    pub(crate) machine: Arc<Machine>,
    pub(crate) timeout_s: Option<u64>,
}

impl Definition {
    /// Parses and validates a definition.
    ///
    /// # Errors
    /// The first problem, with a JSON pointer to it.
    pub fn parse(text: &str) -> Result<Definition, DefinitionError> {
        parse::definition(text, Workflow::Standard).map_err(|mut errors| errors.remove(0))
    }

    /// Parses and validates a definition, and reports more than one problem.
    ///
    /// # Errors
    /// The first problem of each invalid state; at least one.
    pub fn check(text: &str, workflow: Workflow) -> Result<Definition, Vec<DefinitionError>> {
        parse::definition(text, workflow)
    }

    pub fn start_at(&self) -> &str {
        &self.machine.start_at
    }

    /// Seconds after which an execution times out, if the definition says so.
    pub fn timeout_s(&self) -> Option<u64> {
        self.timeout_s
    }

    /// The names of the top-level states, sorted.
    pub fn state_names(&self) -> impl Iterator<Item = &str> {
        self.machine.states.keys().map(String::as_str)
    }

    /// The names in all `ErrorEquals`, sorted and without duplicates.
    pub fn error_names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.machine.collect_error_names(&mut names);
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// A validation error, worded as AWS words it; where AWS does not name the cause, in parentheses
/// after it.
#[derive(Debug, thiserror::Error)]
#[error(
    "{}: {problem}{}{}",
    .problem.code(),
    .location.as_deref().map_or(String::new(), |pointer| format!(" at {pointer}")),
    .problem.detail().map_or(String::new(), |detail| format!(" ({detail})"))
)]
pub struct DefinitionError {
    /// JSON pointer to the invalid value, `/` for the whole definition; `None` if the text is not
    /// JSON.
    pub location: Option<String>,
    pub problem: Problem,
}

impl DefinitionError {
    /// The error as `CreateStateMachine` words it, without what AWS does not say.
    pub fn in_words_of_aws(&self) -> String {
        let place = self.location.as_deref().map_or(String::new(), |place| format!(" at {place}"));
        format!("{}: {}{place}", self.problem.code(), self.problem)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("Definition must not be longer than {DEFINITION_BYTES_MAX} bytes")]
    TooLong,
    /// The text is empty, or JSON but not an object.
    #[error("Definition must be a valid JSON object")]
    NotObject,
    #[error(transparent)]
    NotJson(#[from] Unreadable),
    #[error("These fields are required: [{}]", .0.join(", "))]
    Required(Vec<&'static str>),
    /// The state's type has no such field.
    #[error("Field '{0}' is not supported")]
    Unexpected(String),
    #[error("Value must be {0}")]
    Value(&'static str),
    #[error("Value cannot be empty")]
    Empty,
    #[error("The field '{0}' should have one of these values: [{1}]")]
    OneOf(&'static str, &'static str),
    #[error("Value should be one of the following: [{0}]")]
    Among(&'static str),
    /// More than one of the fields is present.
    #[error("There should only be one of the following fields: [{0}]")]
    Exclusive(String),
    /// None of the fields is present.
    #[error("This object should have only one of the following fields: [{0}]")]
    NoneOf(&'static str),
    #[error("Minimum value is {0}")]
    Minimum(u64),
    #[error("Maximum value is {0}")]
    Maximum(u64),
    #[error("Expected value of type {0}")]
    Type(&'static str),
    #[error("The field '{0}' is required but was missing")]
    Missing(&'static str),
    /// The field belongs to the other query language.
    #[error(
        "The QueryLanguage is set to '{0}', but field '{1}' is only supported for the '{2}' QueryLanguage"
    )]
    OtherLanguage(&'static str, String, &'static str),
    /// A field whose name ends in `.$`, and what is wrong with its value.
    #[error(
        "The value for the field '{field}' must be a valid JSONPath or a valid intrinsic function call"
    )]
    Dynamic { field: String, detail: Option<String> },
    #[error("Workflow has no terminal state")]
    NoEnd,
    #[error("Cannot assign to reserved variable '${0}'.")]
    ReservedVariable(String),
    #[error("Invalid variable name '{0}': the variable name contains invalid characters.")]
    VariableName(String),
    /// `Next`, `Default` or `StartAt` names a state that does not exist.
    #[error("Missing '{0}' target: {1}")]
    UnknownState(&'static str, String),
    #[error("Duplicate State name: {0}")]
    DuplicateState(String),
    #[error("State \"{0}\" is not reachable.")]
    Unreachable(String),
    /// Two fields exclude each other.
    #[error("{0}")]
    Conflict(&'static str),
    /// `Resource` is not a known service integration.
    #[error(
        "The resource provided {0} is not recognized. The value is not a valid resource ARN, or the resource is not available in this region."
    )]
    Resource(String),
    #[error("{}", .0.as_aws_words_it())]
    Expression(#[from] CompileError),
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Call(#[from] CallError),
}

impl Problem {
    /// AWS's code for it.
    pub const fn code(&self) -> &'static str {
        match self {
            Problem::NotJson(_) => "INVALID_JSON_DESCRIPTION",
            Problem::UnknownState(..) | Problem::Unreachable(_) => "MISSING_TRANSITION_TARGET",
            Problem::DuplicateState(_) => "DUPLICATE_STATE_NAME",
            Problem::NoEnd => "MISSING_END_STATE",
            Problem::ReservedVariable(_) => "RESERVED_VARIABLE_NAME",
            Problem::VariableName(_) => "INVALID_VARIABLE_NAME",
            Problem::Expression(CompileError::Syntax(_)) => "INVALID_JSONATA_EXPRESSION",
            Problem::Expression(CompileError::TopLevel(_)) => "UNSUPPORTED_JSONATA_EXPRESSION",
            _ => "SCHEMA_VALIDATION_FAILED",
        }
    }

    /// What AWS does not say.
    pub fn detail(&self) -> Option<&str> {
        match self {
            Problem::Dynamic { detail, .. } => detail.as_deref(),
            _ => None,
        }
    }
}

/// The type of a state, named as in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateType {
    Task,
    Choice,
    Wait,
    Pass,
    Succeed,
    Fail,
    Parallel,
    Map,
}

impl StateType {
    pub const ALL: [StateType; 8] = [
        StateType::Task,
        StateType::Choice,
        StateType::Wait,
        StateType::Pass,
        StateType::Succeed,
        StateType::Fail,
        StateType::Parallel,
        StateType::Map,
    ];

    /// The value of `Type`, which is also the prefix of `StateEntered`.
    pub const fn name(self) -> &'static str {
        match self {
            StateType::Task => "Task",
            StateType::Choice => "Choice",
            StateType::Wait => "Wait",
            StateType::Pass => "Pass",
            StateType::Succeed => "Succeed",
            StateType::Fail => "Fail",
            StateType::Parallel => "Parallel",
            StateType::Map => "Map",
        }
    }
}

/// The top-level machine, a branch of a `Parallel`, or the processor of a `Map`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Machine {
    pub(crate) start_at: String,
    pub(crate) states: BTreeMap<String, State>,
}

impl Machine {
    /// Whether its execution neither calls, waits nor retries, so that one decision can run it to its end.
    pub(crate) fn only_computes(&self) -> bool {
        self.states.values().all(|state| {
            !matches!(state.kind, Kind::Task(_) | Kind::Wait(_))
                && state.retry.is_empty()
                && state.kind.machines().iter().all(|machine| machine.only_computes())
        })
    }

    fn collect_error_names<'a>(&'a self, names: &mut Vec<&'a str>) {
        for state in self.states.values() {
            let retried = state.retry.iter().flat_map(|retrier| &retrier.error_equals);
            let caught = state.catch.iter().flat_map(|catcher| &catcher.error_equals);
            names.extend(retried.chain(caught).map(String::as_str));
            for inner in state.kind.machines() {
                inner.collect_error_names(names);
            }
        }
    }
}

/// A state: the fields of its type, and those that all types share.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub(crate) language: Language,
    pub(crate) input: Lens,
    pub(crate) kind: Kind,
    pub(crate) result: Yield,
    /// The next state after success. A `Choice` uses its rules instead.
    pub(crate) next: Transition,
    pub(crate) retry: Vec<Retrier>,
    pub(crate) catch: Vec<Catcher>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Task(Box<Task>),
    Choice { rules: Vec<Rule>, default: Option<String> },
    Wait(Until),
    Pass { parameters: Option<Template>, result: Option<Value> },
    Succeed,
    Fail { error: Option<Slot>, cause: Option<Slot> },
    Parallel { branches: Vec<Arc<Machine>>, arguments: Option<Template> },
    Map(Box<Map>),
}

impl Kind {
    pub(crate) fn state_type(&self) -> StateType {
        match self {
            Kind::Task(_) => StateType::Task,
            Kind::Choice { .. } => StateType::Choice,
            Kind::Wait(_) => StateType::Wait,
            Kind::Pass { .. } => StateType::Pass,
            Kind::Succeed => StateType::Succeed,
            Kind::Fail { .. } => StateType::Fail,
            Kind::Parallel { .. } => StateType::Parallel,
            Kind::Map(_) => StateType::Map,
        }
    }

    pub(crate) fn machines(&self) -> &[Arc<Machine>] {
        match self {
            Kind::Parallel { branches, .. } => branches,
            Kind::Map(map) => std::slice::from_ref(&map.processor),
            _ => &[],
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Transition {
    Next(String),
    End,
}

/// `InputPath` or `OutputPath`: the part of a value that is visible.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Lens {
    #[default]
    Whole,
    /// `null`: an empty object.
    Nothing,
    Part(Reference),
}

/// What a state passes on: `Assign` and its output. All its expressions see the variables as they
/// were before the state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Yield {
    pub(crate) assign: Vec<(String, Template)>,
    pub(crate) shape: Shape,
}

/// How a state computes its output from its result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Jsonata(Option<Template>),
    JsonPath { selector: Option<Template>, result_path: ResultPath, output: Lens },
}

impl Default for Shape {
    fn default() -> Shape {
        Shape::Jsonata(None)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ResultPath {
    /// It replaces the input.
    Whole,
    /// `null`: the result is dropped.
    Nowhere,
    /// Into the input.
    At { path: Path, text: String },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Task {
    pub(crate) resource: Resource,
    pub(crate) arguments: Option<Template>,
    pub(crate) timeout: Option<Slot>,
    pub(crate) heartbeat: Option<Slot>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Until {
    Seconds(Slot),
    Timestamp(Slot),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Map {
    pub(crate) processor: Arc<Machine>,
    /// Distributed mode: iterations are child executions.
    pub(crate) distributed: bool,
    pub(crate) items: Items,
    pub(crate) selector: Option<Template>,
    pub(crate) batcher: Option<Batcher>,
    pub(crate) max_concurrency: Option<Slot>,
    pub(crate) tolerated_count: Option<Slot>,
    pub(crate) tolerated_percentage: Option<Slot>,
    pub(crate) reader: Option<Reader>,
    pub(crate) writer: Option<Writer>,
    /// Names the runs of a distributed `Map`.
    pub(crate) label: Option<String>,
    /// The processor of a distributed `Map` as a definition of its own, JSON text.
    pub(crate) child: String,
}

/// What a `Map` iterates over.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Items {
    Input,
    Path(Reference),
    Template(Template),
}

/// `ItemBatcher`: several items per iteration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Batcher {
    pub(crate) items_max: Option<Slot>,
    pub(crate) bytes_max: Option<Slot>,
    pub(crate) input: Option<Template>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Retrier {
    pub(crate) error_equals: Vec<String>,
    pub(crate) interval_s: u64,
    pub(crate) max_attempts: u64,
    pub(crate) backoff_rate: f64,
    pub(crate) max_delay_s: Option<u64>,
    pub(crate) full_jitter: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Catcher {
    pub(crate) error_equals: Vec<String>,
    pub(crate) result: Yield,
    pub(crate) next: String,
}
