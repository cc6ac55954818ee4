//! Event patterns: lists of exact values, at any depth.

use serde_json::Value;

/// Which events a rule is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern(Node);

#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// Every field must match.
    Fields(Vec<(String, Node)>),
    /// The value, or one of its elements, is one of these.
    OneOf(Vec<Value>),
}

/// The pattern asks for a match that is not one of exact values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event pattern: {problem} at {path}")]
pub struct UnsupportedPattern {
    /// Where, as field names with dots.
    pub path: String,
    /// What is there.
    pub problem: &'static str,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// When it is no JSON object, or holds a matcher other than exact values.
    pub fn parse(text: &str) -> Result<Self, UnsupportedPattern> {
        let refused = |problem| UnsupportedPattern { path: "$".to_owned(), problem };
        let json: Value = serde_json::from_str(text).map_err(|_| refused("text is not JSON"))?;
        if !json.is_object() {
            return Err(refused("no object"));
        }
        Ok(Self(node(&json, "$")?))
    }

    /// Whether an event matches.
    pub fn matches(&self, event: &Value) -> bool {
        matches(&self.0, Some(event))
    }
}

fn node(json: &Value, path: &str) -> Result<Node, UnsupportedPattern> {
    let refused = |problem| UnsupportedPattern { path: path.to_owned(), problem };
    match json {
        Value::Object(fields) if fields.is_empty() => Err(refused("an empty object")),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| Ok((name.clone(), node(value, &format!("{path}.{name}"))?)))
            .collect::<Result<_, _>>()
            .map(Node::Fields),
        Value::Array(values) if values.is_empty() => Err(refused("an empty list")),
        Value::Array(values) if values.iter().any(|v| v.is_object() || v.is_array()) => {
            Err(refused("a matcher that is not an exact value"))
        }
        Value::Array(values) => Ok(Node::OneOf(values.clone())),
        _ => Err(refused("neither an object nor a list")),
    }
}

fn matches(node: &Node, found: Option<&Value>) -> bool {
    match (node, found) {
        (Node::Fields(fields), Some(Value::Object(object))) => {
            fields.iter().all(|(name, node)| matches(node, object.get(name)))
        }
        (Node::OneOf(values), Some(Value::Array(list))) => {
            list.iter().any(|element| values.contains(element))
        }
        (Node::OneOf(values), Some(value)) => values.contains(value),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn exact_values_match_at_any_depth() {
        let pattern = r#"{"source":["a","b"],"detail":{"tags":["x", 1]}}"#;
        let pattern = Pattern::parse(pattern).unwrap();
        for (event, expected) in [
            (json!({"source": "a", "detail": {"tags": "x"}}), true),
            (json!({"source": "b", "detail": {"tags": ["y", 1]}}), true),
            (json!({"source": "c", "detail": {"tags": "x"}}), false),
            (json!({"source": "a", "detail": {"tags": "1"}}), false),
            (json!({"source": "a", "detail": {}}), false),
            (json!({"source": "a"}), false),
        ] {
            assert_eq!(pattern.matches(&event), expected, "{event}");
        }
    }

    #[test]
    fn a_matcher_that_is_not_known_is_refused_by_its_place() {
        let refusal = Pattern::parse(r#"{"detail":{"a":[{"prefix":"x"}]}}"#).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "event pattern: a matcher that is not an exact value at $.detail.a"
        );
        assert!(Pattern::parse("{}").is_err());
        assert!(Pattern::parse(r#"{"source":"a"}"#).is_err());
    }
}
