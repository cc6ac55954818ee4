//! The report: findings and limitations.

use serde_json::{Value, json};

use super::state::{Standing, State};

/// The form's name.
pub(super) const REPORT: &str = "report";

/// What begins a finding that only the log shows.
pub(super) const LOGGED: &str = "logged: ";

/// What begins the paragraph of limitations.
pub(super) const NOT_FOUND_OUT: &str = "Not found out: ";

/// Most paragraphs of a report, and the longest, in characters.
const PARAGRAPHS_MAX: usize = 30;
const PARAGRAPH_CHARS_MAX: usize = 1_000;

/// The schema of a report.
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

/// The report that a form holds, if it is one.
pub(super) fn parse(form: &Value) -> Option<Vec<String>> {
    let summary = form.get("summary")?.as_array()?;
    let paragraphs = summary.iter().filter_map(Value::as_str).map(str::trim);
    let cut = |text: &str| text.chars().take(PARAGRAPH_CHARS_MAX).collect::<String>();
    let paragraphs: Vec<String> =
        paragraphs.filter(|text| !text.is_empty()).take(PARAGRAPHS_MAX).map(cut).collect();
    (!paragraphs.is_empty()).then_some(paragraphs)
}

/// The report by rules.
pub(super) fn by_rules(state: &State) -> Vec<String> {
    let device = &state.device_name;
    let answered = state.steps_that(Standing::Answered).len();
    let (findings, logged): (Vec<&str>, Vec<&str>) = state
        .work
        .findings
        .iter()
        .map(|found| found.finding.as_str())
        .partition(|finding| !finding.starts_with(LOGGED));
    let mut summary = vec![match (findings.len(), logged.len(), answered) {
        (0, 0, 0) => format!("{device}: nothing could be checked."),
        (0, 0, _) if state.work.limitations.is_empty() => {
            format!("{device}: nothing is out of order.")
        }
        (0, 0, _) => format!("{device}: nothing is out of order in what could be checked."),
        (0, _, _) => {
            format!("{device}: nothing is out of order now, but the log tells of trouble.")
        }
        (1, _, _) => format!("{device}: one thing is out of order."),
        (many, _, _) => format!("{device}: {many} things are out of order."),
    }];
    summary.extend(findings.iter().chain(&logged).map(|finding| (*finding).to_owned()));
    if !state.work.is_intent_recognised {
        let intent = &state.work.intent;
        summary.push(format!("The query names no intent that is known, so {intent} was done."));
    }
    if !state.work.limitations.is_empty() {
        summary.push(format!("{NOT_FOUND_OUT}{}", state.work.limitations.join("; ")));
    }
    if state.current_retries > 0 {
        let notes = state.assessor_notes_for_final_report.as_deref().unwrap_or_default();
        summary.push(format!("{notes} Repetitions: {}.", state.current_retries));
    }
    summary.truncate(PARAGRAPHS_MAX);
    summary.iter().map(|text| text.trim().chars().take(PARAGRAPH_CHARS_MAX).collect()).collect()
}
