//! The definition of an agent.

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
/// The state is the fold of all outcomes. It must contain no floats and nothing with a random
/// order, and must survive serialisation unchanged.
#[derive(Debug)]
pub struct Graph<S: 'static> {
    pub name: &'static str,
    /// Version of the graph. Change it with every change of nodes, routes or effects.
    pub version: &'static str,
    /// What the agent does, in one sentence.
    pub summary: &'static str,
    /// The start node.
    pub start: &'static str,
    /// The nodes, in display order.
    pub nodes: &'static [Node<S>],
    /// Builds the state from the trigger's input and from this agent's options in the settings.
    pub init: fn(&Value, &Settings) -> Result<S, InputError>,
    /// The default budget.
    pub budget: Budget,
    pub scope: Scope,
    /// The route when a limit is reached. Each limit is reached once; a second bound of about twice
    /// the limit ends the run in any case.
    pub on_limit: fn(&mut S, Crossed) -> Route,
    /// The nodes that `on_limit` may route to and that no other node leads to.
    pub on_limit_to: &'static [&'static str],
    /// The agent's rules, which replace the model: what the agent does without one.
    pub policy: fn(&S, &Chat) -> Reply,
    /// Attempts per chat or tool call.
    pub attempts: Attempts,
    /// Tools that change the world: called after an intent, and retried only if the call was
    /// provably not sent. Names are `tool` or `server.tool`.
    pub at_most_once: &'static [&'static str],
    /// Tools that need a person's approval for each call. They are at-most-once too.
    pub critical: &'static [&'static str],
    /// Names of the MCP servers that it needs.
    pub servers: &'static [&'static str],
    /// Timeout of a tool call, in seconds.
    pub tool_timeout_s: u32,
}

/// A node: requests one effect and folds its outcome.
#[derive(Debug)]
pub struct Node<S> {
    pub name: &'static str,
    /// The nodes it may route to. Any other route fails the run.
    pub to: &'static [&'static str],
    /// The effect. Must be pure.
    pub ask: fn(&S, &Context<'_>) -> Effect,
    /// Folds the outcome and returns the route. Must be pure.
    pub fold: fn(&mut S, Outcome) -> Route,
}

/// Default timeout of a tool call, in seconds.
pub const TOOL_TIMEOUT_S: u32 = 30;

/// The next node, or the end.
#[derive(Clone, Debug, PartialEq)]
pub enum Route {
    To(&'static str),
    End(Finish),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Finish {
    Completed(Value),
    Failed {
        error: ErrorMessage,
        category: String,
        /// A partial result; null if there is none.
        result: Value,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Session,
    /// From one answer of a person to the next. Answers about a tool call do not count.
    Turn,
}

/// Attempts after transient failures, the first one included. The delays between attempts are 1, 2,
/// 4 … seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// For a chat that was not sent or whose reply was lost.
    pub chat: u32,
    /// For a tool call that was not sent or, unless it is at-most-once, whose reply was lost.
    pub tool: u32,
}

impl<S> Graph<S> {
    /// A graph that starts at its first node, with common defaults: no limits, no tools or servers
    /// of its own, [`Attempts::DEFAULT`], a timeout of 30 seconds per tool call, and a run that
    /// fails with the limit's name when it reaches one.
    ///
    /// Override a default with `Graph { budget, ..Graph::new(…) }`.
    ///
    /// # Panics
    /// There is no node; at compile time if the graph is a `static`.
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
            on_limit_to: &[],
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

/// What a node may read besides the state.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Time of the newest record.
    pub now: Stamp,
    /// Number of the newest record.
    pub seq: u32,
    pub used: Used,
    pub budget: Budget,
    /// Tools that need approval, by code and by configuration.
    pub critical: &'a [String],
}

impl Context<'_> {
    /// Whether the call needs a person's approval. The run asks by itself about an unapproved
    /// critical call, so a node needs this only to word the question.
    pub fn is_critical(&self, call: &ToolCall) -> bool {
        call.is_in(self.critical)
    }
}

/// The input is not valid for this agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("input field `{path}`: expected {expected}")]
pub struct InputError {
    /// Path of the field, such as `snapshot` or `Records[0].Sns`.
    pub path: String,
    pub expected: String,
}

impl InputError {
    pub fn new(path: &str, expected: impl Into<String>) -> Self {
        Self { path: path.to_owned(), expected: expected.into() }
    }

    /// Deserialises an input.
    ///
    /// # Errors
    /// The input does not match the type; the error names the field.
    pub fn read<T: DeserializeOwned>(input: &Value) -> Result<T, Self> {
        serde_path_to_error::deserialize(input).map_err(|error| {
            let path = error.path().to_string();
            let path = if path == "." { "input" } else { path.as_str() };
            Self::new(path, format!("another value: {}", error.inner()))
        })
    }

    /// The end of a session with this input.
    pub fn finish(&self) -> Finish {
        Finish::failed("InputError", "InvalidInput", &self.to_string(), "invalid_input")
    }
}

impl Finish {
    /// A failure without a result; its message is `Type: Code - message`.
    pub fn failed(kind: &str, code: &str, message: &str, category: &str) -> Self {
        Self::Failed {
            error: ErrorMessage::new(kind, code, message),
            category: category.to_owned(),
            result: Value::Null,
        }
    }

    /// The end step. Its payload is the result unchanged.
    pub fn body(self) -> StepBody<Value> {
        match self {
            Self::Completed(result) => StepBody::End {
                ending: Ending::Completed,
                error: None,
                category: None,
                answered_by: None,
                payload: result,
            },
            Self::Failed { error, category, result } => StepBody::End {
                ending: Ending::Failed,
                error: Some(error),
                category: Some(category),
                answered_by: None,
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
    fn an_invalid_input_is_rejected_with_its_field() {
        let read = |input| InputError::read::<Input>(&input).map_err(|error| error.to_string());
        let input = Input { folder: "a".to_owned(), bytes_max: 1 };
        assert_eq!(read(json!({"folder": "a", "bytes_max": 1})), Ok(input));
        for (input, refusal) in [
            (
                json!({"folder": 1, "bytes_max": 1}),
                "input field `folder`: expected another value: invalid type: integer `1`, expected a string",
            ),
            (
                json!({"folder": "a"}),
                "input field `input`: expected another value: missing field `bytes_max`",
            ),
            (
                json!(null),
                "input field `input`: expected another value: invalid type: null, expected struct Input",
            ),
            (
                json!({"folder": "a", "bytes_max": 1, "deep": 1}),
                "input field `deep`: expected another value: unknown field `deep`, expected `folder` or `bytes_max`",
            ),
        ] {
            assert_eq!(read(input).unwrap_err(), refusal);
        }
    }
}
