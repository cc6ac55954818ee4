//! The state of a session.

use std::collections::BTreeMap;

use graph::effect::{Message, ToolCall, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::interpret;
use super::plan::Plan;

/// Largest result of a tool that stands in the session's result as it is, in bytes of JSON. A larger
/// one is in the journal, with the step that brought it.
const RESULT_BYTES_MAX: usize = 32 * 1024;

/// Most bytes of tool results in the session's result. With the report it stays far below the
/// largest payload that a journal takes.
const RESULTS_BYTES_MAX: usize = 1024 * 1024;

/// Most findings that are kept.
const FINDINGS_MAX: usize = 60;

/// Most limitations that are kept.
const LIMITATIONS_MAX: usize = 60;

/// A tool call as it was made, and what came of it: a result or an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutedToolCall {
    /// The tool.
    pub function: String,
    /// Its arguments.
    pub params: Value,
    /// What it answered.
    pub result: Option<Value>,
    /// Why it did not.
    pub error: Option<String>,
}

/// What came of a step of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepExecutionResult {
    /// The step, from 0.
    pub step_index: usize,
    /// The step in words.
    pub natural_language_instruction: String,
    /// The calls that were made for it, and those of earlier steps whose answers it shares.
    pub executed_calls: Vec<ExecutedToolCall>,
}

/// Something out of order that a tool showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The step in which it was found, from 0.
    pub step_index: usize,
    /// The tool that showed it.
    pub function: String,
    /// What it is.
    pub finding: String,
}

/// The state of a session: first what the specification names, then what the work needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The question as it was asked.
    pub user_query: String,
    /// The device that it is about.
    pub device_name: String,
    /// What is to be found out.
    pub objective: String,
    /// The plan's steps.
    pub working_plan_steps: Vec<String>,
    /// What came of them; a step that was repeated is there again.
    pub execution_results: Vec<StepExecutionResult>,
    /// What could not be done, a line each.
    pub tool_limitations_report: Option<String>,
    /// Most repetitions.
    pub max_retries: u32,
    /// Repetitions so far.
    pub current_retries: u32,
    /// True to go on to the report, false to repeat.
    pub objective_achieved_assessment: Option<bool>,
    /// What the assessor wants repeated, and why.
    pub assessor_feedback_for_retry: Option<String>,
    /// The assessor's words for the report.
    pub assessor_notes_for_final_report: Option<String>,
    /// The report, a paragraph each.
    pub summary: Option<Vec<String>>,
    /// The rest.
    pub(super) work: Work,
}

/// What the work needs besides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Work {
    /// The plans to choose from, by intent.
    pub plans: BTreeMap<String, Plan>,
    /// Whether the server that ships answers from a file of the input's.
    pub has_inventory: bool,
    /// The servers that are asked.
    pub servers: Vec<String>,
    /// Those of their tools that are used.
    pub offered: Vec<ToolSpec>,
    /// The tool that lists the devices, if a server has it.
    pub get_devices: Option<ToolSpec>,
    /// The intent that was chosen.
    pub intent: String,
    /// Whether the query named it.
    pub is_intent_recognised: bool,
    /// The interface that the query names.
    pub interface: Option<String>,
    /// The VRF that the query names.
    pub vrf: Option<String>,
    /// The steps that are still to be done in this attempt, the next one first.
    pub agenda: Vec<usize>,
    /// The conversation about the step that is being done.
    pub transcript: Vec<Message>,
    /// Calls that passed their check and are to be made.
    pub pending: Vec<ToolCall>,
    /// Calls made for the step that is being done.
    pub made: Vec<ExecutedToolCall>,
    /// Replies about the step that is being done.
    pub rounds: u32,
    /// Where in the results this attempt begins.
    pub attempt_from: usize,
    /// What is out of order.
    pub findings: Vec<Finding>,
    /// What could not be done.
    pub limitations: Vec<String>,
    /// The limit that was reached.
    pub limit: Option<String>,
    /// The step of the journal that led here: the source of what is said next.
    pub source: u32,
}

/// How a step of the plan stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// A tool answered.
    Answered,
    /// Tools were called and none answered.
    Failed,
    /// No tool was called, for the step's condition was not met.
    NotNeeded,
    /// No tool was called.
    NotDone,
}

