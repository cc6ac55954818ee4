//! The state of a thread.

use std::collections::BTreeMap;

use graph::effect::{Content, Message, ToolCall, ToolSpec};
use graph::outcome::{FailureKind, ToolOutcome, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::tool;

/// Largest result in the state, in bytes of JSON, because every question carries the state. For a
/// larger result the state names the step that holds it.
const RESULT_BYTES_MAX: usize = 8 * 1024;

/// The state of a thread. The first nine fields are those of the confirm-before-execute
/// specification, section 3.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    /// The whole conversation, with confirmations and their answers.
    pub messages: Vec<Entry>,
    /// The current simulation, once one is loaded.
    pub simulation_context: Option<SimulationContext>,
    /// The next call.
    pub pending_tool_call: Option<PendingCall>,
    /// The person's last message, or the answer to a confirmation.
    pub user_feedback: Option<String>,
    /// The plan, the next step first.
    pub plan: Option<Plan>,
    /// Every call made, with its result.
    pub intermediate_steps: Vec<LoggedStep>,
    /// Whether a person is being asked about the call.
    pub awaiting_confirmation: bool,
    /// The confirmation text.
    pub confirmation_prompt: Option<String>,
    /// Retries by tool.
    pub retry_counts: BTreeMap<String, u32>,
    /// The thread's name from the input.
    pub(super) thread: Option<String>,
    /// The offered tools.
    pub(super) offered: Vec<ToolSpec>,
    /// The offered tools that are known to only read.
    #[serde(default)]
    pub(super) reading: Vec<String>,
    /// The current turn.
    pub(super) turn: Turn,
    pub(super) asked: u32,
    /// The last reply.
    pub(super) reply: String,
    /// What became of the last turn.
    #[serde(default)]
    pub(super) ending: Ending,
    /// Whether an earlier request was not carried out, and nothing was carried out since.
    #[serde(default)]
    pub(super) is_owing: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The step that it comes from.
    pub source: u32,
    pub said: Said,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    User(String),
    Planner {
        text: Option<String>,
        calls: Vec<ToolCall>,
    },
    /// A tool's result, or why it was not called.
    Tool {
        id: String,
        tool: String,
        content: Value,
        is_error: bool,
    },
    /// A confirmation, verbatim.
    Confirmation(String),
    /// The person's answer.
    Answer(String),
    /// The assistant's reply to the person.
    Reply(String),
}

/// The current simulation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SimulationContext {
    pub simulation_id: String,
    pub model_path: String,
}

/// A planned call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingCall {
    pub call: ToolCall,
    /// The planned arguments, if a person changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<Value>,
    pub justification: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub reasoning: String,
    /// The remaining calls, in order.
    pub steps: Vec<ToolCall>,
    /// Whether the next call needs approval.
    pub is_critical: bool,
}

/// A call that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoggedStep {
    pub tool: String,
    pub arguments: Value,
    /// The planned arguments, if a person changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<Value>,
    /// The result; null on failure.
    pub result: Value,
    pub error: Option<String>,
    /// The step that holds the result.
    pub step: u32,
}

/// One turn of the conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Turn {
    /// The request, with its clarifications.
    pub(super) request: String,
    /// Time of the request, in milliseconds since 1970.
    pub(super) began_ms: i64,
    /// Index of its first call in the log.
    pub(super) first_step: usize,
    /// Why the plan was dropped: a person rejected it.
    pub(super) rejected: Option<String>,
    /// Whether a clarifying question is open.
    pub(super) unclear: bool,
    /// Whether only the reply remains.
    pub(super) responding: bool,
    /// The limit that the turn reached.
    pub(super) limit: Option<String>,
    /// The earlier requests that the request amends, the first one first.
    #[serde(default)]
    pub(super) base: Vec<String>,
    /// Length of the log when the request was last amended.
    #[serde(default)]
    pub(super) amended_at: usize,
    /// A planned simulation, and the one that a person named instead.
    #[serde(default)]
    pub(super) renamed: Option<(String, String)>,
}

/// What became of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Everything that was asked for was done.
    Done,
    /// A call failed.
    Failed,
    /// Not understood, not approved, cut short, or said by a model without any call.
    #[default]
    Open,
}

impl AgentState {
    pub(super) fn turn_steps(&self) -> &[LoggedStep] {
        self.intermediate_steps.get(self.turn.first_step..).unwrap_or_default()
    }

