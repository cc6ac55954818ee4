//! What comes below a timeline: the verdict, the open question, the result, the costs.

use std::collections::BTreeMap;
use std::time::Duration;

use journal::status::Status;
use journal::step::{Step, StepBody};
use local::view::{OpenQuestion, Session, Tokens};
use serde_json::Value;

use super::ink::Ink;
use super::text::{clean, json_lines, width, wrap};
use super::{Look, brief, cost, diagnosis, investigation, network};

/// What stands above a timeline.
pub fn heading(look: Look, session: &Session) -> Vec<String> {
    let agent = session.agent.as_deref().map_or("no agent".to_owned(), clean);
    let began = session.initiated_at.map_or("no begin".to_owned(), |at| at.to_string());
    vec![
        format!(
            "{} {}",
            look.ink(Ink::Strong, session.session_id.as_str()),
            look.ink(Ink::Name, &agent)
        ),
        look.ink(Ink::Faint, &format!("began {began}")),
    ]
}

/// One line on how a session stands, and what went wrong.
pub fn verdict(look: Look, session: &Session) -> Vec<String> {
    let (glyph, ink) = mark(session.status);
    let mut parts = vec![session.agent.as_deref().map_or("no agent".to_owned(), clean)];
    if let Some(state) = session.incident_state {
        let state = serde_json::to_value(state).unwrap_or_default();
        parts.extend(state.as_str().map(str::to_owned));
    }
    parts.push(steps(session));
    parts.extend(session.elapsed_ms.map(|ms| brief::duration(Duration::from_millis(ms))));
    let cost = cost::cost(session.tokens, session.usd).unwrap_or_else(|| "0 tokens".to_owned());
    let word = format!("{glyph} {}", session.status);
    let line = parts.join(" · ");
    let head = format!("{}  {line}", look.ink(ink, &word));
    let used = width(&word) + 2 + width(&line);
    let mut lines = if used + 3 + width(&cost) <= look.width {
        vec![format!("{head} · {cost}")]
    } else {
        vec![head, format!("  {cost}")]
    };
    if let Some(error) = &session.error {
        let category =
            session.error_category.as_deref().map(|category| format!(" [{}]", clean(category)));
        let text = format!("{error}{}", category.unwrap_or_default());
        lines.extend(indented(look, Ink::Bad, "  ", &text));
    }
    lines
}

/// How a session stands while it runs, in half a line.
pub fn so_far(session: &Session) -> String {
    let (glyph, _) = mark(session.status);
    let mut parts = vec![format!("{glyph} {}", session.status)];
    parts.extend(session.elapsed_ms.map(|ms| brief::duration(Duration::from_millis(ms))));
    parts.push(steps(session));
    parts.extend(cost::cost(session.tokens, session.usd));
    parts.join(" · ")
}

fn steps(session: &Session) -> String {
    if session.steps == 1 { "1 step".to_owned() } else { format!("{} steps", session.steps) }
}

/// The sign and the colour of a status.
pub fn mark(status: Status) -> (&'static str, Ink) {
    match status {
        Status::Succeeded => ("✓", Ink::Good),
        Status::Failed | Status::TimedOut => ("✗", Ink::Bad),
        Status::Cancelled | Status::Rejected => ("■", Ink::Warn),
        Status::Waiting => ("‖", Ink::Warn),
        Status::Initiated | Status::Running => ("▸", Ink::Name),
    }
}

/// A question, with all that somebody needs to decide it.
pub fn question(look: Look, question: &OpenQuestion) -> Vec<String> {
    let heading = format!("Question #{}", question.question_id);
    let mut lines = vec![look.ink(Ink::Strong, &heading)];
    lines.extend(indented(look, Ink::Plain, "  ", &question.prompt));
    if let Some(tool) = &question.tool {
        lines.push(format!("  {} {}", look.ink(Ink::Faint, "tool"), clean(tool)));
    }
    if let Some(arguments) = &question.arguments {
        lines.extend(json_lines(arguments).into_iter().map(|line| format!("  {line}")));
    }
    if let Some(justification) = &question.justification {
        lines.extend(indented(look, Ink::Faint, "  ", &format!("because {justification}")));
    }
    let choices: Vec<_> = question.choices.iter().map(|choice| choice.as_str()).collect();
    let until = format!("  {} until {}", choices.join(", "), question.expires_at);
    lines.push(look.ink(Ink::Faint, &until));
    lines
}

