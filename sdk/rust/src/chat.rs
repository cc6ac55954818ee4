//! Chats with a model, and the loop in which it calls tools.

use std::panic::Location;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::context::{Context, Effect, read};
use crate::error::EffectError;
use crate::json::canonical;
use crate::program::Raised;

/// Turns of [`Context::run_tools`] without an answer.
const TURNS_MAX: u32 = 20;

/// A model's reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What the model wants called. A chat calls nothing.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// The value, if the chat has a schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Author>,
}

/// Who replied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    Policy,
    Model(String),
}

/// A tool call of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    pub tool: String,
    #[serde(default)]
    pub arguments: Value,
}

/// A tool that a model may call, as `tools/list` has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub input_schema: Value,
}

/// A message of a chat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    User {
        text: String,
    },
    Assistant {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<Call>,
    },
    Tool {
        #[serde(default)]
        id: String,
        tool: String,
        content: Value,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

type Policy = Box<dyn Fn(&[Message]) -> Reply>;

/// A chat; `.await` sends it.
#[must_use = "a chat is sent by `send` or `.await`"]
pub struct Chat<'a> {
    context: &'a Context,
    at: &'static Location<'static>,
    prompt: Option<String>,
    messages: Vec<Message>,
    fields: Value,
    policy: Option<Policy>,
}

impl Reply {
    /// A reply that only says something.
    pub fn says(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), calls: Vec::new(), json: None, by: None }
    }
}

impl Message {
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { text: text.into() }
    }
}

impl<'a> Chat<'a> {
    pub(crate) fn new(context: &'a Context, prompt: &str, at: &'static Location<'static>) -> Self {
        let fields = json!({"kind": "chat", "tools": [], "schema": null});
        let prompt = Some(prompt.to_owned());
        Self { context, at, prompt, messages: Vec::new(), fields, policy: None }
    }

    /// Data that follows the prompt: a text, or any other value as its canonical JSON.
    pub fn context(mut self, data: &impl Serialize) -> Self {
        let text = match serde_json::to_value(data).unwrap_or_default() {
            Value::String(text) => text,
            other => canonical(&other),
        };
        self.prompt = self.prompt.map(|prompt| format!("{prompt}\n\n{text}"));
        self
    }

    /// Messages before the prompt.
    pub fn messages(mut self, messages: impl IntoIterator<Item = Message>) -> Self {
        self.messages = messages.into_iter().collect();
        self
    }

    /// What the model may call.
    pub fn tools(self, tools: impl IntoIterator<Item = ToolSpec>) -> Self {
        let tools = tools.into_iter().map(|tool| json!(tool)).collect();
        self.with("tools", tools)
    }

    pub fn system(self, text: &str) -> Self {
        self.with("system", json!(text))
    }

    /// `auto`, `any`, or the name of a tool that must be called.
    pub fn choice(self, choice: &str) -> Self {
        self.with("choice", json!(choice))
    }

    /// The JSON schema of the reply.
    pub fn schema(self, schema: Value) -> Self {
        self.with("schema", schema)
    }

    pub fn max_output_tokens(self, tokens: u32) -> Self {
        self.with("max_output_tokens", json!(tokens))
    }

    pub fn temperature_percent(self, percent: u32) -> Self {
        self.with("temperature_percent", json!(percent))
    }

    pub fn timeout_seconds(self, seconds: u32) -> Self {
        self.with("timeout_seconds", json!(seconds))
    }

    /// Answers where no model is named.
    pub fn policy(mut self, policy: impl Fn(&[Message]) -> Reply + 'static) -> Self {
        self.policy = Some(Box::new(policy));
        self
    }

    fn with(mut self, field: &str, value: Value) -> Self {
        self.fields[field] = value;
        self
    }

    /// Sends it.
    pub fn send(self) -> Effect<'a, Reply> {
        let Self { context, at, prompt, mut messages, mut fields, policy } = self;
        messages.extend(prompt.map(Message::user));
        fields["messages"] = json!(messages);
        fields["policy"] = json!(policy.is_some());
        let asked = context.ask_for(fields, policy.is_some(), at);
        Effect::of(async move {
            let ticket = asked?;
            let at = ticket.at();
            let work = async move {
                let Some(policy) = policy else {
                    return Err(Raised::new("NoPolicy", "the chat has no policy"));
                };
                Ok(json!(policy(&messages)))
            };
            read(ticket.outcome_of("the policy of a chat", work).await?, &at)
        })
    }
}

