//! Lists: sessions, agents, tools, and verification results.

use std::collections::BTreeMap;
use std::time::Duration;

use journal::cipher::Erasure;
use journal::clock::Stamp;
use journal::verify::{Anchor, InLog, Report};
use stack::checkpoints::Audit;
use stack::view::Session;

use super::ink::Ink;
use super::text::{clean, clip, wrap};
use super::{Look, brief};

/// Widths of a session's id, status, agent and age, each with its gap.
const COLUMNS: [usize; 4] = [38, 11, 11, 11];

/// Width of a session's duration, with its gap.
const TOOK: usize = 11;

/// Narrowest title, in columns.
const TITLE_MIN: usize = 20;

/// A list of sessions: one line each, and below it the error or the open question.
#[derive(Debug)]
pub struct Sessions {
    look: Look,
    now: Stamp,
    has_heading: bool,
}

impl Sessions {
    /// An empty list.
    pub fn new(look: Look, now: Stamp) -> Self {
        Self { look, now, has_heading: false }
    }

    /// Lines for more sessions, with the heading first.
    pub fn rows(&mut self, sessions: &[Session]) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.has_heading && !sessions.is_empty() {
            self.has_heading = true;
            let heading = ["SESSION", "STATUS", "AGENT", "BEGAN"].map(str::to_owned);
            let title = if self.title_width() > 0 {
                format!("{:<TOOK$}TITLE", "TOOK")
            } else {
                "TOOK".to_owned()
            };
            lines.push(self.look.ink(Ink::Faint, &format!("{}{title}", aligned(&heading))));
        }
        for session in sessions {
            let (_, ink) = super::ending::mark(session.status);
            let age = session.initiated_at.map_or("-".to_owned(), |at| ago(self.now.since(at)));
            let [id, status, agent, began] = [
                session.session_id.to_string(),
                session.status.to_string(),
                clip(session.agent.as_deref().unwrap_or("-"), COLUMNS[2] - 1),
                age,
            ];
            let took = session.elapsed_ms.map(|ms| brief::offset(Duration::from_millis(ms)));
            let before = aligned(&[id]);
            let status = self.look.ink(ink, &format!("{status:<width$}", width = COLUMNS[1]));
            let agent = format!("{agent:<width$}", width = COLUMNS[2]);
            let began = format!("{began:<width$}", width = COLUMNS[3]);
            let took = took.unwrap_or_default();
            let took = format!("{:<TOOK$}", took.trim_start_matches('+'));
            let title = self.title(session);
            let line = format!("{before}{status}{agent}{began}{took}{title}");
            lines.push(line.trim_end().to_owned());
            lines.extend(super::ending::fallback(self.look, session));
            let room = self.look.width.saturating_sub(2);
            if let Some(question) = &session.open_question {
                let text = clip(&format!("asks: {}", question.prompt), room);
                lines.push(format!("  {}", self.look.ink(Ink::Warn, &text)));
            } else if let Some(needs) = &session.needs_version {
                let text = clip(&needs.sentence(), room);
                lines.push(format!("  {}", self.look.ink(Ink::Warn, &text)));
            } else if let Some(erased) = &session.erased {
                let text = clip(&erased.sentence(), room);
                lines.push(format!("  {}", self.look.ink(Ink::Warn, &text)));
            } else if let Some(error) = &session.error {
                lines.push(format!("  {}", self.look.ink(ink, &clip(error, room))));
            }
        }
        lines
    }
}

impl Sessions {
    /// Columns left for a title; 0 if too few.
    fn title_width(&self) -> usize {
        let left = self.look.width.saturating_sub(COLUMNS.iter().sum::<usize>() + TOOK);
        if left < TITLE_MIN { 0 } else { left }
    }

    /// The title and the agent's verdict, clipped.
    fn title(&self, session: &Session) -> String {
        let parts: Vec<&str> =
            [&session.title, &session.verdict].into_iter().flatten().map(String::as_str).collect();
        if self.title_width() == 0 {
            String::new()
        } else {
            clip(&parts.join(" · "), self.title_width())
        }
    }
}

/// Pads texts to their columns.
fn aligned(texts: &[String]) -> String {
    texts.iter().zip(COLUMNS).map(|(text, width)| format!("{text:<width$}")).collect()
}

/// Rows of a name and a wrapped text.
pub fn pairs(look: Look, rows: &[(String, String)]) -> Vec<String> {
    let column = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(32);
    let mut lines = Vec::new();
    for (name, text) in rows {
        let mut texts = wrap(text, look.width.saturating_sub(column + 2)).into_iter();
        let name = format!("{:<column$}", clean(name));
        let first = texts.next().unwrap_or_default();
        lines.push(format!("{}  {first}", look.ink(Ink::Name, &name)).trim_end().to_owned());
        lines.extend(texts.map(|text| format!("{}{text}", " ".repeat(column + 2))));
    }
    lines
}

