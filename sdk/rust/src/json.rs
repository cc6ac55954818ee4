//! The canonical text of JSON (`docs/protocol.md`, "Digests").

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// Writes a value without whitespace, keys in the order of their bytes, numbers in their shortest form.
pub(crate) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => write_number(number, text),
        Value::String(string) => write_string(string, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| key.as_bytes());
            text.push('{');
            for (index, (key, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_string(key, text);
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
    }
}

fn write_number(number: &Number, text: &mut String) {
    let _ = match number.as_f64().filter(|_| number.is_f64()) {
        // `-0.0` is `0`.
        Some(0.0) => write!(text, "0"),
        // Without an exponent, as many digits as read back as the same number.
        Some(fraction) => write!(text, "{fraction}"),
        None => write!(text, "{number}"),
    };
}

fn write_string(string: &str, text: &mut String) {
    text.push('"');
    for char in string.chars() {
        match char {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            control if control < ' ' => {
                let _ = write!(text, "\\u{:04x}", u32::from(control));
            }
            other => text.push(other),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::identity;

    /// The vectors are made by another program, in Python.
    #[test]
    fn effects_have_the_canonical_texts_of_the_protocol() {
        let text = include_str!("../../protocol-vectors.json");
        let vectors: Vec<Value> = serde_json::from_str(text).unwrap();
        assert!(vectors.len() > 20);
        for vector in vectors {
            let expected = vector["canonical"].as_str().unwrap();
            assert_eq!(identity(&vector["effect"]), expected, "{vector}");
        }
    }
}
