//! The conclusion of an incident's session: its title, diagnosis and status.

use graph::conclusion::read::{list, text, texts};
use graph::conclusion::{
    Action, Conclusion, Evidence, Fact, Finding, Headings, Note, Place, RecordAt, Tone, Verdict,
};
use graph::presentation::{Advice, Categories, Presentation, Stage, StateField, Word};
use serde_json::Value;

use super::field_path::FieldPath;
use super::message::Incident;
use super::tool::Tool;

pub const PRESENTATION: Presentation = Presentation {
    title,
    conclude,
    advice: ADVICE,
    state: Some(StateField { name: "incident_state", words: WORDS }),
    ..Presentation::DEFAULT
};

/// Categories of errors that kept the agent from running.
const ERROR_CATEGORIES: [&str; 9] = [
    "mcp_connection",
    "mcp_init",
    "bedrock_auth",
    "bedrock_transient",
    "openai_auth",
    "openai_transient",
    "model_unavailable",
    "transcript_miss",
    "unknown",
];

/// The function and its error type.
fn title(input: &Value) -> Option<String> {
    let Incident { lambda_name, error_type, .. } = Incident::parse(input).ok()?;
    Some(match error_type {
        Some(error_type) => format!("{lambda_name} · {error_type}"),
        None => lambda_name,
    })
}

/// `None` without a root cause: a failed session has only a summary.
fn conclude(result: &Value) -> Option<Conclusion> {
    let root_cause = text(result, "root_cause")?;
    let severity = text(result, "severity").unwrap_or("unknown");
    let faults = texts(result, "fault_types");
    let is_unknown = faults.iter().all(|fault| *fault == "unknown");
    let tone = if matches!(severity, "critical" | "high") { Tone::Bad } else { Tone::Warn };
    let verdict = if is_unknown {
        Verdict::new("unknown", Tone::Warn)
    } else {
        // Looked at, and not fine, however severe.
        Verdict::new("diagnosed", Tone::Bad)
    };
    let mut facts = vec![Fact::new("severity", severity).toned(tone)];
    let affected = texts(result, "affected_resources");
    let lists = [("fault", faults), ("affected", affected)];
    let named = lists.into_iter().filter(|(_, texts)| !texts.is_empty());
    facts.extend(named.map(|(name, texts)| Fact::new(name, texts.join(", "))));
    Some(Conclusion {
        title: "Diagnosis",
        verdict: Some(verdict),
        summary: root_cause.to_owned(),
        headings: Headings { summary: "Root cause", findings: "Evidence", actions: "Remediation" },
        facts,
        findings: list(result, "evidence").iter().enumerate().map(finding).collect(),
        actions: list(result, "remediation_plan").iter().map(action).collect(),
        notes: notes(result),
        ..Conclusion::default()
    })
}

/// What was not looked at, and what was masked.
fn notes(result: &Value) -> Vec<Note> {
    let gap = |gap: &Value| {
        let tool = text(gap, "tool").unwrap_or("unknown tool");
        let what = match Tool::named(tool) {
            Some(Tool::RecentChanges) => " (who changed it)",
            _ => "",
        };
        format!("{tool}{what}: {}", text(gap, "why").unwrap_or("unknown"))
    };
    let gaps: Vec<String> = list(result, "not_looked_at").iter().map(gap).collect();
    let masked = result.get("masked").and_then(Value::as_object).into_iter().flatten();
    let masked: Vec<String> = masked.map(|(kind, count)| format!("{kind}: {count}")).collect();
    let mut notes = Vec::new();
    if !gaps.is_empty() {
        notes.push(Note { title: "Not looked at".to_owned(), lines: gaps, tone: Tone::Warn });
    }
    if !masked.is_empty() {
        let title = "Masked before the model and the journal".to_owned();
        notes.push(Note { title, lines: masked, tone: Tone::Neutral });
    }
    notes
}

fn finding((at, claim): (usize, &Value)) -> Finding {
    let tool = text(claim, "tool").unwrap_or("unknown tool");
    let field = text(claim, "field").unwrap_or("unknown field");
    let pointer = FieldPath::parse(field).ok().map(|path| path.to_pointer());
    let record = RecordAt {
        tool: Some(tool.to_owned()),
        place: pointer.map_or(Place::Whole, Place::Pointer),
    };
    Finding {
        text: text(claim, "interpretation").unwrap_or_default().to_owned(),
        evidence: Some(Evidence {
            source: format!("{tool} {field}"),
            quote: Some(text(claim, "value").unwrap_or_default().trim().to_owned()),
            record: Some(record),
        }),
        claim: Some(format!("/evidence/{at}")),
        ..Finding::default()
    }
}

fn action(step: &Value) -> Action {
    let indices = list(step, "evidence_basis").iter().filter_map(Value::as_u64);
    let evidence: Vec<_> = indices.filter_map(|index| usize::try_from(index).ok()).collect();
    let mut notes = Vec::new();
    if evidence.is_empty() {
        notes.push("no evidence".to_owned());
    }
    notes.push(format!("risk {}", text(step, "risk_level").unwrap_or("unknown")));
    let approval = match step.get("requires_approval").and_then(Value::as_bool) {
        Some(true) => "needs approval",
        Some(false) => "needs no approval",
        None => "approval unknown",
    };
    notes.push(approval.to_owned());
    Action {
        title: text(step, "action").unwrap_or("unknown action").to_owned(),
        details: text(step, "details").unwrap_or_default().to_owned(),
        notes,
        evidence,
    }
}

