//! What an agent's author writes.

use journal::clock::Stamp;
use journal::error_message::ErrorMessage;
use journal::step::{Ending, StepBody};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::agent::Settings;
use crate::budget::{Budget, Crossed, Used};
use crate::effect::{Chat, Effect, Reply, ToolCall};
use crate::outcome::Outcome;

/// An agent: a graph over a typed state.
///
/// The state is the fold of what the effects brought. It holds no floats, nothing whose order is
/// random, and is the same after it was serialised and read.
#[derive(Debug)]
pub struct Graph<S: 'static> {
    /// The agent's name.
    pub name: &'static str,
    /// The graph's version. Change it with every change of nodes, routes or effects.
    pub version: &'static str,
    /// What the agent does, one sentence.
    pub summary: &'static str,
    /// The node where a run starts.
    pub start: &'static str,
    /// The nodes, in the order in which they are shown.
    pub nodes: &'static [Node<S>],
    /// The state from the trigger's input, and from the settings' own options of this agent.
    pub init: fn(&Value, &Settings) -> Result<S, InputError>,
    /// What a run may use when the trigger says nothing else.
    pub budget: Budget,
    /// What budgets count.
    pub scope: Scope,
    /// Where to go when a limit is reached. Each limit is reached once; whatever the route, a second
    /// bound of about twice the limit ends the run.
    pub on_limit: fn(&mut S, Crossed) -> Route,
    /// The rule-based stand-in for the model: what the agent does with no model at all.
    pub policy: fn(&S, &Chat) -> Reply,
    /// How often a chat or tool call is tried.
    pub attempts: Attempts,
    /// Tools that change the world: called after an intent, retried only if provably not sent.
    /// Names are `tool` or `server.tool`.
    pub at_most_once: &'static [&'static str],
    /// Tools that a person must approve, call by call. They are at-most-once too.
    pub critical: &'static [&'static str],
    /// The MCP servers that it wants, by name.
    pub servers: &'static [&'static str],
    /// How long a tool call may take, in seconds.
    pub tool_timeout_s: u32,
}

/// A node: it asks for one effect and folds what came of it.
#[derive(Debug)]
pub struct Node<S> {
    /// Its name.
    pub name: &'static str,
    /// The nodes that it may route to. A route elsewhere ends the run as failed.
    pub to: &'static [&'static str],
    /// What it asks for. Pure.
    pub ask: fn(&S, &Context<'_>) -> Effect,
    /// What it makes of what came. Pure.
    pub fold: fn(&mut S, Outcome) -> Route,
}

/// How long a tool call may take when a graph says nothing else, in seconds.
pub const TOOL_TIMEOUT_S: u32 = 30;

/// Where a run goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Route {
    /// To the node of this name.
    To(&'static str),
    /// Nowhere: it ends.
    End(Finish),
}

/// How a run ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Finish {
    /// With this result.
    Completed(Value),
    /// Without one.
    Failed {
        /// What went wrong.
        error: ErrorMessage,
        /// The category, one word.
        category: String,
        /// What there is nonetheless; null if nothing.
        result: Value,
    },
}

/// What a budget counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The whole session.
    Session,
    /// From one answer of a person to the next. Answers about a tool call do not count.
    Turn,
}

/// How often something is tried that failed without a lasting reason, the first time included.
/// Between attempts 2, 4, 8 … seconds pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// A chat that was not sent or whose answer was lost.
    pub chat: u32,
    /// A tool call that was not sent or, unless it is at-most-once, whose answer was lost.
    pub tool: u32,
}

impl<S> Graph<S> {
    /// A graph that starts at its first node, with what most agents leave as it is: no limits, no
    /// tools or servers of its own, [`Attempts::DEFAULT`], half a minute for a tool call, and a run
    /// that fails with the limit's name when a limit that the trigger sets is reached.
    ///
    /// What an agent has beside that stands before it: `Graph { budget, ..Graph::new(…) }`.
    ///
    /// # Panics
    /// When there is no node, at compile time where the graph is a `static`.
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        nodes: &'static [Node<S>],
        init: fn(&Value, &Settings) -> Result<S, InputError>,
        policy: fn(&S, &Chat) -> Reply,
    ) -> Self {
        Self {
            name,
            version: "1",
            summary,
            start: nodes[0].name,
            nodes,
            init,
            budget: Budget::UNLIMITED,
            scope: Scope::Session,
            on_limit: |_, crossed| Route::End(crossed.finish()),
            policy,
            attempts: Attempts::DEFAULT,
            at_most_once: &[],
            critical: &[],
            servers: &[],
            tool_timeout_s: TOOL_TIMEOUT_S,
        }
    }
}

