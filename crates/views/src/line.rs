//! Describes a record in one line, with a tone.

use graph::effect::ToolCall;
use graph::outcome::Brought;
use graph::question::{Answer, Decision};
use journal::event::{About, Event, EventStatus};
use journal::principal::Principal;
use journal::request::{NOTE_REQUEST, Parts};
use journal::step::{EffectKind, Ending, Step, StepBody};
use journal::version::{self, Missing, Move};
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use crate::brief;
use crate::text::clean;

/// The meaning of a line. Colour is never its only sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    #[default]
    Plain,
    Begun,
    Good,
    Bad,
    Warn,
}

impl Tone {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Begun => "begun",
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Warn => "warn",
        }
    }
}

/// The description of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub tone: Tone,
    /// Text for the step's line.
    pub what: String,
    /// A shorter text for narrow lines.
    pub shorter: Option<String>,
    /// Lines below it, in full and not yet cleaned.
    pub more: Vec<String>,
}

impl Line {
    fn new(tone: Tone, what: impl Into<String>) -> Self {
        Self { tone, what: what.into(), shorter: None, more: Vec::new() }
    }
}

/// An event's glyph and tone.
pub fn mark(status: EventStatus) -> (&'static str, Tone) {
    use EventStatus as E;
    match status {
        E::SessionInitiated => ("●", Tone::Begun),
        E::AgentInvocationStarted
        | E::AgentEntrypointStarted
        | E::AgentBackgroundTaskStarted
        | E::AgentBackgroundTaskResumed
        | E::ResumeRequested => ("▸", Tone::Begun),
        E::AgentInvocationSucceeded
        | E::AgentBackgroundTaskCompleted
        | E::SessionSucceeded
        | E::InputReceived => ("✓", Tone::Good),
        E::AgentInvocationFailed
        | E::AgentEntrypointFailed
        | E::AgentBackgroundTaskFailed
        | E::SessionFailed
        | E::SessionTimedOut => ("✗", Tone::Bad),
        E::AgentBackgroundTaskSuspended | E::AgentVersionMissing => ("‖", Tone::Warn),
        E::AgentLost | E::CancelRequested => ("!", Tone::Warn),
        E::SessionCancelled | E::SessionRejected | E::SessionErased => ("■", Tone::Warn),
    }
}

/// An event's writer, principal and detail; `again` if its error was shown before.
pub fn note(event: &Event, again: bool) -> String {
    let mut parts = vec![event.writer.as_str().to_owned()];
    parts.extend(event.principal.as_ref().map(by));
    match event.about {
        About::Epoch(n) if event.status == EventStatus::AgentLost => {
            parts.push(format!("epoch {n}"))
        }
        _ => {}
    }
    if again {
        parts.push("the same error".to_owned());
    }
    // A start's claim and a verdict's end step show the same and more. The detail of an admission is
    // bookkeeping, which `--json` shows.
    let is_redundant = event.status.is_verdict()
        || matches!(
            event.status,
            EventStatus::AgentBackgroundTaskStarted | EventStatus::AgentInvocationStarted
        );
    if let Some(Missing { needs, registered, .. }) = version::missing(std::slice::from_ref(event)) {
        let there = if registered.is_empty() { "none".to_owned() } else { registered.join(", ") };
        parts.push(format!("needs version {}, registered: {}", clean(&needs), clean(&there)));
        return parts.join(" · ");
    }
    match &event.detail {
        Some(Value::Object(fields)) if fields.is_empty() => {}
        Some(detail) if !is_redundant => parts.push(brief::value(detail)),
        _ => {}
    }
    parts.join(" · ")
}

