//! Input transformers: templates with placeholders for values of the event.

use serde_json::{Map, Value};

use crate::jsonpath::{PathError, Reference, Root};

/// Builds a target's input from an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Transformer {
    paths: Vec<(String, Reference)>,
    template: String,
}

/// Values of the predefined placeholders other than the event's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin<'a> {
    pub rule_arn: &'a str,
    pub rule_name: &'a str,
    /// `<aws.events.event.ingestion-time>`: when the bus took the event, RFC 3339.
    pub ingestion_time: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransformerError {
    #[error(transparent)]
    Path(#[from] PathError),
    /// The path is not relative to the event.
    #[error("path '{0}' must start with '$.'")]
    Root(String),
}

/// The value at a rule's `InputPath`, if any.
pub fn input_at(path: &str, event: &Value) -> Option<Value> {
    let reference = Reference::compile(path).ok().filter(|found| found.root == Root::Input)?;
    reference.path.select(event).ok()
}

impl Transformer {
    /// A template in which `<name>` is replaced by the value at the path of that name (`$.a.b`).
    ///
    /// # Errors
    /// A path is invalid.
    pub fn new(paths: &[(&str, &str)], template: &str) -> Result<Transformer, TransformerError> {
        let compiled = paths.iter().map(|(name, path)| {
            let reference = Reference::compile(path)?;
            match reference.root {
                Root::Input => Ok(((*name).to_owned(), reference)),
                _ => Err(TransformerError::Root((*path).to_owned())),
            }
        });
        Ok(Transformer {
            paths: compiled.collect::<Result<_, _>>()?,
            template: template.to_owned(),
        })
    }

    /// The target's input. `None` if it would be neither JSON nor a string; EventBridge silently
    /// drops such an event.
    ///
    /// Outside quotes a value is inserted as JSON. Inside quotes a string is inserted without its
    /// quotes. A template that is a single string receives lists and objects without quotes. A path
    /// that selects nothing inserts the empty string.
    pub fn apply(&self, event: &Value, origin: Origin<'_>) -> Option<String> {
        let text = self.template.trim_start().starts_with('"');
        let mut input = String::with_capacity(self.template.len());
        let (mut quoted, mut escaped) = (false, false);
        let mut rest = self.template.as_str();
        while let Some(next) = rest.chars().next() {
            if let Some((name, after)) = place(rest)
                && let Some(value) = self.value(name, event, origin)
            {
                input.push_str(&spell(&value, quoted, text));
                rest = after;
                continue;
            }
            if next == '"' && !escaped {
                quoted = !quoted;
            }
            escaped = next == '\\' && !escaped;
            input.push(next);
            rest = &rest[next.len_utf8()..];
        }
        let whole = text || serde_json::from_str::<Value>(&input).is_ok();
        whole.then_some(input)
    }

    /// The value of a placeholder, if it has one.
    fn value(&self, name: &str, event: &Value, origin: Origin<'_>) -> Option<Value> {
        if let Some((_, reference)) = self.paths.iter().find(|(known, _)| known == name) {
            let found = reference.path.select(event);
            return Some(found.unwrap_or_else(|_| Value::String(String::new())));
        }
        Some(match name {
            "aws.events.rule-arn" => origin.rule_arn.into(),
            "aws.events.rule-name" => origin.rule_name.into(),
            "aws.events.event.ingestion-time" => origin.ingestion_time.into(),
            "aws.events.event.json" => event.clone(),
            "aws.events.event" => without_detail(event, origin.ingestion_time),
            _ => return None,
        })
    }
}

/// The event's envelope, the value of `<aws.events.event>`.
fn without_detail(event: &Value, ingestion_time: &str) -> Value {
    let mut envelope = Map::new();
    for (name, value) in event.as_object().into_iter().flatten() {
        match name.as_str() {
            "detail" => continue,
            "detail-type" => envelope.insert("detailType".to_owned(), value.clone()),
            "time" => envelope.insert("time".to_owned(), ingestion_time.into()),
            _ => envelope.insert(name.clone(), value.clone()),
        };
    }
    Value::Object(envelope)
}

fn place(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('<')?.split_once('>')
}

fn spell(value: &Value, quoted: bool, in_text: bool) -> String {
    let text = value.to_string();
    match value {
        Value::String(_) if quoted => text[1..text.len() - 1].to_owned(),
        Value::Array(_) | Value::Object(_) if in_text => text.replace('"', ""),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_json_outside_quotes_and_plain_text_inside() {
        let event =
            json!({"id": "i", "time": "t", "detail": {"text": "a \"b\"", "n": 1, "<x>": 2}});
        let paths = [
            ("id", "$.id"),
            ("detail", "$.detail"),
            ("text", "$.detail.text"),
            ("gone", "$.detail.gone"),
        ];
        let origin = Origin { rule_name: "r", ..Origin::default() };
        for (template, expected) in [
            (
                r#"{"id": <id>, "detail": <detail>}"#,
                Some(r#"{"id": "i", "detail": {"text":"a \"b\"","n":1,"<x>":2}}"#),
            ),
            (r#"{"said": "<id>: <text>"}"#, Some(r#"{"said": "i: a \"b\""}"#)),
            (
                r#"{"gone": <gone>, "rule": "<aws.events.rule-name>"}"#,
                Some(r#"{"gone": "", "rule": "r"}"#),
            ),
            (r#"{"other": <nobody>}"#, None),
            (r#"{"said": "<detail>"}"#, None),
            (r#""x < y""#, Some(r#""x < y""#)),
        ] {
            let transformer = Transformer::new(&paths, template).unwrap();
            assert_eq!(transformer.apply(&event, origin).as_deref(), expected, "{template}");
        }
        assert!(Transformer::new(&[("a", "$$.a")], "<a>").is_err());
        assert!(Transformer::new(&[("a", "a")], "<a>").is_err());
    }
}
