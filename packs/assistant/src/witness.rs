//! What the program adds to a model's reply: what was really done, and which claims nothing supports.

use serde_json::Value;

use super::policy;
use super::state::{AgentState, LoggedStep};
use super::tool;

/// Longest reply of a model that is kept, in characters. The rest is cut, and the reply says so.
const REPLY_CHARS_MAX: usize = 6_000;

/// Numbers without a source that are named.
const NUMBERS_MAX: usize = 8;

/// Words that claim a call was made.
const CLAIMS: &[(&str, &[&str])] = &[
    (tool::LOAD, &["loaded", "have loaded", "created the simulation"]),
    (
        tool::SET,
        &[
            "changed",
            "updated",
            "adjusted",
            "increased",
            "decreased",
            "reduced",
            "was set",
            "is now",
            "have set",
            "i set",
        ],
    ),
    (
        tool::RUN,
        &[
            "ran",
            "was run",
            "has been run",
            "have run",
            "simulated",
            "executed",
            "computed",
            "calculated",
            "re-ran",
            "reran",
        ],
    ),
];

/// A model's text, cut to the longest that is kept.
pub(super) fn short(text: &str) -> String {
    let count = text.chars().count();
    if count <= REPLY_CHARS_MAX {
        return text.to_owned();
    }
    let kept: String = text.chars().take(REPLY_CHARS_MAX).collect();
    format!("{kept}…\n(The model's reply had {count} characters; the rest was cut.)")
}

/// A model's reply, followed by the program's account of the turn, and whether the account leaves open that everything
/// was done as asked.
pub(super) fn reply(state: &AgentState, text: Option<&str>) -> (String, bool) {
    let said = text.map(|text| [text.to_owned(), String::new(), "Program:".to_owned()]);
    let mut lines: Vec<String> = said.into_iter().flatten().collect();
    let steps = state.turn_steps();
    if !tool::CRITICAL.iter().any(|tool| made(steps, tool)) {
        lines.push("Nothing was loaded, changed or run in this turn.".to_owned());
    }
    if !steps.is_empty() {
        lines.push(policy::summary(state));
    }
    let doubts = doubts(state, text.unwrap_or_default());
    lines.extend(doubts.iter().map(|doubt| format!("! {doubt}")));
    (lines.join("\n"), !doubts.is_empty())
}

fn made(steps: &[LoggedStep], tool: &str) -> bool {
    steps.iter().any(|step| step.tool == tool && step.error.is_none())
}

/// What nothing supports in a model's reply, and what differs from the request in what was done.
fn doubts(state: &AgentState, text: &str) -> Vec<String> {
    let steps = state.turn_steps();
    let mut doubts = Vec::new();
    for (tool, words) in CLAIMS {
        if let Some(claim) = words.iter().find(|claim| !made(steps, tool) && claims(text, claim)) {
            doubts
                .push(format!("The reply says `{claim}`, but no `{tool}` succeeded in this turn."));
        }
    }
    let unknown = unsupported(state, text);
    if !unknown.is_empty() {
        doubts
            .push(format!("No tool returned these numbers of the reply: {}.", unknown.join(", ")));
    }
    doubts.extend(departures(state));
    doubts
}

/// Where what was done differs from the request, as the rules read it.
fn departures(state: &AgentState) -> Vec<String> {
    let steps = state.turn_steps();
    let Ok(request) = state.goal() else {
        let acted = tool::CRITICAL.iter().any(|tool| made(steps, tool));
        let unread = "The program did not understand the request, so it did not compare what was done with it.";
        return acted.then(|| unread.to_owned()).into_iter().collect();
    };
    let mut found = Vec::new();
    if request.runs.unwrap_or(request.simulates) && !made(steps, tool::RUN) {
        found.push("The request asks for a run, and none was made.".to_owned());
    }
    let has_read = made(steps, tool::RUN) || made(steps, tool::GET_RESULTS);
    if !request.figures.is_empty() && !has_read {
        found.push("The request asks for figures, and none were read.".to_owned());
    }
    // What a person edited is the person's.
    if steps.iter().all(|step| step.planned.is_none()) {
        found.extend(state.unmet(&request));
    }
    found
}

/// Whether the text has these words as whole words.
fn claims(text: &str, words: &str) -> bool {
    let lower = text.to_lowercase();
    let is_end = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    lower.match_indices(words).any(|(at, found)| {
        is_end(lower[..at].chars().next_back()) && is_end(lower[at + found.len()..].chars().next())
    })
}

/// Numbers of a text that neither a tool's result, a call nor the person has.
fn unsupported(state: &AgentState, text: &str) -> Vec<String> {
    let mut known: Vec<f64> = Vec::new();
    for LoggedStep { result, arguments, .. } in &state.intermediate_steps {
        numbers_in(result, &mut known);
        numbers_in(arguments, &mut known);
    }
    let said = state.messages.iter().filter_map(|entry| match &entry.said {
        super::state::Said::User(text) => Some(text.as_str()),
        _ => None,
    });
    known.extend(said.flat_map(|text| numbers(text).map(|(_, value)| value).collect::<Vec<_>>()));
    let is_known = |value: f64, written: &str| {
        let decimals = written.split('.').nth(1).map_or(0, str::len);
        known.iter().any(|known| format!("{known:.decimals$}") == format!("{value:.decimals$}"))
    };
    let mut unknown: Vec<String> = Vec::new();
    for (written, value) in numbers(text) {
        if !is_known(value, written) && !unknown.iter().any(|seen| seen == written) {
            unknown.push(written.to_owned());
        }
    }
    unknown.truncate(NUMBERS_MAX);
    unknown
}

/// The numbers of a text that stand alone, and not in a name such as `sim-1`.
fn numbers(text: &str) -> impl Iterator<Item = (&str, f64)> {
    let words = text.split(|c: char| c.is_whitespace() || "()[]{};,:!?*`\"'".contains(c));
    let trimmed = words.map(|word| word.trim_end_matches('.'));
    trimmed.filter_map(|word| word.parse::<f64>().ok().filter(|v| v.is_finite()).map(|v| (word, v)))
}

fn numbers_in(value: &Value, found: &mut Vec<f64>) {
    match value {
        Value::Number(number) => found.extend(number.as_f64()),
        Value::String(text) => found.extend(numbers(text).map(|(_, value)| value)),
        Value::Array(items) => items.iter().for_each(|item| numbers_in(item, found)),
        Value::Object(fields) => fields.values().for_each(|item| numbers_in(item, found)),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_found_as_whole_words() {
        assert!(claims("I ran it.", "ran"));
        assert!(!claims("the range is wide", "ran"));
        assert!(claims("The dose IS NOW 300 mg", "is now"));
    }

    #[test]
    fn a_long_reply_is_cut_and_says_so() {
        let text = short(&"ä".repeat(200_000));
        assert!(text.chars().count() < REPLY_CHARS_MAX + 100 && text.contains("200000 characters"));
    }
}
