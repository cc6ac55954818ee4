//! The conclusion of an investigation: likelihood, reasons, and actions.

use graph::conclusion::read::{list, percent, permille, text, texts};
use graph::conclusion::{
    Action, Cell, Conclusion, Evidence, Fact, Finding, Headings, Note, Place, RecordAt, Table,
    Tone, Verdict,
};
use graph::presentation::{Advice, Presentation};
use serde_json::Value;

pub const PRESENTATION: Presentation =
    Presentation { title, conclude, advice: ADVICE, ..Presentation::DEFAULT };

/// Most rows named for a finding; the result has all of them.
const ROWS: usize = 6;

/// Minimum confidence, in thousandths, for a low score to mean no sign of fraud.
const SUPPORTED: u16 = 500;

/// What a fraud desk sees and the rows of a data set do not have.
const NOT_IN_THE_DATA: &str = "the device, the network address, the address of delivery, and \
    whether the cardholder confirmed the payment: the data do not have them";

/// The verdict of a payment of which too little is known.
const NOT_ASSESSED: &str = "not assessed";

fn title(input: &Value) -> Option<String> {
    text(input, "transaction_id").map(|id| format!("payment {id}"))
}

/// `None` if the result is not an investigation.
fn conclude(result: &Value) -> Option<Conclusion> {
    let transaction = text(result, "transaction_id")?;
    let score = permille(result, "score");
    // An investigation has a score or says that it has none; another result is none.
    text(result, "status").filter(|_| result.get("score").is_some())?;
    let confidence = permille(result, "confidence_score").unwrap_or_default();
    let severity = text(result, "severity").unwrap_or("unknown");
    let tone = tone(severity);
    let verdict = verdict(result, severity, confidence);
    let is_assessed = verdict.word != NOT_ASSESSED;
    let share = |name: &str, share: u16, tone| Fact {
        share_permille: Some(share),
        ..Fact::new(name, percent(share)).toned(tone)
    };
    let mut facts = vec![
        Fact::new("transaction", transaction),
        Fact::new("status", text(result, "status").unwrap_or("unknown")),
    ];
    if let Some(score) = score.filter(|_| is_assessed) {
        facts.push(Fact::new("severity", severity).toned(tone));
        facts.push(share("fraud", score, tone));
    }
    if !list(result, "recommendations").is_empty() {
        facts.push(share("supported", confidence, Tone::Neutral));
    }
    facts.extend(text(result, "error").map(|error| Fact::new("error", error).toned(Tone::Bad)));
    facts.extend(payment(result));
    let mut notes: Vec<_> = similar(result).into_iter().collect();
    notes.extend(calibration(&result["calibration"]).filter(|_| is_assessed));
    notes.extend(not_looked_at(result));
    notes.extend(rule(&result["rule_draft"]));
    notes.extend(explanation(result));
    notes.extend(
        text(result, "model_failed")
            .map(|why| note("Model", format!("{why}; the fixed sequence went on"))),
    );
    let decisions = list(result, "planner_decisions");
    if !decisions.is_empty() {
        let is_fallback = |decision: &&Value| {
            decision.get("used_fallback").and_then(Value::as_bool) == Some(true)
        };
        let fallbacks = decisions.iter().filter(is_fallback).count();
        let all = decisions.len();
        notes.push(note(
            "Planner",
            format!("{all} decisions, {fallbacks} of them by the fixed sequence"),
        ));
    }
    Some(Conclusion {
        title: "Investigation",
        verdict: Some(verdict),
        summary: match score {
            Some(score) if is_assessed => summary(result, score, severity),
            _ => not_assessed(result),
        },
        headings: Headings { actions: "Recommendations", ..Headings::default() },
        facts,
        findings: list(result, "findings").iter().enumerate().map(finding).collect(),
        actions: list(result, "recommendations").iter().map(action).collect(),
        tables: [cases(result), hypotheses(result).filter(|_| is_assessed), steps(result)]
            .into_iter()
            .flatten()
            .collect(),
        notes,
    })
}

fn tone(severity: &str) -> Tone {
    match severity.to_ascii_lowercase().as_str() {
        "critical" => Tone::Bad,
        "high" | "medium" => Tone::Warn,
        _ => Tone::Neutral,
    }
}