/// The result of a verification.
pub fn verification(look: Look, session: &str, report: &Report) -> Vec<String> {
    let (ink, mark) = mark(report.word());
    let mut lines = vec![format!(
        "{}  {}",
        look.ink(ink, &format!("{mark} {}", report.word())),
        clean(session)
    )];
    lines.extend(super::ending::indented(look, Ink::Plain, "  ", &report.state.to_string()));
    lines.extend(super::ending::indented(look, Ink::Plain, "  ", &anchored(report)));
    if let Some(Erasure { at, by, reason }) = &report.erased {
        let text =
            format!("erased at {at} by {by} because: {reason}; its contents can no longer be read");
        lines.extend(super::ending::indented(look, Ink::Warn, "  ", &text));
    }
    if let Some(text) = report.log.and_then(in_log) {
        lines.extend(super::ending::indented(look, Ink::Warn, "  ", &text));
    }
    for unmet in &report.unmet {
        let text = format!("not proven: {unmet}");
        lines.extend(super::ending::indented(look, Ink::Warn, "  ", &text));
    }
    for damage in &report.damage {
        lines.extend(super::ending::indented(look, Ink::Bad, "  ", &damage.to_string()));
    }
    for place in &report.unsealed {
        let text = format!("unsealed: the verdict does not cover {place}");
        lines.extend(super::ending::indented(look, Ink::Warn, "  ", &text));
    }
    lines
}

fn mark(word: &str) -> (Ink, char) {
    match word {
        "damaged" => (Ink::Bad, '✗'),
        "not provable" => (Ink::Warn, '?'),
        "sound" => (Ink::Good, '✓'),
        _ => (Ink::Warn, '~'),
    }
}

/// The result of verifying a whole journal.
pub fn whole(
    look: Look,
    words: &BTreeMap<&'static str, usize>,
    audit: &Audit,
    [strays, halts, executions]: [&[String]; 3],
) -> Vec<String> {
    let mut lines: Vec<_> = words
        .iter()
        .map(|(word, count)| {
            let (ink, mark) = mark(word);
            format!("{}  {count}", look.ink(ink, &format!("{mark} {word:<14}")))
        })
        .collect();
    lines.extend(super::ending::indented(look, Ink::Plain, "", &audit.to_string()));
    for problem in &audit.problems {
        let text = format!("the log of sessions does not hold: {problem}");
        lines.extend(super::ending::indented(look, Ink::Bad, "  ", &text));
    }
    for stray in strays {
        let text = format!("{stray} was added: a journal has no such partition");
        lines.extend(super::ending::indented(look, Ink::Bad, "  ", &text));
    }
    for problem in halts.iter().chain(executions) {
        lines.extend(super::ending::indented(look, Ink::Bad, "  ", problem));
    }
    lines
}

/// What is missing of a session in the log.
fn in_log(log: InLog) -> Option<String> {
    match log {
        InLog { unsigned: 0, .. } => None,
        InLog { leaves, unsigned } => Some(format!(
            "{unsigned} of its {leaves} leaves in the log of sessions are newer than the newest checkpoint"
        )),
    }
}

/// What the verdict was held against, and what that leaves open.
fn anchored(report: &Report) -> String {
    if report.is_anchored() {
        let anchors: Vec<_> = report.anchors.iter().map(ToString::to_string).collect();
        return format!("its head is named by {}", anchors.join(" and "));
    }
    let named: Vec<_> = report.anchors.iter().filter(|anchor| **anchor > Anchor::Log).collect();
    if !named.is_empty() {
        let named: Vec<_> = named.iter().map(ToString::to_string).collect();
        return format!(
            "its head is named by {}, in the journal's own file: anyone who can write that file can change it",
            named.join(" and ")
        );
    }
    let consulted = report.consulted.iter().filter(|anchor| **anchor > Anchor::Log);
    let consulted: Vec<_> = consulted.map(ToString::to_string).collect();
    if !consulted.is_empty() {
        return format!("no verdict that is named by {}", consulted.join(" and "));
    }
    "no anchor: records that were all rewritten, or a verdict that was removed, would look the same; \
     keep the head elsewhere and pass it with --head"
        .to_owned()
}

fn ago(age: Duration) -> String {
    let s = age.as_secs();
    match s {
        0..60 => format!("{s} s ago"),
        60..3_600 => format!("{} min ago", s / 60),
        3_600..172_800 => format!("{} h ago", s / 3_600),
        _ => format!("{} d ago", s / 86_400),
    }
}
