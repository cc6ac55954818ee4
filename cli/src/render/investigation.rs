//! What became of a card payment's investigation, as a fraud analyst wants to read it.

use std::collections::BTreeMap;

use journal::status::Status;
use local::view::Session;
use serde_json::Value;

use super::Look;
use super::ending::indented;
use super::field::{list, text, texts};
use super::ink::Ink;
use super::text::{clean, clip, wrap};

/// Columns of the bar beside a share.
const BAR: usize = 20;

/// Rows that are named of a finding; the result has them all.
const ROWS: usize = 6;

/// The investigation, if the result is one. What is missing is passed over.
pub fn investigation(look: Look, result: &Value) -> Option<Vec<String>> {
    let score = result.get("score")?.as_f64()?;
    let transaction = text(result, "transaction_id")?;
    let severity = text(result, "severity").unwrap_or("severity unknown");
    let confidence = result.get("confidence_score").and_then(Value::as_f64).unwrap_or_default();
    let mut lines = vec![
        format!(
            "{}  {} · {} · {}",
            look.ink(Ink::Strong, "Investigation"),
            look.ink(Ink::Name, &clean(transaction)),
            look.ink(Ink::of_severity(severity), &clean(severity)),
            clean(text(result, "status").unwrap_or("status unknown")),
        ),
        format!("  fraud       {}", bar(score)),
        format!("  supported   {}", bar(confidence)),
    ];
    if let Some(error) = text(result, "error") {
        lines.extend(indented(look, Ink::Bad, "  ", error));
    }
    payment(look, &mut lines, result.get("context"));
    findings(look, &mut lines, list(result, "findings"));
    similar(look, &mut lines, result.get("similarity_results"));
    hypotheses(look, &mut lines, result.get("reasoning"));
    recommendations(look, &mut lines, list(result, "recommendations"));
    rule(look, &mut lines, result.get("rule_draft"));
    steps(look, &mut lines, result);
    Some(lines)
}

/// One investigation on one line.
pub fn in_short(id: &str, session: &Session) -> String {
    let result = session.result.as_ref();
    let score = result.and_then(|result| result.get("score")?.as_f64());
    let severity = result.and_then(|result| text(result, "severity"));
    match (session.status, score, severity) {
        (Status::Succeeded, Some(score), Some(severity)) => {
            format!("{} {} {}", clean(id), clean(severity), percent(score))
        }
        (status, ..) => {
            let error = session.error.as_deref().map(|error| format!(": {}", clip(error, 120)));
            format!("{} {status}{}", clean(id), error.unwrap_or_default())
        }
    }
}

/// How likely a fraud an investigation that succeeded calls its payment, from 0 to 1.
pub fn score(session: &Session) -> Option<f64> {
    let result = session.result.as_ref().filter(|_| session.status == Status::Succeeded);
    result?.get("score")?.as_f64()
}

/// All investigations, the likeliest frauds first, and how many of each severity there are.
pub fn table(look: Look, done: &mut [(String, Session)]) -> Vec<String> {
    done.sort_by(|(a, x), (b, y)| {
        let (x, y) = (score(x).unwrap_or(-1.0), score(y).unwrap_or(-1.0));
        y.total_cmp(&x).then_with(|| a.cmp(b))
    });
    let heading = format!(
        "{:<16} {:<9} {:>7}  {:<18} SESSION",
        "TRANSACTION", "SEVERITY", "FRAUD", "FINDING"
    );
    let mut lines = vec![look.ink(Ink::Faint, &heading)];
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for (id, session) in done.iter() {
        let result = session.result.as_ref();
        let is_good = session.status == Status::Succeeded;
        let severity = result.and_then(|result| text(result, "severity")).filter(|_| is_good);
        let severity = severity.map_or_else(|| session.status.to_string(), clean);
        let finding = result.and_then(|result| text(list(result, "findings").first()?, "pattern"));
        let fraud = score(session).map_or_else(|| "-".to_owned(), percent);
        lines.push(format!(
            "{} {} {fraud:>7}  {:<18} {}",
            look.ink(Ink::Name, &format!("{:<16}", clip(id, 16))),
            look.ink(Ink::of_severity(&severity), &format!("{severity:<9}")),
            clip(finding.unwrap_or("-"), 18),
            session.session_id,
        ));
        *counts.entry(severity).or_default() += 1;
    }
    let counts: Vec<String> =
        counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    lines.push(String::new());
    lines.push(format!("{} investigated: {}", done.len(), counts.join(", ")));
    lines
}

