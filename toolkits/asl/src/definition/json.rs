//! JSON syntax errors, worded as AWS's parser words them.

use std::fmt;

/// A JSON syntax error and its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Unreadable {
    pub problem: String,
    /// The position as AWS names it.
    pub position: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}\n at {}", self.problem, self.position)
    }
}

/// The message of AWS's parser for the first syntax error in a text.
///
/// Exact for an unknown token and an unexpected character; otherwise our own parser's message.
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
        let (line, column) = position(text, offset + word.len());
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

/// Line and column of a byte offset, counted from 1.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

/// The message without the position.
pub(crate) fn json_problem(text: &str, error: &serde_json::Error) -> String {
    problem(text, error).0
}

impl Unreadable {
    pub(super) fn of(text: &str, error: &serde_json::Error) -> Unreadable {
        let (problem, line, column) = problem(text, error);
        let position = format!("[Source: (String)\"{text}\"; line: {line}, column: {column}]");
        Unreadable { problem, position }
    }
}
