//! Limits and switches. The session's first claim journals them, so a resumed session keeps them.

use graph::agent::Settings;
use graph::definition::InputError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tool::Tool;

/// Most decisions of an investigation.
///
/// Source: the fraud specification, section 9.
pub const STEPS_MAX: u32 = 20;

/// Longest investigation, in seconds.
///
/// Source: the fraud specification, section 9.
pub const SECONDS_MAX: u64 = 120;

/// Longest tool call, in seconds.
///
/// Source: the fraud specification, section 9.
pub const TOOL_SECONDS_MAX: u32 = 30;

/// Settings of investigations from the environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    pub investigation_id: String,
    /// Most decisions.
    pub max_steps: u32,
    /// Longest tool call, in seconds.
    pub tool_timeout_seconds: u32,
    /// Whether the fixed sequence replaces an invalid choice of the model.
    pub planner_fallback: bool,
    /// Whether a model may plan.
    pub planner_llm: bool,
    /// Whether the model also explains the evidence in its own words.
    pub reasoning_llm: bool,
    /// The sampling temperature in hundredths.
    pub planner_temperature_percent: u32,
    /// Longest reply of the planner, in tokens.
    pub planner_max_tokens: u32,
    /// Timeout of the planner, in seconds.
    pub planner_timeout_seconds: u32,
    /// Whether untrusted text is truncated, stripped and quoted in prompts.
    pub prompt_guard: bool,
    /// The fixed sequence.
    pub fallback_sequence: Vec<Tool>,
}

impl Default for Options {
    /// The values of the fraud specification, section 9. It has none for `reasoning_llm`: an explanation is a
    /// model call more, and changes nothing.
    fn default() -> Self {
        Self {
            investigation_id: String::new(),
            max_steps: STEPS_MAX,
            tool_timeout_seconds: TOOL_SECONDS_MAX,
            planner_fallback: true,
            planner_llm: true,
            reasoning_llm: false,
            planner_temperature_percent: 10,
            planner_max_tokens: 256,
            planner_timeout_seconds: 10,
            prompt_guard: true,
            fallback_sequence: Tool::ALL.to_vec(),
        }
    }
}

impl Options {
    /// Reads the options from a session's settings.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn of(settings: &Settings) -> Result<Self, InputError> {
        match &settings.options {
            Value::Null => Ok(Self::default()),
            options => serde_json::from_value(options.clone())
                .map_err(|error| InputError::new("settings.options", error.to_string())),
        }
    }
}

/// Parses a fixed sequence: comma-separated tool names, each after its prerequisites. It may end
/// early; `None` if invalid.
pub fn sequence(text: &str) -> Option<Vec<Tool>> {
    let mut sequence = Vec::new();
    for name in text.split(',') {
        let tool = Tool::named(name.trim())?;
        let is_ready = tool.after().iter().all(|before| sequence.contains(before));
        if sequence.contains(&tool) || !is_ready {
            return None;
        }
        sequence.push(tool);
    }
    Some(sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_keeps_to_what_must_come_before_what() {
        assert_eq!(
            sequence("context_tool, similarity_tool,pattern_tool"),
            Some(vec![Tool::Context, Tool::Similarity, Tool::Pattern])
        );
        for text in [
            "",
            "pattern_tool",
            "context_tool,context_tool",
            "context_tool,reasoning_tool",
            "context_tool,delete_table",
        ] {
            assert_eq!(sequence(text), None, "{text}");
        }
        let all = Tool::ALL.map(Tool::name).join(",");
        assert_eq!(sequence(&all), Some(Tool::ALL.to_vec()));
    }
}
