//! Converts a chat to a Converse request.
//!
//! Bedrock is stricter than a graph: turns alternate, no text is blank, a call's input is an object,
//! names and ids have their own alphabet. A model's own earlier messages may break these rules, so this
//! module normalises them.

use aws_sdk_bedrockruntime::error::BuildError;
use aws_sdk_bedrockruntime::operation::converse_stream::builders::ConverseStreamInputBuilder;
use aws_sdk_bedrockruntime::types::{
    AnyToolChoice, AutoToolChoice, ContentBlock, ConversationRole, InferenceConfiguration,
    JsonSchemaDefinition, Message, OutputConfig, OutputFormat, OutputFormatStructure,
    OutputFormatType, SpecificToolChoice, SystemContentBlock, TokenUsage, Tool, ToolChoice,
    ToolConfiguration, ToolInputSchema, ToolResultBlock, ToolResultContentBlock, ToolResultStatus,
    ToolSpecification, ToolUseBlock,
};
use aws_smithy_types::{Document, Number};
use graph::effect::{self, Chat, Content, Form, ToolCall, ToolSpec};
use journal::step::Usage;
use serde_json::{Value, json};

/// Longest tool name and longest call id, in characters.
///
/// Source: Amazon Bedrock, "ToolUseBlock".
const NAME_CHARS_MAX: usize = 64;

/// Placeholder for an empty text.
const SILENCE: &str = "(nothing)";

/// The request without the model's id.
pub(super) fn request(chat: &Chat) -> Result<ConverseStreamInputBuilder, BuildError> {
    let mut request = ConverseStreamInputBuilder::default();
    if !chat.system.trim().is_empty() {
        request = request.system(SystemContentBlock::Text(chat.system.clone()));
    }
    for message in messages(chat)? {
        request = request.messages(message);
    }
    #[expect(clippy::cast_precision_loss, reason = "a temperature has two digits")]
    let temperature = chat.temperature_percent.map(|percent| percent as f32 / 100.0);
    let longest = i32::try_from(chat.max_output_tokens).unwrap_or(i32::MAX);
    let inference = InferenceConfiguration::builder().max_tokens(longest);
    request = request.inference_config(inference.set_temperature(temperature).build());
    if let Some(form) = &chat.form {
        request = request.output_config(output_config(form)?);
    }
    if chat.tools.is_empty() {
        return Ok(request);
    }
    let mut tools = ToolConfiguration::builder();
    for tool in &chat.tools {
        tools = tools.tools(Tool::ToolSpec(specification(tool)?));
    }
    let choice = match &chat.choice {
        effect::ToolChoice::Auto => ToolChoice::Auto(AutoToolChoice::builder().build()),
        effect::ToolChoice::Any => ToolChoice::Any(AnyToolChoice::builder().build()),
        effect::ToolChoice::Only(name) => {
            ToolChoice::Tool(SpecificToolChoice::builder().name(name).build()?)
        }
    };
    Ok(request.tool_config(tools.tool_choice(choice).build()?))
}

/// The schema is sent as a text.
///
/// Source: Amazon Bedrock, "Structured outputs".
fn output_config(form: &Form) -> Result<OutputConfig, BuildError> {
    let schema = JsonSchemaDefinition::builder()
        .schema(form.schema.to_string())
        .name(spelled(&form.name))
        .build()?;
    let format = OutputFormat::builder()
        .r#type(OutputFormatType::JsonSchema)
        .structure(OutputFormatStructure::JsonSchema(schema))
        .build()?;
    Ok(OutputConfig::builder().text_format(format).build())
}

fn specification(tool: &ToolSpec) -> Result<ToolSpecification, BuildError> {
    let builder = ToolSpecification::builder().name(&tool.name);
    let text = Some(tool.description.clone()).filter(|text| !text.trim().is_empty());
    let schema = ToolInputSchema::Json(document(&tool.input_schema));
    builder.set_description(text).input_schema(schema).build()
}

