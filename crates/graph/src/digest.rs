//! The identity of an effect: a SHA-256 of canonical JSON.
//!
//! The digest covers the node, the kind, the tools and their arguments, and for a chat the numbers
//! of the steps that its messages come from. It does not cover prompts, models or times: these may
//! change while a session runs.

use journal::item::Hash;
use serde_json::{Number, Value, json};

use crate::effect::{Effect, ToolCall};

/// The digest of a node's effect.
pub fn effect(node: &str, effect: &Effect) -> Hash {
    let kind = effect.kind().map_or("nothing", |kind| kind.as_str());
    let of = match effect {
        Effect::Chat(chat) => {
            json!({"messages": chat.messages.iter().map(|message| message.source).collect::<Vec<_>>()})
        }
        Effect::Tools(calls) => json!({"calls": calls.iter().map(identity).collect::<Vec<_>>()}),
        Effect::Ask(question) => match question.call() {
            Some(call) => json!({"calls": [identity(&call)]}),
            None => json!({}),
        },
        Effect::Sleep(_) | Effect::Note { .. } | Effect::Nothing => json!({}),
    };
    hash(&json!({"node": node, "kind": kind, "of": of}))
}

/// The digest of one call, independent of the node; an approval refers to it.
pub fn call(call: &ToolCall) -> Hash {
    hash(&identity(call))
}

/// The digest of a question: of its id, and of everything that a person is shown, `question` in the payload of its step.
/// Two questions about the same call have different digests, so that an answer sent twice answers one.
pub fn question(question_id: u32, shown: &Value) -> Hash {
    hash(&json!({ "question": shown, "question_id": question_id }))
}

/// The digests that a recorded answer to a question may have: earlier versions had one without the id.
pub fn recorded_question(question_id: u32, shown: &Value) -> [Hash; 2] {
    [question(question_id, shown), hash(shown)]
}

/// The digest of a tool as its server lists it: name, title, description, schemas and annotations.
pub fn tool(listed: &Value) -> Hash {
    hash(listed)
}

fn identity(call: &ToolCall) -> Value {
    json!({"server": call.server, "tool": call.tool, "arguments": call.arguments})
}

fn hash(value: &Value) -> Hash {
    Hash::of(canonical(value).as_bytes())
}

/// The canonical text of a JSON value: no whitespace, object keys in byte order, strings as
/// `serde_json` escapes them, integers in decimal, and fractions as the shortest decimal text that
/// parses to the same number, without exponent. `1.0` is `1`.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => text.push_str(&decimal(number)),
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

fn write_string(string: &str, text: &mut String) {
    text.push_str(&Value::from(string).to_string());
}

/// Tools take fractions, such as a dose of 2.5, so they cannot be rejected. Only this text is
/// compared and hashed, never a float.
fn decimal(number: &Number) -> String {
    match number.as_f64() {
        // Adding zero turns minus zero into zero.
        Some(fraction) if number.is_f64() => (fraction + 0.0).to_string(),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::{Chat, Message};

    #[test]
    fn canonical_json_sorts_keys_and_has_no_whitespace() {
        let value: Value = serde_json::from_str(
            r#"{ "b": [1, -2, 18446744073709551615, true, null], "ä": "\u00e9\n\"", "a": {"z": {}, "B": []} }"#,
        )
        .unwrap();
        insta::assert_snapshot!(canonical(&value), @r#"{"a":{"B":[],"z":{}},"b":[1,-2,18446744073709551615,true,null],"ä":"é\n\""}"#);
    }

    #[test]
    fn a_fraction_keeps_its_text_in_a_round_trip() {
        let value = json!([2.5, 1.0, -0.0, 1e21, 1.5e-7, 0.1 + 0.2]);
        let text = "[2.5,1,0,1000000000000000000000,0.00000015,0.30000000000000004]";
        assert_eq!(canonical(&value), text);
        let read: Value = serde_json::from_str(&value.to_string()).unwrap();
        assert_eq!(canonical(&read), text);
    }

    /// `printf '{"kind":"tools","node":"node","of":{"calls":[{"arguments":{"a":1,"b":2},"server":"s",`
    /// `"tool":"look"}]}}' | sha256sum`
    #[test]
    fn a_digest_covers_only_calls_and_sources() {
        let look = |arguments| ToolCall::new("s", "look", arguments);
        let tools = |arguments| effect("node", &Effect::Tools(vec![look(arguments)]));
        assert_eq!(
            tools(json!({"a": 1, "b": 2})).as_str(),
            "72bd4d8832e3232b7135759a891cb047b5572579da419ef655f3d6ebe6f11816"
        );
        assert_eq!(tools(json!({"a": 1, "b": 2})), tools(json!({"b": 2, "a": 1})));
        assert_ne!(tools(json!({"a": 1})), tools(json!({"a": 2})));
        let chat = |system: &str, source| {
            let messages = vec![Message::user(source, system)];
            let system = system.to_owned();
            effect("node", &Effect::Chat(Chat { system, messages, ..Chat::default() }))
        };
        assert_eq!(chat("one prompt", 1), chat("another", 1));
        assert_ne!(chat("one prompt", 1), chat("one prompt", 2));
        let with_id = ToolCall { id: Some("x".to_owned()), ..look(json!({})) };
        assert_eq!(call(&with_id), call(&look(json!({}))));
    }
}