    /// Starts a turn with a person's message.
    pub(super) fn begin_turn(&mut self, source: u32, at_ms: i64, text: &str, request: String) {
        self.say(source, Said::User(text.to_owned()));
        self.user_feedback = Some(text.to_owned());
        let first_step = self.intermediate_steps.len();
        self.turn = Turn { request, began_ms: at_ms, first_step, ..Turn::default() };
        self.retry_counts.clear();
    }

    /// The simulation that a person named in place of this one.
    pub(super) fn renamed<'a>(&'a self, id: &'a str) -> &'a str {
        match &self.turn.renamed {
            Some((planned, named)) if planned == id => named,
            _ => id,
        }
    }

    /// Carries an edited simulation id into the planned steps.
    pub(super) fn carry(&mut self, tool: &str, before: &Value, after: &Value) {
        let id = |arguments: &Value| {
            arguments.get("simulation_id").and_then(Value::as_str).map(str::to_owned)
        };
        let (Some(planned), Some(named)) = (id(before), id(after)) else { return };
        if planned == named {
            return;
        }
        for step in self.plan.iter_mut().flat_map(|plan| &mut plan.steps) {
            if id(&step.arguments).as_ref() == Some(&planned) {
                step.arguments["simulation_id"] = json!(named);
            }
        }
        if tool == tool::LOAD {
            return;
        }
        if let Some(context) = &mut self.simulation_context {
            context.simulation_id.clone_from(&named);
        }
        self.turn.renamed = Some((planned, named));
    }

    pub(super) fn say(&mut self, source: u32, said: Said) {
        self.messages.push(Entry { source, said });
    }

    /// Drops the plan. The planner learns the reason for each call.
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

    /// Records the result of a call.
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

    /// What became of the turn so far.
    pub(super) fn judged(&self, is_unchecked: bool) -> Ending {
        let steps = self.turn_steps();
        let is_open =
            self.turn.unclear || self.turn.rejected.is_some() || self.turn.limit.is_some();
        if steps.iter().any(|step| step.error.is_some()) {
            Ending::Failed
        } else if is_open || steps.is_empty() || is_unchecked {
            Ending::Open
        } else {
            Ending::Done
        }
    }

    /// Ends the turn. A request that was not carried out stays open until a later turn loads, changes or runs something:
    /// the answer to a question in between does not carry it out.
    pub(super) fn end_turn(&mut self, is_unchecked: bool) {
        self.ending = self.judged(is_unchecked);
        let acted = |step: &LoggedStep| tool::CRITICAL.contains(&step.tool.as_str());
        self.is_owing = match self.ending {
            Ending::Done => self.is_owing && !self.turn_steps().iter().any(acted),
            Ending::Failed | Ending::Open => true,
        };
    }

    /// What became of the conversation.
    pub(super) fn outcome(&self) -> Ending {
        match self.ending {
            Ending::Done if self.is_owing => Ending::Open,
            ending => ending,
        }
    }

    /// The conversation for a model. It leaves confirmations out: model APIs allow no message
    /// between a call and its result, and the result tells the outcome.
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
    if let Some(models) = content.get("models").and_then(Value::as_array) {
        return short_models(models, bytes, step);
    }
    let mut kept = content.clone();
    if let Some(fields) = kept.as_object_mut() {
        fields.retain(|_, value| value.to_string().len() <= RESULT_BYTES_MAX / 8);
        fields.insert("omitted".to_owned(), json!({ "bytes": bytes, "step": step }));
        return kept;
    }
    json!({ "omitted": { "bytes": bytes, "step": step } })
}

/// A long list of models: what identifies them, for as many as fit.
fn short_models(models: &[Value], bytes: usize, step: u32) -> Value {
    let mut left = RESULT_BYTES_MAX;
    let short = |model: &Value| {
        let mut kept = model.clone();
        if let Some(fields) = kept.as_object_mut() {
            fields.retain(|name, _| ["model_path", "drug", "route"].contains(&name.as_str()));
        }
        left = left.checked_sub(kept.to_string().len())?;
        Some(kept)
    };
    let kept: Vec<Value> = models.iter().map_while(short).collect();
    json!({ "models": kept, "omitted": { "bytes": bytes, "step": step } })
}
