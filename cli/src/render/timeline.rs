//! The timeline: a line for each event, and beneath the task a line for each step. On an axis each line
//! also shows when that was, and what was waited for stands between.

use std::time::Duration;

use ::timeline::told;
use graph::effect::ToolCall;
use journal::clock::Stamp;
use journal::error_message::ErrorMessage;
use journal::event::Event;
use journal::step::{Step, StepBody, Usage};
use serde_json::Value;

use super::axis::Axis;
use super::ink::Ink;
use super::text::{clip, json_lines, width, wrap};
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

/// A record of a session.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// An event.
    Event(&'a Event),
    /// A step.
    Step {
        /// The step.
        step: &'a Step<Value>,
        /// The tool call that it is about.
        call: Option<&'a ToolCall>,
        /// Whether another was under way at the same time.
        beside: bool,
    },
}

/// A session's timeline, line by line.
#[derive(Debug)]
pub struct Timeline {
    look: Look,
    payloads: bool,
    axis: Option<Axis>,
    /// Up to when something was under way.
    busy_until: Option<Stamp>,
    began: Option<Stamp>,
    /// The error that was told last: whoever hands it on need not tell it again.
    error: Option<String>,
}

impl Timeline {
    /// The timeline before its first line; `payloads` shows what each step holds.
    pub fn new(look: Look, payloads: bool) -> Self {
        Self { look, payloads, axis: None, busy_until: None, began: None, error: None }
    }

    /// The same, each line with its time on an axis.
    #[must_use]
    pub fn on(self, axis: Option<Axis>) -> Self {
        Self { axis, ..self }
    }

    /// What stands above the first line.
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
        let (glyph, tone) = told::mark(event.status);
        let name_ink = if event.status.is_verdict() { Ink::Strong } else { Ink::Plain };
        let name = format!("{:<EVENT_NAME$}", event.status.as_str());
        let room = self.width().saturating_sub(INDENT + 2 + EVENT_NAME);
        let error = event.error.as_ref().map(ErrorMessage::as_str);
        let is_news = self.is_news(error);
        let again = error.is_some() && !is_news;
        let mut lines = self.gap(event.stamp, event.stamp);
        let mut line = self.time(event.stamp);
        line.push_str(&look.ink(Ink::of_tone(tone), glyph));
        line.push(' ');
        line.push_str(&look.ink(name_ink, &name));
        let mut note = told::note(event, again);
        if let Some(off) = event.wall.and_then(|wall| clock_off(wall, event.stamp)) {
            note = match note.split_once(" · ") {
                Some((writer, rest)) => format!("{writer} · {off} · {rest}"),
                None => format!("{note} · {off}"),
            };
        }
        let note = clip(&note, room);
        let used = INDENT + 2 + EVENT_NAME + width(&note);
        line.push_str(&look.ink(if event.wall.is_some() { Ink::Warn } else { Ink::Faint }, &note));
        lines.push(self.drawn(&line, used, Ink::of_tone(tone), event.stamp, event.stamp));
        if let Some(error) = error.filter(|_| is_news) {
            lines.extend(self.below(Ink::Bad, "  ", error));
        }
        lines
    }

    /// The lines of a step; `call` is the tool call that it is about. `beside` says that another was
    /// under way at the same time.
    pub fn step(
        &mut self,
        step: &Step<Value>,
        call: Option<&ToolCall>,
        beside: bool,
    ) -> Vec<String> {
        let look = self.look;
        let told = told::step(step, call);
        let ink = Ink::of_tone(told.tone);
        let node = step.body.effect().map_or(step.body.kind().as_str(), |effect| &effect.node);
        let node = format!("{:<NODE$}", clip(node, NODE));
        let number = format!("#{:<2}", step.seq);
        let cost = cost(step);
        let used = INDENT + 2 + width(&number) + NODE + 2;
        let room =
            self.width().saturating_sub(used + if cost.is_empty() { 0 } else { width(&cost) + 2 });
        let what = match &told.shorter {
            Some(shorter) if width(&told.what) > room => clip(shorter, room),
            _ => clip(&told.what, room),
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
            told.more.iter().map(String::as_str).chain(ended.filter(|_| self.is_news(ended)));
        for text in more.collect::<Vec<_>>() {
            lines.extend(self.below(ink, "│     ", text));
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

    /// Columns of a line's text.
    fn width(&self) -> usize {
        let axis = self.axis.as_ref().map_or(0, Axis::columns);
        self.look.width.saturating_sub(axis)
    }

    /// A line of so many columns with its time on the axis.
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

    /// Says when nothing was under way for long before this record; it is from then on.
    fn gap(&mut self, from: Stamp, to: Stamp) -> Vec<String> {
        let before = self.busy_until.unwrap_or(from);
        self.busy_until = Some(before.max(to));
        let gap = self.axis.as_ref().and_then(|axis| axis.gap(before, from));
        gap.map(|gap| self.between("⋮", Ink::Faint, &gap)).into_iter().collect()
    }

    fn between(&self, sign: &str, ink: Ink, text: &str) -> String {
        format!("{}{}", " ".repeat(INDENT), self.look.ink(ink, &format!("{sign} {text}")))
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

/// How far a writer's clock stood from where its record is told, if that is worth a word.
fn clock_off(wall: Stamp, told: Stamp) -> Option<String> {
    let (sign, off) =
        if wall < told { ("behind", told.since(wall)) } else { ("ahead", wall.since(told)) };
    (off.as_millis() > 0).then(|| format!("clock {} {sign}", brief::duration(off)))
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
