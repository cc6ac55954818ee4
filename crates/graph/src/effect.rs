//! Effects: what a node requests.

use journal::clock::Stamp;
use journal::item::Hash;
use journal::step::EffectKind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::outcome::{ToolOutcome, ToolResult};
use crate::question::Question;

/// Number of the step with the trigger's input, which is the first claim. It is the source of
/// messages that depend on the input alone.
pub const INPUT_STEP: u32 = 1;

/// The tool that every server has: it returns `{"tools": [ToolSpec…]}`, the tools of the server.
///
/// The catalogue is an outcome like any other, so that a resumed session keeps the tools that it
/// started with.
pub const CATALOGUE: &str = "tools/list";

/// The field of a catalogue with those of its tools that change the world, according to the server.
/// They become at-most-once, in addition to those set by code and configuration: a server can only
/// add tools to the set, never remove any.
pub const CATALOGUE_AT_MOST_ONCE: &str = "at_most_once";

/// The field of a catalogue with those of its tools that only read: the server's annotations say so, and
/// so does the host's configuration. All other tools may change something.
pub const CATALOGUE_READS: &str = "reads";

/// When a call whose reply was lost is charged, this many bytes of the request count as one token.
/// English prose has four to five bytes per token.
pub const BYTES_PER_TOKEN_MIN: usize = 3;

/// An effect. A node requests exactly one per visit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Chat(Chat),
    /// Tool calls, which may run in parallel.
    Tools(Vec<ToolCall>),
    Ask(Question),
    /// Continue at this time, not before.
    Sleep(Stamp),
    /// A record of the graph's own, such as an audit entry. It is journaled unchanged and has no
    /// outcome.
    Note {
        /// The subject; must differ from the reserved ones in [`crate::next`], [`journal::request`] and
        /// [`journal::version`].
        subject: String,
        payload: Value,
    },
    /// No effect: the node only routes.
    Nothing,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chat {
    pub system: String,
    pub messages: Vec<Message>,
    pub tools: Vec<ToolSpec>,
    /// Whether a tool must be called.
    pub choice: ToolChoice,
    /// Longest reply, in tokens.
    pub max_output_tokens: u32,
    /// Sampling temperature in hundredths; `None` for the model's default.
    pub temperature_percent: Option<u32>,
    /// Timeout of the reply, in seconds; `None` for the driver's default.
    pub timeout_s: Option<u32>,
    /// The required format of the reply's text; `None` for prose. Models with structured output
    /// enforce it; others get it as an instruction. Read the reply with [`Reply::json`] and
    /// validate it in either case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
}

/// The format of a reply: one JSON value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Form {
    /// ASCII letters, digits, `_` and `-`.
    pub name: String,
    pub schema: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// Any or none.
    #[default]
    Auto,
    /// At least one.
    Any,
    /// This one.
    Only(String),
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Number of the step that the message comes from; [`INPUT_STEP`] for the input. The digest of
    /// a chat covers these numbers, not the texts.
    pub source: u32,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// The user, or the agent on the user's behalf.
    User(String),
    Assistant {
        text: Option<String>,
        calls: Vec<ToolCall>,
    },
    /// The result of a tool call. A model adapter merges adjacent results into one turn.
    Result {
        /// The call's id, as the model assigned it.
        id: String,
        tool: String,
        content: Value,
        is_error: bool,
    },
}

impl Message {
    pub fn user(source: u32, text: impl Into<String>) -> Self {
        Self { source, content: Content::User(text.into()) }
    }

    /// The model's reply, from step `source`.
    pub fn assistant(source: u32, reply: &Reply) -> Self {
        let content = Content::Assistant { text: reply.text.clone(), calls: reply.calls.clone() };
        Self { source, content }
    }

    pub fn result(result: &ToolResult) -> Self {
        let (content, is_error) = match &result.outcome {
            ToolOutcome::Ok(value) => (value.clone(), false),
            ToolOutcome::Error(text) => (json!(text), true),
            ToolOutcome::Failed(failure) => (json!(failure.to_string()), true),
        };
        let id = result.call.id.clone().unwrap_or_default();
        let tool = result.call.tool.clone();
        Self { source: result.seq, content: Content::Result { id, tool, content, is_error } }
    }

    /// The result or error of a tool call, if the message contains one.
    pub fn brought(&self) -> Option<Result<&Value, &str>> {
        match &self.content {
            Content::Result { content, is_error: false, .. } => Some(Ok(content)),
            Content::Result { content, .. } => Some(Err(content.as_str().unwrap_or_default())),
            Content::User(_) | Content::Assistant { .. } => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The MCP server that provides it; `None` for a tool that the graph itself handles, such as
    /// one that only structures the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    pub name: String,
    /// Description for the model.
    #[serde(default)]
    pub description: String,
    /// JSON schema of its arguments.
    pub input_schema: Value,
}

/// A tool as its server offers it now.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOffer {
    /// See [`digest::tool`](crate::digest::tool).
    pub schema_hash: Hash,
    /// JSON schema of its arguments.
    pub input_schema: Value,
}

impl ToolSpec {
    /// The tools of a catalogue from [`CATALOGUE`]; empty if it is not one.
    pub fn catalogue(content: &Value) -> Vec<Self> {
        let tools = content.get("tools").and_then(Value::as_array);
        let tools = tools.into_iter().flatten();
        tools.filter_map(|tool| serde_json::from_value(tool.clone()).ok()).collect()
    }

    /// Whether a catalogue lists this tool as one that changes the world, according to its server.
    pub fn changes(&self, content: &Value) -> bool {
        self.is_listed(content, CATALOGUE_AT_MOST_ONCE)
    }

    /// Whether a catalogue lists this tool as one that only reads. A name says nothing about that.
    pub fn reads(&self, content: &Value) -> bool {
        self.is_listed(content, CATALOGUE_READS)
    }

