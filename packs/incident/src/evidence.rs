//! Checks the evidence of a diagnosis against the tool results.
//!
//! A model can hallucinate. So each pointer is resolved: the tool must have been called, and the field
//! must exist and contain the value. The reasons of a failed check go back to the model.

use serde_json::Value;

use super::diagnosis::{Diagnosis, EvidencePointer, FaultType};
use super::field_path::{FieldPath, NotAPath};
use super::tool::{Observations, Tool};

/// Why a diagnosis is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The arguments do not match the schema.
    #[error("the arguments do not match the schema: {0}")]
    Schema(String),
    #[error("root_cause is empty")]
    NoRootCause,
    /// There is no fault type, one is named twice, or `unknown` is not alone.
    #[error("fault_types must name each detected fault once, or be [\"unknown\"] alone")]
    FaultTypes,
    #[error("evidence is empty: cite what the tools returned, errors included")]
    NoEvidence,
    /// A fault is claimed without evidence.
    #[error("{0} is claimed, but every evidence value is empty; a gap supports no claim")]
    OnlyGaps(FaultType),
    #[error("evidence[{at}]: {tool:?} is not one of the tools")]
    NoSuchTool { at: usize, tool: String },
    #[error("evidence[{at}]: {tool} was never called")]
    NeverCalled { at: usize, tool: &'static str },
    /// The field is not a valid path.
    #[error("evidence[{at}]: field {field:?}: {why}")]
    NotAField { at: usize, field: String, why: NotAPath },
    /// No result of the tool has the field.
    #[error("evidence[{at}]: {tool} returned nothing at {field:?}")]
    NoSuchField { at: usize, tool: &'static str, field: String },
    /// The field has another value.
    #[error("evidence[{at}]: {value:?} is not what {tool} returned at {field:?}")]
    NotObserved {
        at: usize,
        tool: &'static str,
        field: String,
        /// What was claimed, shortened.
        value: String,
    },
    /// A remediation step names no evidence.
    #[error("remediation_plan[{step}]: evidence_basis is empty")]
    NoBasis { step: usize },
    /// A remediation step names evidence that does not exist.
    #[error("remediation_plan[{step}]: evidence index {index} is out of range, there are {count}")]
    OutOfRange { step: usize, index: usize, count: usize },
    /// A remediation step names only gaps.
    #[error("remediation_plan[{step}]: all the evidence that it names is empty")]
    GapBasis { step: usize },
}

/// Most characters of a refused value that a message repeats.
const VALUE_SHOWN_CHARS_MAX: usize = 120;

/// All reasons against a diagnosis; empty when it is valid.
pub fn check(diagnosis: &Diagnosis, seen: &Observations) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    if diagnosis.root_cause.trim().is_empty() {
        refusals.push(Refusal::NoRootCause);
    }
    refusals.extend(check_faults(diagnosis));
    for (at, pointer) in diagnosis.evidence.iter().enumerate() {
        refusals.extend(check_pointer(at, pointer, seen));
    }
    for step in 0..diagnosis.remediation_plan.len() {
        refusals.extend(check_step(step, diagnosis));
    }
    refusals
}

fn check_faults(diagnosis: &Diagnosis) -> Option<Refusal> {
    let faults = &diagnosis.fault_types;
    let is_repeated = |(at, fault)| faults[..at].contains(fault);
    if faults.is_empty()
        || faults.iter().enumerate().any(is_repeated)
        || (faults.len() > 1 && faults.contains(&FaultType::Unknown))
    {
        return Some(Refusal::FaultTypes);
    }
    if diagnosis.evidence.is_empty() {
        return Some(Refusal::NoEvidence);
    }
    let claim = faults.iter().find(|fault| **fault != FaultType::Unknown)?;
    let only_gaps = diagnosis.evidence.iter().all(EvidencePointer::is_gap);
    only_gaps.then_some(Refusal::OnlyGaps(*claim))
}

fn check_pointer(at: usize, pointer: &EvidencePointer, seen: &Observations) -> Option<Refusal> {
    let Some(tool) = Tool::named(&pointer.tool) else {
        return Some(Refusal::NoSuchTool { at, tool: shown(&pointer.tool) });
    };
    if !seen.has(tool) {
        return Some(Refusal::NeverCalled { at, tool: tool.name() });
    }
    if pointer.is_gap() {
        return None;
    }
    let field = shown(&pointer.field);
    let path = match FieldPath::parse(&pointer.field) {
        Ok(path) => path,
        Err(why) => return Some(Refusal::NotAField { at, field, why }),
    };
    let mut found = seen.of(tool).filter_map(|seen| path.resolve(&seen.output)).peekable();
    if found.peek().is_none() {
        return Some(Refusal::NoSuchField { at, tool: tool.name(), field });
    }
    let is_observed = found.any(|found| is_quoted(&pointer.value, found));
    let value = shown(&pointer.value);
    (!is_observed).then(|| Refusal::NotObserved { at, tool: tool.name(), field, value })
}

