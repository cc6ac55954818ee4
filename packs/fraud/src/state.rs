//! The state of an investigation, and its summary.

use graph::agent::OnModelFailure;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer;
use super::options::Options;
use super::tool::Tool;

/// Longest text in a summary, in characters.
const SUMMARY_CHARS_MAX: usize = 80;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    Pending,
    InProgress,
    Completed,
    /// Finished without any evidence.
    Failed,
    /// Stopped by the time limit, with the evidence so far.
    TimedOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Severity {
    Critical,
    High,
    Medium,
    Low,
}

/// A planner's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Call(Tool),
    Complete,
}

impl Action {
    /// Name of the end.
    pub const COMPLETE: &'static str = "COMPLETE";

    pub const fn name(self) -> &'static str {
        match self {
            Self::Call(tool) => tool.name(),
            Self::Complete => Self::COMPLETE,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannerDecision {
    /// From 1.
    pub step: u32,
    pub selected: Action,
    pub reason: String,
    /// Confidence, in thousandths.
    pub confidence_permille: u32,
    /// RFC 3339.
    pub timestamp: String,
    /// Whether the fixed sequence decided.
    pub used_fallback: bool,
    /// Why the model's choice was rejected.
    pub rejected: Option<String>,
}

/// Result of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ToolStatus {
    Success,
    /// An error or an invalid answer.
    Failed,
    TimedOut,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolExecution {
    pub tool_name: Tool,
    /// Summary of its arguments.
    pub input_summary: Value,
    /// Summary of its answer.
    pub output_summary: Value,
    pub execution_time_ms: u64,
    pub status: ToolStatus,
    pub error_message: Option<String>,
    /// RFC 3339.
    pub timestamp: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub transaction_id: String,
    pub options: Options,
    /// Longest investigation, in seconds.
    pub timeout_seconds: u64,
    /// Whether a model plans.
    pub has_model: bool,
    /// What the trigger says about a failed model.
    #[serde(default)]
    pub on_model_failure: OnModelFailure,
    /// Version of the graph whose rules apply.
    #[serde(default = "first_version")]
    pub version: u32,
    /// The model's choices of unknown tools since the start, until it made a valid one.
    #[serde(default)]
    pub unknown_choices: Option<u32>,
    /// Why the model counts as failed, if it does.
    #[serde(default)]
    pub model_failed: Option<String>,
    /// What a model said about the evidence, or why that was dropped.
    #[serde(default)]
    pub explanation: Option<Explanation>,
    /// The tools' answers.
    pub answers: Answers,
    pub status: Status,
    /// Tools called, successful or not.
    pub completed_steps: Vec<Tool>,
    /// The next step.
    pub next_action: Option<Action>,
    /// Number of decisions.
    pub step_count: u32,
    /// Start, RFC 3339.
    pub started_at: String,
    /// End, RFC 3339.
    pub completed_at: Option<String>,
    pub planner_decisions: Vec<PlannerDecision>,
    pub tool_executions: Vec<ToolExecution>,
    /// Whether the last call returned no answer at all.
    pub is_unanswered: bool,
    /// The error of the investigation.
    pub error: Option<String>,
    /// The newest record that changed the evidence.
    pub newest: u32,
}

const fn first_version() -> u32 {
    1
}

/// A model's words about the evidence. They change no score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Explanation {
    Given {
        model: String,
        /// The hypothesis that it holds most likely.
        hypothesis: String,
        text: String,
        /// The findings that it cites.
        patterns: Vec<String>,
    },
    Rejected {
        reason: String,
    },
}

/// The tools' answers; null for none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// See [`Tool::Context`].
    pub context: Value,
    /// See [`Tool::Pattern`].
    pub pattern: Value,
    /// See [`Tool::Similarity`].
    pub similarity: Value,
    /// See [`Tool::Reasoning`].
    pub reasoning: Value,
    /// See [`Tool::Recommendation`].
    pub recommendation: Value,
    /// See [`Tool::RuleDraft`].
    pub rule_draft: Value,
}

