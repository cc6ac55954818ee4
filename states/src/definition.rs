//! A checked state machine definition.
//!
//! [`Definition::parse`] is the border: what passes it has a state behind every `Next`, no state
//! that cannot be reached, no field its state does not know, and expressions that compile. Behind
//! it nothing is checked again.

mod fields;
mod parse;
mod template;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::jsonata::CompileError;

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

/// A state machine that has been checked and can be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    pub(crate) start_at: String,
    pub(crate) timeout_s: Option<u64>,
    pub(crate) states: BTreeMap<String, State>,
}

impl Definition {
    /// Reads and checks a definition.
    ///
    /// # Errors
    /// The first thing that is wrong, with a JSON pointer to it. The text must be changed; or,
    /// where the problem is [`Problem::Unsupported`], it is right and this engine cannot run it
    /// yet.
    pub fn parse(text: &str) -> Result<Definition, DefinitionError> {
        parse::definition(text)
    }

    /// The name of the first state.
    pub fn start_at(&self) -> &str {
        &self.start_at
    }

    /// Seconds after which an execution times out, if the definition says so.
    pub fn timeout_s(&self) -> Option<u64> {
        self.timeout_s
    }

    /// The names of the states, in order of name.
    pub fn state_names(&self) -> impl Iterator<Item = &str> {
        self.states.keys().map(String::as_str)
    }

    /// The names that some `ErrorEquals` speaks of, each once, in order.
    pub fn error_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .states
            .values()
            .filter_map(|state| match state {
                State::Task(task) => Some(task),
                _ => None,
            })
            .flat_map(|task| {
                let retried = task.retry.iter().flat_map(|retrier| &retrier.error_equals);
                retried.chain(task.catch.iter().flat_map(|catcher| &catcher.error_equals))
            })
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Why a definition is refused.
#[derive(Debug, thiserror::Error)]
#[error("{problem} at {location}")]
pub struct DefinitionError {
    /// JSON pointer to the place, `/` for the whole.
    pub location: String,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a definition.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The text is not JSON, or not a JSON object.
    #[error("definition must be a valid JSON object: {0}")]
    NotJson(String),
    /// A field that must be there is not.
    #[error("field '{0}' is required")]
    Required(&'static str),
    /// A field stands where it means nothing.
    #[error("field '{0}' is not supported here")]
    Unexpected(String),
    /// A value is of the wrong type or out of bounds.
    #[error("value must be {0}")]
    Value(&'static str),
    /// A state is named that does not exist.
    #[error("there is no state '{0}'")]
    UnknownState(String),
    /// No path from `StartAt` leads here.
    #[error("state cannot be reached")]
    Unreachable,
    /// Two things exclude each other.
    #[error("{0}")]
    Conflict(&'static str),
    /// The text between `{%` and `%}` is not an expression that can be evaluated.
    #[error(transparent)]
    Expression(#[from] CompileError),
    /// Right, as far as we can tell, but not run by this engine yet.
    #[error("{0} is not supported yet")]
    Unsupported(String),
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
}

impl StateType {
    /// Every type that this engine runs.
    pub const ALL: [StateType; 6] = [
        StateType::Task,
        StateType::Choice,
        StateType::Wait,
        StateType::Pass,
        StateType::Succeed,
        StateType::Fail,
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
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    Task(Box<Task>),
    Choice(Choice),
    Wait { until: Until, result: Yield, next: Transition },
    Pass { result: Yield, next: Transition },
    Succeed { result: Yield },
    Fail { error: Option<Slot>, cause: Option<Slot> },
}

impl State {
    pub(crate) fn state_type(&self) -> StateType {
        match self {
            State::Task(_) => StateType::Task,
            State::Choice(_) => StateType::Choice,
            State::Wait { .. } => StateType::Wait,
            State::Pass { .. } => StateType::Pass,
            State::Succeed { .. } => StateType::Succeed,
            State::Fail { .. } => StateType::Fail,
        }
    }

    fn is_terminal(&self) -> bool {
        match self {
            State::Task(task) => task.next == Transition::End,
            State::Wait { next, .. } | State::Pass { next, .. } => *next == Transition::End,
            State::Choice(_) => false,
            State::Succeed { .. } | State::Fail { .. } => true,
        }
    }

    /// Every state that may come after this one.
    fn successors(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        match self {
            State::Task(task) => {
                names.extend(task.next.name());
                names.extend(task.catch.iter().map(|catcher| catcher.next.as_str()));
            }
            State::Choice(choice) => {
                names.extend(choice.rules.iter().map(|rule| rule.next.as_str()));
                names.extend(choice.default.as_deref());
            }
            State::Wait { next, .. } | State::Pass { next, .. } => names.extend(next.name()),
            State::Succeed { .. } | State::Fail { .. } => {}
        }
        names
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Transition {
    Next(String),
    End,
}

impl Transition {
    fn name(&self) -> Option<&str> {
        match self {
            Transition::Next(name) => Some(name),
            Transition::End => None,
        }
    }
}

/// What a state hands on: `Assign` and `Output`. Both see the variables as they were before.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Yield {
    pub(crate) assign: Vec<(String, Template)>,
    pub(crate) output: Option<Template>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Task {
    pub(crate) resource: Resource,
    pub(crate) arguments: Option<Template>,
    pub(crate) timeout: Option<Slot>,
    pub(crate) heartbeat: Option<Slot>,
    pub(crate) result: Yield,
    pub(crate) next: Transition,
    pub(crate) retry: Vec<Retrier>,
    pub(crate) catch: Vec<Catcher>,
}

/// What a task calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// A function's own ARN, the style that came before service integrations.
    Function { arn: String },
    /// `arn:aws:states:::{resource_type}:{resource}`, the resource with its `.waitForTaskToken`.
    Service { arn: String, resource_type: String, resource: String, waits_for_token: bool },
}

impl Resource {
    pub(crate) fn arn(&self) -> &str {
        match self {
            Resource::Function { arn } | Resource::Service { arn, .. } => arn,
        }
    }

    pub(crate) fn waits_for_token(&self) -> bool {
        matches!(self, Resource::Service { waits_for_token: true, .. })
    }
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

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) rules: Vec<Rule>,
    /// What the state hands on when no rule matches.
    pub(crate) result: Yield,
    pub(crate) default: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    pub(crate) condition: Slot,
    pub(crate) result: Yield,
    pub(crate) next: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Until {
    Seconds(Slot),
    Timestamp(Slot),
}

/// A field's value that a definition gives literally, of a type that the parser has checked.
pub(crate) type Literal = Value;
