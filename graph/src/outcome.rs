//! What an effect brought, and the JSON in which the journal keeps it.

use std::fmt;

use journal::clock::Stamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::effect::{Reply, ToolCall};
use crate::question::Answer;

/// What a node is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The number of the step that brought it (of parallel calls, the last); the source of messages
    /// made from it. For [`Effect::Nothing`](crate::effect::Effect::Nothing), the newest step.
    pub seq: u32,
    /// That step's time: now, for the graph.
    pub at: Stamp,
    /// What it is.
    pub body: OutcomeBody,
}

/// What an effect brought. It always fits the effect that the node asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum OutcomeBody {
    /// The model's reply, or the policy's. A chat never fails a node: the machine retries, falls
    /// back to the policy or ends the run, as the trigger said.
    Reply(Reply),
    /// The tools' results, in the order of the calls.
    Results(Vec<ToolResult>),
    /// The person's answer, which may be that the question expired.
    Answer(Answer),
    /// It is time.
    Woke,
    /// What [`Effect::Nothing`](crate::effect::Effect::Nothing) and notes bring.
    Nothing,
}

/// What one tool call brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub call: ToolCall,
    /// The number of the step that brought it.
    pub seq: u32,
    /// That step's time.
    pub at: Stamp,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// Which attempt it is of, from 1.
    #[serde(default = "first")]
    pub attempt: u32,
    /// What it is.
    pub outcome: ToolOutcome,
}

fn first() -> u32 {
    1
}

/// What one tool call brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// Its content: the structured one, or a text.
    Ok(Value),
    /// The tool itself says that it went wrong, or its arguments or its result were not valid.
    Error(String),
    /// The tool could not be asked, or gave no answer; or a person did not allow the call.
    Failed(Failure),
}

/// Why an effect brought nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What may have happened in the world.
    pub kind: FailureKind,
    /// The category, one word, such as `mcp_connection` or `bedrock_auth`.
    pub category: String,
    /// What went wrong.
    pub message: String,
    /// The model that was asked, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// What may have happened in the world although there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Provably nothing: never sent, or turned away for now (throttled). May be tried again.
    NotSent,
    /// Nothing, and trying again will not help: no permission, no such tool, rejected by a person.
    Refused,
    /// Perhaps all of it: the answer was lost.
    Unknown,
}

/// A failure's category when a person rejected the call.
pub const CATEGORY_REJECTED: &str = "rejected";

/// A failure's category when nobody answered the question about the call in time.
pub const CATEGORY_EXPIRED: &str = "expired";

/// What the driver got: the payload of an outcome step.
///
/// In JSON an object with one field: `{"reply": {"text"?, "calls"?: [{"id", "server"?, "tool",
/// "arguments"}], "by": "policy" | {"model": NAME}}}`, `{"ok": VALUE}`, `{"error": TEXT}`,
/// `{"failure": {"kind": "not_sent" | "refused" | "unknown", "category", "message", "model"?}}` or
/// `{"woke": {}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Brought {
    /// A chat's reply.
    Reply(Reply),
    /// A tool's content.
    Ok(Value),
    /// A tool's error.
    Error(String),
    /// No answer, from a model or a tool.
    Failure(Failure),
    /// The time has come.
    Woke {},
}

impl Failure {
    /// A failure of which it is certain that nothing happened.
    pub fn not_sent(category: &str, message: impl Into<String>) -> Self {
        Self::new(FailureKind::NotSent, category, message)
    }

    /// A failure that trying again will not change.
    pub fn refused(category: &str, message: impl Into<String>) -> Self {
        Self::new(FailureKind::Refused, category, message)
    }

    /// A failure that left open what happened.
    pub fn unknown(category: &str, message: impl Into<String>) -> Self {
        Self::new(FailureKind::Unknown, category, message)
    }

    fn new(kind: FailureKind, category: &str, message: impl Into<String>) -> Self {
        Self { kind, category: category.to_owned(), message: message.into(), model: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.category, self.message)
    }
}

impl ToolResult {
    /// The content, if the tool brought some.
    pub fn ok(&self) -> Option<&Value> {
        match &self.outcome {
            ToolOutcome::Ok(content) => Some(content),
            ToolOutcome::Error(_) | ToolOutcome::Failed(_) => None,
        }
    }

    /// The error as one line, if there is one.
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
    /// When the node asked for something else, which is a bug in the graph.
    pub fn reply(self) -> Reply {
        match self.body {
            OutcomeBody::Reply(reply) => reply,
            other => panic!("the node did not ask for a chat: {other:?}"),
        }
    }

    /// The results of tool calls, in the order of the calls.
    ///
    /// # Panics
    /// When the node asked for something else, which is a bug in the graph.
    pub fn results(self) -> Vec<ToolResult> {
        match self.body {
            OutcomeBody::Results(results) => results,
            other => panic!("the node did not ask for tools: {other:?}"),
        }
    }

    /// The answer to a question.
    ///
    /// # Panics
    /// When the node asked for something else, which is a bug in the graph.
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
    fn outcome_payloads_are_golden_and_read_back() {
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