/// Green only if the investigation was completed and had enough evidence.
fn verdict(result: &Value, severity: &str, confidence: u16) -> Verdict {
    let is_completed = text(result, "status").is_some_and(|s| s.eq_ignore_ascii_case("completed"));
    let (word, tone) = match severity.to_ascii_lowercase().as_str() {
        "critical" => ("likely fraud", Tone::Bad),
        "high" => ("suspected fraud, ask the cardholder", Tone::Warn),
        "medium" => ("undecided, a person must review it", Tone::Warn),
        "low" if is_completed && confidence >= SUPPORTED && is_released(result) => {
            ("no sign of fraud", Tone::Good)
        }
        _ => (NOT_ASSESSED, Tone::Warn),
    };
    Verdict::new(word, tone)
}

/// Whether nothing but the release is recommended.
fn is_released(result: &Value) -> bool {
    let advised = list(result, "recommendations");
    !advised.is_empty() && advised.iter().all(|advice| text(advice, "action") == Some("release"))
}

/// Without a number and without a story: neither would rest on anything.
fn not_assessed(result: &Value) -> String {
    let has =
        |answer: &str, field: &str| result.get(answer).is_some_and(|of| of.get(field).is_some());
    if !has("pattern_results", "findings") && !has("similarity_results", "compared") {
        return "The investigation has no evidence: the payment was not assessed.".to_owned();
    }
    let advice = list(result, "recommendations").first().and_then(|advice| text(advice, "reason"));
    let why = advice.and_then(|reason| reason.strip_prefix("too little is known to release it: "));
    let why = why.or_else(|| text(result, "error")).unwrap_or("the evidence is not sufficient");
    format!("The payment was not assessed: {why}.")
}

fn summary(result: &Value, score: u16, severity: &str) -> String {
    // `name: statement`, most likely first.
    let mut stated = texts(result, "hypotheses")
        .into_iter()
        .map(|stated| stated.split_once(": ").map_or(stated, |(_, statement)| statement));
    let first = stated.next().unwrap_or("no hypothesis");
    // An undecided case has two stories.
    let stated = match stated.next() {
        Some(second) if severity.eq_ignore_ascii_case("medium") => format!("{first} Or: {second}"),
        _ => first.to_owned(),
    };
    let severity = severity.to_lowercase();
    // Truncates to hundredths, without rounding up.
    format!("{} % likelihood of fraud, severity {severity}: {stated}", score / 10)
}

/// The payment, and the history of its card.
fn payment(result: &Value) -> Vec<Fact> {
    let Some(payment) = result.pointer("/context/transaction") else { return Vec::new() };
    let part = |field: &str| text(payment, field).unwrap_or("?");
    let what = format!(
        "{} {} at {} ({}), {}",
        part("amount"),
        part("currency"),
        part("merchant_id"),
        part("merchant_category"),
        part("channel"),
    );
    let place = format!("{} ({}) on {}", part("city"), part("country"), part("timestamp"));
    let mut facts = vec![Fact::new("payment", what), Fact::new("place", place)];
    if let Some(card) = result.pointer("/context/card") {
        let count = card.get("transactions").and_then(Value::as_u64).unwrap_or_default();
        let median = text(card, "median_amount").unwrap_or("unknown");
        let city = texts(card, "cities").first().copied().unwrap_or("no city");
        let id = part("card_id");
        let usual = format!("{id}: {count} earlier payments, usually {median}, mostly in {city}");
        facts.push(Fact::new("card", usual));
    }
    facts
}

