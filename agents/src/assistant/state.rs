//! What the assistant knows of its thread.

use std::collections::BTreeMap;

use graph::effect::{Content, Message, ToolCall, ToolSpec};
use graph::outcome::{FailureKind, ToolOutcome, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::tool;

/// Largest result that is kept in the state, in bytes of JSON: every question carries the state. A
/// larger one is in the journal, at the step that is named instead.
const RESULT_BYTES_MAX: usize = 8 * 1024;

/// The state of a thread. The first nine fields are those of the confirm-before-execute
/// specification, section 3.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    /// The whole conversation, with each confirmation and its answer.
    pub messages: Vec<Entry>,
    /// The simulation that is talked about, once one was loaded.
    pub simulation_context: Option<SimulationContext>,
    /// The call that is to be made next.
    pub pending_tool_call: Option<PendingCall>,
    /// What the person last said: a message, or the answer to a confirmation.
    pub user_feedback: Option<String>,
    /// What the planner wants done, the next step first.
    pub plan: Option<Plan>,
    /// Every call that was made, and what came of it.
    pub intermediate_steps: Vec<LoggedStep>,
    /// Whether the call is before a person.
    pub awaiting_confirmation: bool,
    /// What the person reads about it.
    pub confirmation_prompt: Option<String>,
    /// How often each tool was tried again.
    pub retry_counts: BTreeMap<String, u32>,
    /// What the thread is called by whoever began it.
    pub(super) thread: Option<String>,
    /// The tools that the server has and that may be called.
    pub(super) offered: Vec<ToolSpec>,
    /// The turn.
    pub(super) turn: Turn,
    /// How many questions were asked.
    pub(super) asked: u32,
    /// What was last said to the person.
    pub(super) reply: String,
}

/// One entry of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The number of the step that it comes from.
    pub source: u32,
    /// Who says what.
    pub said: Said,
}

/// Who says what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// The person, in a turn of theirs.
    User(String),
    /// The planner.
    Planner {
        /// In words.
        text: Option<String>,
        /// The calls that it wants made.
        calls: Vec<ToolCall>,
    },
    /// A tool, or why it was not called.
    Tool {
        /// The call's id.
        id: String,
        /// The tool.
        tool: String,
        /// What it brought.
        content: Value,
        /// Whether that is an error.
        is_error: bool,
    },
    /// What a person was asked to approve, word for word.
    Confirmation(String),
    /// What they answered.
    Answer(String),
    /// The assistant, to the person.
    Reply(String),
}

/// The simulation that is talked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SimulationContext {
    /// Its id.
    pub simulation_id: String,
    /// Its model.
    pub model_path: String,
}

/// A call that is to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingCall {
    /// The call.
    pub call: ToolCall,
    /// Its arguments as they were planned, if a person gave it others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<Value>,
    /// Why it is needed.
    pub justification: String,
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Why.
    pub reasoning: String,
    /// The calls that are left, in order.
    pub steps: Vec<ToolCall>,
    /// Whether the next of them needs a person's approval.
    pub is_critical: bool,
}

/// A call that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoggedStep {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// Its arguments as they were planned, if a person gave it others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<Value>,
    /// What it brought; null if it failed.
    pub result: Value,
    /// What went wrong.
    pub error: Option<String>,
    /// The number of the step that brought it.
    pub step: u32,
}

/// A turn of the conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Turn {
    /// What was asked for, with what was said to make it clear.
    pub(super) request: String,
    /// When it was asked for, in milliseconds since 1970.
    pub(super) began_ms: i64,
    /// Where its calls begin in the log.
    pub(super) first_step: usize,
    /// Why what was planned is not done: a person did not allow it.
    pub(super) rejected: Option<String>,
    /// Whether the person was asked what they mean.
    pub(super) unclear: bool,
    /// Whether there is only the reply left to make.
    pub(super) responding: bool,
    /// Which limit the turn has reached.
    pub(super) limit: Option<String>,
}

impl AgentState {
    /// The calls of this turn.
    pub(super) fn turn_steps(&self) -> &[LoggedStep] {
        self.intermediate_steps.get(self.turn.first_step..).unwrap_or_default()
    }

