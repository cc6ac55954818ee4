//! The timeline: a line for each event, and below the task a line for each step.
//!
//! With an axis, each line also shows its time span, and waits and gaps have lines of their own.

use std::time::Duration;

use graph::effect::ToolCall;
use graph::request::{Requests, Sent};
use journal::clock::Stamp;
use journal::error_message::ErrorMessage;
use journal::event::Event;
use journal::step::{Step, StepBody, Usage};
use serde_json::Value;
use views::line;

use super::axis::Axis;
use super::ink::Ink;
use super::text::{clip, json_lines, width, wrap};
use super::{Look, brief};

/// Width of the time, in columns.
const TIME: usize = 8;

/// Columns before an event's name and after a step's number.
const INDENT: usize = TIME + 2;

/// Width of an event's name, with its gap.
const EVENT_NAME: usize = 33;

/// Width of a node's name.
const NODE: usize = 13;

/// Most lines of a payload.
const PAYLOAD_LINES: usize = 400;

/// A record of a session.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    Event(&'a Event),
    Step {
        step: &'a Step<Value>,
        /// The step's tool call.
        call: Option<&'a ToolCall>,
        /// Whether another step ran at the same time.
        beside: bool,
    },
}

/// A session's timeline, line by line.
#[derive(Debug)]
pub struct Timeline {
    look: Look,
    payloads: bool,
    axis: Option<Axis>,
    /// The end of the latest activity so far.
    busy_until: Option<Stamp>,
    began: Option<Stamp>,
    requests: Requests,
    /// The last error shown; events that repeat it do not show it again.
    error: Option<String>,
}

impl Timeline {
    /// An empty timeline; `payloads` includes each step's payload.
    pub fn new(look: Look, payloads: bool) -> Self {
        let requests = Requests::default();
        Self { look, payloads, axis: None, busy_until: None, began: None, requests, error: None }
    }

    /// Adds a time axis.
    #[must_use]
    pub fn on(self, axis: Option<Axis>) -> Self {
        Self { axis, ..self }
    }

    /// The axis's scale.
    pub fn heading(&self) -> Vec<String> {
        let heading = |axis: &Axis| self.beside_axis("", 0, &axis.heading(self.look));
        self.axis.iter().map(heading).collect()
    }

    /// The lines of a record.
    pub fn row(&mut self, row: &Row<'_>) -> Vec<String> {
        match *row {
            Row::Event(event) => self.event(event),
            Row::Step { step, call, beside } => self.step(step, call, beside),
        }
    }

    /// The lines of an event.
    pub fn event(&mut self, event: &Event) -> Vec<String> {
        let look = self.look;
        let (glyph, tone) = line::mark(event.status);
        let name_ink = if event.status.is_verdict() { Ink::Strong } else { Ink::Plain };
        let name = format!("{:<EVENT_NAME$}", event.status.as_str());
        let room = self.width().saturating_sub(INDENT + 2 + EVENT_NAME);
        let error = event.error.as_ref().map(ErrorMessage::as_str);
        let is_news = self.is_news(error);
        let again = error.is_some() && !is_news;
        let at = event.begun_at();
        let mut lines = self.gap(at, at);
        let mut line = self.time(at);
        line.push_str(&look.ink(Ink::of_tone(tone), glyph));
        line.push(' ');
        line.push_str(&look.ink(name_ink, &name));
        let mut note = line::note(event, again);
        let skewed = event.skewed_clock();
        let off = skewed.and_then(|wall| clock_off(wall, event.stamp));
        if let Some(off) = off.or_else(|| trigger_time(event)) {
            note = match note.split_once(" · ") {
                Some((writer, rest)) => format!("{writer} · {off} · {rest}"),
                None => format!("{note} · {off}"),
            };
        }
        let note = clip(&note, room);
        let used = INDENT + 2 + EVENT_NAME + width(&note);
        line.push_str(&look.ink(if skewed.is_some() { Ink::Warn } else { Ink::Faint }, &note));
        lines.push(self.drawn(&line, used, Ink::of_tone(tone), at, at));
        if let Some(error) = error.filter(|_| is_news) {
            lines.extend(self.below(Ink::Bad, "  ", error));
        }
        lines
    }

