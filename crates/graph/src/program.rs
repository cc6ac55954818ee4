//! Agents that are programs of their own: what they ask of their host, and how the host identifies it.
//!
//! The protocol is `docs/protocol.md`. [`frame`] reads and writes its frames. A [`Run`](crate::run::Run) of such an
//! agent folds the same steps as one of a graph; instead of nodes, the program says what comes next.

pub mod frame;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use journal::item::Hash;
use journal::step::EffectKind;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::digest::canonical;
use crate::effect::{Chat, Content, Reply, ToolCall};
use crate::outcome::Failure;
use crate::question::{Answer, Question};
use crate::schema::Schema;

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

/// Longest frame, in bytes without its line end: the largest payload, and its envelope.
pub const FRAME_BYTES_MAX: usize = journal::limits::PAYLOAD_BYTES_MAX + 64 * 1024;

/// Most effects that a program may have open.
pub const OPEN_MAX: usize = 1_000;

/// Longest name of a step, in characters.
pub const NAME_CHARS_MAX: usize = 100;

/// Longest line of the program that a frame names, in characters.
pub const LINE_CHARS_MAX: usize = 300;

/// Time without a frame and without an open effect after which a program counts as hanging, in seconds.
pub const IDLE_S: u32 = 300;

/// Subject of the notes that a program writes: `{"data", "digest", "ordinal", "text"}`.
pub const NOTE_PROGRAM: &str = "program";

/// Category of sessions that failed because of their program.
pub const CATEGORY_PROGRAM: &str = "program";

/// How to start an agent's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its working directory.
    pub folder: PathBuf,
    /// Variables of its environment, in addition to those that every program gets.
    pub environment: BTreeMap<String, String>,
    /// See [`IDLE_S`].
    pub idle: Duration,
}

/// What a program says of itself.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Description {
    pub name: String,
    pub version: String,
    #[serde(default)]
    pub summary: Option<String>,
    /// The title of a session, in which `{field}` is replaced by that field of the input.
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub input_schema: Option<Value>,
    #[serde(default)]
    pub result_schema: Option<Value>,
    #[serde(default)]
    pub critical: Vec<String>,
    #[serde(default)]
    pub at_most_once: Vec<String>,
    #[serde(default)]
    pub servers: Vec<String>,
}

/// What the host knows of an agent that is a program.
#[derive(Debug)]
pub struct Hosted {
    pub launch: Launch,
    pub(crate) result_schema: Option<Schema>,
}

impl Hosted {
    /// How a result violates the program's schema, if it does.
    pub fn violations(&self, result: &Value) -> Option<String> {
        self.result_schema.as_ref()?.violations(result)
    }
}

/// An effect that a program asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// Work of the program itself.
    Step {
        name: String,
        arguments: Value,
        critical: bool,
    },
    Tool(ToolCall),
    Chat {
        chat: Box<Chat>,
        /// Whether the program can answer without a model.
        has_policy: bool,
        /// For each message, the ordinal that it comes from, or 0.
        origins: Vec<u32>,
    },
    Ask {
        question: Box<Question>,
        /// Until it expires; `None` for the default.
        expires: Option<Duration>,
    },
    Sleep {
        duration: Duration,
        seconds: Value,
    },
    Note {
        text: String,
        data: Value,
    },
    Probe(Probe),
}

/// A value that only the host may supply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    Now,
    Random,
    Uuid,
}

impl Probe {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::Random => "random",
            Self::Uuid => "uuid",
        }
    }
}