    /// Begins a turn with a person's message.
    pub(super) fn begin_turn(&mut self, source: u32, at_ms: i64, text: &str, request: String) {
        self.say(source, Said::User(text.to_owned()));
        self.user_feedback = Some(text.to_owned());
        let first_step = self.intermediate_steps.len();
        self.turn = Turn { request, began_ms: at_ms, first_step, ..Turn::default() };
        self.retry_counts.clear();
    }

    pub(super) fn say(&mut self, source: u32, said: Said) {
        self.messages.push(Entry { source, said });
    }

    /// Forgets what was planned: the planner learns why, call by call.
    pub(super) fn drop_plan(&mut self, source: u32, why: &str) {
        let pending = self.pending_tool_call.take().map(|pending| pending.call);
        let planned = self.plan.take().map(|plan| plan.steps).unwrap_or_default();
        for call in pending.into_iter().chain(planned) {
            self.answer(source, &call, json!({ "error": why }), true);
        }
        self.awaiting_confirmation = false;
        self.confirmation_prompt = None;
    }

    fn answer(&mut self, source: u32, call: &ToolCall, content: Value, is_error: bool) {
        let id = call.id.clone().unwrap_or_default();
        let tool = call.tool.clone();
        self.say(source, Said::Tool { id, tool, content, is_error });
    }

    /// Takes what a call brought.
    pub(super) fn log(&mut self, result: ToolResult, planned: Option<Value>) {
        let (content, error) = match &result.outcome {
            ToolOutcome::Ok(content) => (bounded(content, result.seq), None),
            ToolOutcome::Error(text) => (Value::Null, Some(text.clone())),
            ToolOutcome::Failed(failure) => (Value::Null, Some(failure.to_string())),
        };
        let said =
            error.as_ref().map_or_else(|| content.clone(), |error| json!({ "error": error }));
        self.answer(result.seq, &result.call, said, error.is_some());
        let tool = result.call.tool.clone();
        let may_pass = matches!(&result.outcome, ToolOutcome::Failed(failure) if failure.kind != FailureKind::Refused);
        if may_pass || result.attempt > 1 {
            self.retry_counts.insert(tool.clone(), result.attempt.saturating_sub(1));
        }
        if error.is_none() && tool == tool::LOAD {
            let text = |name: &str| content.get(name).and_then(Value::as_str).map(str::to_owned);
            if let (Some(simulation_id), Some(model_path)) =
                (text("simulation_id"), text("model_path"))
            {
                self.simulation_context = Some(SimulationContext { simulation_id, model_path });
            }
        }
        let (arguments, step) = (result.call.arguments, result.seq);
        self.intermediate_steps.push(LoggedStep {
            tool,
            arguments,
            planned,
            result: content,
            error,
            step,
        });
    }

    /// The conversation as a model sees it. Confirmations stand between a call and its result, where
    /// no model takes words; what came of them the result says.
    pub(super) fn for_model(&self) -> Vec<Message> {
        let shown = |entry: &Entry| {
            let content = match &entry.said {
                Said::User(text) => Content::User(text.clone()),
                Said::Planner { text, calls } if text.is_some() || !calls.is_empty() => {
                    Content::Assistant { text: text.clone(), calls: calls.clone() }
                }
                Said::Reply(text) => {
                    Content::Assistant { text: Some(text.clone()), calls: Vec::new() }
                }
                Said::Tool { id, tool, content, is_error } => Content::Result {
                    id: id.clone(),
                    tool: tool.clone(),
                    content: content.clone(),
                    is_error: *is_error,
                },
                Said::Planner { .. } | Said::Confirmation(_) | Said::Answer(_) => return None,
            };
            Some(Message { source: entry.source, content })
        };
        self.messages.iter().filter_map(shown).collect()
    }
}

fn bounded(content: &Value, step: u32) -> Value {
    let bytes = content.to_string().len();
    if bytes <= RESULT_BYTES_MAX {
        return content.clone();
    }
    let mut kept = content.clone();
    if let Some(fields) = kept.as_object_mut() {
        fields.retain(|_, value| value.to_string().len() <= RESULT_BYTES_MAX / 8);
        fields.insert("omitted".to_owned(), json!({ "bytes": bytes, "step": step }));
        return kept;
    }
    json!({ "omitted": { "bytes": bytes, "step": step } })
}