    fn is_listed(&self, content: &Value, field: &str) -> bool {
        let names = content.get(field).and_then(Value::as_array);
        names.into_iter().flatten().any(|name| name.as_str() == Some(&self.name))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that connects a result with its call in a conversation. Calls in a journaled reply
    /// always have one; calls that a node creates need none. Not part of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The MCP server; `None` for a built-in tool. In a journaled reply, the server from which the
    /// chat offered the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    pub tool: String,
    /// Its arguments, an object.
    pub arguments: Value,
}

impl ToolCall {
    pub fn new(server: &str, tool: &str, arguments: Value) -> Self {
        Self { id: None, server: Some(server.to_owned()), tool: tool.to_owned(), arguments }
    }

    /// A call of a tool without a server, such as a policy's call of an offered tool: the server is
    /// filled in from the offer.
    pub fn built_in(tool: &str, arguments: Value) -> Self {
        Self { id: None, server: None, tool: tool.to_owned(), arguments }
    }

    /// A request for a server's tools. See [`CATALOGUE`].
    pub fn catalogue(server: &str) -> Self {
        Self::new(server, CATALOGUE, json!({}))
    }

    /// Whether a set of tool names contains this one, as `tool` or as `server.tool`. A call that
    /// names no server matches the tool of any server: in doubt the stricter rule applies.
    pub fn is_in<T: AsRef<str>>(&self, names: &[T]) -> bool {
        let is_this = |name: &str| match name.strip_suffix(self.tool.as_str()) {
            Some("") => true,
            Some(before) => before
                .strip_suffix('.')
                .is_some_and(|server| self.server.as_ref().is_none_or(|own| own == server)),
            None => false,
        };
        names.iter().any(|name| is_this(name.as_ref()))
    }
}

/// A reply of the model or of the policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    pub by: Author,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    Policy,
    Model(String),
}

impl Reply {
    pub fn says(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), calls: Vec::new(), by: Author::Policy }
    }

    pub fn calls(calls: Vec<ToolCall>) -> Self {
        Self { text: None, calls, by: Author::Policy }
    }

    /// The JSON value in the text, which must be the whole text or its only fenced block. JSON
    /// inside prose is not searched for.
    pub fn json(&self) -> Option<Value> {
        let text = self.text.as_deref()?.trim();
        if let Ok(value) = serde_json::from_str(text) {
            return Some(value);
        }
        let mut parts = text.split("```");
        let (_, block, _) = (parts.next()?, parts.next()?, parts.next()?);
        let block = block.strip_prefix("json").unwrap_or(block);
        if parts.next().is_some() { None } else { serde_json::from_str(block.trim()).ok() }
    }
}

/// Default limit of a reply, in tokens.
pub const OUTPUT_TOKENS: u32 = 1_024;

impl Chat {
    /// A chat with these optional tools, and a reply of at most [`OUTPUT_TOKENS`].
    pub fn new(system: &str, messages: Vec<Message>, tools: Vec<ToolSpec>) -> Self {
        let system = system.to_owned();
        Self { system, messages, tools, max_output_tokens: OUTPUT_TOKENS, ..Self::default() }
    }

    /// Upper estimate of the chat's tokens without asking the model: the longest reply, and one
    /// token per [`BYTES_PER_TOKEN_MIN`] bytes of the request.
    pub fn tokens_max(&self) -> u32 {
        let bytes = serde_json::to_string(self).map_or(0, |text| text.len());
        let request = u32::try_from(bytes.div_ceil(BYTES_PER_TOKEN_MIN)).unwrap_or(u32::MAX);
        request.saturating_add(self.max_output_tokens)
    }
}

impl Effect {
    /// The kind of the journaled outcome; `None` for effects without one.
    pub fn kind(&self) -> Option<EffectKind> {
        match self {
            Self::Chat(_) => Some(EffectKind::Chat),
            Self::Tools(_) => Some(EffectKind::Tools),
            Self::Ask(_) => Some(EffectKind::Ask),
            Self::Sleep(_) => Some(EffectKind::Sleep),
            Self::Note { .. } | Self::Nothing => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_named_with_or_without_its_server() {
        let call = ToolCall::new("pk", "run", json!({}));
        let built_in = ToolCall::built_in("run", json!({}));
        for (name, has, has_built_in) in [
            ("run", true, true),
            ("pk.run", true, true),
            ("other.run", false, true),
            ("rerun", false, false),
            ("pk", false, false),
        ] {
            assert_eq!(
                (call.is_in(&[name]), built_in.is_in(&[name])),
                (has, has_built_in),
                "{name}"
            );
        }
    }

    #[test]
    fn a_reply_is_json_as_a_whole_or_in_its_single_block() {
        let check = |text: &str, expected: Option<Value>| {
            assert_eq!(Reply::says(text).json(), expected, "{text}");
        };
        check(" {\"a\": 1}\n", Some(json!({"a": 1})));
        check("Here it is:\n```json\n{\"a\": 1}\n```\nDone.", Some(json!({"a": 1})));
        check("```\n[1]\n```", Some(json!([1])));
        check("```{\"a\": 1}``` or ```{\"a\": 2}```", None);
        check("{\"a\": 1} I think", None);
        check("```json\n{\"a\":", None);
        assert_eq!(Reply::calls(vec![]).json(), None);
    }

    #[test]
    fn invalid_entries_of_a_catalogue_are_ignored() {
        let content = json!({"tools": [{"name": "run", "input_schema": {}}, {"no": "name"}]});
        let names: Vec<_> =
            ToolSpec::catalogue(&content).into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["run"]);
        assert_eq!(ToolSpec::catalogue(&json!("none")), []);
    }
}