fn section(look: Look, lines: &mut Vec<String>, heading: &str) {
    lines.push(String::new());
    lines.push(look.ink(Ink::Strong, heading));
}

/// The payment, and what is usual for its card.
fn payment(look: Look, lines: &mut Vec<String>, context: Option<&Value>) {
    let Some(payment) = context.and_then(|context| context.get("transaction")) else { return };
    section(look, lines, "Payment");
    let part = |field: &str| clean(text(payment, field).unwrap_or("?"));
    lines.push(format!(
        "  {} {} at {} ({}), {}",
        part("amount"),
        part("currency"),
        part("merchant_id"),
        part("merchant_category"),
        part("channel"),
    ));
    lines.push(format!("  {} ({}) on {}", part("city"), part("country"), part("timestamp")));
    let card = context.and_then(|context| context.get("card"));
    if let Some(card) = card {
        let count = card.get("transactions").and_then(Value::as_u64).unwrap_or_default();
        let median = text(card, "median_amount").unwrap_or("unknown");
        let usual = format!(
            "card {}: {count} earlier payments, usually {median}, mostly in {}",
            part("card_id"),
            texts(card, "cities").first().copied().unwrap_or("no city"),
        );
        lines.extend(indented(look, Ink::Faint, "  ", &usual));
    }
}