impl Asked {
    /// The kind in the protocol.
    fn kind(&self) -> &'static str {
        match self {
            Self::Step { .. } => "step",
            Self::Tool(_) => "tool",
            Self::Chat { .. } => "chat",
            Self::Ask { .. } => "ask",
            Self::Sleep { .. } => "sleep",
            Self::Note { .. } => "note",
            Self::Probe(probe) => probe.as_str(),
        }
    }

    /// The kind in the journal.
    pub(crate) fn recorded_kind(&self) -> EffectKind {
        match self {
            Self::Chat { .. } => EffectKind::Chat,
            Self::Ask { .. } => EffectKind::Ask,
            Self::Sleep { .. } => EffectKind::Sleep,
            Self::Step { .. } | Self::Tool(_) | Self::Note { .. } | Self::Probe(_) => {
                EffectKind::Tools
            }
        }
    }

    /// Its name, which the journal has as the node.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Step { name, .. } => name.clone(),
            Self::Tool(call) => format!("{}.{}", call.server.as_deref().unwrap_or("-"), call.tool),
            _ => self.kind().to_owned(),
        }
    }

    /// The text that the digest hashes.
    pub fn canonical(&self) -> String {
        let arguments = match self {
            Self::Step { arguments, .. } => arguments.clone(),
            Self::Tool(call) => call.arguments.clone(),
            Self::Chat { chat, .. } => {
                let tools = chat.tools.iter().map(|tool| match &tool.server {
                    Some(server) => format!("{server}.{}", tool.name),
                    None => tool.name.clone(),
                });
                json!({
                    "messages": chat.messages.iter().map(|it| message(&it.content)).collect::<Vec<_>>(),
                    "schema": chat.form.as_ref().map(|form| &form.schema),
                    "tools": tools.collect::<Vec<_>>(),
                })
            }
            Self::Ask { question, .. } => json!({
                "question": question.prompt,
                "server": question.server,
                "tool": question.tool,
                "arguments": question.arguments,
            }),
            Self::Sleep { seconds, .. } => json!({ "seconds": seconds }),
            Self::Note { text, data } => json!({ "text": text, "data": data }),
            Self::Probe(_) => Value::Null,
        };
        canonical(&json!({"kind": self.kind(), "name": self.name(), "arguments": arguments}))
    }

    /// The identity of the effect.
    pub fn digest(&self) -> Hash {
        Hash::of(self.canonical().as_bytes())
    }
}

/// A message as the digest covers it.
fn message(content: &Content) -> Value {
    match content {
        Content::User(text) => json!({"role": "user", "text": text}),
        Content::Assistant { text, calls } => {
            let mut message = json!({"role": "assistant"});
            if let Some(text) = text {
                message["text"] = json!(text);
            }
            if !calls.is_empty() {
                message["calls"] = json!(calls);
            }
            message
        }
        Content::Result { id, tool, content, is_error } => {
            let mut message = json!({"role": "tool", "id": id, "tool": tool, "content": content});
            if *is_error {
                message["is_error"] = json!(true);
            }
            message
        }
    }
}

/// The outcome of an effect, for the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    pub ordinal: u32,
    pub outcome: Given,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    Value(Value),
    /// The tool's error.
    ToolError(String),
    /// The error that the program's own step raised, `Type: message`.
    StepError(String),
    Failure(Failure),
    Reply {
        reply: Reply,
        /// The value that the reply's text has, or why it is not valid, if the chat has a schema.
        json: Option<Result<Value, String>>,
    },
    Answer(Answer),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors are made by another program, in Python.
    #[test]
    fn digests_match_the_vectors_of_the_protocol() {
        let text = include_str!("../../../sdk/protocol-vectors.json");
        let vectors: Vec<Value> = serde_json::from_str(text).unwrap();
        assert!(vectors.len() > 20);
        for vector in vectors {
            let mut frame = vector["effect"].clone();
            frame["type"] = json!("effect");
            frame["ordinal"] = json!(1);
            let said = frame::read(&frame.to_string()).unwrap();
            let frame::Said::Effect { asked, .. } = said else { panic!("{frame}") };
            assert_eq!(asked.canonical(), vector["canonical"].as_str().unwrap(), "{frame}");
            assert_eq!(asked.digest().as_str(), vector["digest"].as_str().unwrap(), "{frame}");
        }
    }
}
