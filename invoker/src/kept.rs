//! What is kept of a trigger whose session may never reach its agent: its claim would hold the rest.

use graph::presentation::Presentation;
use serde_json::{Map, Value, json};

use crate::admission::Rules;

/// Longest name of an agent that is kept, in characters: that of a valid trigger.
const AGENT_CHARS_MAX: usize = 64;

/// Largest input that is kept whole, in bytes of JSON. Of a larger one the begin is kept. With the other fields it fits
/// into an event's detail ([`DETAIL_BYTES_MAX`](journal::limits::DETAIL_BYTES_MAX)).
const INPUT_BYTES_MAX: usize = 2 * 1024;

/// The begin of a larger input, in characters of its JSON.
const BEGIN_CHARS: usize = 200;

/// The agent that a trigger names and the session's title, as lists show them. The detail may be malformed.
pub(crate) fn named(rules: &Rules, detail: &Value) -> Map<String, Value> {
    let mut named = Map::new();
    let agent = detail.get("agent").map_or(rules.default_agent(), Value::as_str);
    if let Some(agent) = agent {
        let agent: String = agent.chars().take(AGENT_CHARS_MAX).collect();
        let presentation = Presentation::among(&rules.agents, Some(&agent));
        let title = masked(rules, detail).and_then(|input| presentation.title_of(&input));
        named.insert("agent".to_owned(), agent.into());
        named.extend(title.map(|title| ("title".to_owned(), title.into())));
    }
    named
}

/// The same with the input.
pub(crate) fn whole(rules: &Rules, detail: &Value) -> Map<String, Value> {
    let mut kept = named(rules, detail);
    kept.extend(masked(rules, detail).map(|input| ("input".to_owned(), bounded(&input))));
    kept
}

/// The input, as its agent masks it.
fn masked(rules: &Rules, detail: &Value) -> Option<Value> {
    let mut input = detail.get("input")?.clone();
    let name = detail.get("agent").map_or(rules.default_agent(), Value::as_str);
    if let Some(agent) = rules.agents.iter().find(|agent| Some(agent.name()) == name) {
        (agent.profile().mask)(&Value::Null, &mut input);
    }
    Some(input)
}

fn bounded(input: &Value) -> Value {
    let text = input.to_string();
    if text.len() <= INPUT_BYTES_MAX {
        return input.clone();
    }
    let begin: String = text.chars().take(BEGIN_CHARS).collect();
    let omitted =
        format!("the input of {} bytes exceeds the limit of {INPUT_BYTES_MAX}", text.len());
    json!({ "omitted": omitted, "begin": begin })
}

#[cfg(test)]
mod tests {
    use journal::limits::DETAIL_BYTES_MAX;

    use super::*;

    #[test]
    fn what_is_kept_of_any_trigger_fits_an_event() {
        for text in ["\u{1}", "\"", "\u{10ffff}", "a"] {
            for length in [1, 300, 2_000, 100_000] {
                let text = text.repeat(length);
                for input in [json!({"lambda_name": text, "x": text}), json!(text)] {
                    let detail = json!({"agent": text, "input": input});
                    let kept = Value::from(whole(&Rules::default(), &detail)).to_string();
                    assert!(kept.len() < DETAIL_BYTES_MAX - 1_000, "{}", kept.len());
                }
            }
        }
        for detail in [json!(null), json!([1]), json!({"agent": 7}), json!("incident")] {
            assert_eq!(whole(&Rules::default(), &detail), Map::new(), "{detail}");
        }
    }
}
