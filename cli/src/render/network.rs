//! A device's check as an engineer on call wants to read it.

use serde_json::Value;

use super::Look;
use super::ending::indented;
use super::field::{list, text};
use super::ink::Ink;
use super::text::{clean, wrap};

/// The report, if the result is one. What is missing is passed over.
pub fn network(look: Look, result: &Value) -> Option<Vec<String>> {
    let summary = result.get("summary")?.as_array()?;
    let objective = result.get("objective")?.as_str()?;
    let findings = list(result, "findings");
    let mut lines = vec![look.ink(Ink::Strong, "Report")];
    lines.extend(indented(look, Ink::Faint, "  ", objective));
    let paragraphs: Vec<&str> = summary.iter().filter_map(Value::as_str).collect();
    let is_bad = !findings.is_empty();
    for (number, paragraph) in paragraphs.iter().enumerate() {
        // What was found stands below, with the tool that showed it.
        let is_finding = findings.iter().any(|found| text(found, "finding") == Some(*paragraph));
        if is_finding {
            continue;
        }
        let ink = match (number, is_bad) {
            (0, true) => Ink::Bad,
            (0, false) => Ink::Good,
            _ => Ink::Plain,
        };
        lines.push(String::new());
        lines.extend(indented(look, ink, "  ", paragraph));
    }
    if is_bad {
        section(look, &mut lines, "Out of order");
        findings.iter().for_each(|found| lines.extend(finding_lines(look, found)));
    }
    let steps = list(result, "execution_results");
    if !steps.is_empty() {
        section(look, &mut lines, "Steps");
        steps.iter().for_each(|step| lines.extend(step_lines(look, step)));
    }
    let limitations = text(result, "tool_limitations_report").unwrap_or_default();
    if !limitations.is_empty() {
        section(look, &mut lines, "Not found out");
        for limitation in limitations.lines() {
            lines.extend(marked(look, Ink::Warn, "  · ", limitation));
        }
    }
    if let Some(notes) = text(result, "assessor_notes_for_final_report") {
        section(look, &mut lines, "Assessment");
        lines.extend(indented(look, Ink::Plain, "  ", notes));
    }
    Some(lines)
}

fn section(look: Look, lines: &mut Vec<String>, heading: &str) {
    lines.push(String::new());
    lines.push(look.ink(Ink::Strong, heading));
}

fn finding_lines(look: Look, found: &Value) -> Vec<String> {
    let what = text(found, "finding").unwrap_or("unknown finding");
    let mut lines = marked(look, Ink::Bad, "  ✗ ", what);
    let step = found.get("step_index").and_then(Value::as_u64).map_or(0, |index| index + 1);
    let tool = clean(text(found, "function").unwrap_or("unknown tool"));
    lines.push(format!("    {}", look.ink(Ink::Faint, &format!("step {step}, {tool}"))));
    lines
}

/// What was to be done, cut to its first sentence, and the calls that were made for it.
fn step_lines(look: Look, step: &Value) -> Vec<String> {
    let number = step.get("step_index").and_then(Value::as_u64).map_or(0, |index| index + 1);
    let words = text(step, "natural_language_instruction").unwrap_or_default();
    let first = words.split_inclusive(['.', ':']).next().unwrap_or(words);
    let mut lines = marked(look, Ink::Plain, &format!("  {number}. "), first.trim_end_matches(':'));
    let calls = list(step, "executed_calls");
    if calls.is_empty() {
        lines.push(format!("     {}", look.ink(Ink::Faint, "no call was made")));
    }
    for call in calls {
        let function = clean(text(call, "function").unwrap_or("unknown tool"));
        let arguments = call.get("params").and_then(Value::as_object);
        let arguments: Vec<String> = arguments
            .into_iter()
            .flatten()
            .map(|(name, value)| {
                format!("{}={}", clean(name), clean(value.as_str().unwrap_or(&value.to_string())))
            })
            .collect();
        let line = format!("{function} {}", arguments.join(" "));
        match text(call, "error") {
            None => lines.extend(marked(look, Ink::Good, "     ✓ ", line.trim_end())),
            Some(error) => {
                let line = format!("{}: {error}", line.trim_end());
                lines.extend(marked(look, Ink::Warn, "     ✗ ", &line));
            }
        }
    }
    lines
}

/// Text behind a mark, its further lines below its first.
fn marked(look: Look, ink: Ink, mark: &str, text: &str) -> Vec<String> {
    let columns = mark.chars().count();
    let lines = wrap(text, look.width.saturating_sub(columns));
    let before = |number: usize| {
        if number == 0 { look.ink(ink, mark) } else { " ".repeat(columns) }
    };
    lines.iter().enumerate().map(|(n, line)| format!("{}{line}", before(n))).collect()
}
