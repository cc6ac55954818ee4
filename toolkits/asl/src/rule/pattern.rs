//! Event patterns.

use serde_json::Value;

use super::matcher::Matcher;
use super::parse::{self, PatternError};

/// Most comparisons for one event, so that an event with nested lists terminates. Beyond it the
/// event does not match.
pub const MATCH_STEPS_MAX: usize = 1_000_000;

/// An event pattern.
///
/// EventBridge flattens an event: each leaf is named by the path to it, joined with dots, so `{"a":
/// {"b": 1}}` and `{"a.b": 1}` are the same. Conditions on several fields below one list must all
/// hold for the same element.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// Alternatives, each a list of conditions that must all hold.
    pub(super) alternatives: Vec<Vec<Condition>>,
}

/// A condition on one field.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    pub(super) path: String,
    pub(super) any_of: Vec<Matcher>,
}

/// A leaf of an event, and the list elements that contain it.
struct Leaf<'a> {
    path: String,
    value: &'a Value,
    elements: Vec<(usize, usize)>,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The pattern is invalid; the message is AWS's.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        parse::pattern(text)
    }

    /// Whether the event matches.
    pub fn matches(&self, event: &Value) -> bool {
        let mut flat = Flat { leaves: Vec::new(), lists: 0 };
        flat.add(event, String::new(), &mut Vec::new());
        let mut steps = MATCH_STEPS_MAX;
        self.alternatives
            .iter()
            .any(|conditions| hold(conditions, &flat.leaves, &mut Vec::new(), &mut steps))
    }
}

struct Flat<'a> {
    leaves: Vec<Leaf<'a>>,
    lists: usize,
}

impl<'a> Flat<'a> {
    fn add(&mut self, value: &'a Value, path: String, elements: &mut Vec<(usize, usize)>) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    let dot = if path.is_empty() { "" } else { "." };
                    self.add(field, format!("{path}{dot}{name}"), elements);
                }
            }
            Value::Array(items) => {
                let list = self.lists;
                self.lists += 1;
                for (index, item) in items.iter().enumerate() {
                    elements.push((list, index));
                    self.add(item, path.clone(), elements);
                    elements.pop();
                }
            }
            _ => self.leaves.push(Leaf { path, value, elements: elements.clone() }),
        }
    }
}