/// Describes a step; `call` is its tool call.
pub fn step(step: &Step<Value>, call: Option<&ToolCall>) -> Line {
    match &step.body {
        StepBody::Claim { supersedes, agent, graph_version, .. } => {
            let again =
                if *supersedes > 0 { format!(", after epoch {supersedes}") } else { String::new() };
            let agent = clean(agent);
            let epoch = step.epoch;
            Line::new(
                Tone::Plain,
                format!("epoch {epoch}{again}: {agent}, graph {}", clean(graph_version)),
            )
        }
        StepBody::Intent { payload, .. } => {
            let named = || serde_json::from_value(payload.get("call")?.clone()).ok();
            let call = call.cloned().or_else(named);
            let call = call.as_ref().map_or("a tool".to_owned(), brief::call);
            Line::new(Tone::Warn, format!("about to call {call}"))
        }
        StepBody::Outcome { effect, payload, .. } => outcome(effect.kind, payload, call),
        StepBody::Ask { effect, expires_at, .. } if effect.kind == EffectKind::Sleep => {
            Line::new(Tone::Warn, format!("sleeps until {expires_at}"))
        }
        StepBody::Ask { payload, .. } => {
            let prompt = payload.pointer("/question/prompt").and_then(Value::as_str);
            let mut line = Line::new(Tone::Warn, "asks a person");
            line.more.push(prompt.unwrap_or("the question cannot be read").to_owned());
            line
        }
        StepBody::Answer { question, principal, payload } => {
            answer(*question, principal.as_ref(), payload)
        }
        StepBody::Note { principal, payload, .. } if version::is_move(step) => {
            moved(principal.as_ref(), payload)
        }
        StepBody::Note { subject, payload, .. } if subject == NOTE_REQUEST => texts(payload),
        StepBody::Note { subject, payload, .. } => {
            Line::new(Tone::Warn, format!("{}: {}", clean(subject), brief::value(payload)))
        }
        StepBody::End { ending, category, .. } => {
            let ink = if *ending == Ending::Completed { Tone::Good } else { Tone::Bad };
            let category = category.as_deref().map(|category| format!(" [{}]", clean(category)));
            let ending = ending.as_str().replace('_', " ");
            Line::new(ink, format!("{ending}{}", category.unwrap_or_default()))
        }
    }
}

fn texts(payload: &Value) -> Line {
    let Parts { parts } = Parts::deserialize(payload).unwrap_or_default();
    let bytes = brief::number(parts.iter().map(|text| text.len() as u64).sum());
    Line::new(Tone::Plain, format!("texts of the model's request: {}, {bytes} bytes", parts.len()))
}

fn moved(principal: Option<&Principal>, payload: &Value) -> Line {
    let Ok(Move { from, to }) = serde_json::from_value(payload.clone()) else {
        return Line::new(Tone::Warn, format!("moved: {}", brief::value(payload)));
    };
    let text = format!("moved from version {} to {}", clean(&from), clean(&to));
    Line { more: principal.map(by).into_iter().collect(), ..Line::new(Tone::Warn, text) }
}

fn outcome(kind: EffectKind, payload: &Value, call: Option<&ToolCall>) -> Line {
    let about_call = |ink, text: String| match call {
        Some(call) => Line {
            shorter: Some(format!("{} → {text}", clean(&call.tool))),
            ..Line::new(ink, format!("{} → {text}", brief::call(call)))
        },
        None => Line::new(ink, text),
    };
    match serde_json::from_value(payload.clone()) {
        Ok(Brought::Reply(reply)) => Line::new(Tone::Plain, brief::reply(&reply)),
        Ok(Brought::Ok(content)) => about_call(Tone::Plain, content_of(call, &content)),
        Ok(Brought::Error(error)) => {
            let mut line = about_call(Tone::Bad, "error".to_owned());
            line.more.push(error);
            line
        }
        Ok(Brought::Failure(failure)) => {
            let kind = serde_json::to_value(failure.kind).unwrap_or_default();
            let kind = kind.as_str().unwrap_or("failed").replace('_', " ");
            let mut line = about_call(Tone::Bad, format!("no answer ({kind})"));
            line.more.push(failure.to_string());
            line
        }
        Ok(Brought::Woke {}) => Line::new(Tone::Plain, "woke"),
        Err(_) => about_call(Tone::Plain, format!("{}: {}", kind.as_str(), brief::value(payload))),
    }
}

/// A tool's result in short; the names for a list of tools.
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

fn by(principal: &Principal) -> String {
    format!("by {}", clean(&principal.describe()))
}

fn answer(question: u32, principal: Option<&Principal>, payload: &Value) -> Line {
    let more = principal.map(by).into_iter().collect();
    let Ok(answer) = serde_json::from_value::<Answer>(payload.clone()) else {
        let text = format!("answer to #{question}: {}", brief::value(payload));
        return Line { more, ..Line::new(Tone::Warn, text) };
    };
    if answer.decision == Decision::Expired {
        return Line::new(Tone::Warn, format!("#{question} expired without an answer"));
    }
    let words = answer.text.or(answer.reason).map(|words| format!(", {}", clean(&words)));
    let decision = answer.decision.as_str();
    let text = format!("answer to #{question}: {decision}{}", words.unwrap_or_default());
    Line { more, ..Line::new(Tone::Warn, text) }
}
