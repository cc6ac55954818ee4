//! The report: findings and limitations.

use serde_json::{Value, json};

use super::interpret;
use super::judge::{self, Judgement, Outcome, Verdict};
use super::state::{State, StepStatus};

pub(super) const REPORT: &str = "report";

/// Prefix of a finding that only the log shows.
pub(super) const LOGGED: &str = "logged: ";

/// Prefix of the limitations paragraph.
pub(super) const NOT_CHECKED: &str = "Not checked: ";

/// Prefix of a problem that the question does not ask about.
const ELSEWHERE: &str = "Also found: ";

/// Prefix of a model's paragraph.
pub(super) const WRITTEN: &str = "The model writes: ";

/// Most paragraphs of a report, and their longest, in characters.
const PARAGRAPHS_MAX: usize = 30;
const PARAGRAPH_CHARS_MAX: usize = 1_000;

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["summary"],
        "properties": {
            "summary": {
                "type": "array", "minItems": 1, "maxItems": PARAGRAPHS_MAX,
                "items": {"type": "string"},
                "description": "The report, a paragraph each, the most important first."
            }
        }
    })
}

/// Parses a report from a form.
pub(super) fn parse(form: &Value) -> Option<Vec<String>> {
    let summary = form.get("summary")?.as_array()?;
    let paragraphs = summary.iter().filter_map(Value::as_str).map(str::trim);
    let cut = |text: &str| text.chars().take(PARAGRAPH_CHARS_MAX).collect::<String>();
    let paragraphs: Vec<String> =
        paragraphs.filter(|text| !text.is_empty()).take(PARAGRAPHS_MAX).map(cut).collect();
    (!paragraphs.is_empty()).then_some(paragraphs)
}

/// The sentences that were not judged or not answered, with the reason.
fn open(judged: &[Judgement]) -> Vec<String> {
    let line = |judgement: &Judgement| {
        let word = match judgement.verdict {
            Verdict::NotFine if judgement.reason.is_some() => "Not fine",
            Verdict::NotJudged => "Not judged",
            Verdict::NotAnswered => "Not answered",
            _ => return None,
        };
        let reason = judgement.reason.as_deref().unwrap_or("no reason");
        Some(format!("{word}: {} ({reason})", judgement.sentence))
    };
    judged.iter().filter_map(line).collect()
}

/// Whether the question asks about something, and that is in order.
fn is_answered(state: &State, judged: &[Judgement]) -> bool {
    let is_fine = judged.first().is_some_and(|question| question.verdict == Verdict::Fine);
    is_fine && interpret::is_specific(&state.user_query)
}

/// What a model wrote, below what the rules say.
pub(super) fn with_model(state: &State, written: Vec<String>) -> Vec<String> {
    let mut summary = by_rules(state);
    summary.truncate(PARAGRAPHS_MAX / 2);
    summary.extend(written.into_iter().map(|text| format!("{WRITTEN}{text}")));
    summary.truncate(PARAGRAPHS_MAX);
    summary
}

/// The report by rules, without a model.
pub(super) fn by_rules(state: &State) -> Vec<String> {
    let device = &state.device_name;
    let answered = state.steps_with(StepStatus::Answered).len();
    let all = &state.work.findings;
    let (logged, findings): (Vec<_>, Vec<_>) =
        all.iter().partition(|found| found.finding.starts_with(LOGGED));
    let (findings, others): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|found| judge::is_relevant(state, found));
    let judged = judge::judgements(state);
    let outcome = judge::outcome(state, &judged);
    let mut summary = vec![match (findings.len(), logged.len(), answered) {
        (0, 0, 0) if device.is_empty() => {
            "Nothing could be checked: no device was looked up.".to_owned()
        }
        (0, 0, 0) => format!("{device}: nothing could be checked."),
        (0, _, _) if !others.is_empty() => {
            format!("{device}: problems found, none of them in what was asked about.")
        }
        (0, 0, _) if outcome == Outcome::Fine => format!("{device}: no problems found."),
        (0, 0, _) if outcome == Outcome::NotFine => format!("{device}: not as the plan asks."),
        (0, 0, _) if is_answered(state, &judged) => format!(
            "{device}: what was asked about is in order; not all of the plan's sentences were judged."
        ),
        (0, 0, _) => format!("{device}: not judged. No problems in what the rules know."),
        (0, _, _) => {
            format!("{device}: no current problems, but the log shows earlier ones.")
        }
        (1, _, _) => format!("{device}: one problem found."),
        (many, _, _) => format!("{device}: {many} problems found."),
    }];
    summary.extend(findings.iter().chain(&logged).map(|found| found.finding.clone()));
    summary.extend(others.iter().map(|found| format!("{ELSEWHERE}{}", found.finding)));
    summary.extend(open(&judged));
    if !state.work.is_intent_recognised {
        let intent = &state.work.intent;
        summary.push(format!("The query names no known intent; {intent} was run."));
    }
    if !state.work.limitations.is_empty() {
        summary.push(format!("{NOT_CHECKED}{}", state.work.limitations.join("; ")));
    }
    if state.current_retries > 0 {
        let notes = state.assessor_notes_for_final_report.as_deref().unwrap_or_default();
        summary.push(format!("{notes} Retries: {}.", state.current_retries));
    }
    summary.truncate(PARAGRAPHS_MAX);
    summary.iter().map(|text| text.trim().chars().take(PARAGRAPH_CHARS_MAX).collect()).collect()
}