fn check_step(step: usize, diagnosis: &Diagnosis) -> Vec<Refusal> {
    let basis = &diagnosis.remediation_plan[step].evidence_basis;
    let count = diagnosis.evidence.len();
    if basis.is_empty() {
        return vec![Refusal::NoBasis { step }];
    }
    let out_of_range: Vec<Refusal> = basis
        .iter()
        .filter(|index| **index >= count)
        .map(|index| Refusal::OutOfRange { step, index: *index, count })
        .collect();
    if !out_of_range.is_empty() {
        return out_of_range;
    }
    let only_gaps = basis.iter().all(|index| diagnosis.evidence[*index].is_gap());
    if only_gaps { vec![Refusal::GapBasis { step }] } else { vec![] }
}

/// Whether a value quotes what was found: the whole, as text or as JSON, a part of it, or whole words
/// of a text.
fn is_quoted(value: &str, found: &Value) -> bool {
    let as_json = serde_json::from_str::<Value>(value).ok();
    is_within(value, as_json.as_ref(), found)
}

fn is_within(value: &str, as_json: Option<&Value>, found: &Value) -> bool {
    if as_json == Some(found) {
        return true;
    }
    match found {
        Value::String(text) => text == value || quotes_words(text, value),
        Value::Array(elements) => elements.iter().any(|element| is_within(value, as_json, element)),
        Value::Object(members) => {
            members.iter().any(|(name, member)| name == value || is_within(value, as_json, member))
        }
        // Compared as JSON above.
        Value::Number(_) | Value::Bool(_) | Value::Null => false,
    }
}

