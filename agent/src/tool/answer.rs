//! Converts a tool's result to a value or an error text. Pure.

use graph::outcome::ToolOutcome;
use journal::limits::PAYLOAD_BYTES_MAX;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};

/// Largest content of a result, in bytes of JSON: the journal's limit, minus room for the envelope. A
/// larger result is an error of the call and does not end the session.
pub const RESULT_BYTES_MAX: usize = PAYLOAD_BYTES_MAX - 64 * 1024;

/// Longest text of an error, in characters. A longer one is cut and ends with an ellipsis.
pub const ERROR_CHARS_MAX: usize = 4_000;

/// The error of a call with an empty result.
pub const EMPTY_RESPONSE: &str = "Tool returned empty response";

/// The content of a result.
#[derive(Debug, PartialEq)]
pub(super) enum Content {
    /// A value, not yet validated against a schema.
    Value(Value),
    /// The tool reported an error, or returned nothing.
    Error(String),
}

/// Reads a result. Prefers the structured content; the text is often its copy.
pub(super) fn content(result: CallToolResult) -> Content {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    let structured = structured_content.filter(|value| !value.is_null());
    let value = structured.or_else(|| unstructured(content));
    match (value, is_error == Some(true)) {
        (None, _) => Content::Error(EMPTY_RESPONSE.to_owned()),
        (Some(value), false) => Content::Value(value),
        (Some(Value::String(text)), true) => Content::Error(cut(&text, ERROR_CHARS_MAX)),
        (Some(value), true) => Content::Error(cut(&value.to_string(), ERROR_CHARS_MAX)),
    }
}

/// The value as an outcome, or an error if it exceeds the journal's limit.
pub(super) fn bounded(what: &str, value: Value) -> ToolOutcome {
    let bytes = value.to_string().len();
    if bytes <= RESULT_BYTES_MAX {
        return ToolOutcome::Ok(value);
    }
    ToolOutcome::Error(format!(
        "{what} is too large: {bytes} bytes; the limit is {RESULT_BYTES_MAX} bytes; ask for less"
    ))
}

/// Truncates a text to so many characters, with an ellipsis.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let kept = text.chars().take(chars_max.saturating_sub(1));
    kept.chain(std::iter::once('…')).collect()
}

fn unstructured(blocks: Vec<ContentBlock>) -> Option<Value> {
    let mut values: Vec<Value> = blocks.into_iter().filter_map(block).collect();
    match values.len() {
        0 | 1 => values.pop(),
        _ => Some(Value::Array(values)),
    }
}

/// A text becomes its JSON value, or a string. Other contents become a summary, since an image in base64
/// helps neither the journal nor a model.
fn block(block: ContentBlock) -> Option<Value> {
    let value = match block {
        ContentBlock::Text(text) if text.text.trim().is_empty() => return None,
        ContentBlock::Text(text) => {
            serde_json::from_str(&text.text).unwrap_or(Value::String(text.text))
        }
        ContentBlock::Image(image) => binary("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => binary("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                json!({"type": "resource", "uri": uri, "text": text})
            }
            ResourceContents::BlobResourceContents { uri, blob, .. } => {
                json!({"type": "resource", "uri": uri, "bytes": decoded_bytes(&blob)})
            }
            _ => json!({"type": "resource"}),
        },
        ContentBlock::ResourceLink(link) => {
            json!({"type": "resource_link", "uri": link.uri, "name": link.name})
        }
        _ => json!({"type": "unknown"}),
    };
    Some(value)
}

fn binary(kind: &str, mime_type: &str, base64: &str) -> Value {
    json!({"type": kind, "mime_type": mime_type, "bytes": decoded_bytes(base64)})
}

/// The decoded length of a base64 text, in bytes.
fn decoded_bytes(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(result: Value) -> Content {
        content(serde_json::from_value(result).unwrap())
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn a_value_is_the_structured_content_or_else_the_text() {
        let check = |result: Value, expected: Value| {
            assert_eq!(read(result), Content::Value(expected));
        };
        check(json!({"content": [text("no")], "structuredContent": {"a": 1}}), json!({"a": 1}));
        check(json!({"content": [text("{\"a\": [1]}")]}), json!({"a": [1]}));
        check(json!({"content": [text("plain")]}), json!("plain"));
        check(json!({"content": [text("{\"a\": "), text("2")]}), json!(["{\"a\": ", 2]));
    }

    #[test]
    fn an_empty_result_is_an_error() {
        for content in [json!([]), json!([text("")]), json!([text(" \n")])] {
            for is_error in [false, true] {
                let result = json!({"content": content, "isError": is_error});
                assert_eq!(read(result), Content::Error(EMPTY_RESPONSE.to_owned()));
            }
        }
    }

    #[test]
    fn an_error_result_is_an_error_whatever_its_content() {
        let result = json!({"content": [text("denied")], "isError": true});
        assert_eq!(read(result), Content::Error("denied".to_owned()));
        let result = json!({"content": [], "structuredContent": {"a": 1}, "isError": true});
        assert_eq!(read(result), Content::Error("{\"a\":1}".to_owned()));
        let result = json!({"content": [text(&"x".repeat(9_000))], "isError": true});
        let Content::Error(error) = read(result) else { panic!("an error") };
        assert_eq!(error.chars().count(), ERROR_CHARS_MAX);
    }

    #[test]
    fn content_other_than_text_becomes_a_summary() {
        let image = json!({"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"});
        let link = json!({"type": "resource_link", "uri": "file:///a", "name": "a"});
        let blob = json!({"type": "resource", "resource": {"uri": "x:y", "blob": "aGVsbG8="}});
        let Content::Value(value) = read(json!({"content": [image, link, blob]})) else {
            panic!("a value");
        };
        assert_eq!(
            value,
            json!([
                {"type": "image", "mime_type": "image/png", "bytes": 5},
                {"type": "resource_link", "uri": "file:///a", "name": "a"},
                {"type": "resource", "uri": "x:y", "bytes": 5},
            ])
        );
    }

    #[test]
    fn a_result_beyond_the_journal_s_limit_is_an_error() {
        let fits = json!("x".repeat(RESULT_BYTES_MAX - 2));
        assert!(matches!(bounded("it", fits), ToolOutcome::Ok(_)));
        let ToolOutcome::Error(error) = bounded("it", json!("x".repeat(RESULT_BYTES_MAX))) else {
            panic!("an error");
        };
        assert!(error.contains(&format!("{} bytes", RESULT_BYTES_MAX + 2)), "{error}");
    }
}
