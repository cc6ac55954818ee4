//! An incident's result as an engineer on call wants to read it.

use serde_json::Value;

use super::Look;
use super::ending::indented;
use super::field::{list, text, texts};
use super::ink::Ink;
use super::text::{clean, wrap};

/// Lines that are shown of an observed value.
const VALUE_LINES: usize = 6;

/// The diagnosis, if the result is one. What is missing is passed over, so that an older or a
/// partial one can be read too.
pub fn diagnosis(look: Look, result: &Value) -> Option<Vec<String>> {
    let root_cause = result.get("root_cause")?.as_str()?;
    let severity = text(result, "severity").unwrap_or("severity unknown");
    let faults = texts(result, "fault_types").join(", ");
    let mut lines = vec![format!(
        "{}  {} · {}",
        look.ink(Ink::Strong, "Diagnosis"),
        look.ink(Ink::of_severity(severity), &clean(severity)),
        clean(&faults),
    )];
    section(look, &mut lines, "Root cause");
    lines.extend(indented(look, Ink::Plain, "  ", root_cause));
    let affected = texts(result, "affected_resources");
    if !affected.is_empty() {
        section(look, &mut lines, "Affected");
        for resource in affected {
            lines.extend(indented(look, Ink::Plain, "  ", resource));
        }
    }
    let evidence = list(result, "evidence");
    if !evidence.is_empty() {
        section(look, &mut lines, "Evidence");
    }
    for (index, pointer) in evidence.iter().enumerate() {
        lines.extend(evidence_lines(look, index, pointer));
    }
    let plan = list(result, "remediation_plan");
    if !plan.is_empty() {
        section(look, &mut lines, "Remediation");
    }
    for (index, step) in plan.iter().enumerate() {
        lines.extend(remediation_lines(look, index + 1, step));
    }
    Some(lines)
}

fn section(look: Look, lines: &mut Vec<String>, heading: &str) {
    lines.push(String::new());
    lines.push(look.ink(Ink::Strong, heading));
}

/// `[0] tool field`, the value that was seen there, and what it means.
fn evidence_lines(look: Look, index: usize, pointer: &Value) -> Vec<String> {
    let tool = clean(text(pointer, "tool").unwrap_or("unknown tool"));
    let field = text(pointer, "field").unwrap_or("unknown field");
    let mark = format!("  [{index}] ");
    let indent = " ".repeat(mark.len());
    let mut lines = Vec::new();
    let place = format!("{tool} {field}");
    for (number, line) in wrap(&place, look.width.saturating_sub(indent.len())).iter().enumerate() {
        let before = if number == 0 { &mark } else { &indent };
        lines.push(format!("{before}{}", look.ink(Ink::Name, line)));
    }
    match text(pointer, "value").map(str::trim) {
        None | Some("") => {
            lines.push(format!("{indent}= {}", look.ink(Ink::Warn, "(nothing found)")))
        }
        Some(value) => {
            let all = wrap(value, look.width.saturating_sub(indent.len() + 2));
            let left_out = all.len().saturating_sub(VALUE_LINES);
            for (number, line) in all.iter().take(VALUE_LINES).enumerate() {
                let sign = if number == 0 { "=" } else { " " };
                lines.push(format!("{indent}{sign} {line}"));
            }
            if left_out > 0 {
                lines.push(format!("{indent}  … {left_out} more lines"));
            }
        }
    }
    if let Some(meaning) = text(pointer, "interpretation") {
        lines.extend(hanging(look, &indent, "— ", meaning));
    }
    lines
}

/// `1. action`, how, and beneath it what justifies it, what it risks, who must agree.
fn remediation_lines(look: Look, number: usize, step: &Value) -> Vec<String> {
    let mark = format!("  {number}. ");
    let indent = " ".repeat(mark.len());
    let action = text(step, "action").unwrap_or("unknown action");
    let mut lines = Vec::new();
    for (place, line) in wrap(action, look.width.saturating_sub(indent.len())).iter().enumerate() {
        let before = if place == 0 { &mark } else { &indent };
        lines.push(format!("{before}{}", look.ink(Ink::Strong, line)));
    }
    if let Some(details) = text(step, "details") {
        lines.extend(indented(look, Ink::Plain, &indent, details));
    }
    let basis: String =
        list(step, "evidence_basis").iter().map(|index| format!("[{index}]")).collect();
    let risk = clean(text(step, "risk_level").unwrap_or("unknown"));
    let approval = match step.get("requires_approval").and_then(Value::as_bool) {
        Some(true) => "needs approval",
        Some(false) => "needs no approval",
        None => "approval unknown",
    };
    let basis =
        if basis.is_empty() { "no evidence".to_owned() } else { format!("evidence {basis}") };
    let line = format!("{basis} · risk {risk} · {approval}");
    lines.extend(indented(look, Ink::Faint, &indent, &line));
    lines
}

/// Text behind a mark, its further lines below its first.
fn hanging(look: Look, indent: &str, mark: &str, text: &str) -> Vec<String> {
    let columns = mark.chars().count();
    wrap(text, look.width.saturating_sub(indent.len() + columns))
        .iter()
        .enumerate()
        .map(|(number, line)| {
            let before = if number == 0 { mark.to_owned() } else { " ".repeat(columns) };
            format!("{indent}{before}{line}")
        })
        .collect()
}
