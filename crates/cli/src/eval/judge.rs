//! Compares a run with what its case expects.

use graph::conclusion::{Conclusion, Tone};
use journal::id::SessionId;
use journal::status::Status;
use serde_json::Value;
use stack::view::Session;

use super::case::{Case, Check, Verdict};

/// What a run concluded, did and used.
#[derive(Clone, Debug)]
pub struct Run {
    pub session: SessionId,
    pub verdict: Verdict,
    /// The agent's own word.
    pub word: Option<String>,
    pub error: Option<String>,
    pub result: Value,
    /// All texts of the conclusion.
    pub said: String,
    /// Tools and arguments, in order.
    pub calls: Vec<(String, Value)>,
    pub tokens: u64,
    pub usd: f64,
    pub elapsed_ms: u64,
}

impl Run {
    /// `is_asked`: a question is open, and the case has no answer to it.
    pub fn of(session: &Session, calls: Vec<(String, Value)>, is_asked: bool) -> Self {
        let conclusion = session.conclusion.as_ref();
        let verdict = if is_asked { Verdict::Asked } else { verdict(session.status, conclusion) };
        Self {
            session: session.session_id.clone(),
            verdict,
            word: session.verdict.clone(),
            error: session.error.clone(),
            result: session.result.clone().unwrap_or_default(),
            said: conclusion.map(said).unwrap_or_default(),
            calls,
            tokens: session.tokens.input + session.tokens.output + session.tokens.unsettled,
            usd: session.usd,
            elapsed_ms: session.elapsed_ms.unwrap_or_default(),
        }
    }
}

/// A session that succeeded without a checked conclusion is open.
fn verdict(status: Status, conclusion: Option<&Conclusion>) -> Verdict {
    if status != Status::Succeeded {
        return Verdict::Failed;
    }
    match conclusion.and_then(|found| found.verdict.as_ref()).map(|verdict| verdict.tone) {
        Some(Tone::Good) => Verdict::Fine,
        Some(Tone::Bad) => Verdict::NotFine,
        Some(Tone::Warn | Tone::Neutral) | None => Verdict::Open,
    }
}

fn said(conclusion: &Conclusion) -> String {
    let mut texts = Vec::new();
    collect(&serde_json::to_value(conclusion).unwrap_or_default(), &mut texts);
    texts.join("\n")
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(elements) => elements.iter().for_each(|element| collect(element, texts)),
        Value::Object(members) => members.values().for_each(|member| collect(member, texts)),
        _ => {}
    }
}

/// Whether the run says that all is fine where the case does not accept that.
pub fn is_false_clear(case: &Case, run: &Run) -> bool {
    run.verdict == Verdict::Fine && !case.expect().verdict.all().contains(&Verdict::Fine)
}

/// What the run does not meet; empty if it agrees.
pub fn disagreements(case: &Case, run: &Run) -> Vec<String> {
    let expect = case.expect();
    let mut found = Vec::new();
    let accepted = expect.verdict.all();
    if !accepted.contains(&run.verdict) {
        let accepted: Vec<&str> = accepted.iter().map(|verdict| verdict.as_str()).collect();
        let error = run.error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
        let is = run.verdict.as_str();
        found.push(format!("the verdict is {is}{error}, expected {}", accepted.join(" or ")));
    }
    let words = expect.word.all();
    if !words.is_empty() && !run.word.as_ref().is_some_and(|word| words.contains(word)) {
        let word = run.word.as_deref().unwrap_or("none");
        found.push(format!("the word is `{word}`, expected `{}`", words.join("` or `")));
    }
    found.extend(expect.result.iter().flat_map(|check| unmet(check, &run.result)));
    let missing = expect.says.iter().filter(|text| !has(&run.said, text));
    found.extend(missing.map(|text| format!("it does not say `{text}`")));
    let said = expect.never_says.iter().filter(|text| has(&run.said, text));
    found.extend(said.map(|text| format!("it says `{text}`")));
    found.extend(calls(case, run));
    found.extend(overspent(case, run));
    found
}

