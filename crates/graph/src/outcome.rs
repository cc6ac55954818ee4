//! Outcomes of effects, and their JSON in the journal.

use std::fmt;

use journal::clock::Stamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::effect::{Reply, ToolCall};
use crate::question::Answer;

/// The outcome that a node folds.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Number of the step with the outcome (of parallel calls, the last); the source of messages
    /// built from it. For [`Effect::Nothing`](crate::effect::Effect::Nothing), the newest step.
    pub seq: u32,
    /// Time of that step: the graph's current time.
    pub at: Stamp,
    pub body: OutcomeBody,
}

/// The outcome of an effect, always of the kind that the node requested.
#[derive(Clone, Debug, PartialEq)]
pub enum OutcomeBody {
    /// The reply of the model or the policy. A chat never fails a node: the run retries it, falls
    /// back to the policy, or ends, depending on the trigger.
    Reply(Reply),
    /// Results in the order of the calls.
    Results(Vec<ToolResult>),
    /// The person's answer, or the expiry of the question.
    Answer(Answer),
    /// The end of a sleep.
    Woke,
    /// The outcome of [`Effect::Nothing`](crate::effect::Effect::Nothing) and of notes.
    Nothing,
}

/// The result of one tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    pub call: ToolCall,
    /// Number of the step with the result.
    pub seq: u32,
    /// Time of that step.
    pub at: Stamp,
    /// Duration in milliseconds.
    pub elapsed_ms: u64,
    /// The attempt, from 1.
    #[serde(default = "first")]
    pub attempt: u32,
    pub outcome: ToolOutcome,
}

fn first() -> u32 {
    1
}

/// The outcome of one tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// The content: structured, or a text.
    Ok(Value),
    /// The tool reported an error, or its arguments or result were invalid.
    Error(String),
    /// The tool could not be called, did not reply, or a person rejected the call.
    Failed(Failure),
}

/// Why an effect has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailureKind,
    /// The category, one word, such as `mcp_connection` or `bedrock_auth`.
    pub category: String,
    pub message: String,
    /// The service's own error code, such as `ThrottlingException`, if it returned one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The model, if it was a chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// What may have happened although there is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Provably nothing: never sent, or throttled. May be retried.
    NotSent,
    /// Nothing, and a retry will not help: no permission, no such tool, rejected by a person.
    Refused,
    /// Possibly everything: the reply was lost.
    Unknown,
}

/// Category of a failure when a person rejected the call.
pub const CATEGORY_REJECTED: &str = "rejected";

/// Category of a failure when the question about the call expired.
pub const CATEGORY_EXPIRED: &str = "expired";

/// Category of a failure when a person approved a call, and the server now offers another tool under its
/// name.
pub const CATEGORY_TOOL_CHANGED: &str = "tool_changed";

/// The payload of an outcome step, from the driver.
///
/// In JSON an object with one field: `{"reply": {"text"?, "calls"?: [{"id", "server"?, "tool",
/// "arguments"}], "by": "policy" | {"model": NAME}}}`, `{"ok": VALUE}`, `{"error": TEXT}`,
/// `{"failure": {"kind": "not_sent" | "refused" | "unknown", "category", "message", "code"?, "model"?}}` or
/// `{"woke": {}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Brought {
    Reply(Reply),
    /// A tool's content.
    Ok(Value),
    /// A tool's error.
    Error(String),
    /// No reply, from a model or a tool.
    Failure(Failure),
    Woke {},
}

impl Failure {
    /// A failure after which certainly nothing happened.
    pub fn not_sent(category: &str, message: impl Into<String>) -> Self {
        Self::new(FailureKind::NotSent, category, message)
    }

    /// A permanent failure.
    pub fn refused(category: &str, message: impl Into<String>) -> Self {
        Self::new(FailureKind::Refused, category, message)
    }

    /// A failure after which it is unknown what happened.
    pub fn unknown(category: &str, message: impl Into<String>) -> Self {
        Self::new(FailureKind::Unknown, category, message)
    }

    /// With the error code that the service returned.
    #[must_use]
    pub fn with_code(self, code: &str) -> Self {
        Self { code: Some(code.to_owned()), ..self }
    }

    fn new(kind: FailureKind, category: &str, message: impl Into<String>) -> Self {
        let (category, message) = (category.to_owned(), message.into());
        Self { kind, category, message, code: None, model: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.category, self.message)
    }
}

impl ToolResult {
    /// The content of a successful call.
    pub fn ok(&self) -> Option<&Value> {
        match &self.outcome {
            ToolOutcome::Ok(content) => Some(content),
            ToolOutcome::Error(_) | ToolOutcome::Failed(_) => None,
        }
    }

    /// The error as one line, if any.
    pub fn error(&self) -> Option<String> {
        match &self.outcome {
            ToolOutcome::Ok(_) => None,
            ToolOutcome::Error(text) => Some(text.clone()),
            ToolOutcome::Failed(failure) => Some(failure.to_string()),
        }
    }
}

impl Outcome {
    /// The reply to a chat.
    ///
    /// # Panics
    /// The node requested another effect, which is a bug in the graph.
    pub fn reply(self) -> Reply {
        match self.body {
            OutcomeBody::Reply(reply) => reply,
            other => panic!("the node did not request a chat: {other:?}"),
        }
    }

    /// The results of tool calls, in the order of the calls.
    ///
    /// # Panics
    /// The node requested another effect, which is a bug in the graph.
    pub fn results(self) -> Vec<ToolResult> {
        match self.body {
            OutcomeBody::Results(results) => results,
            other => panic!("the node did not request tool calls: {other:?}"),
        }
    }

    /// The answer to a question.
    ///
    /// # Panics
    /// The node requested another effect, which is a bug in the graph.
    pub fn answer(self) -> Answer {
        match self.body {
            OutcomeBody::Answer(answer) => answer,
            other => panic!("the node did not ask a person: {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Author;
    use serde_json::json;

    #[test]
    fn outcome_payloads_match_the_golden_file() {
        let call =
            ToolCall { id: Some("1".to_owned()), ..ToolCall::new("s", "t", json!({"a": 1})) };
        let reply = Reply {
            text: Some("hm".to_owned()),
            calls: vec![call],
            by: Author::Model("big".to_owned()),
        };
        for (brought, text) in [
            (
                Brought::Reply(reply),
                r#"{"reply":{"text":"hm","calls":[{"id":"1","server":"s","tool":"t","arguments":{"a":1}}],"by":{"model":"big"}}}"#,
            ),
            (Brought::Reply(Reply::says("a")), r#"{"reply":{"text":"a","by":"policy"}}"#),
            (Brought::Ok(json!([1])), r#"{"ok":[1]}"#),
            (Brought::Error("no".to_owned()), r#"{"error":"no"}"#),
            (
                Brought::Failure(Failure::not_sent("mcp_init", "no handshake")),
                r#"{"failure":{"kind":"not_sent","category":"mcp_init","message":"no handshake"}}"#,
            ),
            (Brought::Woke {}, r#"{"woke":{}}"#),
        ] {
            assert_eq!(json!(brought).to_string(), text);
            assert_eq!(serde_json::from_str::<Brought>(text).unwrap(), brought);
        }
    }
}