/// What to do next, where something is left to do.
pub fn next(look: Look, session: &Session) -> Vec<String> {
    let id = &session.session_id;
    let next = match session.status {
        Status::Waiting if session.open_question.is_some() => format!("daybook answer {id}"),
        Status::Initiated | Status::Running | Status::Waiting => {
            format!("daybook tail {id}")
        }
        Status::Failed | Status::TimedOut => {
            format!("daybook show {id} --payloads")
        }
        Status::Succeeded | Status::Cancelled | Status::Rejected => return Vec::new(),
    };
    indented(look, Ink::Name, "", &format!("next: {next}"))
}

/// The result: a diagnosis, an investigation, a report, checks, or JSON.
pub fn result(look: Look, result: &Value) -> Vec<String> {
    if let Some(lines) = diagnosis::diagnosis(look, result) {
        return lines;
    }
    if let Some(lines) = investigation::investigation(look, result) {
        return lines;
    }
    if let Some(lines) = network::network(look, result) {
        return lines;
    }
    if let Some(lines) = checks(look, result) {
        return lines;
    }
    let mut lines = vec![look.ink(Ink::Strong, "Result")];
    lines.extend(json_lines(result).into_iter().map(|line| format!("  {line}")));
    lines
}

fn checks(look: Look, result: &Value) -> Option<Vec<String>> {
    let checks = result.get("checks")?.as_array()?;
    let name_of =
        |check: &Value| check.get("name").and_then(Value::as_str).map_or("?".to_owned(), clean);
    let column =
        checks.iter().map(|check| name_of(check).chars().count()).max().unwrap_or(0).min(30);
    let mut lines = vec![look.ink(Ink::Strong, "Checks")];
    for check in checks {
        let (glyph, ink) = match check.get("ok").and_then(Value::as_bool) {
            Some(true) => ("✓ ok    ", Ink::Good),
            Some(false) => ("✗ failed", Ink::Bad),
            None => ("? unknown", Ink::Warn),
        };
        let ms =
            check.get("ms").and_then(Value::as_u64).map_or(String::new(), |ms| format!("{ms} ms"));
        let detail = match check.get("detail") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => brief::value(other),
        };
        let name = format!("{:<column$}", name_of(check));
        let head = format!("  {} {} {:>8}", look.ink(ink, glyph), look.ink(Ink::Name, &name), ms);
        let used = 2 + 8 + 1 + column + 1 + 8 + 2;
        let mut texts = wrap(&detail, look.width.saturating_sub(used)).into_iter();
        lines.push(format!("{head}  {}", texts.next().unwrap_or_default()).trim_end().to_owned());
        lines.extend(texts.map(|text| format!("{}{text}", " ".repeat(used))));
    }
    Some(lines)
}

/// What each node used.
pub fn costs(look: Look, steps: &[Step<Value>]) -> Vec<String> {
    let mut by_node: BTreeMap<String, (u32, Duration, Tokens, u64)> = BTreeMap::new();
    for step in steps {
        let StepBody::Outcome { effect, started_at, usage, .. } = &step.body else { continue };
        let (times, spent, tokens, micro_usd) = by_node.entry(effect.node.clone()).or_default();
        *times += 1;
        *spent += step.stamp.since(*started_at);
        tokens.input += u64::from(usage.input_tokens);
        tokens.output += u64::from(usage.output_tokens);
        tokens.unsettled += u64::from(usage.unsettled_tokens);
        tokens.cache_read += u64::from(usage.cache_read_tokens);
        tokens.cache_write += u64::from(usage.cache_write_tokens);
        tokens.unpriced += u64::from(usage.unpriced_tokens);
        *micro_usd += u64::from(usage.micro_usd);
    }
    let mut lines = vec![look.ink(Ink::Strong, "Cost by node")];
    if by_node.is_empty() {
        lines.push("  nothing was asked of anybody".to_owned());
    }
    for (node, (times, spent, tokens, micro_usd)) in by_node {
        #[expect(clippy::cast_precision_loss, reason = "2^53 millionths are nine billion dollars")]
        let usd = micro_usd as f64 / 1e6;
        let cost = cost::cost(tokens, usd).unwrap_or_else(|| "0 tokens".to_owned());
        let node = format!("{:<13}", clean(&node));
        let spent = brief::duration(spent);
        lines.push(format!("  {} {times:>4} × {spent:>12}  {cost}", look.ink(Ink::Name, &node)));
    }
    lines
}

/// A text in full, each line behind an indent.
pub fn indented(look: Look, ink: Ink, indent: &str, text: &str) -> Vec<String> {
    wrap(text, look.width.saturating_sub(indent.len()))
        .iter()
        .map(|line| format!("{indent}{}", look.ink(ink, line)).trim_end().to_owned())
        .collect()
}
