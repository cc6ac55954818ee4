//! Renders a conclusion, the same way for every agent.

use graph::conclusion::{Action, Cell, Conclusion, Fact, Finding, Note, Table, Tone};

use super::Look;
use super::ending::indented;
use super::ink::Ink;
use super::text::{clean, clip, width, wrap};

/// Most lines of a quoted value.
const QUOTE_LINES: usize = 6;

/// Width of a share's bar, in columns.
const BAR: usize = 20;

/// Widest name of a fact, in columns.
const NAME: usize = 24;

/// Gap between two columns of a table.
const GAP: usize = 2;

/// Narrowest column of a wrapped table.
const COLUMN_MIN: usize = 8;

/// Title and verdict, then facts, findings, actions, tables and notes.
pub fn conclusion(look: Look, found: &Conclusion) -> Vec<String> {
    let title = look.ink(Ink::Strong, found.title);
    let mut lines = vec![match &found.verdict {
        Some(verdict) => {
            let word = format!("{}{}", mark(verdict.tone), clean(&verdict.word));
            format!("{title}  {}", look.ink(ink(verdict.tone), &word))
        }
        None => title,
    }];
    lines.extend(facts(look, &found.facts));
    if !found.summary.is_empty() {
        section(look, &mut lines, found.headings.summary);
        lines.extend(indented(look, Ink::Plain, "  ", &found.summary));
    }
    if !found.findings.is_empty() {
        section(look, &mut lines, found.headings.findings);
    }
    for (index, item) in found.findings.iter().enumerate() {
        lines.extend(finding(look, index, item));
    }
    if !found.actions.is_empty() {
        section(look, &mut lines, found.headings.actions);
    }
    for (index, item) in found.actions.iter().enumerate() {
        lines.extend(action(look, index + 1, item));
    }
    for item in &found.tables {
        section(look, &mut lines, &item.title);
        lines.extend(table(look, item));
    }
    for item in &found.notes {
        section(look, &mut lines, &item.title);
        lines.extend(note(look, item));
    }
    lines
}

/// A blank line, and the heading unless it is empty.
fn section(look: Look, lines: &mut Vec<String>, heading: &str) {
    lines.push(String::new());
    if !heading.is_empty() {
        lines.push(look.ink(Ink::Strong, &clean(heading)));
    }
}

fn ink(tone: Tone) -> Ink {
    match tone {
        Tone::Good => Ink::Good,
        Tone::Bad => Ink::Bad,
        Tone::Warn => Ink::Warn,
        Tone::Neutral => Ink::Plain,
    }
}

/// A tone's sign, legible without colour.
fn mark(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "✓ ",
        Tone::Bad => "✗ ",
        Tone::Warn => "! ",
        Tone::Neutral => "",
    }
}

/// Names and values in two columns; a share has a bar.
fn facts(look: Look, facts: &[Fact]) -> Vec<String> {
    let column = facts.iter().map(|fact| width(&clean(&fact.name))).max().unwrap_or(0).min(NAME);
    let mut lines = Vec::new();
    for fact in facts {
        let name = format!("{:<column$}", clip(&fact.name, NAME));
        let before = format!("  {}  ", look.ink(Ink::Faint, &name));
        let value = match fact.share_permille {
            Some(share) => format!("{} {}", bar(share), fact.value),
            None => fact.value.clone(),
        };
        lines.extend(hanging(look, ink(fact.tone), &before, column + 4, &value));
    }
    lines
}

fn bar(permille: u16) -> String {
    let filled = (usize::from(permille.min(1_000)) * BAR + 500) / 1_000;
    format!("{}{}", "█".repeat(filled), "░".repeat(BAR - filled))
}

