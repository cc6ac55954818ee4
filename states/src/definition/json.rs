//! Text that is not JSON, in the words of the parser that AWS uses.

use std::fmt;

/// Why a text is not JSON, and where it stops being so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Unreadable {
    /// What stands there.
    pub problem: String,
    /// The place as AWS names it.
    pub place: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}\n at {}", self.problem, self.place)
    }
}

/// The sentence that AWS's parser has for what is first wrong in a text.
///
/// It is exact for a word that is no JSON and for a wrong character; for the rest it says what our
/// own parser says.
fn problem(text: &str, error: &serde_json::Error) -> (String, usize, usize) {
    let trimmed = text.trim_start();
    let offset = text.len() - trimmed.len();
    let word: String =
        trimmed.chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect();
    let known = matches!(word.as_str(), "true" | "false" | "null");
    if word.chars().next().is_some_and(char::is_alphabetic) && !known {
        let problem = format!(
            "Unrecognized token '{word}': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
        );
        let (line, column) = place(text, offset + word.len());
        return (problem, line, column);
    }
    let inner = trimmed.strip_prefix('{').map(str::trim_start);
    if let Some(first) = inner.and_then(|inner| inner.chars().next())
        && !matches!(first, '"' | '}')
    {
        let problem = format!(
            "Unexpected character ('{first}' (code {})): was expecting double-quote to start field name",
            u32::from(first)
        );
        return (problem, error.line(), error.column());
    }
    let sentence = error.to_string();
    let sentence = sentence.split(" at line ").next().unwrap_or_default().to_owned();
    (sentence, error.line(), error.column())
}

/// Line and column of a byte, counted from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

/// The sentence alone.
pub(crate) fn json_problem(text: &str, error: &serde_json::Error) -> String {
    problem(text, error).0
}

impl Unreadable {
    pub(super) fn of(text: &str, error: &serde_json::Error) -> Unreadable {
        let (problem, line, column) = problem(text, error);
        let place = format!("[Source: (String)\"{text}\"; line: {line}, column: {column}]");
        Unreadable { problem, place }
    }
}
