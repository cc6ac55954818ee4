//! The conclusion of a checkup: a table of its checks, and what to do after a failure.

use graph::conclusion::read::{list, text};
use graph::conclusion::{Action, Cell, Conclusion, Table, Tone, Verdict};
use graph::presentation::Presentation;
use serde_json::Value;

pub const PRESENTATION: Presentation = Presentation {
    title: |_| Some("deployment check".to_owned()),
    conclude,
    ..Presentation::DEFAULT
};

/// `None` without checks.
fn conclude(result: &Value) -> Option<Conclusion> {
    let checks = list(result, "checks");
    let is = |wanted: bool| {
        move |check: &&Value| check.get("ok").and_then(Value::as_bool) == Some(wanted)
    };
    let (all, passed) = (checks.len(), checks.iter().filter(is(true)).count());
    let failed: Vec<_> =
        checks.iter().filter(is(false)).filter_map(|check| text(check, "name")).collect();
    let (word, tone, summary) = match (all, failed.len()) {
        (0, _) => return None,
        (_, 0) if passed == all => {
            ("all passed", Tone::Good, format!("All {all} checks of this deployment passed."))
        }
        (_, 0) => (
            "not assessed",
            Tone::Warn,
            format!(
                "{passed} of {all} checks of this deployment passed; the others gave no result."
            ),
        ),
        (_, bad) => (
            "failed",
            Tone::Bad,
            format!("{bad} of {all} checks of this deployment failed: {}.", failed.join(", ")),
        ),
    };
    let actions = if failed.is_empty() {
        Vec::new()
    } else {
        vec![Action::new("Fix the failed checks, then run `daybook trigger` again.")]
    };
    let mut table = Table::new("Checks", &["Check", "Outcome", "Took", "Detail"]);
    table.rows = checks.iter().map(row).collect();
    Some(Conclusion {
        title: "Checkup",
        verdict: Some(Verdict::new(word, tone)),
        summary,
        actions,
        tables: vec![table],
        ..Conclusion::default()
    })
}

fn row(check: &Value) -> Vec<Cell> {
    let (word, tone) = match check.get("ok").and_then(Value::as_bool) {
        Some(true) => ("✓ ok", Tone::Good),
        Some(false) => ("✗ failed", Tone::Bad),
        None => ("? unknown", Tone::Warn),
    };
    let took = check.get("ms").and_then(Value::as_u64).map(|ms| format!("{ms} ms"));
    vec![
        text(check, "name").unwrap_or("?").into(),
        Cell::from(word).toned(tone),
        took.unwrap_or_default().into(),
        text(check, "detail").unwrap_or_default().into(),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_checks_that_all_passed_are_green() {
        let verdict = |checks: Value| {
            let found = conclude(&json!({ "checks": checks }))?;
            let Verdict { word, tone } = found.verdict?;
            Some((word, tone, found.summary, found.actions.len()))
        };
        let check = |name: &str, ok: Value| json!({"name": name, "ok": ok, "ms": 3});
        let expected = |word: &str, tone, summary: &str, actions| {
            Some((word.to_owned(), tone, summary.to_owned(), actions))
        };
        assert_eq!(
            verdict(json!([check("journal", json!(true))])),
            expected("all passed", Tone::Good, "All 1 checks of this deployment passed.", 0)
        );
        assert_eq!(
            verdict(json!([check("journal", json!(true)), check("tools", json!(false))])),
            expected("failed", Tone::Bad, "1 of 2 checks of this deployment failed: tools.", 1)
        );
        assert_eq!(verdict(json!([check("model", Value::Null)])).unwrap().1, Tone::Warn);
        assert_eq!(verdict(json!([])), None);
        assert_eq!(conclude(&json!("x")), None);
    }

    #[test]
    fn a_row_has_the_result_and_the_duration() {
        let row = row(&json!({"name": "tools", "ok": false, "detail": "no answer", "ms": 12}));
        let texts: Vec<_> = row.iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!(texts, ["tools", "✗ failed", "12 ms", "no answer"]);
    }
}