fn findings(look: Look, lines: &mut Vec<String>, findings: &[Value]) {
    section(look, lines, "Findings");
    if findings.is_empty() {
        lines.push("  nothing odd was found".to_owned());
    }
    for finding in findings {
        let strength = finding.get("strength").and_then(Value::as_f64).unwrap_or_default();
        let pattern = clean(text(finding, "pattern").unwrap_or("unknown pattern"));
        let percent = percent(strength);
        lines.push(format!("  {} {}", look.ink(Ink::Name, &format!("{pattern:<18}")), percent));
        lines.extend(indented(
            look,
            Ink::Plain,
            "      ",
            text(finding, "explanation").unwrap_or(""),
        ));
        let rows = texts(finding, "rows");
        let shown = rows.iter().rev().take(ROWS).copied().collect::<Vec<_>>().join(" ");
        let more = rows.len().saturating_sub(ROWS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.extend(indented(look, Ink::Faint, "      ", &format!("rows {shown}{more}")));
    }
}

fn similar(look: Look, lines: &mut Vec<String>, results: Option<&Value>) {
    let Some(results) = results.filter(|results| results.get("compared").is_some()) else { return };
    section(look, lines, "Past cases");
    let number = |field: &str| results.get(field).and_then(Value::as_u64);
    let (compared, frauds) =
        (number("compared").unwrap_or_default(), number("frauds_compared").unwrap_or_default());
    let near = match number("near_fraud_permille") {
        Some(near) => format!("of the nearest, {} in a hundred were frauds", near / 10),
        None => "too few to say anything".to_owned(),
    };
    lines.push(format!("  {compared} compared, {frauds} of them frauds; {near}"));
    for case in list(results, "cases") {
        let id = clean(text(case, "transaction_id").unwrap_or("?"));
        let is_fraud = case.get("is_fraud").and_then(Value::as_bool) == Some(true);
        let (ink, word) = if is_fraud { (Ink::Bad, "fraud") } else { (Ink::Good, "honest") };
        lines.push(format!("  {} {}", look.ink(Ink::Faint, &id), look.ink(ink, word)));
    }
}

fn hypotheses(look: Look, lines: &mut Vec<String>, reasoning: Option<&Value>) {
    let Some(reasoning) = reasoning.filter(|r| r.get("hypotheses").is_some()) else { return };
    section(look, lines, "Hypotheses");
    for hypothesis in list(reasoning, "hypotheses") {
        let support = hypothesis.get("support_permille").and_then(Value::as_u64);
        let support = format!("{:>3} %", support.unwrap_or_default() / 10);
        let indent = " ".repeat(8);
        let statement = text(hypothesis, "statement").unwrap_or("?");
        for (number, line) in wrap(statement, look.width.saturating_sub(8)).iter().enumerate() {
            let before = if number == 0 { format!("  {support} ") } else { indent.clone() };
            lines.push(format!("{before}{line}"));
        }
    }
}

fn recommendations(look: Look, lines: &mut Vec<String>, all: &[Value]) {
    if all.is_empty() {
        return;
    }
    section(look, lines, "Recommendations");
    for (index, step) in all.iter().enumerate() {
        let action = clean(text(step, "action").unwrap_or("?")).replace('_', " ");
        let priority = clean(text(step, "priority").unwrap_or("?"));
        lines.push(format!("  {}. {} ({priority})", index + 1, look.ink(Ink::Strong, &action)));
        lines.extend(indented(look, Ink::Plain, "     ", text(step, "reason").unwrap_or("")));
    }
}

/// The rule, and what it would have done.
fn rule(look: Look, lines: &mut Vec<String>, draft: Option<&Value>) {
    let Some(draft) = draft.filter(|draft| draft.is_object()) else { return };
    section(look, lines, "Rule draft");
    let rule = &draft["rule"];
    let conditions: Vec<String> = list(rule, "all").iter().map(condition).collect();
    let sentence = format!(
        "{}: {} if {}",
        text(rule, "name").unwrap_or("?"),
        text(rule, "action").unwrap_or("?"),
        conditions.join(" and "),
    );
    lines.extend(indented(look, Ink::Name, "  ", &sentence));
    let trial = &draft["backtest"];
    let number = |field: &str| trial.get(field).and_then(Value::as_u64).unwrap_or_default();
    let whole = if trial.get("is_whole").and_then(Value::as_bool) == Some(true) {
        "all"
    } else {
        "a sample"
    };
    let text = format!(
        "tried on {} payments of {} cards ({whole}): {} of {} frauds caught, worth {}; {} honest \
         payments stopped, of {} honest cards out of {}",
        number("transactions"),
        number("cards"),
        number("frauds_caught"),
        number("frauds"),
        amounts(&trial["value_caught"]),
        number("honest_stopped"),
        number("honest_cards_stopped"),
        number("honest_cards"),
    );
    lines.extend(indented(look, Ink::Plain, "  ", &text));
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

/// Which tools were called, in which order, and who chose.
fn steps(look: Look, lines: &mut Vec<String>, result: &Value) {
    section(look, lines, "Steps");
    for done in list(result, "tool_executions") {
        let tool = clean(text(done, "tool_name").unwrap_or("?"));
        let status = text(done, "status").unwrap_or("?");
        let ms = done.get("execution_time_ms").and_then(Value::as_u64).unwrap_or_default();
        let ink = if status == "SUCCESS" { Ink::Good } else { Ink::Bad };
        lines.push(format!(
            "  {tool:<20} {} {ms:>6} ms",
            look.ink(ink, &format!("{:<9}", clean(status)))
        ));
        if let Some(error) = text(done, "error_message") {
            lines.extend(indented(look, Ink::Bad, "      ", error));
        }
    }
    let decisions = list(result, "planner_decisions");
    let by_rule = decisions
        .iter()
        .filter(|decision| decision.get("used_fallback").and_then(Value::as_bool) == Some(true))
        .count();
    let planned = format!("{} decisions, {by_rule} of them by the fixed sequence", decisions.len());
    lines.push(look.ink(Ink::Faint, &format!("  {planned}")));
}

/// A share as a bar and a number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to the bar's end"
)]
fn bar(share: f64) -> String {
    let filled = (share.clamp(0.0, 1.0) * 20.0).round() as usize;
    format!("{}{} {}", "█".repeat(filled), "░".repeat(BAR.saturating_sub(filled)), percent(share))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share.clamp(0.0, 1.0) * 100.0)
}
