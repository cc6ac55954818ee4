//! Assesses whether the question is answered or steps must be retried.

use serde_json::{Value, json};

use super::judge::{self, Judgement, Verdict};
use super::state::{State, StepStatus};

pub(super) const ASSESSMENT: &str = "assessment";

const TEXT_CHARS_MAX: usize = 1_000;

const REASON_CHARS_MAX: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assessment {
    pub is_achieved: bool,
    pub notes: String,
    /// Instructions for the retry.
    pub feedback: String,
    pub steps_to_repeat: Vec<usize>,
}

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["objective_achieved", "notes"],
        "properties": {
            "objective_achieved": {"type": "boolean", "description": "True if the results answer the objective, or nothing more can be learned; false to retry steps."},
            "notes": {"type": "string", "description": "Your assessment in a sentence or two, for the report."},
            "feedback": {"type": "string", "description": "What to do differently when steps are retried."},
            "steps_to_repeat": {"type": "array", "items": {"type": "integer", "minimum": 0}, "description": "The steps to retry, from 0."}
        }
    })
}

impl Assessment {
    /// Parses an assessment from a form.
    pub(super) fn parse(form: &Value, steps: usize) -> Option<Self> {
        let text = |name: &str| {
            let text = form.get(name).and_then(Value::as_str).unwrap_or_default().trim();
            text.chars().take(TEXT_CHARS_MAX).collect::<String>()
        };
        let repeat = form.get("steps_to_repeat").and_then(Value::as_array);
        let index = |step: &Value| usize::try_from(step.as_u64()?).ok().filter(|n| *n < steps);
        let mut steps_to_repeat: Vec<usize> =
            repeat.into_iter().flatten().filter_map(index).collect();
        steps_to_repeat.sort_unstable();
        steps_to_repeat.dedup();
        Some(Self {
            is_achieved: form.get("objective_achieved")?.as_bool()?,
            notes: text("notes"),
            feedback: text("feedback"),
            steps_to_repeat,
        })
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "objective_achieved": self.is_achieved,
            "notes": self.notes,
            "feedback": self.feedback,
            "steps_to_repeat": self.steps_to_repeat,
        })
    }
}

/// Parts of error messages that say that a repetition fails in the same way, in lower case.
///
/// The wording is that of gRPC's status codes, and of Cisco IOS, Junos and Arista EOS for commands that
/// they do not know.
const LASTING: &[&str] = &[
    "not supported",
    "unsupported",
    "not implemented",
    "unimplemented",
    "does not support",
    "not available on this",
    "unavailable command",
    "unknown command",
    "invalid command",
    "invalid input detected",
    "incomplete command",
    "ambiguous command",
    "syntax error",
    "unknown element",
    "permission denied",
    "permission_denied",
    "permissiondenied",
    "unauthorized",
    "not authorized",
    "unauthenticated",
    "authorization failed",
    "command authorization",
    "access denied",
    "forbidden",
    "authentication failed",
    "invalid argument",
    "invalid_argument",
    "invalidargument",
    "unknown tool",
    "unknown device",
    "no such device",
    "device not found",
    "not in the inventory",
];

/// Parts of error messages after which a repetition may succeed, whatever else they say.
const PASSING: &[&str] = &[
    "timeout",
    "timed out",
    "deadline",
    "code = unavailable",
    "service unavailable",
    "temporar",
    "busy",
    "try again",
    "retry",
    "reset by peer",
    "refused",
    "too many",
    "resource exhausted",
];

/// Whether an error says that the tool or the device cannot do it: a repetition would fail in the same way.
fn is_lasting(error: &str) -> bool {
    let error = error.to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| error.contains(part));
    says(LASTING) && !says(PASSING)
}

/// The assessment by rules: a failed step may be retried, unless its errors are limitations of the tool or
/// the device; a step without a suitable tool is not.
///
/// Source: the network specification, objective assessor, decision logic.
pub(super) fn by_rules(state: &State) -> Assessment {
    let not_done = state.steps_with(StepStatus::NotDone);
    let answered = state.steps_with(StepStatus::Answered).len();
    let all = state.working_plan_steps.len();
    let (limited, failed): (Vec<usize>, Vec<usize>) = state
        .steps_with(StepStatus::Failed)
        .into_iter()
        .partition(|index| state.work.version >= 5 && is_limited(state, *index));
    if failed.is_empty() && limited.is_empty() && not_done.is_empty() {
        return done(met(state));
    }
    if failed.is_empty() && !limited.is_empty() {
        let reasons: Vec<String> = limited.iter().map(|index| reason(state, *index)).collect();
        let notes = format!(
            "Objective partially met due to limitations: {answered} of {all} steps answered, {} cannot \
             succeed when repeated, {} cannot be done with the available tools. {}",
            limited.len(),
            not_done.len(),
            reasons.join(" ")
        );
        return done(notes);
    }
    if failed.is_empty() {
        let notes = format!(
            "Objective partially met: {answered} of {all} steps answered, {} cannot be done with \
             the available tools.",
            not_done.len()
        );
        return done(notes);
    }
    let reasons: Vec<String> = failed.iter().map(|index| reason(state, *index)).collect();
    Assessment {
        is_achieved: false,
        notes: format!(
            "Objective not met: {answered} of {all} steps answered, {} failed, {} cannot be done \
             with the available tools.",
            failed.len() + limited.len(),
            not_done.len()
        ),
        feedback: format!("Repeat the failed steps. {}", reasons.join(" ")),
        steps_to_repeat: failed,
    }
}

/// Whether the sentences were judged.
fn met(state: &State) -> String {
    let judged = judge::judgements(state);
    let is_open = |judgement: &&Judgement| {
        matches!(judgement.verdict, Verdict::NotJudged | Verdict::NotAnswered)
    };
    let open = judged.iter().filter(is_open).count();
    match open {
        0 => "Objective met: every necessary sentence was judged.".to_owned(),
        _ => format!(
            "Objective partially met: {open} of {} sentences were not judged.",
            judged.len()
        ),
    }
}

fn done(notes: String) -> Assessment {
    Assessment { is_achieved: true, notes, feedback: String::new(), steps_to_repeat: vec![] }
}

/// Whether every error of a step's last attempt is a limitation.
fn is_limited(state: &State, index: usize) -> bool {
    let last = state.execution_results.iter().rev().find(|result| result.step_index == index);
    let mut errors = last.into_iter().flat_map(|result| &result.executed_calls);
    errors.all(|call| call.error.as_deref().is_some_and(is_lasting))
}

/// The error of a step's last attempt.
fn reason(state: &State, index: usize) -> String {
    let last = state.execution_results.iter().rev().find(|result| result.step_index == index);
    let calls = last.map_or(&[][..], |result| &result.executed_calls);
    let failed = calls.iter().find_map(|call| Some((&call.function, call.error.as_ref()?)));
    match failed {
        Some((function, error)) => {
            let error: String = error.chars().take(REASON_CHARS_MAX).collect();
            format!("Step {}: {function} failed: {error}.", index + 1)
        }
        None => format!("Step {} was not done.", index + 1),
    }
}
