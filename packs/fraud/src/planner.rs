//! Chooses the next step: the model's choice if it is valid, otherwise the fixed sequence.

use graph::effect::{Reply, ToolCall};
use serde::Deserialize;
use serde_json::{Value, json};

use super::conclusion;
use super::state::{Action, State, cut};
use super::tool::Tool;

/// Name of the form that a model fills in.
pub const SELECT: &str = "select_next_step";

/// Longest stored reason, in characters.
const REASON_CHARS_MAX: usize = 300;

const UNKNOWN_TOOL: &str = "unknown tool";
const UNKNOWN_CALL: &str = "the reply calls an unknown tool";

/// Whether a choice was rejected because the tool does not exist.
pub fn is_unknown(problem: &str) -> bool {
    [UNKNOWN_TOOL, UNKNOWN_CALL].contains(&problem)
}

/// A choice whose form is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub action: Action,
    pub reason: String,
    /// Confidence, in thousandths.
    pub confidence_permille: u32,
}

pub fn schema() -> Value {
    let names: Vec<&str> =
        Tool::ALL.map(Tool::name).into_iter().chain([Action::COMPLETE]).collect();
    json!({
        "type": "object",
        "required": ["tool", "reason", "confidence"],
        "additionalProperties": false,
        "properties": {
            "tool": {"enum": names, "description": "the next tool, or COMPLETE"},
            "reason": {"type": "string", "maxLength": REASON_CHARS_MAX},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        },
    })
}

#[derive(Deserialize)]
struct Wire {
    tool: String,
    #[serde(default)]
    reason: String,
    confidence: f64,
}

/// Parses a reply: a call of [`SELECT`], or the same object as text.
///
/// # Errors
/// Why the reply is not a choice.
pub fn read(reply: &Reply) -> Result<Choice, String> {
    let arguments = match reply.calls.as_slice() {
        [call] if call.tool == SELECT => call.arguments.clone(),
        [] => of_text(reply.text.as_deref().unwrap_or_default())?,
        [_] => return Err(UNKNOWN_CALL.to_owned()),
        _ => return Err("the reply makes several choices".to_owned()),
    };
    let wire: Wire = serde_json::from_value(arguments)
        .map_err(|_| "the reply is not an object with tool, reason and confidence".to_owned())?;
    let action = match wire.tool.as_str() {
        Action::COMPLETE => Action::Complete,
        name => Action::Call(Tool::named(name).ok_or(UNKNOWN_TOOL)?),
    };
    let confidence_permille =
        permille(wire.confidence).ok_or("the confidence is not from 0 to 1")?;
    let reason: String = wire.reason.chars().filter(|c| !c.is_control()).collect();
    Ok(Choice { action, reason: cut(&reason, REASON_CHARS_MAX), confidence_permille })
}

/// Extracts the object from surrounding prose, which some models add.
fn of_text(text: &str) -> Result<Value, String> {
    let object = text.find('{').zip(text.rfind('}')).filter(|(from, to)| from < to);
    let object = object.map_or(text, |(from, to)| &text[from..=to]);
    serde_json::from_str(object).map_err(|_| "the reply contains no choice".to_owned())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1,000")]
fn permille(share: f64) -> Option<u32> {
    (0.0..=1.0).contains(&share).then(|| (share * 1_000.0).round() as u32)
}

/// Validates a choice.
///
/// # Errors
/// Why the choice is not allowed.
pub fn check(state: &State, action: Action) -> Result<(), String> {
    let done = &state.completed_steps;
    let tool = match action {
        Action::Call(tool) => tool,
        Action::Complete if next_of_sequence(state) == Action::Complete => return Ok(()),
        Action::Complete if !done.contains(&Tool::Reasoning) => {
            return Err("reasoning_tool was not called yet".to_owned());
        }
        Action::Complete if !done.contains(&Tool::Recommendation) => {
            return Err("recommendation_tool was not called yet".to_owned());
        }
        Action::Complete if state.version >= 2 => return conclusion::sufficient(state),
        Action::Complete => return Ok(()),
    };
    if done.contains(&tool) {
        return Err(format!("{} was already called", tool.name()));
    }
    match tool.after().iter().find(|before| !done.contains(before)) {
        Some(before) => Err(format!("{} must come before {}", before.name(), tool.name())),
        None => Ok(()),
    }
}

/// The first tool of the fixed sequence that was not yet called.
pub fn next_of_sequence(state: &State) -> Action {
    let left = |tool: &&Tool| !state.completed_steps.contains(tool);
    let next = state.options.fallback_sequence.iter().find(left);
    next.map_or(Action::Complete, |tool| Action::Call(*tool))
}

/// The policy's reply: the fixed sequence, in the form of a model's reply.
pub fn reply(state: &State) -> Reply {
    let next = next_of_sequence(state);
    let reason = match next {
        Action::Call(tool) => tool.description(),
        Action::Complete => "all tools were called",
    };
    let arguments = json!({ "tool": next.name(), "reason": reason, "confidence": 1.0 });
    Reply::calls(vec![ToolCall::built_in(SELECT, arguments)])
}
