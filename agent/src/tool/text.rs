//! Texts of the configuration that may contain secrets, and the redaction of these secrets.

use std::fmt;

use serde_json::Value;

/// Shorter secrets are not redacted in messages: they would match everywhere.
const SECRET_CHARS_MIN: usize = 4;

/// Shorter secrets are not redacted in tool results, which are larger and match more by chance.
const SECRET_IN_DATA_CHARS_MIN: usize = 8;

/// Replaces a redacted secret.
const MASK: &str = "***";

/// A text before and after its references are resolved.
#[derive(Clone)]
pub(super) struct Text {
    /// As written: safe in messages.
    pub(super) shown: String,
    /// Resolved: may be secret.
    pub(super) value: String,
    /// The values of the references.
    pub(super) secrets: Vec<String>,
}

impl Text {
    pub(super) fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { shown: text.clone(), value: text, secrets: Vec::new() }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown)
    }
}

/// Redacts these secrets in a message.
pub(super) fn redact(text: &str, secrets: &[&str]) -> String {
    masked(text, secrets, SECRET_CHARS_MIN)
}

/// Redacts these secrets in a tool's result, which may echo them and goes to the journal and to models.
pub(super) fn redact_value(value: Value, secrets: &[&str]) -> Value {
    if secrets.is_empty() {
        return value;
    }
    match value {
        Value::String(text) => Value::String(masked(&text, secrets, SECRET_IN_DATA_CHARS_MIN)),
        Value::Array(values) => {
            values.into_iter().map(|value| redact_value(value, secrets)).collect()
        }
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| {
                (masked(&name, secrets, SECRET_IN_DATA_CHARS_MIN), redact_value(value, secrets))
            })
            .collect(),
        other => other,
    }
}

fn masked(text: &str, secrets: &[&str], chars_min: usize) -> String {
    let mut secrets: Vec<&str> =
        secrets.iter().copied().filter(|secret| secret.chars().count() >= chars_min).collect();
    // Longest first: replacing a secret inside a longer one would leave the rest of the longer one.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.into_iter().fold(text.to_owned(), |text, secret| text.replace(secret, MASK))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_redacted_longest_first() {
        let secrets = ["hunter2", "Bearer hunter2", "abc"];
        assert_eq!(redact("Bearer hunter2, abc, hunter2", &secrets), "***, abc, ***");
    }

    #[test]
    fn secrets_in_a_tool_result_are_redacted_at_any_depth() {
        let echoed = json!({"headers": [{"a": "Bearer hunter2-hunter2"}], "hunter2-hunter2": 1});
        let masked = redact_value(echoed, &["hunter2-hunter2", "true"]);
        assert_eq!(masked, json!({"headers": [{"a": "Bearer ***"}], "***": 1}));
        assert_eq!(redact_value(json!(["true"]), &["true"]), json!(["true"]));
    }
}
