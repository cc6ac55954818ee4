//! Renders the arguments of a call that a person is asked about: every one, under its own name.

use serde_json::Value;
use stack::view::OpenQuestion;

use super::Look;
use super::text::{json_line, width};

/// Most characters of one argument that are shown at first; the rest is counted.
const ARGUMENT_CHARS_MAX: usize = 1_000;

/// Most arguments that are shown at first; the rest is counted.
const ARGUMENTS_MAX: usize = 40;

/// Indent of an argument, and of the lines that continue it.
const INDENT: &str = "  ";
const CONTINUED: &str = "      ";

/// Whether [`arguments`] leaves something out at first.
pub fn is_cut(question: &OpenQuestion) -> bool {
    let entries = question.arguments.as_ref().map(entries).unwrap_or_default();
    entries.len() > ARGUMENTS_MAX || entries.iter().any(|entry| width(entry) > ARGUMENT_CHARS_MAX)
}

/// The arguments as escaped JSON, one a line, so that no value can look like another argument. Unless `whole`, long
/// values are cut, with a count of what is left out.
pub fn arguments(look: Look, arguments: &Value, whole: bool) -> Vec<String> {
    let entries = entries(arguments);
    let shown = if whole { entries.len() } else { entries.len().min(ARGUMENTS_MAX) };
    let mut lines = Vec::new();
    for entry in &entries[..shown] {
        let left = width(entry).saturating_sub(ARGUMENT_CHARS_MAX);
        if whole || left == 0 {
            lines.extend(folded(look, entry));
            continue;
        }
        let head: String = entry.chars().take(ARGUMENT_CHARS_MAX).collect();
        lines.extend(folded(look, &head));
        lines.push(format!("{CONTINUED}… {left} more characters"));
    }
    if shown < entries.len() {
        lines.push(format!("{INDENT}… {} more arguments", entries.len() - shown));
    }
    lines
}

/// Each argument as `"name": value`.
fn entries(arguments: &Value) -> Vec<String> {
    // A JSON value serialises.
    let text = |value: &Value| json_line(value).unwrap_or_default();
    match arguments {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{}: {}", text(&Value::from(name.as_str())), text(value)))
            .collect(),
        other => vec![text(other)],
    }
}

/// A text in lines of the screen's width.
fn folded(look: Look, text: &str) -> Vec<String> {
    let columns = look.width.saturating_sub(CONTINUED.len()).max(8);
    let characters: Vec<char> = text.chars().collect();
    let indents = std::iter::once(INDENT).chain(std::iter::repeat(CONTINUED));
    let lines = characters.chunks(columns).zip(indents);
    lines.map(|(line, indent)| format!("{indent}{}", line.iter().collect::<String>())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LOOK: Look = Look { width: 40, colour: false };

    #[test]
    fn every_argument_has_a_line_that_no_value_can_imitate() {
        let value = json!({
            "id": "s\n\"wipe\": true\u{1b}[2K\u{202e}", "wipe": true,
            "long": format!("{}\"wipe\": false", " ".repeat(30)),
        });
        let shown = arguments(LOOK, &value, false);
        assert_eq!(
            shown,
            [
                r#"  "id": "s\n\"wipe\": true\u001b[2K\"#,
                r#"      u202e""#,
                r#"  "wipe": true"#,
                r#"  "long": "                         "#,
                r#"           \"wipe\": false""#,
            ]
        );
    }

    #[test]
    fn a_long_argument_is_cut_with_a_count() {
        let mut value = json!({ "t": "x".repeat(2_000) });
        let count = |lines: &[String]| lines.concat().matches('x').count();
        let shown = arguments(LOOK, &value, false);
        assert_eq!(shown.last().unwrap().trim(), "… 1007 more characters");
        assert!(count(&shown) < 1_000);
        assert_eq!(count(&arguments(LOOK, &value, true)), 2_000);
        for number in 0..60 {
            value[format!("n{number}")] = json!(number);
        }
        let shown = arguments(LOOK, &value, false);
        assert_eq!(shown.last().unwrap().trim(), "… 21 more arguments");
        assert!(arguments(LOOK, &value, true).iter().any(|line| line == r#"  "n59": 59"#));
    }
}
