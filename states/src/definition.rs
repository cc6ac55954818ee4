//! A checked state machine definition.
//!
//! [`Definition::parse`] is the border: what passes it has a state behind every `Next`, no state
//! that cannot be reached, no field its state does not know, and expressions that compile. Behind
//! it nothing is checked again.

mod choice;
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
pub use json::Unreadable;
pub(crate) use json::json_problem;
pub use outline::{OutlineState, Way};
pub(crate) use resource::Resource;
pub(crate) use template::{Slot, Template, accept};

/// Longest that a task may run if it says nothing itself, and longest that anything may wait, in
/// seconds.
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
/// Most machines within machines, by `Parallel` and `Map`.
pub const MACHINES_NESTED_MAX: usize = 16;

/// What a definition is for: AWS lets a machine of the second kind wait for nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workflow {
    /// Its history is kept, and it may wait for callbacks.
    #[default]
    Standard,
    /// It runs for five minutes at most and answers at once.
    Express,
}

/// A state machine that has been checked and can be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    pub(crate) machine: Arc<Machine>,
    pub(crate) timeout_s: Option<u64>,
}

impl Definition {
    /// Reads and checks a definition.
    ///
    /// # Errors
    /// The first thing that is wrong, with a JSON pointer to it. The text must be changed.
    pub fn parse(text: &str) -> Result<Definition, DefinitionError> {
        parse::definition(text, Workflow::Standard).map_err(|mut errors| errors.remove(0))
    }

    /// Reads and checks a definition, and goes on after a state that is wrong.
    ///
    /// # Errors
    /// At least one thing that is wrong; the first of each state.
    pub fn check(text: &str, workflow: Workflow) -> Result<Definition, Vec<DefinitionError>> {
        parse::definition(text, workflow)
    }

    /// The name of the first state.
    pub fn start_at(&self) -> &str {
        &self.machine.start_at
    }

    /// Seconds after which an execution times out, if the definition says so.
    pub fn timeout_s(&self) -> Option<u64> {
        self.timeout_s
    }

    /// The names of the states outside branches and iterations, in order of name.
    pub fn state_names(&self) -> impl Iterator<Item = &str> {
        self.machine.states.keys().map(String::as_str)
    }

    /// The names that some `ErrorEquals` speaks of, each once, in order.
    pub fn error_names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.machine.collect_error_names(&mut names);
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Why a definition is refused, as AWS says it.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}{}", .problem.code(), .location.as_deref().map_or(String::new(), |place| format!(" at {place}")))]
pub struct DefinitionError {
    /// JSON pointer to the place, `/` for the whole; none if the text is not JSON at all.
    pub location: Option<String>,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a definition.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The text is longer than [`DEFINITION_BYTES_MAX`].
    #[error("Definition must not be longer than {DEFINITION_BYTES_MAX} bytes")]
    TooLong,
    /// The text is nothing, or JSON that is not an object.
    #[error("Definition must be a valid JSON object")]
    NotObject,
    /// The text is not JSON.
    #[error(transparent)]
    NotJson(#[from] Unreadable),
    /// Fields that must be there are not.
    #[error("These fields are required: [{}]", .0.join(", "))]
    Required(Vec<&'static str>),
    /// A field stands where it means nothing.
    #[error("Field '{0}' is not supported")]
    Unexpected(String),
    /// A value is of the wrong type or out of bounds.
    #[error("Value must be {0}")]
    Value(&'static str),
    /// A list or text has nothing in it.
    #[error("Value cannot be empty")]
    Empty,
    /// A field knows a few values, and this is none of them.
    #[error("The field '{0}' should have one of these values: [{1}]")]
    OneOf(&'static str, &'static str),
    /// A state is named that does not exist.
    #[error("Missing '{0}' target: {1}")]
    UnknownState(&'static str, String),
    /// Two states have one name.
    #[error("Duplicate State name: {0}")]
    DuplicateState(String),
    /// No path from `StartAt` leads here.
    #[error("State \"{0}\" is not reachable.")]
    Unreachable(String),
    /// Two things exclude each other.
    #[error("{0}")]
    Conflict(&'static str),
    /// What a task calls does not exist.
    #[error(
        "The resource provided {0} is not recognized. The value is not a valid resource ARN, or the resource is not available in this region."
    )]
    Resource(String),
    /// The text between `{%` and `%}` is not an expression that can be evaluated.
    #[error(transparent)]
    Expression(#[from] CompileError),
    /// A path cannot be read.
    #[error(transparent)]
    Path(#[from] PathError),
    /// An intrinsic function cannot be called so.
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
            _ => "SCHEMA_VALIDATION_FAILED",
        }
    }
}

/// The name of a state's type, as events spell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the language's own")]
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
    /// Every type.
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

    /// The name in `Type` and before `StateEntered`.
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

/// A machine, a branch of a `Parallel`, or what a `Map` does with an item.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Machine {
    pub(crate) start_at: String,
    pub(crate) states: BTreeMap<String, State>,
}

impl Machine {
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

/// A state: what its type does, and what all types have around it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub(crate) language: Language,
    /// `InputPath`.
    pub(crate) input: Lens,
    pub(crate) kind: Kind,
    pub(crate) result: Yield,
    /// Where it leads if nothing fails; a `Choice` has its rules for that.
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

    /// The machines within.
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

/// `InputPath` and `OutputPath`: how much of a value is seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Lens {
    #[default]
    Whole,
    /// `null`: an empty object instead.
    Nothing,
    Part(Reference),
}

/// What a state hands on. Everything in it sees the variables as they were before.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Yield {
    pub(crate) assign: Vec<(String, Template)>,
    pub(crate) shape: Shape,
}

/// How the output comes of the result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// The result itself, or `Output`.
    Jsonata(Option<Template>),
    /// `ResultSelector`, `ResultPath`, `OutputPath`.
    JsonPath { selector: Option<Template>, place: Place, output: Lens },
}

impl Default for Shape {
    fn default() -> Shape {
        Shape::Jsonata(None)
    }
}

/// `ResultPath`: where the result goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    /// It replaces the input.
    Whole,
    /// `null`: it is dropped.
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
    /// Iterations are executions of their own and leave no events in this history.
    pub(crate) distributed: bool,
    pub(crate) items: Items,
    pub(crate) selector: Option<Template>,
    pub(crate) batcher: Option<Batcher>,
    pub(crate) max_concurrency: Option<Slot>,
    pub(crate) tolerated_count: Option<Slot>,
    pub(crate) tolerated_percentage: Option<Slot>,
    /// A field that AWS knows and this engine does not: such a state fails.
    pub(crate) unsupported: Option<&'static str>,
}

/// What a `Map` goes over.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Items {
    /// Its input.
    Input,
    /// `ItemsPath`.
    Path(Reference),
    /// `Items`.
    Template(Template),
}

/// `ItemBatcher`: several items an iteration.
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