    /// The lines of a step. `call` is its tool call; `beside` marks a step that ran alongside another.
    pub fn step(
        &mut self,
        step: &Step<Value>,
        call: Option<&ToolCall>,
        beside: bool,
    ) -> Vec<String> {
        let look = self.look;
        let described = line::step(step, call);
        let ink = Ink::of_tone(described.tone);
        let node = step.body.effect().map_or(step.body.kind().as_str(), |effect| &effect.node);
        let node = format!("{:<NODE$}", clip(node, NODE));
        let number = format!("#{:<2}", step.seq);
        let cost = cost(step);
        let used = INDENT + 2 + width(&number) + NODE + 2;
        let room =
            self.width().saturating_sub(used + if cost.is_empty() { 0 } else { width(&cost) + 2 });
        let what = match &described.shorter {
            Some(shorter) if width(&described.what) > room => clip(shorter, room),
            _ => clip(&described.what, room),
        };
        let blanks = room.saturating_sub(width(&what)) + 2;
        let from = match &step.body {
            StepBody::Outcome { started_at, .. } => *started_at,
            _ => step.stamp,
        };
        let mut lines = self.gap(from, step.stamp);
        let mut line = self.time(step.stamp);
        line.push_str(&look.ink(Ink::Faint, if beside { "╟ " } else { "│ " }));
        line.push_str(&look.ink(Ink::Faint, &number));
        line.push_str(&format!(" {} ", look.ink(Ink::Name, &node)));
        line.push_str(&look.ink(ink, &what));
        if !cost.is_empty() {
            line.push_str(&" ".repeat(blanks));
            line.push_str(&look.ink(Ink::Faint, &cost));
        }
        let drawn = if cost.is_empty() { width(&what) } else { room + width(&cost) + 2 };
        lines.push(self.drawn(&line, used + drawn, ink, from, step.stamp));
        let ended = match &step.body {
            StepBody::End { error, .. } => error.as_ref().map(ErrorMessage::as_str),
            _ => None,
        };
        let more =
            described.more.iter().map(String::as_str).chain(ended.filter(|_| self.is_news(ended)));
        for text in more.collect::<Vec<_>>() {
            lines.extend(self.below(ink, "│     ", text));
        }
        if self.payloads
            && let Some(sent) = self.requests.of(step)
        {
            lines.extend(self.request(ink, sent));
        }
        if self.payloads
            && let Some(payload) = step.body.payload().filter(|payload| !payload.is_null())
        {
            lines.extend(self.payload(payload));
        }
        if let Some(wait) = self.axis.as_ref().and_then(|axis| axis.wait(step.seq)) {
            lines.push(self.between("‖", Ink::Warn, &wait));
        }
        lines
    }

    /// Width of a line's text, in columns.
    fn width(&self) -> usize {
        let axis = self.axis.as_ref().map_or(0, Axis::columns);
        self.look.width.saturating_sub(axis)
    }

    /// Appends the time span to a line of `used` columns.
    fn drawn(&self, line: &str, used: usize, ink: Ink, from: Stamp, to: Stamp) -> String {
        match &self.axis {
            None => line.trim_end().to_owned(),
            Some(axis) => self.beside_axis(line, used, &axis.draw(self.look, ink, from, to)),
        }
    }

    fn beside_axis(&self, line: &str, used: usize, drawn: &str) -> String {
        let blanks = (self.width() + 1).saturating_sub(used);
        format!("{line}{}{drawn}", " ".repeat(blanks)).trim_end().to_owned()
    }

    /// A line for an idle gap before this record, which then counts as activity.
    fn gap(&mut self, from: Stamp, to: Stamp) -> Vec<String> {
        let before = self.busy_until.unwrap_or(from);
        self.busy_until = Some(before.max(to));
        let gap = self.axis.as_ref().and_then(|axis| axis.gap(before, from));
        gap.map(|gap| self.between("⋮", Ink::Faint, &gap)).into_iter().collect()
    }

    fn between(&self, sign: &str, ink: Ink, text: &str) -> String {
        format!("{}{}", " ".repeat(INDENT), self.look.ink(ink, &format!("{sign} {text}")))
    }

    /// Whether an error differs from the last one shown.
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

    /// Wrapped text below a line.
    fn below(&self, ink: Ink, gutter: &str, text: &str) -> Vec<String> {
        let look = self.look;
        let room = look.width.saturating_sub(INDENT + width(gutter));
        let blank = " ".repeat(INDENT);
        wrap(text, room)
            .iter()
            .map(|line| format!("{blank}{}{}", look.ink(Ink::Faint, gutter), look.ink(ink, line)))
            .collect()
    }

    /// What the model was sent, behind the gutter.
    fn request(&self, ink: Ink, sent: Sent) -> Vec<String> {
        let (heading, sent) = match sent {
            Sent::Request(sent) => ("request to the model".to_owned(), Some(sent)),
            Sent::Policy => ("no model request: the agent's policy answered".to_owned(), None),
            Sent::Unrecorded => ("an earlier version did not record the request".to_owned(), None),
            Sent::Damaged(what) => (format!("the request cannot be shown: {what}"), None),
        };
        let mut lines = self.below(ink, "│     ", &heading);
        lines.extend(sent.iter().flat_map(|sent| self.payload(sent)));
        lines
    }

    /// A payload's lines, behind the gutter.
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

/// The offset of a writer's clock from its record's time, if any.
fn clock_off(wall: Stamp, stamp: Stamp) -> Option<String> {
    let (sign, off) =
        if wall < stamp { ("behind", stamp.since(wall)) } else { ("ahead", wall.since(stamp)) };
    (off.as_millis() > 0).then(|| format!("clock {} {sign}", brief::duration(off)))
}

/// The time of a trigger that is older than its session by more than the part of a second that events
/// leave out.
fn trigger_time(event: &Event) -> Option<String> {
    let older = event.begun_at().since(event.stamp);
    (older >= Duration::from_secs(1)).then(|| format!("event of {}", event.stamp))
}

/// Tokens and duration of an effect.
fn cost(step: &Step<Value>) -> String {
    let StepBody::Outcome { started_at, usage, .. } = &step.body else { return String::new() };
    let Usage { input_tokens, output_tokens, unsettled_tokens, .. } = *usage;
    let tokens = [input_tokens, output_tokens, unsettled_tokens].map(u64::from).iter().sum::<u64>();
    let time: Duration = step.stamp.since(*started_at);
    // Rules and in-memory reads take less than a millisecond.
    let time = (time.as_millis() > 0).then(|| brief::duration(time));
    let tokens = (tokens > 0).then(|| format!("{} tokens", brief::number(tokens)));
    tokens.into_iter().chain(time).collect::<Vec<_>>().join(", ")
}