impl Answers {
    pub fn of(&self, tool: Tool) -> &Value {
        match tool {
            Tool::Context => &self.context,
            Tool::Pattern => &self.pattern,
            Tool::Similarity => &self.similarity,
            Tool::Reasoning => &self.reasoning,
            Tool::Recommendation => &self.recommendation,
            Tool::RuleDraft => &self.rule_draft,
        }
    }

    pub fn set(&mut self, tool: Tool, answer: Value) {
        *match tool {
            Tool::Context => &mut self.context,
            Tool::Pattern => &mut self.pattern,
            Tool::Similarity => &mut self.similarity,
            Tool::Reasoning => &mut self.reasoning,
            Tool::Recommendation => &mut self.recommendation,
            Tool::RuleDraft => &mut self.rule_draft,
        } = answer;
    }

    pub fn has(&self, tool: Tool) -> bool {
        !self.of(tool).is_null()
    }
}

impl State {
    /// The findings; `None` if `pattern_tool` did not answer.
    pub fn findings(&self) -> Option<Vec<answer::Finding>> {
        answer::read::<answer::Patterns>(&self.answers.pattern).map(|patterns| patterns.findings)
    }

    /// The patterns that could not be checked; `None` if `pattern_tool` did not answer.
    pub fn not_checked(&self) -> Option<Vec<Value>> {
        let patterns: Option<answer::Patterns> = answer::read(&self.answers.pattern);
        patterns.map(|patterns| patterns.not_checked)
    }

    /// A tool's arguments. Missing evidence is null.
    pub fn arguments(&self, tool: Tool) -> Value {
        let id = &self.transaction_id;
        let arguments = match tool {
            Tool::Context | Tool::Pattern | Tool::Similarity => json!({ "transaction_id": id }),
            Tool::Reasoning => json!({
                "transaction_id": id,
                "findings": self.findings(),
                "similarity": answer::read::<answer::Similarity>(&self.answers.similarity),
            }),
            Tool::Recommendation => json!({
                "transaction_id": id,
                "likelihood_permille": self.likelihood_permille(),
                "risk_permille": self.risk_permille(),
                "findings": self.findings().unwrap_or_default(),
                "not_checked": self.not_checked(),
            }),
            Tool::RuleDraft => json!({
                "transaction_id": id,
                "findings": self.findings().unwrap_or_default(),
            }),
        };
        without_null_risk(arguments)
    }

    /// The reasoning tool's answer, if any.
    pub fn reasoning(&self) -> Option<answer::Reasoning> {
        answer::read(&self.answers.reasoning)
    }

    /// The reasoning tool's likelihood, if it answered.
    pub fn likelihood_permille(&self) -> Option<u32> {
        self.reasoning().map(|reasoning| reasoning.likelihood_permille)
    }

    /// The reasoning tool's weight that decides; `None` in records of earlier versions.
    pub fn risk_permille(&self) -> Option<u32> {
        self.reasoning().and_then(|reasoning| reasoning.risk_permille)
    }
}

/// A request without a risk is that of earlier versions.
fn without_null_risk(mut arguments: Value) -> Value {
    if let Value::Object(fields) = &mut arguments
        && fields.get("risk_permille").is_some_and(Value::is_null)
    {
        fields.remove("risk_permille");
    }
    arguments
}

/// A summary of a value: small values themselves, sizes of large ones.
pub fn summary(value: &Value) -> Value {
    let Value::Object(fields) = value else { return Value::Object(Map::new()) };
    let short = |value: &Value| match value {
        Value::Array(items) => json!(items.len()),
        Value::Object(fields) => json!({ "fields": fields.len() }),
        Value::String(text) => json!(cut(text, SUMMARY_CHARS_MAX)),
        other => other.clone(),
    };
    let fields = fields.iter().filter(|(_, value)| !value.is_null());
    Value::Object(fields.map(|(name, value)| (name.clone(), short(value))).collect())
}

/// Truncates a text to this many characters.
pub fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