const ADVICE: Advice = &[
    ("BreakerOpen", &["If this many incidents are expected, raise MAX_INCIDENTS_PER_HOUR."]),
    (
        super::graph::CATEGORY_UNDIAGNOSED,
        &[
            "The rules cannot explain the tool results: read them in the records below.",
            "A model may find more: choose one with `--model`.",
        ],
    ),
];

const fn word(word: &'static str, stages: &'static [Stage]) -> Word {
    Word { word, stages, has_run: None, category: Categories::Any }
}

/// The states of the incident specification.
const WORDS: &[Word] = &[
    Word { has_run: Some(true), ..word("INVESTIGATING", &[Stage::Open]) },
    word("RECEIVED", &[Stage::Open]),
    word("DIAGNOSED", &[Stage::Succeeded]),
    word("FAILED", &[Stage::Rejected]),
    Word {
        category: Categories::These(&ERROR_CATEGORIES),
        ..word("ERROR", &[Stage::Failed, Stage::Stopped])
    },
    Word { category: Categories::None, has_run: Some(false), ..word("ERROR", &[Stage::Failed]) },
    word("FAILED", &[Stage::Failed, Stage::Stopped]),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use graph::presentation::Standing;

    #[test]
    fn a_diagnosis_leads_with_its_cause_and_ends_with_its_plan() {
        let found = PRESENTATION
            .conclusion_of(&json!({
                "root_cause": "The permission is gone.",
                "fault_types": ["permission_loss", "throttling"],
                "affected_resources": ["inventory-sync"],
                "severity": "high",
                "evidence": [
                    {"tool": "iam", "field": "a['b.c'][0]", "value": "[]", "interpretation": "nothing allows it"},
                    {"tool": "logs", "field": "error", "value": "", "interpretation": "there are no logs"},
                    {"tool": "logs", "field": "a..b", "value": "x"},
                ],
                "remediation_plan": [
                    {"action": "Put it back", "details": "add s3:GetObject",
                        "evidence_basis": [0, 9], "risk_level": "low", "requires_approval": true},
                    {"action": "Look again"},
                ],
            }))
            .unwrap();
        insta::assert_json_snapshot!(found);
        let place = |at: usize| found.findings[at].evidence.clone().unwrap().record.unwrap().place;
        assert_eq!(place(0), Place::Pointer("/a/b.c/0".to_owned()));
        assert_eq!(place(2), Place::Whole, "no path");
    }

    #[test]
    fn an_unknown_fault_is_not_diagnosed() {
        let verdict = |faults: &[&str], severity: &str| {
            let result = json!({"root_cause": "r", "fault_types": faults, "severity": severity});
            let Verdict { word, tone } = conclude(&result).unwrap().verdict.unwrap();
            (word, tone)
        };
        assert_eq!(verdict(&["unknown"], "low"), ("unknown".to_owned(), Tone::Warn));
        assert_eq!(verdict(&[], "high"), ("unknown".to_owned(), Tone::Warn));
        assert_eq!(verdict(&["throttling"], "low"), ("diagnosed".to_owned(), Tone::Bad));
        assert_eq!(verdict(&["throttling"], "critical"), ("diagnosed".to_owned(), Tone::Bad));
        assert_eq!(conclude(&json!({"incident_state": "FAILED", "lambda_name": "f"})), None);
    }

    #[test]
    fn a_title_names_the_function_and_the_error() {
        let alarm = json!({"AlarmName": "a", "Trigger": {"MetricName": "Throttles",
            "Dimensions": [{"name": "FunctionName", "value": "inventory-sync"}]}});
        for (input, expected) in [
            (
                json!({"lambda_name": "inventory-sync", "error_type": "ETIMEDOUT"}),
                Some("inventory-sync · ETIMEDOUT"),
            ),
            (json!({"lambda_name": "inventory-sync"}), Some("inventory-sync")),
            (alarm, Some("inventory-sync · Throttling")),
            (json!({"query": "why"}), None),
        ] {
            assert_eq!(PRESENTATION.title_of(&input).as_deref(), expected, "{input}");
        }
    }

    #[test]
    fn the_incident_state_follows_the_session() {
        let word = |stage, category, has_run| {
            PRESENTATION.state_of(&Standing { stage, category, has_run }).unwrap()
        };
        use Stage as S;
        for (stage, category, has_run, expected) in [
            (S::Open, None, false, "RECEIVED"),
            (S::Open, None, true, "INVESTIGATING"),
            (S::Succeeded, None, true, "DIAGNOSED"),
            (S::Rejected, Some("rejected"), false, "FAILED"),
            (S::Failed, None, false, "ERROR"),
            (S::Failed, Some("limit"), true, "FAILED"),
            // The agent stopped responding, and the watchdog ended it.
            (S::Failed, Some("agent_lost"), true, "FAILED"),
            (S::Failed, Some("stale"), false, "FAILED"),
            (S::Stopped, None, false, "FAILED"),
        ] {
            assert_eq!(word(stage, category, has_run), ("incident_state", expected), "{stage:?}");
        }
        for category in ERROR_CATEGORIES {
            assert_eq!(word(S::Failed, Some(category), true).1, "ERROR", "{category}");
        }
    }
}
