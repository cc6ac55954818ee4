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
