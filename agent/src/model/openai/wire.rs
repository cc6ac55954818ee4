//! JSON of the chat completions API, in both directions.
//!
//! Source: OpenAI, "Create chat completion", and Ollama, "OpenAI compatibility".

use graph::effect::{Chat, Content, ToolCall, ToolChoice};
use journal::step::Usage;
use serde::Deserialize;
use serde_json::{Value, json};

/// The request for a streamed reply. OpenAI's own server calls the output limit
/// `max_completion_tokens`, compatible servers `max_tokens`.
pub(super) fn request(model: &str, chat: &Chat, is_openai: bool) -> Value {
    let system = Some(&chat.system).filter(|text| !text.trim().is_empty());
    let system = system.map(|text| json!({"role": "system", "content": text}));
    let messages = chat.messages.iter().map(|message| one(&message.content));
    let mut body = json!({
        "model": model,
        "messages": system.into_iter().chain(messages).collect::<Vec<_>>(),
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    let longest = if is_openai { "max_completion_tokens" } else { "max_tokens" };
    body[longest] = json!(chat.max_output_tokens);
    if let Some(percent) = chat.temperature_percent {
        body["temperature"] = json!(f64::from(percent) / 100.0);
    }
    if !chat.tools.is_empty() {
        let tool = |tool: &graph::effect::ToolSpec| {
            let (name, text, schema) = (&tool.name, &tool.description, &tool.input_schema);
            let function = json!({"name": name, "description": text, "parameters": schema});
            json!({"type": "function", "function": function})
        };
        body["tools"] = chat.tools.iter().map(tool).collect();
        body["tool_choice"] = match &chat.choice {
            ToolChoice::Auto => json!("auto"),
            ToolChoice::Any => json!("required"),
            ToolChoice::Only(name) => json!({"type": "function", "function": {"name": name}}),
        };
    }
    if let Some(form) = &chat.form {
        let schema = json!({"name": form.name, "schema": form.schema, "strict": true});
        body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
    }
    body
}

fn one(content: &Content) -> Value {
    match content {
        Content::User(text) => json!({"role": "user", "content": text}),
        Content::Assistant { text, calls } => {
            let mut said = json!({"role": "assistant", "content": text});
            if !calls.is_empty() {
                said["tool_calls"] = calls.iter().map(call).collect();
            } else if text.is_none() {
                said["content"] = json!("");
            }
            said
        }
        Content::Result { id, tool: _, content, is_error: _ } => {
            json!({"role": "tool", "tool_call_id": id, "content": text_of(content)})
        }
    }
}

fn call(call: &ToolCall) -> Value {
    let function = json!({"name": call.tool, "arguments": text_of(&call.arguments)});
    json!({"id": call.id, "type": "function", "function": function})
}

/// A string unchanged, any other value as JSON.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// One event of the stream, or the whole body.
#[derive(Debug, Deserialize)]
pub(super) struct Piece {
    #[serde(default)]
    pub(super) choices: Vec<Choice>,
    #[serde(default)]
    pub(super) usage: Option<Used>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    pub(super) index: u32,
    #[serde(default)]
    pub(super) delta: Option<Delta>,
    #[serde(default)]
    pub(super) message: Option<Delta>,
    #[serde(default)]
    pub(super) finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delta {
    #[serde(default)]
    pub(super) content: Option<String>,
    #[serde(default)]
    pub(super) tool_calls: Option<Vec<CallPiece>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CallPiece {
    #[serde(default)]
    pub(super) index: Option<i64>,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) function: Option<Function>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Function {
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) arguments: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Used {
    #[serde(default)]
    prompt_tokens: u32,
    #[serde(default)]
    completion_tokens: u32,
    #[serde(default)]
    prompt_tokens_details: Option<Details>,
}

#[derive(Debug, Deserialize)]
struct Details {
    #[serde(default)]
    cached_tokens: Option<u32>,
}

impl From<Used> for Usage {
    fn from(used: Used) -> Self {
        let cached = used.prompt_tokens_details.and_then(|details| details.cached_tokens);
        Self {
            input_tokens: used.prompt_tokens,
            output_tokens: used.completion_tokens,
            cache_read_tokens: cached.unwrap_or_default().min(used.prompt_tokens),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use graph::effect::{Author, Form, Message, Reply};

    use super::*;

    #[test]
    fn a_chat_becomes_a_chat_completions_request() {
        let call =
            ToolCall { id: Some("c1".to_owned()), ..ToolCall::new("s", "look", json!({"at": 1})) };
        let reply = Reply { text: None, calls: vec![call], by: Author::Model("m".to_owned()) };
        let result = Content::Result {
            id: "c1".to_owned(),
            tool: "look".to_owned(),
            content: json!({"seen": true}),
            is_error: false,
        };
        let chat = Chat {
            system: "Be brief.".to_owned(),
            messages: vec![
                Message::user(1, "What is there?"),
                Message::assistant(2, &reply),
                Message { source: 3, content: result },
            ],
            tools: vec![graph::effect::ToolSpec {
                server: None,
                name: "look".to_owned(),
                description: "Looks.".to_owned(),
                input_schema: json!({"type": "object"}),
            }],
            choice: ToolChoice::Any,
            max_output_tokens: 7,
            temperature_percent: Some(20),
            timeout_s: None,
            form: Some(Form { name: "place".to_owned(), schema: json!({"type": "object"}) }),
        };
        let expected = json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "What is there?"},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
                    "function": {"name": "look", "arguments": "{\"at\":1}"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "{\"seen\":true}"},
            ],
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_tokens": 7,
            "temperature": 0.2,
            "tools": [{"type": "function", "function":
                {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}}],
            "tool_choice": "required",
            "response_format": {"type": "json_schema", "json_schema":
                {"name": "place", "schema": {"type": "object"}, "strict": true}},
        });
        assert_eq!(request("m", &chat, false), expected);
        assert_eq!(request("m", &chat, true)["max_completion_tokens"], 7);
    }

    #[test]
    fn cached_tokens_count_as_input_tokens() {
        let used: Used = serde_json::from_value(json!({
            "prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105,
            "prompt_tokens_details": {"cached_tokens": 60},
        }))
        .unwrap();
        let expected = Usage {
            input_tokens: 100,
            output_tokens: 5,
            cache_read_tokens: 60,
            ..Usage::default()
        };
        assert_eq!(Usage::from(used), expected);
    }
}