impl Attempts {
    /// Two for a chat, three for a tool call.
    pub const DEFAULT: Self = Self { chat: 2, tool: 3 };
}

/// What a node may look at besides the state.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The time of the newest record.
    pub now: Stamp,
    /// The number of the newest record.
    pub seq: u32,
    /// What is used of the budget.
    pub used: Used,
    /// The budget.
    pub budget: Budget,
    /// The tools that need approval, by code and by configuration.
    pub critical: &'a [String],
}

impl Context<'_> {
    /// Whether the call needs a person's approval. A critical call that no approval was asked for
    /// is asked about by the machine itself, so a node needs this only to word the question.
    pub fn is_critical(&self, call: &ToolCall) -> bool {
        call.is_in(self.critical)
    }
}

/// Why an input is not one of this agent's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("input field `{path}`: expected {expected}")]
pub struct InputError {
    /// The field's path, such as `snapshot` or `Records[0].Sns`.
    pub path: String,
    /// What was expected there.
    pub expected: String,
}

impl InputError {
    /// The error for a field.
    pub fn new(path: &str, expected: impl Into<String>) -> Self {
        Self { path: path.to_owned(), expected: expected.into() }
    }

    /// Reads an input as a type.
    ///
    /// # Errors
    /// When it is none; the error names the field.
    pub fn read<T: DeserializeOwned>(input: &Value) -> Result<T, Self> {
        serde_path_to_error::deserialize(input).map_err(|error| {
            let path = error.path().to_string();
            let path = if path == "." { "input" } else { path.as_str() };
            Self::new(path, format!("something else: {}", error.inner()))
        })
    }

    /// The end of a session with such an input.
    pub fn finish(&self) -> Finish {
        Finish::failed("InputError", "InvalidInput", &self.to_string(), "invalid_input")
    }
}

impl Finish {
    /// A failure without a result; its line is `Type: Code - message`.
    pub fn failed(kind: &str, code: &str, message: &str, category: &str) -> Self {
        Self::Failed {
            error: ErrorMessage::new(kind, code, message),
            category: category.to_owned(),
            result: Value::Null,
        }
    }

    /// The step that ends the session so. Its payload is the result as it is.
    pub fn body(self) -> StepBody<Value> {
        match self {
            Self::Completed(result) => StepBody::End {
                ending: Ending::Completed,
                error: None,
                category: None,
                payload: result,
            },
            Self::Failed { error, category, result } => StepBody::End {
                ending: Ending::Failed,
                error: Some(error),
                category: Some(category),
                payload: result,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Input {
        folder: String,
        bytes_max: u64,
    }

    #[test]
    fn an_input_that_is_none_is_refused_with_its_field() {
        let read = |input| InputError::read::<Input>(&input).map_err(|error| error.to_string());
        let input = Input { folder: "a".to_owned(), bytes_max: 1 };
        assert_eq!(read(json!({"folder": "a", "bytes_max": 1})), Ok(input));
        for (input, refusal) in [
            (
                json!({"folder": 1, "bytes_max": 1}),
                "input field `folder`: expected something else: invalid type: integer `1`, expected a string",
            ),
            (
                json!({"folder": "a"}),
                "input field `input`: expected something else: missing field `bytes_max`",
            ),
            (
                json!(null),
                "input field `input`: expected something else: invalid type: null, expected struct Input",
            ),
            (
                json!({"folder": "a", "bytes_max": 1, "deep": 1}),
                "input field `deep`: expected something else: unknown field `deep`, expected `folder` or `bytes_max`",
            ),
        ] {
            assert_eq!(read(input).unwrap_err(), refusal);
        }
    }
}