/// Whether a text contains the quote as whole words: `denied` does not match `undenied`.
fn quotes_words(text: &str, quote: &str) -> bool {
    let quote = quote.trim();
    if !quote.chars().any(char::is_alphanumeric) {
        return false;
    }
    let starts_in_word = quote.starts_with(char::is_alphanumeric);
    let ends_in_word = quote.ends_with(char::is_alphanumeric);
    // Overlapping matches too: in repeated words, only a later match may be whole words.
    let mut places = text.char_indices().filter(|(at, _)| text[*at..].starts_with(quote));
    places.any(|(at, _)| {
        let cut_before = starts_in_word && text[..at].ends_with(char::is_alphanumeric);
        let after = &text[at + quote.len()..];
        let cut_after = ends_in_word && after.starts_with(char::is_alphanumeric);
        !cut_before && !cut_after
    })
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(VALUE_SHOWN_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::diagnosis::{RemediationStep, RiskLevel, Severity};
    use super::super::tool::Observation;
    use super::*;

    fn seen() -> Observations {
        let mut seen = Observations::default();
        seen.push(Observation::of_result(
            Tool::RecentLogs,
            &json!({"log_group": "/aws/lambda/f", "events": [
                {"timestamp": "t", "message": "[ERROR] AccessDenied: s3:GetObject on b"},
                {"timestamp": "t", "message": "access undenied"}]}),
            false,
        ));
        seen.push(Observation::of_error(Tool::IamState, "iam:GetRole failed: no such file"));
        seen
    }

    fn pointer(tool: &str, field: &str, value: &str) -> EvidencePointer {
        let [tool, field, value] = [tool, field, value].map(str::to_owned);
        EvidencePointer { tool, field, value, interpretation: "i".to_owned() }
    }

    fn diagnosis(fault: FaultType, evidence: Vec<EvidencePointer>) -> Diagnosis {
        Diagnosis {
            root_cause: "r".to_owned(),
            fault_types: vec![fault],
            affected_resources: vec![],
            severity: Severity::High,
            evidence,
            remediation_plan: vec![],
        }
    }

    fn refusals(diagnosis: &Diagnosis) -> String {
        let texts: Vec<_> = check(diagnosis, &seen()).iter().map(ToString::to_string).collect();
        texts.join("\n")
    }

    fn refused(tool: &str, field: &str, value: &str) -> String {
        refusals(&diagnosis(
            FaultType::PermissionLoss,
            vec![
                pointer("get_recent_logs", "log_group", "/aws/lambda/f"),
                pointer(tool, field, value),
            ],
        ))
    }

    #[test]
    fn repeated_words_match_as_whole_words() {
        // Found by the property test of the policy's evidence.
        let repeated = "timeout \"x\"".repeat(3);
        assert!(quotes_words(&format!("3 seconds{repeated}"), &"timeout \"x\"".repeat(2)));
        assert!(!quotes_words(&format!("3 seconds{repeated}"), &repeated));
    }

    #[test]
    fn observed_evidence_is_accepted() {
        let table = [
            ("get_recent_logs", "events[0].message", "AccessDenied: s3:GetObject"),
            ("get_recent_logs", "$.events[0].message", "[ERROR] AccessDenied: s3:GetObject on b"),
            (
                "get_recent_logs",
                "events[0]",
                r#"{"timestamp":"t","message":"[ERROR] AccessDenied: s3:GetObject on b"}"#,
            ),
            ("get_recent_logs", "events", "AccessDenied"),
            ("get_recent_logs", "log_group", "\"/aws/lambda/f\""),
            ("get_iam_state", "error", "no such file"),
        ];
        for (tool, field, value) in table {
            assert_eq!(refused(tool, field, value), "", "{field} {value}");
        }
    }

    #[test]
    fn unobserved_evidence_is_refused() {
        let table = [
            ("get_recent_logs", "events[1].message", "denied"),
            ("get_recent_logs", "events[0].message", "s3:PutObject"),
            ("get_recent_logs", "events[0].message", ":"),
            ("get_recent_logs", "events[7].message", "AccessDenied"),
            ("get_recent_logs", "events[*].message", "AccessDenied"),
            ("get_iam_state", "inline_policies", "{}"),
            ("get_lambda_config", "FunctionName", "f"),
            ("get_lambda_config", "ReservedConcurrentExecutions", ""),
            ("read_minds", "thought", "x"),
        ];
        insta::assert_snapshot!(table.map(|(t, f, v)| refused(t, f, v)).join("\n"), @r#"
        evidence[1]: "denied" is not what get_recent_logs returned at "events[1].message"
        evidence[1]: "s3:PutObject" is not what get_recent_logs returned at "events[0].message"
        evidence[1]: ":" is not what get_recent_logs returned at "events[0].message"
        evidence[1]: get_recent_logs returned nothing at "events[7].message"
        evidence[1]: field "events[*].message": not a field path: an index must be a number from 0
        evidence[1]: get_iam_state returned nothing at "inline_policies"
        evidence[1]: get_lambda_config was never called
        evidence[1]: get_lambda_config was never called
        evidence[1]: "read_minds" is not one of the tools
        "#);
    }

    #[test]
    fn numbers_are_not_quoted_in_part() {
        let found = json!({"ReservedConcurrentExecutions": 100, "Timeout": 0});
        assert!(is_quoted("100", &found["ReservedConcurrentExecutions"]));
        assert!(!is_quoted("10", &found["ReservedConcurrentExecutions"]));
        assert!(!is_quoted("0", &found["ReservedConcurrentExecutions"]));
        assert!(is_quoted("{ }", &json!({})) && is_quoted("[]", &json!([])));
        assert!(is_quoted("null", &json!(null)) && is_quoted("true", &json!(true)));
    }

    #[test]
    fn gaps_support_nothing_but_unknown() {
        let gap = || vec![pointer("get_iam_state", "inline_policies", " ")];
        assert_eq!(refusals(&diagnosis(FaultType::Unknown, gap())), "");
        insta::assert_snapshot!(refusals(&diagnosis(FaultType::Throttling, gap())), @"throttling is claimed, but every evidence value is empty; a gap supports no claim");
        insta::assert_snapshot!(refusals(&diagnosis(FaultType::Unknown, vec![])), @"evidence is empty: cite what the tools returned, errors included");
    }

    #[test]
    fn errors_alone_support_unknown() {
        let errors = vec![pointer("get_iam_state", "error", "iam:GetRole failed: no such file")];
        assert_eq!(refusals(&diagnosis(FaultType::Unknown, errors)), "");
    }

    #[test]
    fn fault_types_are_named_once_and_unknown_stands_alone() {
        use FaultType::{Throttling, Unknown};
        for faults in [vec![], vec![Throttling, Throttling], vec![Unknown, Throttling]] {
            let mut diagnosis =
                diagnosis(Unknown, vec![pointer("get_recent_logs", "log_group", "/aws/lambda/f")]);
            diagnosis.fault_types = faults;
            assert_eq!(check(&diagnosis, &seen()), [Refusal::FaultTypes]);
        }
    }

    #[test]
    fn remediation_rests_on_evidence() {
        let mut diagnosis = diagnosis(
            FaultType::PermissionLoss,
            vec![
                pointer("get_recent_logs", "log_group", "/aws/lambda/f"),
                pointer("get_iam_state", "inline_policies", ""),
            ],
        );
        let step = |basis: &[usize]| RemediationStep {
            action: "a".to_owned(),
            details: "d".to_owned(),
            evidence_basis: basis.to_vec(),
            risk_level: RiskLevel::Low,
            requires_approval: false,
        };
        diagnosis.remediation_plan =
            [&[0][..], &[0, 1], &[], &[2], &[0, 9, 2], &[1]].map(step).to_vec();
        insta::assert_snapshot!(refusals(&diagnosis), @r"
        remediation_plan[2]: evidence_basis is empty
        remediation_plan[3]: evidence index 2 is out of range, there are 2
        remediation_plan[4]: evidence index 9 is out of range, there are 2
        remediation_plan[4]: evidence index 2 is out of range, there are 2
        remediation_plan[5]: all the evidence that it names is empty
        ");
    }
}