/// Merges adjacent messages of one role into one turn.
fn messages(chat: &Chat) -> Result<Vec<Message>, BuildError> {
    let mut turns: Vec<(ConversationRole, Vec<ContentBlock>)> = Vec::new();
    for message in &chat.messages {
        let (role, blocks) = blocks(&message.content)?;
        match turns.last_mut() {
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    let message = |(role, content): (ConversationRole, Vec<ContentBlock>)| {
        Message::builder().role(role).set_content(Some(content)).build()
    };
    turns.into_iter().map(message).collect()
}

fn blocks(content: &Content) -> Result<(ConversationRole, Vec<ContentBlock>), BuildError> {
    Ok(match content {
        Content::User(text) => (ConversationRole::User, vec![said(text)]),
        Content::Assistant { text, calls } => {
            let text = text.as_deref().filter(|text| !text.trim().is_empty() || calls.is_empty());
            let mut blocks: Vec<ContentBlock> = text.map(said).into_iter().collect();
            for call in calls {
                blocks.push(ContentBlock::ToolUse(tool_use(call)?));
            }
            if blocks.is_empty() {
                blocks.push(said(""));
            }
            (ConversationRole::Assistant, blocks)
        }
        Content::Result { id, tool: _, content, is_error } => {
            let content = match content {
                Value::Object(_) => ToolResultContentBlock::Json(document(content)),
                Value::String(text) if !text.trim().is_empty() => {
                    ToolResultContentBlock::Text(text.clone())
                }
                other => ToolResultContentBlock::Json(document(&json!({ "result": other }))),
            };
            let mut result = ToolResultBlock::builder().tool_use_id(spelled(id)).content(content);
            if *is_error {
                // Not every model supports the status, so it is sent only with errors.
                result = result.status(ToolResultStatus::Error);
            }
            (ConversationRole::User, vec![ContentBlock::ToolResult(result.build()?)])
        }
    })
}

fn tool_use(call: &ToolCall) -> Result<ToolUseBlock, BuildError> {
    let input = match &call.arguments {
        object @ Value::Object(_) => document(object),
        other => document(&json!({ "malformed": other })),
    };
    let id = spelled(call.id.as_deref().unwrap_or_default());
    ToolUseBlock::builder().tool_use_id(id).name(spelled(&call.tool)).input(input).build()
}

fn said(text: &str) -> ContentBlock {
    let text = if text.trim().is_empty() { SILENCE } else { text };
    ContentBlock::Text(text.to_owned())
}

/// Replaces the characters that Bedrock rejects.
fn spelled(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let spelled: String =
        name.chars().take(NAME_CHARS_MAX).map(|c| if fits(c) { c } else { '_' }).collect();
    if spelled.is_empty() { "_".to_owned() } else { spelled }
}

fn document(value: &Value) -> Document {
    match value {
        Value::Null => Document::Null,
        Value::Bool(truth) => Document::Bool(*truth),
        Value::String(text) => Document::String(text.clone()),
        Value::Array(items) => Document::Array(items.iter().map(document).collect()),
        Value::Object(fields) => Document::Object(
            fields.iter().map(|(name, value)| (name.clone(), document(value))).collect(),
        ),
        Value::Number(number) => Document::Number(if let Some(count) = number.as_u64() {
            Number::PosInt(count)
        } else if let Some(count) = number.as_i64() {
            Number::NegInt(count)
        } else {
            Number::Float(number.as_f64().unwrap_or_default())
        }),
    }
}

/// Adds cached tokens to the input tokens: Bedrock counts them separately.
///
/// Source: Amazon Bedrock, "Prompt caching": `inputTokens` excludes tokens read from and written to
/// the cache.
pub(super) fn usage(usage: &TokenUsage) -> Usage {
    let count = |tokens: i32| u32::try_from(tokens).unwrap_or_default();
    let cache_read_tokens = count(usage.cache_read_input_tokens.unwrap_or_default());
    let cache_write_tokens = count(usage.cache_write_input_tokens.unwrap_or_default());
    let cached = cache_read_tokens.saturating_add(cache_write_tokens);
    Usage {
        input_tokens: count(usage.input_tokens).saturating_add(cached),
        output_tokens: count(usage.output_tokens),
        cache_read_tokens,
        cache_write_tokens,
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use graph::effect::{Author, Message, Reply};

    use super::*;

    #[test]
    fn a_model_s_own_messages_are_normalised_for_bedrock() {
        let call = ToolCall {
            id: Some("a.b".to_owned()),
            ..ToolCall::built_in("look around!", json!("{\"x\": "))
        };
        let reply = |text: Option<&str>, calls| Reply {
            text: text.map(str::to_owned),
            calls,
            by: Author::Model("m".to_owned()),
        };
        let result = Content::Result {
            id: "a.b".to_owned(),
            tool: "look around!".to_owned(),
            content: json!(["x"]),
            is_error: true,
        };
        let chat = Chat {
            messages: vec![
                Message::user(1, "What is there?"),
                Message::assistant(2, &reply(Some(" "), vec![call])),
                Message { source: 3, content: result },
                Message::user(3, "Go on."),
                Message::assistant(4, &reply(None, vec![])),
            ],
            ..Chat::default()
        };
        let turns = messages(&chat).unwrap();
        let sizes: Vec<usize> = turns.iter().map(|message| message.content.len()).collect();
        assert_eq!(sizes, [1, 1, 2, 1], "turns alternate");
        let ContentBlock::ToolUse(tool) = &turns[1].content[0] else { panic!("{turns:?}") };
        assert_eq!((tool.name.as_str(), tool.tool_use_id.as_str()), ("look_around_", "a_b"));
        assert_eq!(tool.input, document(&json!({"malformed": "{\"x\": "})));
        let ContentBlock::ToolResult(result) = &turns[2].content[0] else { panic!("{turns:?}") };
        assert_eq!(result.tool_use_id, "a_b");
        assert_eq!(turns[3].content[0], ContentBlock::Text(SILENCE.to_owned()));
    }

    #[test]
    fn cached_tokens_count_as_input_tokens() {
        let said = TokenUsage::builder()
            .input_tokens(10)
            .output_tokens(5)
            .total_tokens(115)
            .cache_read_input_tokens(60)
            .cache_write_input_tokens(40)
            .build()
            .unwrap();
        let expected = Usage {
            input_tokens: 110,
            output_tokens: 5,
            cache_read_tokens: 60,
            cache_write_tokens: 40,
            ..Usage::default()
        };
        assert_eq!(usage(&said), expected);
    }
}
