//! The state of a session.

use std::collections::BTreeMap;

use graph::effect::{Message, ToolCall, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::interpret;
use super::judge;
use super::plan::Plan;

/// Largest tool result that the session's result includes, in bytes of JSON. The journal holds a
/// larger one with its step.
const RESULT_BYTES_MAX: usize = 32 * 1024;

/// Most bytes of tool results in the session's result. With the report it stays far below the
/// journal's largest payload.
const RESULTS_BYTES_MAX: usize = 1024 * 1024;

const FINDINGS_MAX: usize = 60;

const LIMITATIONS_MAX: usize = 60;

/// A tool call, and its result or error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutedToolCall {
    pub function: String,
    pub params: Value,
    pub result: Option<Value>,
    pub error: Option<String>,
}

/// The result of a plan step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepExecutionResult {
    /// Index of the step, from 0.
    pub step_index: usize,
    pub natural_language_instruction: String,
    /// The calls made for the step, and calls of earlier steps whose answers it shares.
    pub executed_calls: Vec<ExecutedToolCall>,
}

/// A problem in a tool's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Index of the step that found it, from 0.
    pub step_index: usize,
    pub function: String,
    pub finding: String,
    /// The subjects that it is about, such as `bgp`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
}

/// The state of a session: first the specification's fields, then the working state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub user_query: String,
    pub device_name: String,
    pub objective: String,
    pub working_plan_steps: Vec<String>,
    /// The steps' results; a retried step has several.
    pub execution_results: Vec<StepExecutionResult>,
    /// Limitations, one a line.
    pub tool_limitations_report: Option<String>,
    pub max_retries: u32,
    pub current_retries: u32,
    /// True: write the report. False: retry steps.
    pub objective_achieved_assessment: Option<bool>,
    /// The assessor's instructions for the retry.
    pub assessor_feedback_for_retry: Option<String>,
    pub assessor_notes_for_final_report: Option<String>,
    /// The report's paragraphs.
    pub summary: Option<Vec<String>>,
    pub(super) work: Work,
}

/// The working state beside the specification's fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Work {
    /// Version of the graph whose rules apply, from 5 on.
    #[serde(default)]
    pub version: u32,
    pub plans: BTreeMap<String, Plan>,
    /// Whether the bundled server reads a file that the input names.
    pub has_inventory: bool,
    pub servers: Vec<String>,
    /// The read-only tools of the servers.
    pub offered: Vec<ToolSpec>,
    pub get_devices: Option<ToolSpec>,
    pub intent: String,
    /// Whether the query names the intent.
    pub is_intent_recognised: bool,
    /// The interface in the query.
    pub interface: Option<String>,
    /// The VRF in the query.
    pub vrf: Option<String>,
    /// The remaining steps of this attempt, next first.
    pub agenda: Vec<usize>,
    /// The current step's conversation.
    pub transcript: Vec<Message>,
    /// Calls that passed validation and are waiting to be made.
    pub pending: Vec<ToolCall>,
    /// Number of calls made for the current step.
    pub made: Vec<ExecutedToolCall>,
    /// Number of replies about the current step.
    pub rounds: u32,
    /// Index of this attempt's first result.
    pub attempt_from: usize,
    pub findings: Vec<Finding>,
    pub limitations: Vec<String>,
    /// Why a step was not done, by its index.
    pub not_done: BTreeMap<usize, String>,
    /// Whether the rules chose the calls of the current step, because the model called no tool.
    pub is_by_rules: bool,
    /// The devices that the question is about.
    pub devices: Vec<String>,
    /// The limit that was reached.
    pub limit: Option<String>,
    /// The journal step that led here: the source of the next message.
    pub source: u32,
}

/// Status of a plan step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepStatus {
    Answered,
    Failed,
    /// No tool was called: the condition of the step was not met.
    NotNeeded,
    NotDone,
}

