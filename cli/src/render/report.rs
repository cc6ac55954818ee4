//! Lists: sessions, agents, tools, and what verifying found.

use std::time::Duration;

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};
use journal::clock::Stamp;
use journal::listing::Summary;
use journal::status::Status;
use journal::verify::Report;

use super::ink::Ink;
use super::text::{clean, wrap};
use super::{Look, brief};

/// Sessions, newest first.
pub fn sessions(look: Look, summaries: &[Summary], now: Stamp) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    // The table would ask the terminal by itself; whether there are colours is decided once.
    if look.colour {
        table.enforce_styling()
    } else {
        table.force_no_tty()
    };
    let heading = ["SESSION", "STATUS", "AGENT", "BEGAN", "TOOK"];
    table.set_header(heading.map(|name| Cell::new(name).add_attribute(Attribute::Dim)));
    for summary in summaries {
        let took = summary.ended_at.unwrap_or(now);
        let took = summary.initiated_at.map(|at| brief::offset(took.since(at)));
        table.add_row([
            Cell::new(&summary.session),
            Cell::new(summary.status).fg(colour(summary.status)),
            Cell::new(summary.agent.as_deref().map_or("-".to_owned(), clean)),
            Cell::new(summary.initiated_at.map_or("-".to_owned(), |at| ago(now.since(at)))),
            Cell::new(took.unwrap_or_default().trim_start_matches('+')),
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.to_string().lines().map(|line| line.trim_end().to_owned()).collect()
}

fn colour(status: Status) -> Color {
    match status {
        Status::Succeeded => Color::Green,
        Status::Failed | Status::TimedOut => Color::Red,
        Status::Waiting | Status::Cancelled | Status::Rejected => Color::Yellow,
        Status::Initiated | Status::Running => Color::Cyan,
    }
}

/// A name and what it stands for, a pair a row; the second wraps.
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

/// What verifying found.
pub fn verification(look: Look, session: &str, report: &Report) -> Vec<String> {
    let (ink, word) =
        if report.is_sound() { (Ink::Good, "✓ sound") } else { (Ink::Bad, "✗ damaged") };
    let mut lines = vec![format!("{}  {}", look.ink(ink, word), clean(session))];
    lines.extend(super::ending::indented(look, Ink::Plain, "  ", &report.state.to_string()));
    for damage in &report.damage {
        lines.extend(super::ending::indented(look, Ink::Bad, "  ", &damage.to_string()));
    }
    for place in &report.unsealed {
        let text = format!("unsealed: {place} is later than the verdict");
        lines.extend(super::ending::indented(look, Ink::Warn, "  ", &text));
    }
    lines
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
