//! Escapes, clips and wraps text for display.

use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory};
use icu_properties::{CodePointMapData, CodePointSetData};
use serde::Serialize;

/// The text on one line, without terminal control sequences.
///
/// Line breaks and tabs become spaces. Control characters, bidirectional overrides and invisible
/// characters become visible escapes.
pub fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => cleaned.push(' '),
            c if is_hostile(c) => cleaned.extend(c.escape_unicode()),
            c => cleaned.push(c),
        }
    }
    cleaned
}

/// Whether the character could control a terminal or deceive a reader: controls, format characters such
/// as bidirectional ones, and all that is drawn as nothing or as a blank without being one.
///
/// Source: Unicode Standard Annex #44, `General_Category` and `Default_Ignorable_Code_Point`.
pub(crate) fn is_hostile(c: char) -> bool {
    const BRAILLE_BLANK: char = '\u{2800}';
    if c.is_ascii() {
        return c.is_control();
    }
    c.is_control()
        || c == BRAILLE_BLANK
        || CodePointMapData::<GeneralCategory>::new().get(c) == GeneralCategory::Format
        || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
}

/// The number of columns of a text, at one column per character.
pub fn width(text: &str) -> usize {
    text.chars().count()
}

/// The cleaned text in at most `columns` columns; a cut text ends with an ellipsis.
pub fn clip(text: &str, columns: usize) -> String {
    // Clean only the head: the text may have megabytes.
    let head: String = text.chars().take(columns.saturating_add(1)).collect();
    let cleaned = clean(&head);
    if width(&cleaned) <= columns {
        return cleaned;
    }
    let mut cut: String = cleaned.chars().take(columns.saturating_sub(1)).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

/// Wraps the text at blanks into lines of at most `columns`; keeps its own line breaks.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(8);
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in clean(paragraph).split_whitespace() {
            let mut word = word;
            // A word longer than a line starts on the current line.
            let fits_a_line = width(word) <= columns || width(&line) + 1 >= columns;
            if !line.is_empty() && fits_a_line && width(&line) + 1 + width(word) > columns {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            while width(&line) + width(word) > columns {
                let place = columns - width(&line);
                let at = word.char_indices().nth(place).map_or(word.len(), |(at, _)| at);
                line.push_str(&word[..at]);
                word = &word[at..];
                lines.push(std::mem::take(&mut line));
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    if lines.is_empty() { vec![String::new()] } else { lines }
}

/// The value as one line of JSON, with control characters escaped inside strings.
///
/// # Errors
/// When the value does not serialise.
pub fn json_line(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string(value).map(|json| escape_json(&json))
}

/// The value as indented JSON, escaped alike.
pub fn json_lines(value: &serde_json::Value) -> Vec<String> {
    escape_json(&format!("{value:#}")).lines().map(str::to_owned).collect()
}

/// Escapes hostile characters, which JSON admits only inside strings. `serde_json` itself escapes
/// those below U+0020; the line breaks of its indentation stay.
fn escape_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !is_hostile(c) && !matches!(c, '\u{2028}' | '\u{2029}') {
            escaped.push(c);
            continue;
        }
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn terminal_control_characters_are_escaped() {
        assert_eq!(clean("a\u{1b}[31mred\u{7}"), "a\\u{1b}[31mred\\u{7}");
        assert_eq!(clean("\u{9b}2J\u{7f}"), "\\u{9b}2J\\u{7f}");
        assert_eq!(clean("one\r\ntwo\tthree"), "one  two three");
        assert_eq!(clean("user\u{202e}txt.exe"), "user\\u{202e}txt.exe");
        for hidden in [
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{1160}',
            '\u{17b4}',
            '\u{180b}',
            '\u{180e}',
            '\u{200b}',
            '\u{200d}',
            '\u{200f}',
            '\u{202e}',
            '\u{2060}',
            '\u{2064}',
            '\u{2066}',
            '\u{206f}',
            '\u{2800}',
            '\u{3164}',
            '\u{fe00}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff9}',
            '\u{1bca0}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e0100}',
            '\u{e01ef}',
            '\u{e0fff}',
        ] {
            assert_eq!(clean(&format!("a{hidden}b")), format!("a{}b", hidden.escape_unicode()));
        }
        for seen in "aZ0 ~é中文हिन्दीعربية…–🚀\u{301}".chars() {
            assert!(!is_hostile(seen), "{seen:?}");
        }
        for c in '\0'..='\u{9f}' {
            let shown = clean(&c.to_string());
            assert!(!shown.chars().any(char::is_control), "{c:?}");
        }
    }

    #[test]
    fn escaping_json_changes_no_value() {
        let value =
            json!({"a\u{9b}": "x\u{7f}\u{1b}\u{202e}\u{e0001}\n", "b": ["\u{2028}", 1.5, null]});
        let line = json_line(&value).unwrap();
        assert!(!line.chars().any(char::is_control), "{line}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), value);
        let lines = json_lines(&value).join("\n");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&lines).unwrap(), value);
    }

    #[test]
    fn a_long_text_is_cut_to_its_columns() {
        for (text, columns, expected) in [
            ("short", 5, "short"),
            ("shorter", 5, "shor…"),
            ("a b c", 4, "a b…"),
            ("\u{1b}\u{1b}", 8, "\\u{1b}\\…"),
            ("text", 0, "…"),
        ] {
            assert_eq!(clip(text, columns), expected, "{text} in {columns}");
        }
    }

    #[test]
    fn lines_are_broken_at_blanks_and_long_words_anywhere() {
        assert_eq!(wrap("the quick brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(wrap("one\n\ntwo", 10), ["one", "", "two"]);
        assert_eq!(wrap("see arn:aws:iam::1:role", 10), ["see arn:aw", "s:iam::1:r", "ole"]);
        assert_eq!(wrap("", 10), [""]);
        for line in wrap(&"ä ö ".repeat(50), 9) {
            assert!(width(&line) <= 9, "{line}");
        }
    }
}
