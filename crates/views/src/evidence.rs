//! Links each finding of a conclusion to the record that supports it.
//!
//! A finding names a tool and a place in the tool's result. This module finds the record of that
//! result, so that a reader gets from the claim to the record in one click.

use graph::conclusion::{Conclusion, Evidence, Place};
use serde::Serialize;
use serde_json::Value;

/// How many of the newest results are searched for a finding.
const RESULTS_MAX: usize = 100;

/// A claim, and the record that supports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Citation {
    /// JSON pointer to the claim in the session's result.
    pub claim: String,
    /// The step's number.
    pub seq: u32,
    /// JSON pointer into that step's payload; empty for the whole payload.
    pub pointer: String,
}

#[derive(Clone, Debug)]
pub struct Seen<'a> {
    pub seq: u32,
    pub tool: String,
    pub payload: &'a Value,
}

/// The citations of a conclusion, in the order of its findings.
pub fn citations(conclusion: &Conclusion, seen: &[Seen<'_>]) -> Vec<Citation> {
    let cited = conclusion.findings.iter().filter_map(|finding| {
        let (claim, evidence) = (finding.claim.clone()?, finding.evidence.as_ref()?);
        let (seq, pointer) = look_up(evidence, seen)?;
        Some(Citation { claim, seq, pointer })
    });
    cited.collect()
}

fn look_up(evidence: &Evidence, seen: &[Seen<'_>]) -> Option<(u32, String)> {
    let record = evidence.record.as_ref()?;
    let is_of_tool = |result: &&Seen<'_>| record.tool.as_ref().is_none_or(|t| *t == result.tool);
    let mut newest_first = seen.iter().rev().filter(is_of_tool).take(RESULTS_MAX);
    match &record.place {
        Place::Whole => newest_first.next().map(|result| (result.seq, String::new())),
        Place::Pointer(pointer) => {
            let quote = evidence.quote.as_deref().unwrap_or_default();
            best(pointer, quote, newest_first)
        }
        Place::Item { list, field, value } => newest_first.find_map(|result| {
            let items = result.payload.get("ok")?.pointer(list)?.as_array()?;
            let is_it = |item: &Value| item.get(field).and_then(Value::as_str) == Some(value);
            let at = items.iter().position(is_it)?;
            Some((result.seq, format!("/ok{list}/{at}")))
        }),
    }
}

/// The newest result with the quote at the pointer, else the newest with any value there, else the
/// newest.
fn best<'a>(
    pointer: &str,
    quote: &str,
    newest_first: impl Iterator<Item = &'a Seen<'a>>,
) -> Option<(u32, String)> {
    let mut best: Option<(u8, u32, String)> = None;
    for result in newest_first {
        let pointer = place(pointer, result.payload);
        let found = pointer.as_deref().and_then(|pointer| result.payload.pointer(pointer));
        let rank = match found {
            Some(found) if holds(found, quote) => 2,
            Some(_) => 1,
            None => 0,
        };
        if best.as_ref().is_none_or(|(known, ..)| rank > *known) {
            best = Some((rank, result.seq, pointer.unwrap_or_default()));
        }
    }
    best.map(|(_, seq, pointer)| (seq, pointer))
}

/// Maps a pointer into a result to one into a payload, a serialized [`graph::outcome::Brought`];
/// `/error` also means the error of a failed call.
fn place(pointer: &str, payload: &Value) -> Option<String> {
    let error = |at: &str| (pointer == "/error").then(|| at.to_owned());
    match payload.as_object()?.iter().next()? {
        (kind, content) if kind == "ok" => {
            content.pointer(pointer).map(|_| format!("/ok{pointer}"))
        }
        (kind, _) if kind == "error" => error("/error"),
        (kind, _) if kind == "failure" => error("/failure/message"),
        _ => None,
    }
}

/// Whether a value contains a quote; values other than text are quoted as JSON.
fn holds(found: &Value, quoted: &str) -> bool {
    match found {
        Value::String(text) => text.contains(quoted),
        other => {
            serde_json::from_str::<Value>(quoted).is_ok_and(|value| value == *other)
                || other.to_string().contains(quoted)
        }
    }
}

#[cfg(test)]
mod tests {
    use graph::conclusion::{Finding, RecordAt};
    use serde_json::json;

    use super::*;

    fn finding(claim: &str, tool: Option<&str>, place: Place, quote: &str) -> Finding {
        let record = Some(RecordAt { tool: tool.map(str::to_owned), place });
        let (source, quote) = (String::new(), Some(quote.to_owned()));
        let evidence = Some(Evidence { source, quote, record });
        Finding { claim: Some(claim.to_owned()), evidence, ..Finding::default() }
    }

    #[test]
    fn a_claim_cites_the_newest_record_with_its_quote() {
        let payloads = [
            json!({"ok": {"policies": ["s3:Get"], "limit": 0}}),
            json!({"ok": {"policies": [], "limit": 5}}),
            json!({"error": "AccessDenied: no"}),
            json!({"failure": {"kind": "unknown", "category": "mcp_connection", "message": "gone"}}),
            json!({"ok": {"findings": [{"pattern": "velocity"}, {"pattern": "travel"}]}}),
        ];
        let tools = ["iam", "iam", "logs", "config", "patterns"];
        let seen: Vec<_> = (2..)
            .zip(tools.iter().zip(&payloads))
            .map(|(seq, (tool, payload))| Seen { seq, tool: (*tool).to_owned(), payload })
            .collect();
        let field = |at: usize, tool: &str, field: &str, quote: &str| {
            let place = Place::Pointer(format!("/{field}"));
            finding(&format!("/evidence/{at}"), Some(tool), place, quote)
        };
        let pattern = |at: usize, pattern: &str| {
            let (list, field, value) = ("/findings".into(), "pattern".into(), pattern.into());
            let place = Place::Item { list, field, value };
            finding(&format!("/findings/{at}"), None, place, "")
        };
        let findings = vec![
            field(0, "iam", "policies", "[\"s3:Get\"]"),
            field(1, "iam", "limit", "7"),
            field(2, "iam", "nowhere", ""),
            field(3, "logs", "error", "AccessDenied"),
            field(4, "config", "error", "gone"),
            field(5, "never called", "a", "b"),
            Finding::default(),
            pattern(0, "travel"),
            finding("/findings/1", Some("logs"), Place::Whole, ""),
            pattern(2, "unseen"),
        ];
        let conclusion = Conclusion { findings, ..Conclusion::default() };
        let lines: Vec<_> = citations(&conclusion, &seen)
            .into_iter()
            .map(|Citation { claim, seq, pointer }| format!("{claim} → #{seq}{pointer}"))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        /evidence/0 → #2/ok/policies
        /evidence/1 → #3/ok/limit
        /evidence/2 → #3
        /evidence/3 → #4/error
        /evidence/4 → #5/failure/message
        /findings/0 → #6/ok/findings/1
        /findings/1 → #4
        ");
    }
}
