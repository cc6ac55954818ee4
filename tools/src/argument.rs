//! Arguments that are texts, and how one that does not fit is refused: by its name and the accepted
//! form, whatever was sent.

use serde_json::Value;

/// Longest text, in characters. No name, path or unit comes near it.
const TEXT_CHARS_MAX: usize = 128;

/// A text of bounded length that an argument holds.
pub(crate) fn text(name: &str, form: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) if (1..=TEXT_CHARS_MAX).contains(&text.chars().count()) => Ok(text),
        other => Err(wrong(name, form, &other)),
    }
}

/// Why an argument is refused. What was sent is quoted, as far as is needed to recognise it.
pub(crate) fn wrong(name: &str, form: &str, value: &Value) -> String {
    let sent: String = value.to_string().chars().take(TEXT_CHARS_MAX).collect();
    format!("{name} must be {form}, not {sent}")
}
