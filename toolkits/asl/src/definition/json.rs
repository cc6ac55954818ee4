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

/// The message of AWS's parser for the first syntax error in a text, with line and column.
///
/// AWS uses Jackson. Its messages for unknown tokens and for unexpected characters were recorded;
/// the others are those of Jackson's source. For a problem that the scanner does not see, such as a
/// malformed number, the message is that of our own parser.
fn problem(text: &str, error: &serde_json::Error) -> (String, usize, usize) {
    match (Scanner { text, at: 0 }).value(0) {
        Err(Some((sentence, at))) => {
            let (line, column) = position(text, at);
            (sentence, line, column)
        }
        _ => {
            let sentence = error.to_string();
            let sentence = sentence.split(" at line ").next().unwrap_or_default().to_owned();
            (sentence, error.line(), error.column())
        }
    }
}

const EXPECTED: &str = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')";

/// Deepest value to scan; the parser itself stops at 128.
const DEPTH_MAX: usize = 128;

/// A problem and its byte offset; `None` for one that the scanner cannot name.
type Scan = Result<(), Option<(String, usize)>>;

/// Finds the first syntax error as Jackson does.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn skip_spaces(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn unexpected(&self, char: char, expected: &str) -> Scan {
        let sentence =
            format!("Unexpected character ('{char}' (code {})): {expected}", char as u32);
        Err(Some((sentence, self.at)))
    }

    fn value(&mut self, depth: usize) -> Scan {
        if depth > DEPTH_MAX {
            return Err(None);
        }
        match self.skip_spaces() {
            None => Err(None),
            Some('{') => self.members(depth, '}'),
            Some('[') => self.members(depth, ']'),
            Some('"') => self.string(),
            Some(char) if char.is_alphabetic() || char == '_' || char == '$' => {
                let rest = &self.text[self.at..];
                let part = |char: char| char.is_alphanumeric() || char == '_' || char == '$';
                let word: String = rest.chars().take_while(|char| part(*char)).collect();
                self.at += word.len();
                if matches!(word.as_str(), "true" | "false" | "null") {
                    return Ok(());
                }
                let sentence = format!("Unrecognized token '{word}': was expecting {EXPECTED}");
                Err(Some((sentence, self.at)))
            }
            Some(char) if char == '-' || char.is_ascii_digit() => {
                let rest = &self.text[self.at..];
                let part = |char: char| char.is_ascii_alphanumeric() || "+-.".contains(char);
                let digits = rest.find(|char| !part(char)).unwrap_or(rest.len());
                let number = serde_json::from_str::<serde_json::Number>(&rest[..digits]);
                self.at += digits;
                number.map(|_| ()).map_err(|_| None)
            }
            Some(char) => self.unexpected(char, &format!("expected a valid value {EXPECTED}")),
        }
    }

    /// The members of an object or the items of an array.
    fn members(&mut self, depth: usize, end: char) -> Scan {
        let what = if end == '}' { "Object" } else { "Array" };
        self.at += 1;
        let mut first = true;
        loop {
            match self.skip_spaces() {
                None => return Err(None),
                Some(char) if first && char == end => break,
                Some(_) => {}
            }
            if end == '}' {
                match self.skip_spaces() {
                    Some('"') => self.string()?,
                    Some(char) => {
                        let expected = "was expecting double-quote to start field name";
                        return self.unexpected(char, expected);
                    }
                    None => return Err(None),
                }
                match self.skip_spaces() {
                    Some(':') => self.at += 1,
                    Some(char) => {
                        let expected = "was expecting a colon to separate field name and value";
                        return self.unexpected(char, expected);
                    }
                    None => return Err(None),
                }
            }
            self.value(depth + 1)?;
            first = false;
            match self.skip_spaces() {
                Some(',') => self.at += 1,
                Some(char) if char == end => break,
                Some(char) => {
                    let expected = format!("was expecting comma to separate {what} entries");
                    return self.unexpected(char, &expected);
                }
                None => return Err(None),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Scan {
        let mut escaped = false;
        for (at, char) in self.text[self.at..].char_indices().skip(1) {
            match char {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    self.at += at + 1;
                    return Ok(());
                }
                _ => {}
            }
        }
        let sentence = "Unexpected end-of-input in VALUE_STRING".to_owned();
        Err(Some((sentence, self.text.len())))
    }
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
