//! `compare`: what differs between sessions.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use stack::view::{Calls, Session};
use views::brief;
use views::compare::{Cell, Compared, Comparison, Pair, Verdict};
use views::waterfall::{Row, Waterfall};

use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader::{self, Loaded, Reader};
use crate::render::Look;
use crate::render::ending::mark;
use crate::render::ink::Ink;
use crate::render::text::{clean, clip};
use crate::resolve::Context;

/// Columns beside the two steps of a line: the sign, and the gaps.
const OTHER_COLUMNS: usize = 3;

/// Compares the first session with each of the others.
///
/// # Errors
/// When a session does not exist or cannot be read.
pub async fn compare(context: &Context, sessions: &[String]) -> Result<Exit, Failure> {
    let reader = Reader::open(context).await?;
    let mut loaded = Vec::new();
    for session in sessions {
        loaded.push(reader.load(session).await?);
    }
    let Some((first, others)) = loaded.split_first() else { return Ok(Exit::Succeeded) };
    let one = Side::of(context, first);
    for other in others {
        let other = Side::of(context, other);
        let comparison = one.beside(&other);
        if context.json {
            output::json(&json!({
                "a": one.session, "b": other.session, "comparison": comparison,
            }))?;
        } else {
            output::lines(lines(context.look, &one.session, &other.session, &comparison))?;
        }
    }
    Ok(Exit::Succeeded)
}

/// A session with what its steps are compared by.
struct Side<'a> {
    loaded: &'a Loaded,
    session: Session,
    calls: Vec<Option<graph::effect::ToolCall>>,
    rows: Vec<Row>,
}

impl<'a> Side<'a> {
    fn of(context: &Context, loaded: &'a Loaded) -> Self {
        let now = reader::now();
        let session = loaded.view(now);
        let mut calls = Calls::new(Arc::clone(&context.agents));
        let calls: Vec<_> = loaded.steps.iter().map(|step| calls.of(step)).collect();
        let with_calls = loaded.steps.iter().zip(calls.iter().cloned());
        // Only steps have rows: announcements follow from them.
        let is_open = !session.status.is_terminal();
        let mut rows = Waterfall::of(&[], with_calls, is_open, now).rows;
        rows.sort_by_key(|row| row.seq);
        Self { loaded, session, calls, rows }
    }

    fn beside(&self, other: &Self) -> Comparison {
        let [a, b] = [self, other].map(|side| {
            let each = side.rows.iter().zip(&side.loaded.steps).zip(&side.calls);
            each.map(|((row, step), call)| Compared::of(row, step, call.as_ref()))
                .collect::<Vec<_>>()
        });
        Comparison::of(&a, &b)
    }
}

fn lines(look: Look, a: &Session, b: &Session, comparison: &Comparison) -> Vec<String> {
    let mut lines = [heading(look, "A", a), heading(look, "B", b)].concat();
    let path = if comparison.is_same_path { "the same path" } else { "different paths" };
    let (same, all) = (comparison.same, comparison.pairs.len());
    lines.push(format!("{path}: {same} of {all} steps are identical"));
    if let (Some(a), Some(b)) = (&a.result, &b.result) {
        lines.push(format!("results: {}", if a == b { "equal" } else { "different" }));
    }
    for (place, pair) in comparison.pairs.iter().enumerate() {
        if pair.verdict != Verdict::Same {
            lines.push(step(look, pair, comparison.first_difference == Some(place)));
        }
    }
    if comparison.is_cut {
        lines.push(
            look.ink(
                Ink::Faint,
                "only the first steps of each session were compared; `show` has all",
            ),
        );
    }
    lines
}

fn heading(look: Look, name: &str, session: &Session) -> Vec<String> {
    let (glyph, ink) = mark(session.status);
    let mut parts = vec![session.agent.as_deref().map_or("no agent".to_owned(), clean)];
    parts.extend(session.title.as_deref().map(clean));
    parts.extend(session.verdict.as_deref().map(clean));
    parts.push(format!("{} steps", session.steps));
    parts.extend(session.elapsed_ms.map(|ms| brief::duration(Duration::from_millis(ms))));
    let word = look.ink(ink, &format!("{glyph} {}", session.status));
    vec![
        format!("{name}  {}  {word}", session.session_id.as_str()),
        clip(&format!("   {}", parts.join(" · ")), look.width),
    ]
}

fn step(look: Look, pair: &Pair, is_first: bool) -> String {
    let sign = match pair.verdict {
        Verdict::Same => " ",
        Verdict::Differs => "≠",
        Verdict::OnlyA => "−",
        Verdict::OnlyB => "+",
    };
    let columns = look.width.saturating_sub(OTHER_COLUMNS) / 2;
    let side = |cell: &Option<Cell>| {
        let text = cell.as_ref().map(|cell| format!("#{} {} {}", cell.seq, cell.name, cell.what));
        clip(&text.unwrap_or_default(), columns)
    };
    let (a, b) = (side(&pair.a), side(&pair.b));
    let line = format!("{sign} {a:<columns$} {b}");
    if is_first { look.ink(Ink::Strong, &line) } else { line.trim_end().to_owned() }
}
