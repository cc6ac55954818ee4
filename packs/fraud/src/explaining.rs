//! A model's explanation of the evidence, beside the reasoning tool's. It is checked against the findings,
//! shown as the model's words, and changes no score and no recommendation.

use graph::effect::{Author, Chat, Message, Reply, ToolChoice, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use super::prompt;
use super::state::{Explanation, State, cut};

/// Name of the form that a model fills in.
pub const EXPLAIN: &str = "explain_evidence";

/// Longest stored explanation, in characters; a longer one is cut.
const TEXT_CHARS_MAX: usize = 1_000;

/// Longest explanation, in tokens.
const TOKENS_MAX: u32 = 512;

pub fn chat(state: &State) -> Chat {
    let options = &state.options;
    Chat {
        system: prompt::EXPLAIN_SYSTEM.to_owned(),
        messages: vec![Message::user(state.newest, prompt::weighed(state))],
        tools: vec![ToolSpec {
            server: None,
            name: EXPLAIN.to_owned(),
            description: prompt::EXPLAIN_DESCRIPTION.to_owned(),
            input_schema: schema(state),
        }],
        choice: ToolChoice::Only(EXPLAIN.to_owned()),
        max_output_tokens: TOKENS_MAX,
        temperature_percent: Some(options.planner_temperature_percent),
        timeout_s: Some(options.planner_timeout_seconds),
        form: None,
    }
}

fn schema(state: &State) -> Value {
    json!({
        "type": "object",
        "required": ["hypothesis", "patterns", "explanation"],
        "additionalProperties": false,
        "properties": {
            "hypothesis": {"enum": hypotheses(state)},
            "patterns": {"type": "array", "items": {"enum": patterns(state)}},
            "explanation": {"type": "string", "maxLength": TEXT_CHARS_MAX},
        },
    })
}

fn hypotheses(state: &State) -> Vec<String> {
    let reasoning = state.reasoning();
    reasoning.map_or_else(Vec::new, |r| r.hypotheses.into_iter().map(|h| h.name).collect())
}

fn patterns(state: &State) -> Vec<String> {
    state.findings().unwrap_or_default().into_iter().map(|finding| finding.pattern).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    hypothesis: String,
    patterns: Vec<String>,
    explanation: String,
}

/// Reads a reply. The policy has nothing to add to the reasoning tool's answer.
pub fn read(state: &State, reply: &Reply) -> Option<Explanation> {
    let Author::Model(model) = &reply.by else { return None };
    Some(checked(state, model, reply).unwrap_or_else(|reason| Explanation::Rejected { reason }))
}

fn checked(state: &State, model: &str, reply: &Reply) -> Result<Explanation, String> {
    let [call] = reply.calls.as_slice() else {
        return Err("the reply is not one explanation".to_owned());
    };
    if call.tool != EXPLAIN {
        return Err("the reply calls an unknown tool".to_owned());
    }
    let wire: Wire = serde_json::from_value(call.arguments.clone())
        .map_err(|_| "the reply is not an object with hypothesis, patterns and explanation")?;
    if !hypotheses(state).contains(&wire.hypothesis) {
        return Err("the reply names an unknown hypothesis".to_owned());
    }
    let found = patterns(state);
    if wire.patterns.iter().any(|pattern| !found.contains(pattern)) {
        return Err("the reply cites a pattern that was not found".to_owned());
    }
    let text: String = wire.explanation.chars().filter(|c| !c.is_control()).collect();
    let text = cut(text.trim(), TEXT_CHARS_MAX);
    if text.is_empty() {
        return Err("the explanation is empty".to_owned());
    }
    let (model, hypothesis, patterns) = (model.to_owned(), wire.hypothesis, wire.patterns);
    Ok(Explanation::Given { model, hypothesis, text, patterns })
}
