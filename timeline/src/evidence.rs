//! Which record each claim of a result rests on.
//!
//! An incident's diagnosis names a tool and a field of what it returned, a fraud's finding the
//! pattern that a tool reported, a network's finding the tool that showed it. Each is looked up in
//! what the tools brought, so that a reader gets from the claim to the record in one click.

use serde::Serialize;
use serde_json::Value;

/// Most claims of a result that are looked up.
pub const CLAIMS_MAX: usize = 100;

/// Newest results of a tool that a claim is looked up in.
const RESULTS_MAX: usize = 100;

/// A claim, and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Citation {
    /// Where the claim stands in the result, a JSON pointer.
    pub claim: String,
    /// The number of the step with the record.
    pub seq: u32,
    /// Where in that step's payload, a JSON pointer; empty for the whole of it.
    pub pointer: String,
}

/// What a tool brought.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// The step's number.
    pub seq: u32,
    /// The tool.
    pub tool: String,
    /// The step's payload.
    pub payload: &'a Value,
}

/// What the claims of a result rest on, in the result's order. `locate` reads a field's path, as
/// agents write them, and returns the JSON pointer to it in a content, if it is there.
pub fn citations(
    result: &Value,
    seen: &[Seen<'_>],
    locate: impl Fn(&str, &Value) -> Option<String>,
) -> Vec<Citation> {
    let listed = |name: &str| {
        let list = result.get(name).and_then(Value::as_array);
        list.into_iter().flatten().take(CLAIMS_MAX).enumerate()
    };
    let mut found = Vec::new();
    for (at, claim) in listed("evidence") {
        let claimed = format!("/evidence/{at}");
        found.extend(field_of(claim, seen, &locate).map(|place| cite(claimed, place)));
    }
    for (at, claim) in listed("findings") {
        let claimed = format!("/findings/{at}");
        let place = pattern_of(claim, seen).or_else(|| whole_of(claim, seen));
        found.extend(place.map(|place| cite(claimed, place)));
    }
    found
}

fn cite(claim: String, (seq, pointer): (u32, String)) -> Citation {
    Citation { claim, seq, pointer }
}

/// `{"tool", "field", "value"}`: of the tool's results the newest that has the value there, else
/// the newest that has the field, else the newest.
fn field_of(
    claim: &Value,
    seen: &[Seen<'_>],
    locate: &impl Fn(&str, &Value) -> Option<String>,
) -> Option<(u32, String)> {
    let (tool, field) = (claim.get("tool")?.as_str()?, claim.get("field")?.as_str()?);
    let value = claim.get("value").and_then(Value::as_str).unwrap_or_default();
    let mut best: Option<(u8, u32, String)> = None;
    let newest_first = seen.iter().rev().filter(|result| result.tool == tool);
    for result in newest_first.take(RESULTS_MAX) {
        let pointer = place(field, result.payload, locate);
        let found = pointer.as_deref().and_then(|pointer| result.payload.pointer(pointer));
        let rank = match found {
            Some(found) if holds(found, value) => 2,
            Some(_) => 1,
            None => 0,
        };
        if best.as_ref().is_none_or(|(known, ..)| rank > *known) {
            best = Some((rank, result.seq, pointer.unwrap_or_default()));
        }
    }
    best.map(|(_, seq, pointer)| (seq, pointer))
}

/// Where the field stands in a payload, as [`graph::outcome::Brought`] is written. A tool's error is
/// called `error`.
fn place(
    field: &str,
    payload: &Value,
    locate: &impl Fn(&str, &Value) -> Option<String>,
) -> Option<String> {
    let error = |pointer: &str| (field == "error").then(|| pointer.to_owned());
    match payload.as_object()?.iter().next()? {
        (kind, content) if kind == "ok" => {
            locate(field, content).map(|found| format!("/ok{found}"))
        }
        (kind, _) if kind == "error" => error("/error"),
        (kind, _) if kind == "failure" => error("/failure/message"),
        _ => None,
    }
}

/// Whether a claim's quotation stands there; what is quoted of other things than text is JSON.
fn holds(found: &Value, quoted: &str) -> bool {
    match found {
        Value::String(text) => text.contains(quoted),
        other => {
            serde_json::from_str::<Value>(quoted).is_ok_and(|value| value == *other)
                || other.to_string().contains(quoted)
        }
    }
}

/// `{"pattern"}`: the newest result that reported it.
fn pattern_of(claim: &Value, seen: &[Seen<'_>]) -> Option<(u32, String)> {
    let pattern = claim.get("pattern")?;
    seen.iter().rev().take(RESULTS_MAX).find_map(|result| {
        let reported = result.payload.pointer("/ok/findings")?.as_array()?;
        let at = reported.iter().position(|finding| finding.get("pattern") == Some(pattern))?;
        Some((result.seq, format!("/ok/findings/{at}")))
    })
}

/// `{"function"}`: the newest result of the tool.
fn whole_of(claim: &Value, seen: &[Seen<'_>]) -> Option<(u32, String)> {
    let tool = claim.get("function")?.as_str()?;
    seen.iter().rev().find(|result| result.tool == tool).map(|result| (result.seq, String::new()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The path is the name of a member, or nothing is there.
    fn member(field: &str, content: &Value) -> Option<String> {
        content.get(field).map(|_| format!("/{field}"))
    }

    #[test]
    fn each_claim_leads_to_the_newest_record_that_has_what_it_quotes() {
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
        let claim = |tool: &str, field: &str, value: &str| json!({"tool": tool, "field": field, "value": value});
        let result = json!({
            "evidence": [
                claim("iam", "policies", "[\"s3:Get\"]"),
                claim("iam", "limit", "7"),
                claim("iam", "nowhere", ""),
                claim("logs", "error", "AccessDenied"),
                claim("config", "error", "gone"),
                claim("never called", "a", "b"),
                "no claim at all",
            ],
            "findings": [{"pattern": "travel"}, {"function": "logs"}, {"pattern": "unseen"}],
        });
        let told: Vec<_> = citations(&result, &seen, member)
            .into_iter()
            .map(|Citation { claim, seq, pointer }| format!("{claim} → #{seq}{pointer}"))
            .collect();
        insta::assert_snapshot!(told.join("\n"), @r"
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
