//! Texts of the configuration that may contain secrets, and the redaction of these secrets.

use std::fmt;

use serde_json::Value;

/// Shorter secrets are redacted only as whole words: inside other words they would match by chance.
const SECRET_INSIDE_WORDS_CHARS_MIN: usize = 8;

/// Shorter values are not redacted: anybody can guess them, and they are words of any text.
const SECRET_CHARS_MIN: usize = 3;

/// Values of switches, which are no secrets either.
const SWITCHES: [&str; 3] = ["true", "false", "null"];

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
    masked(text, &sorted(secrets))
}

/// Redacts these secrets in a tool's result, which may echo them and goes to the journal and to models.
pub(super) fn redact_value(value: Value, secrets: &[&str]) -> Value {
    let secrets = sorted(secrets);
    if secrets.is_empty() { value } else { masked_value(value, &secrets) }
}

fn masked_value(value: Value, secrets: &[&str]) -> Value {
    match value {
        Value::String(text) => Value::String(masked(&text, secrets)),
        Value::Number(number) if secrets.contains(&number.to_string().as_str()) => MASK.into(),
        Value::Array(values) => {
            values.into_iter().map(|value| masked_value(value, secrets)).collect()
        }
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| (masked(&name, secrets), masked_value(value, secrets)))
            .collect(),
        other => other,
    }
}

/// The secrets to redact. Longest first: replacing a secret inside a longer one would leave the rest of
/// the longer one.
fn sorted<'a>(secrets: &[&'a str]) -> Vec<&'a str> {
    let is_secret =
        |secret: &&str| secret.chars().count() >= SECRET_CHARS_MIN && !SWITCHES.contains(secret);
    let mut secrets: Vec<&str> = secrets.iter().copied().filter(is_secret).collect();
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets
}

fn masked(text: &str, secrets: &[&str]) -> String {
    secrets.iter().fold(text.to_owned(), |text, secret| {
        if secret.chars().count() >= SECRET_INSIDE_WORDS_CHARS_MIN {
            text.replace(secret, MASK)
        } else {
            replace_words(&text, secret)
        }
    })
}

/// Replaces a secret where no letter or digit precedes or follows it.
fn replace_words(text: &str, secret: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut kept = 0;
    for (at, _) in text.match_indices(secret) {
        let end = at + secret.len();
        let before = text[..at].chars().next_back();
        let after = text[end..].chars().next();
        if ![before, after].into_iter().flatten().any(char::is_alphanumeric) {
            replaced.push_str(&text[kept..at]);
            replaced.push_str(MASK);
            kept = end;
        }
    }
    replaced.push_str(&text[kept..]);
    replaced
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_redacted_longest_first() {
        let secrets = ["hunter2", "Bearer hunter2", "ab"];
        assert_eq!(redact("Bearer hunter2, ab, hunter2", &secrets), "***, ab, ***");
    }

    #[test]
    fn a_short_secret_is_redacted_as_a_whole_word() {
        for (text, expected) in [
            ("s3c", "***"),
            ("key=s3c&b, \"s3c\" s3c.", "key=***&b, \"***\" ***."),
            ("s3cond s3c4 as3c \u{e4}s3c", "s3cond s3c4 as3c \u{e4}s3c"),
            ("s3cs3c s3c", "s3cs3c ***"),
            ("_s3c_", "_***_"),
        ] {
            assert_eq!(redact(text, &["s3c"]), expected, "{text}");
        }
        assert_eq!(redact("xlong-secrety", &["long-secret"]), "x***y");
        let pin = json!({"pin": 4711, "4711": [47, 47110, "4711"]});
        let masked = json!({"pin": "***", "***": [47, 47110, "***"]});
        assert_eq!(redact_value(pin, &["4711"]), masked);
    }

    #[test]
    fn secrets_in_a_tool_result_are_redacted_at_any_depth() {
        let echoed = json!({"headers": [{"a": "Bearer hunter2-hunter2"}], "hunter2-hunter2": 1});
        let masked = redact_value(echoed, &["hunter2-hunter2", "true"]);
        assert_eq!(masked, json!({"headers": [{"a": "Bearer ***"}], "***": 1}));
        assert_eq!(redact_value(json!(["true"]), &["true"]), json!(["true"]));
    }
}
