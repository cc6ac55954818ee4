//! Short forms of values, calls, durations and numbers.

use std::time::Duration;

use graph::effect::{Author, Reply, ToolCall};
use serde_json::Value;

use super::text::clean;

/// Characters that are shown of a text inside a larger value.
const TEXT_CHARS: usize = 40;

/// Characters that are shown of a model's name.
const AUTHOR_CHARS: usize = 24;

/// Fields that are shown of an object.
const FIELDS: usize = 4;

/// A value in a few words: counts of large parts, small values as they are.
pub fn value(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => short(text),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => counted(items.len(), "items"),
        Value::Object(fields) if fields.is_empty() => "nothing".to_owned(),
        Value::Object(fields) => {
            let mut shown: Vec<_> =
                fields.iter().filter(|(_, value)| !value.is_null()).map(field).collect();
            // Counts first: they say more than, say, the name of the log group.
            shown.sort_by_key(|(counted, _)| !counted);
            let texts: Vec<_> = shown.into_iter().take(FIELDS).map(|(_, text)| text).collect();
            texts.join(", ")
        }
        other => other.to_string(),
    }
}

/// A field, and whether it is shown as a count.
fn field((name, value): (&String, &Value)) -> (bool, String) {
    let name = clean(name);
    match value {
        Value::Array(items) => (true, counted(items.len(), &name)),
        Value::Object(fields) => (true, counted(fields.len(), &name)),
        Value::String(text) => (false, format!("{name} {}", short(text))),
        other => (false, format!("{name} {other}")),
    }
}

fn counted(count: usize, name: &str) -> String {
    let name = name.replace('_', " ");
    match (count, name.strip_suffix("ies"), name.strip_suffix('s')) {
        (0, ..) => format!("no {name}"),
        (1, Some(stem), _) => format!("1 {stem}y"),
        (1, None, Some(stem)) => format!("1 {stem}"),
        _ => format!("{count} {name}"),
    }
}

fn short(text: &str) -> String {
    super::text::clip(text, TEXT_CHARS)
}

/// A call, as `tool argument` or `tool name=argument …`.
pub fn call(call: &ToolCall) -> String {
    let tool = clean(&call.tool);
    let arguments = match &call.arguments {
        Value::Object(fields) => match fields.values().collect::<Vec<_>>()[..] {
            [Value::String(only)] => short(only),
            _ => {
                let each = fields.iter().map(|(name, argument)| {
                    let argument = match argument {
                        Value::String(text) => short(text),
                        Value::Array(_) | Value::Object(_) => value(argument),
                        other => other.to_string(),
                    };
                    format!("{}={argument}", clean(name))
                });
                each.take(FIELDS).collect::<Vec<_>>().join(" ")
            }
        },
        other => short(&other.to_string()),
    };
    format!("{tool} {arguments}").trim_end().to_owned()
}

/// A reply with its author: the calls, or else the text.
pub fn reply(reply: &Reply) -> String {
    let author = match &reply.by {
        Author::Policy => "policy".to_owned(),
        Author::Model(model) => super::text::clip(model, AUTHOR_CHARS),
    };
    let says = if reply.calls.is_empty() {
        reply.text.as_deref().map_or("nothing".to_owned(), clean)
    } else {
        let calls: Vec<_> = reply.calls.iter().map(call).collect();
        calls.join(", ")
    };
    format!("{author}: {says}")
}

/// A duration: `12 ms`, `1.234 s`, `2 min 03 s`, `1 h 02 min`.
pub fn duration(duration: Duration) -> String {
    let (ms, s) = (duration.as_millis(), duration.as_secs());
    match s {
        0 => format!("{ms} ms"),
        1..60 => format!("{s}.{:03} s", ms % 1_000),
        60..3_600 => format!("{} min {:02} s", s / 60, s % 60),
        _ => format!("{} h {:02} min", s / 3_600, s / 60 % 60),
    }
}

/// The time since a session began: `+0.123s`, `+2m03.1s`, `+1h02m03s`, `+3d04h`.
pub fn offset(offset: Duration) -> String {
    let (ms, s) = (offset.as_millis(), offset.as_secs());
    match s {
        0..60 => format!("+{s}.{:03}s", ms % 1_000),
        60..3_600 => format!("+{}m{:02}.{}s", s / 60, s % 60, ms % 1_000 / 100),
        3_600..86_400 => format!("+{}h{:02}m{:02}s", s / 3_600, s / 60 % 60, s % 60),
        _ => format!("+{}d{:02}h", s / 86_400, s / 3_600 % 24),
    }
}

/// A number with thousands separators.
pub fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_summarised_by_counts_and_small_fields() {
        for (json, expected) in [
            (
                json!({"log_group": "/aws/lambda/f", "events": [1, 2, 3]}),
                "3 events, log_group /aws/lambda/f",
            ),
            (
                json!({"inline_policies": {"a": {}}, "attached_policies": []}),
                "1 inline policy, no attached policies",
            ),
            (json!({"a": null, "ok": true, "ms": 3}), "ok true, ms 3"),
            (json!([]), "none"),
            (json!("x".repeat(50)), &format!("{}…", "x".repeat(39))),
            (json!(null), "nothing"),
        ] {
            assert_eq!(value(&json), expected);
        }
    }

    #[test]
    fn a_call_with_one_text_shows_just_that() {
        assert_eq!(call(&ToolCall::built_in("f", json!({"lambda_name": "x"}))), "f x");
        assert_eq!(
            call(&ToolCall::built_in("f", json!({"a": 1, "b": "y", "c": [1]}))),
            "f a=1 b=y c=1 item"
        );
        assert_eq!(call(&ToolCall::built_in("f", json!({}))), "f");
        assert_eq!(call(&ToolCall::built_in("f\u{1b}", json!("x"))), "f\\u{1b} \"x\"");
    }

    #[test]
    fn times_are_as_exact_as_they_are_short() {
        for (ms, span, since) in [
            (0, "0 ms", "+0.000s"),
            (1_234, "1.234 s", "+1.234s"),
            (123_456, "2 min 03 s", "+2m03.4s"),
            (3_723_000, "1 h 02 min", "+1h02m03s"),
            (273_600_000, "76 h 00 min", "+3d04h"),
        ] {
            assert_eq!(duration(Duration::from_millis(ms)), span);
            assert_eq!(offset(Duration::from_millis(ms)), since);
        }
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
    }
}
