//! The timeline: a line for each event, and beneath the task a line for each step.

use std::time::Duration;

use graph::effect::ToolCall;
use graph::outcome::Brought;
use graph::question::Answer;
use journal::clock::Stamp;
use journal::error_message::ErrorMessage;
use journal::event::{About, Event, EventStatus};
use journal::step::{EffectKind, Ending, Step, StepBody, Usage};
use serde_json::Value;

use super::ink::Ink;
use super::text::{clean, clip, json_lines, width, wrap};
use super::{Look, brief};

/// Columns of the time.
const TIME: usize = 8;

/// Columns before an event's name and after a step's number.
const INDENT: usize = TIME + 2;

/// Columns of an event's name, blank included.
const EVENT_NAME: usize = 33;

/// Columns of a node's name.
const NODE: usize = 13;

/// Lines that are shown of a payload.
const PAYLOAD_LINES: usize = 400;

/// A session's timeline, line by line.
#[derive(Debug)]
pub struct Timeline {
    look: Look,
    payloads: bool,
    began: Option<Stamp>,
    /// The error that was told last: whoever hands it on need not tell it again.
    error: Option<String>,
}

/// What a step's line says.
struct Told {
    ink: Ink,
    /// On the step's own line.
    what: String,
    /// The same in fewer words, where the line has no room.
    shorter: Option<String>,
    /// Below it, in full.
    more: Vec<String>,
}

impl Told {
    fn new(ink: Ink, what: impl Into<String>) -> Self {
        Self { ink, what: what.into(), shorter: None, more: Vec::new() }
    }
}

impl Timeline {
    /// The timeline before its first line; `payloads` shows what each step holds.
    pub fn new(look: Look, payloads: bool) -> Self {
        Self { look, payloads, began: None, error: None }
    }

    /// The lines of an event.
    pub fn event(&mut self, event: &Event) -> Vec<String> {
        let look = self.look;
        let (glyph, ink) = mark(event.status);
        let name_ink = if event.status.is_verdict() { Ink::Strong } else { Ink::Plain };
        let name = format!("{:<EVENT_NAME$}", event.status.as_str());
        let room = look.width.saturating_sub(INDENT + 2 + EVENT_NAME);
        let error = event.error.as_ref().map(ErrorMessage::as_str);
        let is_news = self.is_news(error);
        let again = error.is_some() && !is_news;
        let mut line = self.time(event.stamp);
        line.push_str(&look.ink(ink, glyph));
        line.push(' ');
        line.push_str(&look.ink(name_ink, &name));
        line.push_str(&look.ink(Ink::Faint, &clip(&note(event, again), room)));
        let mut lines = vec![line.trim_end().to_owned()];
        if let Some(error) = error.filter(|_| is_news) {
            lines.extend(self.below(Ink::Bad, "  ", error));
        }
        lines
    }

    /// The lines of a step; `call` is the tool call that it is about.
    pub fn step(&mut self, step: &Step<Value>, call: Option<&ToolCall>) -> Vec<String> {
        let look = self.look;
        let told = told(step, call);
        let node = step.body.effect().map_or(step.body.kind().as_str(), |effect| &effect.node);
        let node = format!("{:<NODE$}", clip(node, NODE));
        let number = format!("#{:<2}", step.seq);
        let cost = cost(step);
        let used = INDENT + 2 + width(&number) + NODE + 2;
        let room =
            look.width.saturating_sub(used + if cost.is_empty() { 0 } else { width(&cost) + 2 });
        let what = match &told.shorter {
            Some(shorter) if width(&told.what) > room => clip(shorter, room),
            _ => clip(&told.what, room),
        };
        let blanks = room.saturating_sub(width(&what)) + 2;
        let mut line = self.time(step.stamp);
        line.push_str(&look.ink(Ink::Faint, "│ "));
        line.push_str(&look.ink(Ink::Faint, &number));
        line.push_str(&format!(" {} ", look.ink(Ink::Name, &node)));
        line.push_str(&look.ink(told.ink, &what));
        if !cost.is_empty() {
            line.push_str(&" ".repeat(blanks));
            line.push_str(&look.ink(Ink::Faint, &cost));
        }
        let mut lines = vec![line];
        let ended = match &step.body {
            StepBody::End { error, .. } => error.as_ref().map(ErrorMessage::as_str),
            _ => None,
        };
        let more =
            told.more.iter().map(String::as_str).chain(ended.filter(|_| self.is_news(ended)));
        for text in more.collect::<Vec<_>>() {
            lines.extend(self.below(told.ink, "│     ", text));
        }
        if self.payloads
            && let Some(payload) = step.body.payload().filter(|payload| !payload.is_null())
        {
            lines.extend(self.payload(payload));
        }
        lines
    }

