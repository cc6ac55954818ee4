//! The parts around a timeline: heading, verdict, open question and costs.

use std::collections::BTreeMap;
use std::time::Duration;

use journal::status::Status;
use journal::step::{Step, StepBody};
use serde_json::Value;
use stack::view::{OpenQuestion, Session, Tokens};

use super::ink::Ink;
use super::text::{clean, clip, width, wrap};
use super::{Look, arguments, brief, cost};
use crate::deciding;

/// The heading above a timeline.
pub fn heading(look: Look, session: &Session) -> Vec<String> {
    let agent = session.agent.as_deref().map_or("no agent".to_owned(), clean);
    let began = session.initiated_at.map_or("unknown".to_owned(), |at| at.to_string());
    let id = look.ink(Ink::Strong, session.session_id.as_str());
    let mut lines = vec![format!("{id} {}", look.ink(Ink::Name, &agent))];
    lines.extend(session.title.as_deref().map(|title| clip(title, look.width)));
    lines.push(look.ink(Ink::Faint, &format!("began {began}")));
    lines
}

/// A session's status on one line, and its error.
pub fn verdict(look: Look, session: &Session) -> Vec<String> {
    let (glyph, ink) = mark(session.status);
    let mut parts = vec![session.agent.as_deref().map_or("no agent".to_owned(), clean)];
    let state = session.agent_state.map(|state| state.word.to_owned());
    parts.extend(state.or_else(|| session.verdict.as_deref().map(clean)));
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
    lines.extend(fallback(look, session));
    if let Some(error) = &session.error {
        let category =
            session.error_category.as_deref().map(|category| format!(" [{}]", clean(category)));
        let text = format!("{error}{}", category.unwrap_or_default());
        // A person who cancels a session says why: that is no failure.
        let ink = if session.status == Status::Cancelled { Ink::Warn } else { Ink::Bad };
        lines.extend(indented(look, ink, "  ", &text));
    }
    if let Some(erased) = &session.erased {
        lines.extend(indented(look, Ink::Warn, "  ", &erased.sentence()));
    }
    if let Some(needs) = &session.needs_version {
        lines.extend(indented(look, Ink::Warn, "  ", &needs.sentence()));
    }
    lines
}

/// That the policy replied in place of the model, and why.
pub fn fallback(look: Look, session: &Session) -> Vec<String> {
    let said = session.fallback.as_ref().map(|fallback| fallback.message.as_str());
    said.map(|said| indented(look, Ink::Warn, "  ", said)).unwrap_or_default()
}

/// A running session's status, for the transient line.
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

/// A question with its call, justification and choices. Unless `whole`, long arguments are cut.
pub fn question(look: Look, question: &OpenQuestion, whole: bool) -> Vec<String> {
    let heading = format!("Question #{}", question.question_id);
    let mut lines = vec![look.ink(Ink::Strong, &heading)];
    lines.extend(indented(look, Ink::Plain, "  ", &question.prompt));
    lines.extend(call(look, question, whole));
    if let Some(justification) = &question.justification {
        lines.extend(indented(look, Ink::Faint, "  ", &format!("because {justification}")));
    }
    let choices: Vec<_> = question.choices.iter().map(|choice| choice.as_str()).collect();
    let until = format!("  {} until {}", choices.join(", "), question.expires_at);
    lines.push(look.ink(Ink::Faint, &until));
    lines
}

/// What an approval of the question covers: server, tool, every argument, and the digest of it all.
pub fn call(look: Look, question: &OpenQuestion, whole: bool) -> Vec<String> {
    let mut facts = Vec::new();
    facts.extend(question.server.as_ref().map(|server| ("server", clean(server))));
    facts.extend(question.tool.as_ref().map(|tool| ("tool", clean(tool))));
    let fact = |(name, value): (&str, String)| format!("  {} {value}", look.ink(Ink::Faint, name));
    let mut lines: Vec<_> = facts.into_iter().map(fact).collect();
    if let Some(shown) = &question.arguments {
        lines.extend(arguments::arguments(look, shown, whole));
    }
    if let Some(schema) = &question.tool_schema {
        lines.push(fact(("schema", clip(schema, deciding::DIGEST_CHARS + 1))));
    }
    lines.extend(origins(look, question));
    if !lines.is_empty() || !deciding::keys(question).is_empty() {
        lines.push(fact(("digest", deciding::short(question).to_owned())));
    }
    lines
}

/// Where each argument in question came from.
pub fn origins(look: Look, question: &OpenQuestion) -> Vec<String> {
    let Some(origins) = question.origins.as_ref().filter(|origins| !origins.is_empty()) else {
        return Vec::new();
    };
    let computed =
        if question.origins_computed { " (computed now, not in the record)" } else { "" };
    let mut lines = vec![format!("  {}", look.ink(Ink::Faint, &format!("origins{computed}")))];
    for origin in origins {
        let ink = if origin.is_permitted() { Ink::Faint } else { Ink::Bad };
        lines.extend(indented(look, ink, "    ", &origin.to_string()));
    }
    lines
}

/// The next command, if there is one.
pub fn next(look: Look, session: &Session) -> Vec<String> {
    let id = &session.session_id;
    let next = match session.status {
        Status::Waiting if session.open_question.is_some() => format!("daybook answer {id}"),
        Status::Waiting if session.needs_version.is_some() => {
            format!("daybook resume {id}, with that version registered or with --as-version N")
        }
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

/// Tokens, time and cost by node.
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
        lines.push("  no model or tool calls".to_owned());
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

/// Wrapped text, each line indented.
pub fn indented(look: Look, ink: Ink, indent: &str, text: &str) -> Vec<String> {
    wrap(text, look.width.saturating_sub(indent.len()))
        .iter()
        .map(|line| format!("{indent}{}", look.ink(ink, line)).trim_end().to_owned())
        .collect()
}