fn has(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

fn unmet(check: &Check, result: &Value) -> Vec<String> {
    let at = &check.at;
    let there = result.pointer(at);
    let text = match there {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    };
    let mut found = Vec::new();
    if let Some(expected) = &check.equals
        && there != Some(expected)
    {
        let is = there.map_or_else(|| "nothing".to_owned(), Value::to_string);
        found.push(format!("the result has {is} at {at}, expected {expected}"));
    }
    let missing = check.contains.all().iter().filter(|part| there.is_none() || !has(&text, part));
    found.extend(missing.map(|part| format!("the result lacks `{part}` at {at}")));
    let present = check.lacks.all().iter().filter(|part| has(&text, part));
    found.extend(present.map(|part| format!("the result has `{part}` at {at}")));
    let list = there.and_then(Value::as_array);
    let absent = check.includes.all().iter();
    let absent = absent.filter(|value| !list.is_some_and(|list| list.contains(value)));
    found.extend(absent.map(|value| format!("the list at {at} lacks {value}")));
    found
}

fn calls(case: &Case, run: &Run) -> Vec<String> {
    let made = |call: &&super::case::Call| {
        run.calls.iter().any(|(tool, arguments)| call.matches(tool, arguments))
    };
    let missing = case.required_calls().iter().filter(|call| !made(call));
    let mut found: Vec<String> =
        missing.map(|call| format!("it did not call {} as required", call.tool())).collect();
    let forbidden = case.forbidden_calls().iter().filter(made);
    found.extend(forbidden.map(|call| format!("it called {}, which is forbidden", call.tool())));
    found
}

#[expect(clippy::cast_precision_loss, reason = "durations and counts of one session are small")]
fn overspent(case: &Case, run: &Run) -> Vec<String> {
    let budget = case.budget();
    let spent = [
        ("tokens", run.tokens as f64, budget.tokens.map(|most| most as f64)),
        ("tool calls", run.calls.len() as f64, budget.calls.map(|most| most as f64)),
        ("seconds", run.elapsed_ms as f64 / 1_000.0, budget.seconds),
        ("dollars", run.usd, budget.usd),
    ];
    let over = spent.into_iter().filter_map(|(what, used, most)| {
        let most = most.filter(|most| used > *most)?;
        Some(format!("it used {used} {what}, at most {most} are allowed"))
    });
    over.collect()
}

#[cfg(test)]
mod tests {
    use graph::conclusion::Verdict as Concluded;
    use serde_json::json;

    use super::super::case::tests::case;
    use super::*;

    fn run(verdict: Verdict) -> Run {
        Run {
            session: SessionId::fresh(),
            verdict,
            word: Some("diagnosed".to_owned()),
            error: None,
            result: json!({"fault_types": ["throttling"], "root_cause": "Reserved concurrency is 0"}),
            said: "Reserved concurrency is 0".to_owned(),
            calls: vec![("get_recent_logs".to_owned(), json!({"lambda_name": "f"}))],
            tokens: 10,
            usd: 0.5,
            elapsed_ms: 2_000,
        }
    }

    fn expecting(patch: Value) -> Vec<String> {
        disagreements(&case(&patch), &run(Verdict::NotFine))
    }

    #[test]
    fn only_a_checked_good_conclusion_is_fine() {
        let concluded =
            |tone| Conclusion { verdict: Some(Concluded::new("w", tone)), ..Conclusion::default() };
        let of = |tone| verdict(Status::Succeeded, Some(&concluded(tone)));
        assert_eq!(of(Tone::Good), Verdict::Fine);
        assert_eq!(of(Tone::Bad), Verdict::NotFine);
        assert_eq!((of(Tone::Warn), of(Tone::Neutral)), (Verdict::Open, Verdict::Open));
        assert_eq!(verdict(Status::Succeeded, None), Verdict::Open);
        for status in [Status::Failed, Status::TimedOut, Status::Rejected, Status::Cancelled] {
            assert_eq!(verdict(status, Some(&concluded(Tone::Good))), Verdict::Failed);
        }
    }

    #[test]
    fn a_false_all_clear_is_told_apart() {
        let open = case(&json!({}));
        assert!(is_false_clear(&open, &run(Verdict::Fine)));
        assert!(!is_false_clear(&open, &run(Verdict::NotFine)));
        let accepted = case(&json!({"expect": {"verdict": ["fine", "open"]}}));
        assert!(!is_false_clear(&accepted, &run(Verdict::Fine)));
    }

    #[test]
    fn a_run_that_meets_everything_agrees() {
        let agreed = expecting(json!({
            "expect": {"verdict": "not_fine", "word": "diagnosed", "says": ["RESERVED"],
                "never_says": ["permission"], "result": [
                    {"at": "/fault_types", "equals": ["throttling"], "includes": "throttling"},
                    {"at": "/root_cause", "contains": ["reserved", "0"], "lacks": "network"},
                    {"at": "/gone", "lacks": "x"}]},
            "required_calls": ["get_recent_logs"],
            "forbidden_calls": [{"tool": "get_recent_logs", "arguments": {"lambda_name": "g"}}],
            "budget": {"tokens": 10, "calls": 1, "seconds": 2, "usd": 0.5}}));
        assert_eq!(agreed, Vec::<String>::new());
    }

    #[test]
    fn every_expectation_that_is_not_met_is_named() {
        let found = expecting(json!({
            "expect": {"verdict": ["open", "fine"], "word": "unknown", "says": ["permission"],
                "never_says": ["reserved"], "result": [
                    {"at": "/fault_types", "equals": [], "includes": ["network"]},
                    {"at": "/root_cause", "contains": "role", "lacks": "CONCURRENCY"},
                    {"at": "/gone", "contains": "x", "equals": null}]},
            "required_calls": ["get_iam_state"],
            "forbidden_calls": [{"tool": "get_recent_logs", "arguments": {"lambda_name": "f"}}],
            "budget": {"tokens": 9, "calls": 0, "seconds": 1, "usd": 0.1}}));
        insta::assert_snapshot!(found.join("\n"), @r#"
        the verdict is not_fine, expected open or fine
        the word is `diagnosed`, expected `unknown`
        the result has ["throttling"] at /fault_types, expected []
        the list at /fault_types lacks "network"
        the result lacks `role` at /root_cause
        the result has `CONCURRENCY` at /root_cause
        the result has nothing at /gone, expected null
        the result lacks `x` at /gone
        it does not say `permission`
        it says `reserved`
        it did not call get_iam_state as required
        it called get_recent_logs, which is forbidden
        it used 10 tokens, at most 9 are allowed
        it used 1 tool calls, at most 0 are allowed
        it used 2 seconds, at most 1 are allowed
        it used 0.5 dollars, at most 0.1 are allowed
        "#);
    }
}
