//! What a node asks of the world.

use journal::clock::Stamp;
use journal::step::EffectKind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::outcome::{ToolOutcome, ToolResult};
use crate::question::Question;

/// The number of the step that holds the trigger's input: the first claim. It is the source of
/// messages that the input alone gave rise to.
pub const INPUT_STEP: u32 = 1;

/// The tool that every server has: it answers `{"tools": [ToolSpec…]}`, what the server offers.
///
/// The catalogue is an outcome like any other, so that a resumed session knows the tools that it
/// began with.
pub const CATALOGUE: &str = "tools/list";

/// The field of a catalogue that names those of its tools of which the server itself says that they
/// change the world. They are at-most-once from then on, besides those that are so by code and by
/// configuration: a server can make its tools be handled with more care, never with less.
pub const CATALOGUE_AT_MOST_ONCE: &str = "at_most_once";

/// A request is taken to have at most one token for so many bytes, when a call whose answer was lost
/// is charged. English prose has four to five.
pub const BYTES_PER_TOKEN_MIN: usize = 3;

/// One effect. A node asks for exactly one at each visit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// A model's reply.
    Chat(Chat),
    /// The results of tool calls, which may run in parallel.
    Tools(Vec<ToolCall>),
    /// A person's answer.
    Ask(Question),
    /// To go on at this time, not before.
    Sleep(Stamp),
    /// A record of the graph's own, such as an audit's. It is journaled as it is, and brings nothing.
    Note {
        /// What it is about; not one of the machine's own subjects in [`crate::next`].
        subject: String,
        /// What it says.
        payload: Value,
    },
    /// Nothing: the node only routes.
    Nothing,
}

/// A request to the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chat {
    /// The system prompt.
    pub system: String,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// The tools on offer.
    pub tools: Vec<ToolSpec>,
    /// Whether one of them must be called.
    pub choice: ToolChoice,
    /// The longest reply, in tokens.
    pub max_output_tokens: u32,
    /// The sampling temperature in hundredths; `None` leaves it to the model.
    pub temperature_percent: Option<u32>,
    /// How long the reply may take, in seconds; `None` leaves it to the driver.
    pub timeout_s: Option<u32>,
    /// The form that the reply's text is to have; `None` for prose. A model that can be held to a
    /// form is, any other is told about it; what comes back is read by [`Reply::json`] and has to
    /// be checked either way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
}

/// A form of replies: one JSON value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Form {
    /// What it is called: ASCII letters, digits, `_` and `-`.
    pub name: String,
    /// Its JSON schema.
    pub schema: Value,
}

/// Which tool the model must call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// Any or none.
    #[default]
    Auto,
    /// Any, but one.
    Any,
    /// This one.
    Only(String),
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The number of the step that the message comes from; [`INPUT_STEP`] for the input. The
    /// digest of a chat covers these numbers and not the texts.
    pub source: u32,
    /// Who says what.
    pub content: Content,
}

/// Who says what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// The user, or the agent on the user's behalf.
    User(String),
    /// The model.
    Assistant {
        /// What it said.
        text: Option<String>,
        /// The tools it called.
        calls: Vec<ToolCall>,
    },
    /// What one tool call brought. A model adapter joins neighbouring results into one turn.
    Result {
        /// The call's id, as the model gave it.
        id: String,
        /// The tool.
        tool: String,
        /// What it brought.
        content: Value,
        /// Whether that is an error.
        is_error: bool,
    },
}

impl Message {
    /// A user's message.
    pub fn user(source: u32, text: impl Into<String>) -> Self {
        Self { source, content: Content::User(text.into()) }
    }

    /// The model's reply, which came with step `source`.
    pub fn assistant(source: u32, reply: &Reply) -> Self {
        let content = Content::Assistant { text: reply.text.clone(), calls: reply.calls.clone() };
        Self { source, content }
    }

    /// What a tool call brought.
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

    /// What a tool call brought, or its error, if the message says that.
    pub fn brought(&self) -> Option<Result<&Value, &str>> {
        match &self.content {
            Content::Result { content, is_error: false, .. } => Some(Ok(content)),
            Content::Result { content, .. } => Some(Err(content.as_str().unwrap_or_default())),
            Content::User(_) | Content::Assistant { .. } => None,
        }
    }
}