/// Whether the conditions hold together, given the list elements that earlier conditions selected.
fn hold(
    conditions: &[Condition],
    leaves: &[Leaf<'_>],
    chosen: &mut Vec<(usize, usize)>,
    steps: &mut usize,
) -> bool {
    let Some((condition, rest)) = conditions.split_first() else { return true };
    let absent = condition.any_of.contains(&Matcher::Exists(false));
    if absent && !leaves.iter().any(|leaf| leaf.path == condition.path) {
        return hold(rest, leaves, chosen, steps);
    }
    for leaf in leaves {
        *steps = steps.saturating_sub(1);
        if *steps == 0 {
            return false;
        }
        let fits = leaf.path == condition.path
            && condition.any_of.iter().any(|matcher| matcher.matches(leaf.value))
            && leaf.elements.iter().all(|(list, index)| {
                chosen.iter().all(|(known, element)| known != list || element == index)
            });
        if fits {
            let length = chosen.len();
            chosen.extend(&leaf.elements);
            if hold(rest, leaves, chosen, steps) {
                return true;
            }
            chosen.truncate(length);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(pattern: Value, event: Value, expected: bool) {
        let parsed = Pattern::parse(&pattern.to_string()).unwrap();
        assert_eq!(parsed.matches(&event), expected, "{pattern} {event}");
    }

    #[test]
    fn conditions_on_a_list_must_hold_for_one_element() {
        let pattern = json!({"people": {"name": ["ann"], "age": [7]}});
        check(pattern.clone(), json!({"people": [{"name": "ann", "age": 7}]}), true);
        let two = json!({"people": [{"name": "ann", "age": 8}, {"name": "bob", "age": 7}]});
        check(pattern, two, false);
    }

    /// Invalid patterns, each with its reason.
    const INVALID: &[(&str, &str)] = &[
        (r#"{"a": [{"wildcard": "arn:**:x"}]}"#, "Consecutive wildcard characters at pos 5"),
        (r#"{"a": [{"wildcard": "x\\y"}]}"#, "Invalid escape character at pos 2"),
        (r#"{"a": 1}"#, "\"a\" must be an object or an array"),
        (r#"{"a": [[1]]}"#, "Match value must be String, number, true, false, or null"),
        (r#"{"a": [{}]}"#, "Match expression name not found"),
        (r#"{"a": [{"prefix": "x", "suffix": "y"}]}"#, "Only one key allowed in match expression"),
        (r#"{"a": [{"numeric": 5}]}"#, "Value of numeric must be an array."),
        (r#"{"a": [{"numeric": []}]}"#, "Invalid member in numeric match: ]"),
        (r#"{"a": [{"numeric": [5]}]}"#, "Invalid member in numeric match: 5"),
        (r#"{"a": [{"numeric": ["!", 5]}]}"#, "Unrecognized numeric range operator: !"),
        (r#"{"a": [{"numeric": ["=", "5"]}]}"#, "Value of equals must be numeric"),
        (r#"{"a": [{"numeric": ["<"]}]}"#, "Value of < must be numeric"),
        (r#"{"a": [{"numeric": ["=", 1, "<", 2]}]}"#, "Too many elements in numeric expression"),
        (r#"{"a": [{"numeric": [">", 1, ">", 2]}]}"#, "Bad numeric range operator: >"),
        (r#"{"a": [{"numeric": [">", 1, 2]}]}"#, "Bad value in numeric range: 2"),
        (
            r#"{"a": [{"numeric": [">", 1, "<", 2, 3]}]}"#,
            "Too many terms in numeric range expression",
        ),
        (r#"{"a": [{"numeric": [">", 2, "<", 1]}]}"#, "Bottom must be less than top"),
        (r#"{"a": [{"cidr": "10.0.0.0/"}]}"#, "Malformed CIDR, one '/' required"),
        (r#"{"a": [{"cidr": "10.0.0.0/32"}]}"#, "IPv4 mask bits must be < 32"),
        (r#"{"a": [{"cidr": "::1/128"}]}"#, "IPv6 mask bits must be < 128"),
        (r#"{"a": [{"cidr": "10.0.0.0/-1"}]}"#, "Malformed CIDR, mask bits must not be negative"),
        (r#"{"a": [{"cidr": "10.0.0.300/8"}]}"#, "Invalid IP address: 10.0.0.300"),
        (r#"{"a": [{"exists": "x"}]}"#, "exists match pattern must be either true or false."),
        (r#"{"a": [{"anything-but": {"x": 1}}]}"#, "Unsupported anything-but pattern: x"),
        (
            r#"{"a": [{"anything-but": [1, "x"]}]}"#,
            "Inside anything but list, either all values are number or string, mixed type is not supported",
        ),
        (r#"{"$or": [{"a": [1]}]}"#, "There must have at least 2 Objects in $or relationship."),
        (r#"{"$or": [1, 2]}"#, "Only JSON object is allowed in array of $or relationship."),
        (
            r#"{"$or": [{"prefix": [1]}, {"b": [1]}]}"#,
            "prefix is Ruler reserved fieldName which cannot be used inside $or.",
        ),
        (
            r#"{"a": closed"#,
            "Unrecognized token 'closed': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')",
        ),
        (
            r#"{"a": [1] "b"}"#,
            "Unexpected character ('\"' (code 34)): was expecting comma to separate Object entries",
        ),
    ];

    #[test]
    fn an_invalid_pattern_has_the_reason_of_event_ruler() {
        for (pattern, reason) in INVALID {
            let refused = Pattern::parse(pattern).unwrap_err();
            assert_eq!(refused.reason, *reason, "{pattern}");
        }
    }

    #[test]
    fn an_address_matches_its_other_spellings() {
        let pattern = json!({"ip": ["2001:db8::1"]});
        check(pattern.clone(), json!({"ip": "2001:0DB8:0:0::1"}), true);
        check(pattern, json!({"ip": "2001:db8::2"}), false);
    }

    #[test]
    fn or_combines_with_other_conditions_and_nests() {
        let pattern =
            json!({"s": ["x"], "$or": [{"a": [1]}, {"b": {"$or": [{"c": [2]}, {"d": [3]}]}}]});
        check(pattern.clone(), json!({"s": "x", "a": 1}), true);
        check(pattern.clone(), json!({"s": "x", "b": {"d": 3}}), true);
        check(pattern.clone(), json!({"s": "y", "a": 1}), false);
        check(pattern, json!({"s": "x", "b": {"d": 2}}), false);
    }

    #[test]
    fn matching_an_event_with_nested_lists_terminates() {
        let names: Vec<String> = (0..12).map(|name| format!("f{name}")).collect();
        let event: Value = names.iter().map(|name| (name.clone(), json!(vec![1; 100]))).collect();
        let mut pattern: Value = names.iter().map(|name| (name.clone(), json!([1]))).collect();
        pattern["z"] = json!([1]);
        check(pattern, event, false);
    }
}
