//! String arguments of bounded length. A refusal names the argument and the accepted form.

use serde_json::Value;

/// Longest string, in characters; far longer than any name, path or unit.
const TEXT_CHARS_MAX: usize = 128;

/// A string argument of bounded length.
pub fn text(name: &str, form: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) if (1..=TEXT_CHARS_MAX).contains(&text.chars().count()) => Ok(text),
        other => Err(wrong(name, form, &other)),
    }
}

/// Words the refusal of an argument, with a quote of the value's beginning.
pub fn wrong(name: &str, form: &str, value: &Value) -> String {
    let sent: String = value.to_string().chars().take(TEXT_CHARS_MAX).collect();
    format!("{name} must be {form}, not {sent}")
}