fn finding((at, found): (usize, &Value)) -> Finding {
    let pattern = text(found, "pattern").unwrap_or("unknown pattern");
    let strength = permille(found, "strength").map(|share| format!(" {}", percent(share)));
    let rows = texts(found, "rows");
    let shown: Vec<_> = rows.iter().rev().take(ROWS).copied().collect();
    let more = match rows.len().saturating_sub(ROWS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let place = Place::Item {
        list: "/findings".to_owned(),
        field: "pattern".to_owned(),
        value: pattern.to_owned(),
    };
    Finding {
        label: Some(format!("{pattern}{}", strength.unwrap_or_default())),
        text: text(found, "explanation").unwrap_or_default().to_owned(),
        tone: Tone::Warn,
        evidence: Some(Evidence {
            source: format!("rows {}{more}", shown.join(" ")),
            quote: None,
            record: Some(RecordAt { tool: None, place }),
        }),
        claim: Some(format!("/findings/{at}")),
    }
}

fn action(advised: &Value) -> Action {
    Action {
        details: text(advised, "reason").unwrap_or_default().to_owned(),
        notes: text(advised, "priority").map(str::to_owned).into_iter().collect(),
        ..Action::new(text(advised, "action").unwrap_or("?").replace('_', " "))
    }
}

fn note(title: &str, line: String) -> Note {
    Note { title: title.to_owned(), lines: vec![line], tone: Tone::Neutral }
}

fn similar(result: &Value) -> Option<Note> {
    let found = &result["similarity_results"];
    let number = |field: &str| found.get(field).and_then(Value::as_u64);
    let (compared, frauds) = (number("compared")?, number("frauds_compared").unwrap_or_default());
    let near = match number("near_fraud_permille") {
        Some(near) => format!("{} % of the nearest were frauds", near / 10),
        None => "too few cases".to_owned(),
    };
    Some(note("Past cases", format!("{compared} compared, {frauds} of them frauds; {near}")))
}

/// What the investigation did not see: patterns that it could not check, and what no data has.
fn not_looked_at(result: &Value) -> Option<Note> {
    let patterns = result.get("pattern_results").filter(|found| found.get("findings").is_some())?;
    let line = |gap: &Value| {
        let pattern = text(gap, "pattern").unwrap_or("?").replace('_', " ");
        format!("{pattern}: {}", text(gap, "reason").unwrap_or("?"))
    };
    let mut lines: Vec<String> = list(patterns, "not_checked").iter().map(line).collect();
    lines.push(NOT_IN_THE_DATA.to_owned());
    Some(Note { title: "Not looked at".to_owned(), lines, tone: Tone::Neutral })
}

/// Whether the score is a probability, and by which labels.
fn calibration(calibration: &Value) -> Option<Note> {
    let basis = text(calibration, "basis").filter(|basis| !basis.is_empty())?;
    let evidence = permille(calibration, "evidence").unwrap_or_default();
    Some(note("Score", format!("{basis}; weight of the evidence {}", percent(evidence))))
}

/// A model's words, marked as such, with a line that says where they differ from the evidence.
fn explanation(result: &Value) -> Option<Note> {
    let found = result.pointer("/reasoning/explanation")?;
    let mut lines = Vec::new();
    match text(found, "status") {
        Some("given") => {
            let (model, own) = (text(found, "model")?, text(found, "hypothesis")?);
            lines.push(text(found, "text")?.to_owned());
            let first = result.pointer("/reasoning/hypotheses/0/name").and_then(Value::as_str);
            if first != Some(own) {
                let first = first.unwrap_or("nothing");
                lines.push(format!("{model} holds {own} most likely; the evidence, {first}."));
            }
            lines.push(
                "These are the model's words. They change no score and no action.".to_owned(),
            );
        }
        _ => {
            let reason = text(found, "reason").unwrap_or("it was not valid");
            lines.push(format!("dropped: {reason}"));
        }
    }
    Some(Note { title: "A model's explanation".to_owned(), lines, tone: Tone::Neutral })
}

fn cases(result: &Value) -> Option<Table> {
    let row = |case: &Value| {
        let is_fraud = case.get("is_fraud").and_then(Value::as_bool) == Some(true);
        let (word, tone) = if is_fraud { ("fraud", Tone::Bad) } else { ("honest", Tone::Good) };
        vec![text(case, "transaction_id").unwrap_or("?").into(), Cell::from(word).toned(tone)]
    };
    let rows = list(&result["similarity_results"], "cases").iter().map(row);
    filled(Table { rows: rows.collect(), ..Table::new("Nearest past cases", &["Payment", "Was"]) })
}

fn hypotheses(result: &Value) -> Option<Table> {
    let row = |hypothesis: &Value| {
        let support = hypothesis.get("support_permille").and_then(Value::as_u64);
        let support = format!("{:>3} %", support.unwrap_or_default() / 10);
        vec![support.into(), text(hypothesis, "statement").unwrap_or("?").into()]
    };
    let rows = list(&result["reasoning"], "hypotheses").iter().map(row);
    filled(Table { rows: rows.collect(), ..Table::new("Hypotheses", &["Support", "Hypothesis"]) })
}

/// The tools called, in order.
fn steps(result: &Value) -> Option<Table> {
    let row = |done: &Value| {
        let status = text(done, "status").unwrap_or("?");
        let tone = if status == "SUCCESS" { Tone::Good } else { Tone::Bad };
        let ms = done.get("execution_time_ms").and_then(Value::as_u64).unwrap_or_default();
        vec![
            text(done, "tool_name").unwrap_or("?").into(),
            Cell::from(status).toned(tone),
            format!("{ms} ms").into(),
            text(done, "error_message").unwrap_or_default().into(),
        ]
    };
    let rows = list(result, "tool_executions").iter().map(row).collect();
    filled(Table { rows, ..Table::new("Steps", &["Tool", "Outcome", "Took", "Error"]) })
}

fn filled(table: Table) -> Option<Table> {
    (!table.rows.is_empty()).then_some(table)
}

/// The drafted rule and its backtest.
fn rule(draft: &Value) -> Option<Note> {
    let (rule, trial) = (draft.get("rule")?, &draft["backtest"]);
    let conditions: Vec<String> = list(rule, "all").iter().map(condition).collect();
    let says = format!(
        "{}: {} if {}",
        text(rule, "name").unwrap_or("?"),
        text(rule, "action").unwrap_or("?"),
        conditions.join(" and "),
    );
    let number = |field: &str| trial.get(field).and_then(Value::as_u64).unwrap_or_default();
    let is_whole = trial.get("is_whole").and_then(Value::as_bool) == Some(true);
    let tried = format!(
        "backtest on {} payments of {} cards ({}): {} of {} frauds caught, worth {}; {} honest \
         payments stopped, of {} honest cards out of {}",
        number("transactions"),
        number("cards"),
        if is_whole { "all" } else { "a sample" },
        number("frauds_caught"),
        number("frauds"),
        amounts(&trial["value_caught"]),
        number("honest_stopped"),
        number("honest_cards_stopped"),
        number("honest_cards"),
    );
    let lines = vec![says, tried];
    Some(Note { title: "Rule draft".to_owned(), lines, tone: Tone::Neutral })
}

fn condition(condition: &Value) -> String {
    let field = text(condition, "field").unwrap_or("?");
    let value = condition.get("value").and_then(Value::as_u64).unwrap_or_default();
    let is = if text(condition, "is") == Some("at_most") { "≤" } else { "≥" };
    format!("{field} {is} {value}")
}

fn amounts(by_currency: &Value) -> String {
    let amounts: Vec<String> = by_currency
        .as_object()
        .into_iter()
        .flatten()
        .map(|(currency, amount)| format!("{} {currency}", amount.as_str().unwrap_or("?")))
        .collect();
    if amounts.is_empty() { "nothing".to_owned() } else { amounts.join(" and ") }
}

const ADVICE: Advice = &[
    (
        super::conclusion::CATEGORY_NO_EVIDENCE,
        &["The tools that read the payment failed; see their records."],
    ),
    (
        super::graph::CATEGORY_PLANNER,
        &[
            "The planner made an invalid choice and the fixed sequence is off. Set LANGGRAPH_ENABLE_PLANNER_FALLBACK to true.",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result() -> Value {
        json!({
            "transaction_id": "t1", "score": 0.817, "confidence_score": 0.75,
            "severity": "HIGH", "status": "COMPLETED",
            "hypotheses": ["account_takeover: The card was copied."],
            "context": {
                "transaction": {"amount": "99.00", "currency": "EUR", "merchant_id": "m",
                    "merchant_category": "5411", "channel": "chip", "city": "Bern",
                    "country": "CH", "timestamp": "2026-01-01T00:00:00Z", "card_id": "c1"},
                "card": {"transactions": 40, "median_amount": "12.00", "cities": ["Bern"]},
            },
            "findings": [{"pattern": "impossible_travel", "explanation": "1859 km/h",
                "strength": 0.9, "rows": ["a", "b", "c", "d", "e", "f", "g"]}],
            "similarity_results": {"compared": 9, "frauds_compared": 2, "near_fraud_permille": 300,
                "cases": [{"transaction_id": "t0", "is_fraud": true}]},
            "reasoning": {"hypotheses": [{"support_permille": 800, "statement": "copied"}]},
            "recommendations": [{"action": "ask_cardholder", "priority": "immediate", "reason": "likely"}],
            "rule_draft": {"rule": {"name": "r", "action": "review", "all": [{"field": "kmh", "value": 900}]},
                "backtest": {"transactions": 10, "value_caught": {"EUR": "99.00"}}},
            "tool_executions": [{"tool_name": "context_tool", "status": "SUCCESS", "execution_time_ms": 4}],
            "planner_decisions": [{"used_fallback": true}, {"used_fallback": false}],
        })
    }

    #[test]
    fn an_investigation_shows_likelihood_reasons_and_actions() {
        insta::assert_json_snapshot!(conclude(&result()).unwrap());
    }

    #[test]
    fn what_was_not_assessed_has_no_number_and_no_story() {
        let mut result = result();
        result["severity"] = Value::Null;
        result["score"] = Value::Null;
        let gap =
            json!({"pattern": "unusual_place", "reason": "the card has too few earlier payments"});
        result["pattern_results"] = json!({"findings": [], "not_checked": [gap]});
        result["hypotheses"] = json!(["cardholder: The cardholder made the payment."]);
        let reason = "too little is known to release it: the card has too few earlier payments";
        result["recommendations"] = json!([{"action": "manual_review", "reason": reason}]);
        let conclusion = conclude(&result).unwrap();
        assert_eq!(
            conclusion.summary,
            "The payment was not assessed: the card has too few earlier payments."
        );
        assert!(conclusion.facts.iter().all(|fact| fact.name != "fraud"));
        assert!(conclusion.tables.iter().all(|table| table.title != "Hypotheses"));
        let gaps = conclusion.notes.iter().find(|note| note.title == "Not looked at").unwrap();
        assert_eq!(gaps.lines[0], "unusual place: the card has too few earlier payments");
    }

    #[test]
    fn an_undecided_case_names_two_stories() {
        let mut result = result();
        result["severity"] = json!("MEDIUM");
        result["hypotheses"] = json!(["cardholder: It is honest.", "collusion: It is not."]);
        let said = conclude(&result).unwrap().summary;
        assert!(said.ends_with("severity medium: It is honest. Or: It is not."), "{said}");
    }

    #[test]
    fn only_a_complete_investigation_with_enough_evidence_is_green() {
        let verdict = |severity: &str, status: &str, confidence: f64| {
            let mut result = result();
            result["severity"] = json!(severity);
            if severity == "LOW" {
                result["recommendations"] = json!([{"action": "release"}]);
            }
            result["status"] = json!(status);
            result["confidence_score"] = json!(confidence);
            let Verdict { word, tone } = conclude(&result).unwrap().verdict.unwrap();
            (word, tone)
        };
        for (found, word, tone) in [
            (verdict("CRITICAL", "COMPLETED", 0.9), "likely fraud", Tone::Bad),
            (verdict("HIGH", "COMPLETED", 0.9), "suspected fraud, ask the cardholder", Tone::Warn),
            (verdict("MEDIUM", "TIMED_OUT", 0.1), "undecided, a person must review it", Tone::Warn),
            (verdict("LOW", "COMPLETED", 0.5), "no sign of fraud", Tone::Good),
            (verdict("LOW", "COMPLETED", 0.4), "not assessed", Tone::Warn),
            (verdict("LOW", "TIMED_OUT", 0.9), "not assessed", Tone::Warn),
        ] {
            assert_eq!(found, (word.to_owned(), tone));
        }
        assert_eq!(conclude(&json!({"score": 0.1})), None);
        assert_eq!(title(&json!({"transaction_id": "t1"})).as_deref(), Some("payment t1"));
    }
}