impl State {
    pub(super) fn known(&self) -> interpret::Known<'_> {
        interpret::Known {
            device: &self.device_name,
            interface: self.work.interface.as_deref(),
            vrf: self.work.vrf.as_deref(),
            is_anything_found: !self.work.findings.is_empty(),
        }
    }

    /// Index and text of the current step.
    pub(super) fn step(&self) -> Option<(usize, &str)> {
        let index = *self.work.agenda.first()?;
        Some((index, self.working_plan_steps.get(index)?))
    }

    /// Status of a step after its last attempt.
    pub(super) fn status(&self, index: usize) -> StepStatus {
        let last = self.execution_results.iter().rev().find(|result| result.step_index == index);
        let calls = last.map_or(&[][..], |result| &result.executed_calls);
        let step = self.working_plan_steps.get(index).map_or("", String::as_str);
        if calls.iter().any(|call| call.error.is_none()) {
            StepStatus::Answered
        } else if !calls.is_empty() {
            StepStatus::Failed
        } else if last.is_some() && interpret::condition(step).is_some() {
            StepStatus::NotNeeded
        } else {
            StepStatus::NotDone
        }
    }

    /// The steps with this status.
    pub(super) fn steps_with(&self, status: StepStatus) -> Vec<usize> {
        let all = 0..self.working_plan_steps.len();
        all.filter(|index| self.status(*index) == status).collect()
    }

    /// The answer to the same call in this attempt, so that several steps share one call.
    pub(super) fn answered(&self, call: &ToolCall) -> Option<ExecutedToolCall> {
        let of_steps = self.execution_results.get(self.work.attempt_from..).unwrap_or_default();
        let made = of_steps.iter().flat_map(|result| &result.executed_calls);
        let same = |made: &&ExecutedToolCall| {
            made.function == call.tool && made.params == call.arguments && made.error.is_none()
        };
        made.chain(&self.work.made).find(same).cloned()
    }

    /// Adds a limitation, once.
    pub(super) fn limited(&mut self, what: String) {
        let limitations = &mut self.work.limitations;
        if !limitations.contains(&what) && limitations.len() < LIMITATIONS_MAX {
            limitations.push(what);
            self.tool_limitations_report = Some(limitations.join("\n"));
        }
    }

    /// Adds a finding, once.
    pub(super) fn found(&mut self, finding: Finding) {
        let findings = &mut self.work.findings;
        let is_new = findings.iter().all(|known| known.finding != finding.finding);
        if is_new && findings.len() < FINDINGS_MAX {
            findings.push(finding);
        }
    }

    /// Ends the current step.
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
        self.work.is_by_rules = false;
    }

    /// The findings, those that the question asks about first.
    fn ranked(&self) -> Vec<&Finding> {
        let mut findings: Vec<&Finding> = self.work.findings.iter().collect();
        findings.sort_by_key(|found| !judge::is_relevant(self, found));
        findings
    }

    pub(super) fn result(&self) -> Value {
        let mut left = RESULTS_BYTES_MAX;
        let results: Vec<Value> =
            self.execution_results.iter().map(|result| shown(result, &mut left)).collect();
        let judged = judge::judgements(self);
        let mut result = json!({
            "verdict": judge::outcome(self, &judged),
            "judgements": judge::shown(&judged),
            "device_name": self.device_name,
            "objective": self.objective,
            "intent": self.work.intent,
            "summary": self.summary,
            "findings": self.ranked(),
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

/// A step's result, with oversized tool results left out.
fn shown(result: &StepExecutionResult, left: &mut usize) -> Value {
    let call = |call: &ExecutedToolCall, left: &mut usize| {
        let bytes = call.result.as_ref().map_or(0, |result| result.to_string().len());
        let fits = bytes <= RESULT_BYTES_MAX && bytes <= *left;
        let mut shown = json!(call);
        if fits {
            *left -= bytes;
        } else {
            shown["result"] = json!({"left_out_bytes": bytes, "where": "journal"});
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