    /// Whether an error is another than the one told last. None is no news.
    fn is_news(&mut self, error: Option<&str>) -> bool {
        match error {
            Some(error) if self.error.as_deref() != Some(error) => {
                self.error = Some(error.to_owned());
                true
            }
            _ => false,
        }
    }

    fn time(&mut self, stamp: Stamp) -> String {
        let began = *self.began.get_or_insert(stamp);
        let offset = brief::offset(stamp.since(began));
        format!("{}  ", self.look.ink(Ink::Faint, &format!("{offset:>TIME$}")))
    }

    /// Text in full below a line.
    fn below(&self, ink: Ink, gutter: &str, text: &str) -> Vec<String> {
        let look = self.look;
        let room = look.width.saturating_sub(INDENT + width(gutter));
        let blank = " ".repeat(INDENT);
        wrap(text, room)
            .iter()
            .map(|line| format!("{blank}{}{}", look.ink(Ink::Faint, gutter), look.ink(ink, line)))
            .collect()
    }

    /// A payload in lines that the gutter holds.
    fn payload(&self, payload: &Value) -> Vec<String> {
        let gutter = format!("{}{}", " ".repeat(INDENT), self.look.ink(Ink::Faint, "│     "));
        let room = self.look.width.saturating_sub(INDENT + 6).max(20);
        let all: Vec<String> = json_lines(payload)
            .iter()
            .flat_map(|line| {
                let characters: Vec<char> = line.chars().collect();
                characters.chunks(room).map(String::from_iter).collect::<Vec<_>>()
            })
            .collect();
        let left_out = all.len().saturating_sub(PAYLOAD_LINES);
        let shown = all.into_iter().take(PAYLOAD_LINES);
        let mut lines: Vec<_> = shown.map(|line| format!("{gutter}{line}")).collect();
        if left_out > 0 {
            lines.push(format!("{gutter}… {left_out} more lines; --json shows all"));
        }
        lines
    }
}

/// An event's glyph and colour.
fn mark(status: EventStatus) -> (&'static str, Ink) {
    use EventStatus as E;
    match status {
        E::SessionInitiated => ("●", Ink::Name),
        E::AgentInvocationStarted
        | E::AgentEntrypointStarted
        | E::AgentBackgroundTaskStarted
        | E::AgentBackgroundTaskResumed => ("▸", Ink::Name),
        E::AgentInvocationSucceeded
        | E::AgentBackgroundTaskCompleted
        | E::SessionSucceeded
        | E::InputReceived => ("✓", Ink::Good),
        E::AgentInvocationFailed
        | E::AgentEntrypointFailed
        | E::AgentBackgroundTaskFailed
        | E::SessionFailed
        | E::SessionTimedOut => ("✗", Ink::Bad),
        E::AgentBackgroundTaskSuspended => ("‖", Ink::Warn),
        E::AgentLost | E::CancelRequested => ("!", Ink::Warn),
        E::SessionCancelled | E::SessionRejected => ("■", Ink::Warn),
    }
}

/// Who wrote it, and what it adds to its name.
fn note(event: &Event, again: bool) -> String {
    let mut parts = vec![event.writer.as_str().to_owned()];
    match event.about {
        About::Epoch(n) if event.status == EventStatus::AgentLost => {
            parts.push(format!("epoch {n}"))
        }
        _ => {}
    }
    if again {
        parts.push("the same error".to_owned());
    }
    // The claim beside a start, and the line below a verdict, say the same and more; what a session
    // was admitted with is bookkeeping, which `--json` shows.
    let is_told = event.status.is_verdict()
        || matches!(
            event.status,
            EventStatus::AgentBackgroundTaskStarted | EventStatus::AgentInvocationStarted
        );
    match &event.detail {
        Some(Value::Object(fields)) if fields.is_empty() => {}
        Some(detail) if !is_told => parts.push(brief::value(detail)),
        _ => {}
    }
    parts.join(" · ")
}

