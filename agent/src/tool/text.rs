//! Texts of the configuration that may hold secrets, and keeping these out of what others read.

use std::fmt;

use serde_json::Value;

/// Shorter secrets are not looked for in messages: they would be found everywhere.
const SECRET_CHARS_MIN: usize = 4;

/// Shorter secrets are not looked for in what a tool brought, where chance finds more.
const SECRET_IN_DATA_CHARS_MIN: usize = 8;

/// What stands where a secret was.
const MASK: &str = "***";

/// A text with its references as they were written, and with them resolved.
#[derive(Clone)]
pub(super) struct Text {
    /// As written: fit for messages.
    pub(super) shown: String,
    /// Resolved: perhaps secret.
    pub(super) value: String,
    /// What the references stand for.
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

/// A message without these secrets.
pub(super) fn redact(text: &str, secrets: &[&str]) -> String {
    masked(text, secrets, SECRET_CHARS_MIN)
}

/// What a tool brought without these secrets, which it may have echoed: it is journaled, and read by
/// models.
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
    // A secret may be a part of another one, whose rest would be left standing.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.into_iter().fold(text.to_owned(), |text, secret| text.replace(secret, MASK))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_goes_and_the_longest_first() {
        let secrets = ["hunter2", "Bearer hunter2", "abc"];
        assert_eq!(redact("Bearer hunter2, abc, hunter2", &secrets), "***, abc, ***");
    }

    #[test]
    fn what_a_tool_echoes_is_masked_at_any_depth() {
        let echoed = json!({"headers": [{"a": "Bearer hunter2-hunter2"}], "hunter2-hunter2": 1});
        let masked = redact_value(echoed, &["hunter2-hunter2", "true"]);
        assert_eq!(masked, json!({"headers": [{"a": "Bearer ***"}], "***": 1}));
        assert_eq!(redact_value(json!(["true"]), &["true"]), json!(["true"]));
    }
}
