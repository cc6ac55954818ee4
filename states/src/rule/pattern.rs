//! Patterns: which events a rule is for.

use serde_json::Value;

use super::matcher::Matcher;
use super::parse::{self, PatternError};

/// Most comparisons for one event, so that an event with lists in lists ends. One that takes more
/// does not match.
pub const MATCH_STEPS_MAX: usize = 1_000_000;

/// Which events a rule is for.
///
/// An event is seen as EventBridge sees it: flat, each leaf with the names that lead to it joined by
/// dots, so that `{"a": {"b": 1}}` and `{"a.b": 1}` are the same. What is asked of several fields
/// below one list must be so of one of its elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// One of these must hold, in each of them everything.
    pub(super) alternatives: Vec<Vec<Condition>>,
}

/// What is asked of one field.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    pub(super) path: String,
    pub(super) any_of: Vec<Matcher>,
}

/// A leaf of an event, and in which elements of which lists it stands.
struct Leaf<'a> {
    path: String,
    value: &'a Value,
    elements: Vec<(usize, usize)>,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// Says what is wrong, in AWS's words; the text must be changed.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        parse::pattern(text)
    }

    /// Whether an event is meant.
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

/// Whether the conditions hold together, given the elements that those before them have chosen.
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
    fn what_is_asked_of_the_elements_of_a_list_must_be_so_of_one() {
        let pattern = json!({"people": {"name": ["ann"], "age": [7]}});
        check(pattern.clone(), json!({"people": [{"name": "ann", "age": 7}]}), true);
        let two = json!({"people": [{"name": "ann", "age": 8}, {"name": "bob", "age": 7}]});
        check(pattern, two, false);
    }

    #[test]
    fn alternatives_stand_beside_and_within_conditions() {
        let pattern =
            json!({"s": ["x"], "$or": [{"a": [1]}, {"b": {"$or": [{"c": [2]}, {"d": [3]}]}}]});
        check(pattern.clone(), json!({"s": "x", "a": 1}), true);
        check(pattern.clone(), json!({"s": "x", "b": {"d": 3}}), true);
        check(pattern.clone(), json!({"s": "y", "a": 1}), false);
        check(pattern, json!({"s": "x", "b": {"d": 2}}), false);
    }

    #[test]
    fn an_event_with_lists_in_lists_ends() {
        let names: Vec<String> = (0..12).map(|name| format!("f{name}")).collect();
        let event: Value = names.iter().map(|name| (name.clone(), json!(vec![1; 100]))).collect();
        let mut pattern: Value = names.iter().map(|name| (name.clone(), json!([1]))).collect();
        pattern["z"] = json!([1]);
        check(pattern, event, false);
    }
}
