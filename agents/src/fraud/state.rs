//! What is known of an investigation, and how it is told.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer;
use super::options::Options;
use super::tool::Tool;

/// Longest text in a summary, in characters.
const SUMMARY_CHARS_MAX: usize = 80;

/// How an investigation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// Not begun.
    Pending,
    /// Under way.
    InProgress,
    /// Over.
    Completed,
    /// Over, and nothing was found out.
    Failed,
    /// Over because its time was; what was found out by then stands.
    TimedOut,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Severity {
    /// Block the card.
    Critical,
    /// Ask the cardholder.
    High,
    /// Look at it.
    Medium,
    /// Let it be.
    Low,
}

/// What the planner may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A tool.
    Call(Tool),
    /// The end.
    Complete,
}

impl Action {
    /// The end's name.
    pub const COMPLETE: &'static str = "COMPLETE";

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Call(tool) => tool.name(),
            Self::Complete => Self::COMPLETE,
        }
    }
}

/// One decision of the planner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannerDecision {
    /// From 1.
    pub step: u32,
    /// What was chosen.
    pub selected: Action,
    /// Why.
    pub reason: String,
    /// How sure, in thousandths.
    pub confidence_permille: u32,
    /// When, RFC 3339.
    pub timestamp: String,
    /// Whether the fixed sequence decided.
    pub used_fallback: bool,
    /// Why a model's choice was not taken.
    pub rejected: Option<String>,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ToolStatus {
    /// With an answer.
    Success,
    /// With an error, or what is no answer.
    Failed,
    /// With none in time.
    TimedOut,
}

/// One tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolExecution {
    /// The tool.
    pub tool_name: Tool,
    /// What it was given, in short.
    pub input_summary: Value,
    /// What it brought, in short.
    pub output_summary: Value,
    /// How long it took.
    pub execution_time_ms: u64,
    /// How it ended.
    pub status: ToolStatus,
    /// What went wrong.
    pub error_message: Option<String>,
    /// When it ended, RFC 3339.
    pub timestamp: String,
}

/// What is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The transaction.
    pub transaction_id: String,
    /// Limits and switches.
    pub options: Options,
    /// Longest investigation, in seconds.
    pub timeout_seconds: u64,
    /// Whether a model plans.
    pub has_model: bool,
    /// What each tool brought.
    pub answers: Answers,
    /// How the investigation stands.
    pub status: Status,
    /// Tools that were called, with or without success.
    pub completed_steps: Vec<Tool>,
    /// What comes next.
    pub next_action: Option<Action>,
    /// Decisions so far.
    pub step_count: u32,
    /// When it began, RFC 3339.
    pub started_at: String,
    /// When it ended.
    pub completed_at: Option<String>,
    /// What was decided.
    pub planner_decisions: Vec<PlannerDecision>,
    /// What was called.
    pub tool_executions: Vec<ToolExecution>,
    /// Whether the last of them brought no answer at all.
    pub is_unanswered: bool,
    /// What went wrong with the whole.
    pub error: Option<String>,
    /// The number of the newest record that something was learned from.
    pub newest: u32,
}

/// What each tool brought; null where it brought nothing.
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
    /// What a tool brought.
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

    /// Keeps what a tool brought.
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

    /// Whether a tool brought something.
    pub fn has(&self, tool: Tool) -> bool {
        !self.of(tool).is_null()
    }
}

impl State {
    /// What was found to be odd; `None` if nobody could look.
    pub fn findings(&self) -> Option<Vec<answer::Finding>> {
        answer::read::<answer::Patterns>(&self.answers.pattern).map(|patterns| patterns.findings)
    }

    /// What a tool is given. Where evidence is missing, that is said.
    pub fn arguments(&self, tool: Tool) -> Value {
        let id = &self.transaction_id;
        match tool {
            Tool::Context | Tool::Pattern | Tool::Similarity => json!({ "transaction_id": id }),
            Tool::Reasoning => json!({
                "transaction_id": id,
                "findings": self.findings(),
                "similarity": answer::read::<answer::Similarity>(&self.answers.similarity),
            }),
            Tool::Recommendation => json!({
                "transaction_id": id,
                "likelihood_permille": self.likelihood_permille(),
                "findings": self.findings().unwrap_or_default(),
            }),
            Tool::RuleDraft => json!({
                "transaction_id": id,
                "findings": self.findings().unwrap_or_default(),
            }),
        }
    }

    /// What reasoning says, if it was heard.
    pub fn likelihood_permille(&self) -> Option<u32> {
        let reasoning: Option<answer::Reasoning> = answer::read(&self.answers.reasoning);
        reasoning.map(|reasoning| reasoning.likelihood_permille)
    }
}

/// A value in short: small things themselves, of large ones how much they hold.
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

/// A text of at most so many characters.
pub fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