/// A tool on offer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The MCP server that has it; `None` for one that the graph itself understands, such as a
    /// tool that only gives the reply a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    #[serde(default)]
    pub description: String,
    /// The JSON schema of its arguments.
    pub input_schema: Value,
}

impl ToolSpec {
    /// The tools of a catalogue, as [`CATALOGUE`] brought it; none if it is not one.
    pub fn catalogue(content: &Value) -> Vec<Self> {
        let tools = content.get("tools").and_then(Value::as_array);
        let tools = tools.into_iter().flatten();
        tools.filter_map(|tool| serde_json::from_value(tool.clone()).ok()).collect()
    }
}

/// One tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that ties a result to its call in a conversation. A journaled reply's calls all have
    /// one; calls that a node makes up need none. No part of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The MCP server; `None` for a built-in tool. In a journaled reply it is the one that the
    /// chat offered the tool from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool.
    pub tool: String,
    /// Its arguments, an object.
    pub arguments: Value,
}

impl ToolCall {
    /// A call of a server's tool.
    pub fn new(server: &str, tool: &str, arguments: Value) -> Self {
        Self { id: None, server: Some(server.to_owned()), tool: tool.to_owned(), arguments }
    }

    /// A call of a tool that needs no server, such as a policy's call of a tool that the chat
    /// offers: the server is filled in from the offer.
    pub fn built_in(tool: &str, arguments: Value) -> Self {
        Self { id: None, server: None, tool: tool.to_owned(), arguments }
    }

    /// The question what a server offers. See [`CATALOGUE`].
    pub fn catalogue(server: &str) -> Self {
        Self::new(server, CATALOGUE, json!({}))
    }

    /// Whether a set of tool names has this one, as `tool` or as `server.tool`. A call that names no
    /// server is in the set with any server's: where a gate is in doubt, it is shut.
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

/// A model's reply, or the policy's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// What it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The tools it calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// Whose reply it is.
    pub by: Author,
}

/// Who wrote a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The agent's rules.
    Policy,
    /// The model of this name.
    Model(String),
}

impl Reply {
    /// The policy says something.
    pub fn says(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), calls: Vec::new(), by: Author::Policy }
    }

    /// The policy calls tools.
    pub fn calls(calls: Vec<ToolCall>) -> Self {
        Self { text: None, calls, by: Author::Policy }
    }

    /// The JSON value that the text is, alone or as its only fenced block; `None` if it is neither.
    /// Nothing is guessed out of prose.
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

/// The longest reply when a chat says nothing else, in tokens.
pub const OUTPUT_TOKENS: u32 = 1_024;

impl Chat {
    /// A chat with these tools on offer, of which any or none may be called, and a reply of at most
    /// [`OUTPUT_TOKENS`].
    pub fn new(system: &str, messages: Vec<Message>, tools: Vec<ToolSpec>) -> Self {
        let system = system.to_owned();
        Self { system, messages, tools, max_output_tokens: OUTPUT_TOKENS, ..Self::default() }
    }

    /// What the chat costs at most, in tokens, as far as can be told without the model: the longest
    /// reply, and a token for every [`BYTES_PER_TOKEN_MIN`] bytes of the request.
    pub fn tokens_max(&self) -> u32 {
        let bytes = serde_json::to_string(self).map_or(0, |text| text.len());
        let request = u32::try_from(bytes.div_ceil(BYTES_PER_TOKEN_MIN)).unwrap_or(u32::MAX);
        request.saturating_add(self.max_output_tokens)
    }
}

impl Effect {
    /// The kind under which the effect's outcome is journaled; `None` for those without an outcome.
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
        let nobodys = ToolCall::built_in("run", json!({}));
        for (name, has, has_nobodys) in [
            ("run", true, true),
            ("pk.run", true, true),
            ("other.run", false, true),
            ("rerun", false, false),
            ("pk", false, false),
        ] {
            assert_eq!((call.is_in(&[name]), nobodys.is_in(&[name])), (has, has_nobodys), "{name}");
        }
    }

    #[test]
    fn a_reply_is_json_as_a_whole_or_in_its_only_block() {
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
    fn a_catalogue_is_read_as_far_as_it_is_one() {
        let content = json!({"tools": [{"name": "run", "input_schema": {}}, {"no": "name"}]});
        let names: Vec<_> =
            ToolSpec::catalogue(&content).into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["run"]);
        assert_eq!(ToolSpec::catalogue(&json!("none")), []);
    }
}