/// `[0]` and the finding. For a quoted value: source, value, then its meaning.
fn finding(look: Look, index: usize, finding: &Finding) -> Vec<String> {
    let number = format!("  [{index}] ");
    let columns = number.len();
    let indent = " ".repeat(columns);
    let quoted = finding.evidence.as_ref().and_then(|e| Some((&e.source, e.quote.as_ref()?)));
    if let Some((source, quote)) = quoted {
        let mut lines = hanging(look, Ink::Name, &number, columns, source);
        lines.extend(quoted_lines(look, &indent, quote));
        if !finding.text.is_empty() {
            lines.extend(hanging(
                look,
                Ink::Plain,
                &format!("{indent}— "),
                columns + 2,
                &finding.text,
            ));
        }
        return lines;
    }
    let sign = mark(finding.tone);
    let before = format!("{number}{}", look.ink(ink(finding.tone), sign));
    let columns = columns + width(sign);
    let indent = " ".repeat(columns);
    let mut lines = match &finding.label {
        Some(label) => {
            let mut lines = hanging(look, Ink::Name, &before, columns, label);
            lines.extend(indented(look, Ink::Plain, &indent, &finding.text));
            lines
        }
        None => hanging(look, Ink::Plain, &before, columns, &finding.text),
    };
    if let Some(evidence) = &finding.evidence {
        lines.extend(indented(look, Ink::Faint, &indent, &evidence.source));
    }
    lines
}

fn quoted_lines(look: Look, indent: &str, quote: &str) -> Vec<String> {
    if quote.is_empty() {
        return vec![format!("{indent}= {}", look.ink(Ink::Warn, "(nothing found)"))];
    }
    let all = hanging(look, Ink::Plain, &format!("{indent}= "), indent.len() + 2, quote);
    let left_out = all.len().saturating_sub(QUOTE_LINES);
    let mut lines: Vec<_> = all.into_iter().take(QUOTE_LINES).collect();
    if left_out > 0 {
        lines.push(format!("{indent}  … {left_out} more lines"));
    }
    lines
}

/// `1.` and the action, its details and its evidence.
fn action(look: Look, number: usize, action: &Action) -> Vec<String> {
    let mark = format!("  {number}. ");
    let indent = " ".repeat(mark.len());
    let mut lines = hanging(look, Ink::Strong, &mark, mark.len(), &action.title);
    if !action.details.is_empty() {
        lines.extend(indented(look, Ink::Plain, &indent, &action.details));
    }
    let basis: String = action.evidence.iter().map(|index| format!("[{index}]")).collect();
    let basis = (!basis.is_empty()).then(|| format!("evidence {basis}"));
    let notes: Vec<_> = basis.into_iter().chain(action.notes.iter().cloned()).collect();
    if !notes.is_empty() {
        lines.extend(indented(look, Ink::Faint, &indent, &notes.join(" · ")));
    }
    lines
}

fn note(look: Look, note: &Note) -> Vec<String> {
    let sign = if note.lines.len() > 1 { "· " } else { "" };
    let before = format!("  {}", look.ink(ink(note.tone), sign));
    let columns = 2 + width(sign);
    note.lines
        .iter()
        .flat_map(|line| hanging(look, ink(note.tone), &before, columns, line))
        .collect()
}

/// A table; the widest columns wrap if it is wider than the line.
fn table(look: Look, table: &Table) -> Vec<String> {
    let widths = widths(look, table);
    let head = table.columns.iter().map(|name| Cell::from(name.to_uppercase()));
    let mut lines = row(look, &head.collect::<Vec<_>>(), &widths, Some(Ink::Faint));
    lines.extend(table.rows.iter().flat_map(|cells| row(look, cells, &widths, None)));
    lines
}

fn widths(look: Look, table: &Table) -> Vec<usize> {
    let cells = |at: usize| table.rows.iter().filter_map(move |row| row.get(at));
    let widest = |(at, name): (usize, &String)| {
        let cells = cells(at).map(|cell| width(&clean(&cell.text)));
        cells.chain([width(&clean(name))]).max().unwrap_or(0)
    };
    let mut widths: Vec<_> = table.columns.iter().enumerate().map(widest).collect();
    let gaps = 2 + GAP * widths.len().saturating_sub(1);
    let room = look.width.saturating_sub(gaps);
    // Each turn narrows the widest columns to the next widest, or by an equal share of the excess.
    while widths.iter().sum::<usize>() > room {
        let Some(most) = widths.iter().max().copied().filter(|most| *most > COLUMN_MIN) else {
            break;
        };
        let next = widths.iter().filter(|width| **width < most).max().copied().unwrap_or(0);
        let count = widths.iter().filter(|width| **width == most).count();
        let over = (widths.iter().sum::<usize>() - room).div_ceil(count);
        let to = most.saturating_sub(over).max(next).max(COLUMN_MIN);
        widths.iter_mut().filter(|width| **width == most).for_each(|width| *width = to);
    }
    widths
}