impl State {
    /// What is known that arguments can be made of.
    pub(super) fn known(&self) -> interpret::Known<'_> {
        interpret::Known {
            device: &self.device_name,
            interface: self.work.interface.as_deref(),
            vrf: self.work.vrf.as_deref(),
            is_anything_found: !self.work.findings.is_empty(),
        }
    }

    /// The step that is being done, and its words.
    pub(super) fn step(&self) -> Option<(usize, &str)> {
        let index = *self.work.agenda.first()?;
        Some((index, self.working_plan_steps.get(index)?))
    }

    /// How a step stands after its last attempt.
    pub(super) fn standing(&self, index: usize) -> Standing {
        let last = self.execution_results.iter().rev().find(|result| result.step_index == index);
        let calls = last.map_or(&[][..], |result| &result.executed_calls);
        let step = self.working_plan_steps.get(index).map_or("", String::as_str);
        if calls.iter().any(|call| call.error.is_none()) {
            Standing::Answered
        } else if !calls.is_empty() {
            Standing::Failed
        } else if last.is_some() && interpret::condition(step).is_some() {
            Standing::NotNeeded
        } else {
            Standing::NotDone
        }
    }

    /// The steps that stand so.
    pub(super) fn steps_that(&self, standing: Standing) -> Vec<usize> {
        let all = 0..self.working_plan_steps.len();
        all.filter(|index| self.standing(*index) == standing).collect()
    }

    /// What a tool has answered to the same call in this attempt. It is not asked again: another
    /// step looks at the same answer.
    pub(super) fn answered(&self, call: &ToolCall) -> Option<ExecutedToolCall> {
        let of_steps = self.execution_results.get(self.work.attempt_from..).unwrap_or_default();
        let made = of_steps.iter().flat_map(|result| &result.executed_calls);
        let same = |made: &&ExecutedToolCall| {
            made.function == call.tool && made.params == call.arguments && made.error.is_none()
        };
        made.chain(&self.work.made).find(same).cloned()
    }

    /// Notes what could not be done, once.
    pub(super) fn limited(&mut self, what: String) {
        let limitations = &mut self.work.limitations;
        if !limitations.contains(&what) && limitations.len() < LIMITATIONS_MAX {
            limitations.push(what);
            self.tool_limitations_report = Some(limitations.join("\n"));
        }
    }

    /// Notes what is out of order, once.
    pub(super) fn found(&mut self, step_index: usize, function: &str, finding: String) {
        let findings = &mut self.work.findings;
        let is_new = findings.iter().all(|known| known.finding != finding);
        if is_new && findings.len() < FINDINGS_MAX {
            findings.push(Finding { step_index, function: function.to_owned(), finding });
        }
    }

    /// Ends the step that is being done.
    pub(super) fn step_is_done(&mut self) {
        let Some((step_index, words)) = self.step() else { return };
        let result = StepExecutionResult {
            step_index,
            natural_language_instruction: words.to_owned(),
            executed_calls: std::mem::take(&mut self.work.made),
        };
        self.execution_results.push(result);
        self.work.agenda.remove(0);
        self.work.transcript.clear();
        self.work.rounds = 0;
    }

    /// The session's result.
    pub(super) fn result(&self) -> Value {
        let mut left = RESULTS_BYTES_MAX;
        let results: Vec<Value> =
            self.execution_results.iter().map(|result| shown(result, &mut left)).collect();
        let mut result = json!({
            "device_name": self.device_name,
            "objective": self.objective,
            "intent": self.work.intent,
            "summary": self.summary,
            "findings": self.work.findings,
            "execution_results": results,
            "tool_limitations_report": self.tool_limitations_report,
            "assessor_notes_for_final_report": self.assessor_notes_for_final_report,
            "current_retries": self.current_retries,
        });
        if let Some(limit) = &self.work.limit {
            result["limit_reached"] = json!(limit);
        }
        result
    }
}

/// A step's result, without what would make the session's too large.
fn shown(result: &StepExecutionResult, left: &mut usize) -> Value {
    let call = |call: &ExecutedToolCall, left: &mut usize| {
        let bytes = call.result.as_ref().map_or(0, |result| result.to_string().len());
        let fits = bytes <= RESULT_BYTES_MAX && bytes <= *left;
        let mut shown = json!(call);
        if fits {
            *left -= bytes;
        } else {
            shown["result"] = json!({"left_out_bytes": bytes, "where": "the journal has it"});
        }
        shown
    };
    let calls: Vec<Value> = result.executed_calls.iter().map(|made| call(made, left)).collect();
    json!({
        "step_index": result.step_index,
        "natural_language_instruction": result.natural_language_instruction,
        "executed_calls": calls,
    })
}