fn told(step: &Step<Value>, call: Option<&ToolCall>) -> Told {
    match &step.body {
        StepBody::Claim { supersedes, agent, graph_version, .. } => {
            let again =
                if *supersedes > 0 { format!(", after epoch {supersedes}") } else { String::new() };
            let agent = clean(agent);
            let epoch = step.epoch;
            Told::new(
                Ink::Plain,
                format!("epoch {epoch}{again}: {agent}, graph {}", clean(graph_version)),
            )
        }
        StepBody::Intent { payload, .. } => {
            let named = || serde_json::from_value(payload.get("call")?.clone()).ok();
            let call = call.cloned().or_else(named);
            let call = call.as_ref().map_or("a tool".to_owned(), brief::call);
            Told::new(Ink::Warn, format!("about to call {call}"))
        }
        StepBody::Outcome { effect, payload, .. } => outcome(effect.kind, payload, call),
        StepBody::Ask { effect, expires_at, .. } if effect.kind == EffectKind::Sleep => {
            Told::new(Ink::Warn, format!("sleeps until {expires_at}"))
        }
        StepBody::Ask { payload, .. } => {
            let prompt = payload.pointer("/question/prompt").and_then(Value::as_str);
            let mut told = Told::new(Ink::Warn, "asks a person");
            told.more.push(prompt.unwrap_or("the question cannot be read").to_owned());
            told
        }
        StepBody::Answer { question, payload } => answer(*question, payload),
        StepBody::Note { subject, payload } => {
            Told::new(Ink::Warn, format!("{}: {}", clean(subject), brief::value(payload)))
        }
        StepBody::End { ending, category, .. } => {
            let ink = if *ending == Ending::Completed { Ink::Good } else { Ink::Bad };
            let category = category.as_deref().map(|category| format!(" [{}]", clean(category)));
            let ending = ending.as_str().replace('_', " ");
            Told::new(ink, format!("{ending}{}", category.unwrap_or_default()))
        }
    }
}

fn outcome(kind: EffectKind, payload: &Value, call: Option<&ToolCall>) -> Told {
    let about_call = |ink, text: String| match call {
        Some(call) => Told {
            shorter: Some(format!("{} → {text}", clean(&call.tool))),
            ..Told::new(ink, format!("{} → {text}", brief::call(call)))
        },
        None => Told::new(ink, text),
    };
    match serde_json::from_value(payload.clone()) {
        Ok(Brought::Reply(reply)) => Told::new(Ink::Plain, brief::reply(&reply)),
        Ok(Brought::Ok(content)) => about_call(Ink::Plain, content_of(call, &content)),
        Ok(Brought::Error(error)) => {
            let mut told = about_call(Ink::Bad, "error".to_owned());
            told.more.push(error);
            told
        }
        Ok(Brought::Failure(failure)) => {
            let kind = serde_json::to_value(failure.kind).unwrap_or_default();
            let kind = kind.as_str().unwrap_or("failed").replace('_', " ");
            let mut told = about_call(Ink::Bad, format!("no answer ({kind})"));
            told.more.push(failure.to_string());
            told
        }
        Ok(Brought::Woke {}) => Told::new(Ink::Plain, "woke"),
        Err(_) => about_call(Ink::Plain, format!("{}: {}", kind.as_str(), brief::value(payload))),
    }
}

/// What a tool brought; for a list of tools, their names.
fn content_of(call: Option<&ToolCall>, content: &Value) -> String {
    let is_catalogue = call.is_some_and(|call| call.tool == graph::effect::CATALOGUE);
    match content.get("tools").and_then(Value::as_array) {
        Some(tools) if is_catalogue => {
            let names = tools.iter().filter_map(|tool| tool.get("name")?.as_str());
            clean(&names.collect::<Vec<_>>().join(", "))
        }
        _ => brief::value(content),
    }
}

fn answer(question: u32, payload: &Value) -> Told {
    let Ok(answer) = serde_json::from_value::<Answer>(payload.clone()) else {
        return Told::new(Ink::Warn, format!("answer to #{question}: {}", brief::value(payload)));
    };
    let words = answer.text.or(answer.reason).map(|words| format!(", {}", clean(&words)));
    let decision = answer.decision.as_str();
    Told::new(Ink::Warn, format!("answer to #{question}: {decision}{}", words.unwrap_or_default()))
}

/// Tokens and time of an effect.
fn cost(step: &Step<Value>) -> String {
    let StepBody::Outcome { started_at, usage, .. } = &step.body else { return String::new() };
    let Usage { input_tokens, output_tokens, unsettled_tokens, .. } = *usage;
    let tokens = [input_tokens, output_tokens, unsettled_tokens].map(u64::from).iter().sum::<u64>();
    let time: Duration = step.stamp.since(*started_at);
    // Rules and what stands in memory take no time worth a column.
    let time = (time.as_millis() > 0).then(|| brief::duration(time));
    let tokens = (tokens > 0).then(|| format!("{} tokens", brief::number(tokens)));
    tokens.into_iter().chain(time).collect::<Vec<_>>().join(", ")
}