impl<'a> IntoFuture for Chat<'a> {
    type Output = Result<Reply, EffectError>;
    type IntoFuture = Effect<'a, Reply>;

    fn into_future(self) -> Effect<'a, Reply> {
        self.send()
    }
}

/// A loop in which the model calls tools; `.await` starts it.
#[must_use = "the loop is started by `.await`"]
pub struct ToolLoop<'a> {
    context: &'a Context,
    at: &'static Location<'static>,
    prompt: String,
    servers: Vec<String>,
    system: Option<String>,
    turns_max: u32,
}

impl<'a> ToolLoop<'a> {
    pub(crate) fn new(
        context: &'a Context,
        prompt: &str,
        servers: impl IntoIterator<Item = &'a str>,
        at: &'static Location<'static>,
    ) -> Self {
        let servers = servers.into_iter().map(str::to_owned).collect();
        let prompt = prompt.to_owned();
        Self { context, at, prompt, servers, system: None, turns_max: TURNS_MAX }
    }

    pub fn system(mut self, text: &str) -> Self {
        self.system = Some(text.to_owned());
        self
    }

    /// How many turns it may take; 20 by default.
    pub fn turns_max(mut self, turns: u32) -> Self {
        self.turns_max = turns;
        self
    }

    async fn run(self) -> Result<Reply, EffectError> {
        let Self { context, at, prompt, servers, system, turns_max } = self;
        let lists = servers.iter().map(|server| list(context, server, at));
        let lists = context.gather(lists.collect::<Vec<_>>()).await?;
        let tools: Vec<ToolSpec> = lists.into_iter().flat_map(|list| list.tools).collect();
        let mut messages = vec![Message::user(prompt)];
        let mut newest = None;
        for _ in 0..turns_max {
            let mut chat = Chat { prompt: None, ..Chat::new(context, "", at) };
            if let Some(system) = &system {
                chat = chat.system(system);
            }
            let reply = chat.messages(messages.clone()).tools(tools.clone()).await?;
            if reply.calls.is_empty() {
                return Ok(reply);
            }
            messages
                .push(Message::Assistant { text: reply.text.clone(), calls: reply.calls.clone() });
            let answers: Vec<_> =
                reply.calls.iter().map(|call| answer(context, call, &tools, at)).collect();
            messages.extend(context.gather(answers).await?);
            newest = Some(reply);
        }
        let said = newest.and_then(|reply| reply.text).unwrap_or_default();
        let message =
            format!("no answer after {turns_max} turns of tool calls; the newest: {said}");
        Err(EffectError {
            kind: crate::Kind::InvalidReply,
            category: "turns".to_owned(),
            message,
            at: format!("{}:{}", at.file(), at.line()),
        })
    }
}

impl<'a> IntoFuture for ToolLoop<'a> {
    type Output = Result<Reply, EffectError>;
    type IntoFuture = Effect<'a, Reply>;

    fn into_future(self) -> Effect<'a, Reply> {
        Effect::of(self.run())
    }
}

#[derive(Deserialize)]
struct Catalogue {
    tools: Vec<ToolSpec>,
}

fn list<'a>(context: &Context, server: &str, at: &Location<'_>) -> Effect<'a, Catalogue> {
    let fields = json!({"kind": "tool", "server": server, "tool": "tools/list", "arguments": {}});
    context.plain(fields, at)
}

/// The message with the result of a model's call. An error goes back to the model.
fn answer<'a>(
    context: &Context,
    call: &Call,
    tools: &[ToolSpec],
    at: &Location<'_>,
) -> Effect<'a, Message> {
    let (id, tool) = (call.id.clone().unwrap_or_default(), call.tool.clone());
    let is_it = |offer: &&ToolSpec| {
        offer.name == call.tool && (call.server.is_none() || offer.server == call.server)
    };
    let Some(offer) = tools.iter().find(is_it) else {
        let content = json!(format!("there is no tool `{tool}`"));
        return Effect::of(async move { Ok(Message::Tool { id, tool, content, is_error: true }) });
    };
    let fields =
        json!({"kind": "tool", "server": offer.server, "tool": tool, "arguments": call.arguments});
    let called: Effect<'a, Value> = context.plain(fields, at);
    Effect::of(async move {
        let (content, is_error) = match called.await {
            Ok(content) => (content, false),
            Err(error) => (json!(error.message), true),
        };
        Ok(Message::Tool { id, tool, content, is_error })
    })
}