fn row(look: Look, cells: &[Cell], widths: &[usize], with: Option<Ink>) -> Vec<String> {
    let columns: Vec<_> =
        cells.iter().zip(widths).map(|(cell, width)| wrap(&cell.text, *width)).collect();
    let high = columns.iter().map(Vec::len).max().unwrap_or(0);
    let line = |at: usize| {
        let mut line = String::from(" ");
        for ((texts, cell), column) in columns.iter().zip(cells).zip(widths) {
            let text = texts.get(at).map_or("", String::as_str);
            let blanks = " ".repeat(column.saturating_sub(width(text)) + GAP);
            line.push(' ');
            line.push_str(&look.ink(with.unwrap_or_else(|| ink(cell.tone)), text));
            line.push_str(&blanks[1..]);
        }
        line.trim_end().to_owned()
    };
    (0..high).map(line).collect()
}

/// Text after a mark, with a hanging indent of its width.
fn hanging(look: Look, ink: Ink, mark: &str, columns: usize, text: &str) -> Vec<String> {
    let lines = wrap(text, look.width.saturating_sub(columns));
    let blank = " ".repeat(columns);
    let before = |number: usize| if number == 0 { mark } else { blank.as_str() };
    let line = |(number, line): (usize, &String)| {
        format!("{}{}", before(number), look.ink(ink, line)).trim_end().to_owned()
    };
    lines.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use graph::conclusion::{Evidence, Verdict};

    use super::*;

    #[test]
    fn every_part_of_a_conclusion_fits_the_width() {
        let evidence = |quote: Option<&str>| Evidence {
            source: "get_iam_state inline_policies.a".to_owned(),
            quote: quote.map(str::to_owned),
            record: None,
        };
        let finding = |tone, label: Option<&str>, evidence: Evidence| Finding {
            label: label.map(str::to_owned),
            text: "the policy does not cover what the function needs\u{1b}".to_owned(),
            tone,
            evidence: Some(evidence),
            claim: None,
        };
        let mut table = Table::new("Steps", &["Tool", "Outcome", "Detail"]);
        let detail = "a detail that is longer than what is left of the line has its own lines";
        table.rows.push(vec!["logs".into(), Cell::from("✗ no").toned(Tone::Bad), detail.into()]);
        let share = Fact { share_permille: Some(817), ..Fact::new("fraud", "81.7 %") };
        let found = Conclusion {
            title: "Diagnosis",
            verdict: Some(Verdict::new("likely", Tone::Bad)),
            summary: "The permission is gone.".to_owned(),
            facts: vec![Fact::new("severity", "high").toned(Tone::Bad), share],
            findings: vec![
                finding(Tone::Neutral, None, evidence(Some("[\"s3:GetObject\"]"))),
                finding(Tone::Neutral, None, evidence(Some(""))),
                finding(Tone::Bad, None, evidence(None)),
                finding(Tone::Warn, Some("velocity 90.0 %"), evidence(None)),
            ],
            actions: vec![
                Action {
                    details: "Put it back.".to_owned(),
                    notes: vec!["high risk".to_owned()],
                    evidence: vec![0, 2],
                    ..Action::new("Restore it")
                },
                Action::new("Ask again"),
            ],
            tables: vec![table],
            notes: vec![Note {
                title: "Not seen".to_owned(),
                lines: vec!["a".to_owned(), "b".to_owned()],
                tone: Tone::Warn,
            }],
            ..Conclusion::default()
        };
        let lines = conclusion(Look { width: 48, colour: false }, &found);
        assert!(lines.iter().all(|line| width(line) <= 48), "{lines:#?}");
        insta::assert_snapshot!(lines.join("\n"));
    }
}
