//! Parses text into a call.

use serde_json::Value;

use super::{Argument, Call, Function, NESTING_MAX};
use crate::jsonpath::Reference;

type Result<T> = std::result::Result<T, String>;

pub(super) fn call(text: &str) -> Result<Call> {
    let mut cursor = Cursor { rest: text };
    let call = cursor.call(1)?;
    match cursor.rest.trim() {
        "" => Ok(call),
        rest => Err(format!("unexpected '{rest}' after the call")),
    }
}

struct Cursor<'a> {
    rest: &'a str,
}

impl Cursor<'_> {
    fn eat(&mut self, token: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn call(&mut self, depth: usize) -> Result<Call> {
        if depth > NESTING_MAX {
            return Err(format!("calls nested more than {NESTING_MAX} levels deep"));
        }
        let (name, rest) = self.rest.split_once('(').ok_or("expected '('")?;
        let name = name.trim().strip_prefix("States.").unwrap_or(name);
        let known = Function::ALL.iter().find(|(known, _)| *known == name);
        let (_, function) = known.ok_or_else(|| format!("unknown function '{name}'"))?;
        self.rest = rest;
        let mut arguments = Vec::new();
        while !self.eat(')') {
            if !arguments.is_empty() && !self.eat(',') {
                return Err("expected ',' or ')'".to_owned());
            }
            arguments.push(self.argument(depth)?);
        }
        Ok(Call { function: *function, arguments })
    }

    fn argument(&mut self, depth: usize) -> Result<Argument> {
        self.rest = self.rest.trim_start();
        match self.rest.chars().next() {
            Some('\'') => self.text(),
            Some('$') => {
                let end = path_end(self.rest);
                let (path, rest) = self.rest.split_at(end);
                self.rest = rest;
                let reference = Reference::compile(path.trim_end());
                Ok(Argument::Reference(reference.map_err(|error| error.to_string())?))
            }
            Some('S') => Ok(Argument::Call(self.call(depth + 1)?)),
            _ => {
                let end = self.rest.find([',', ')']).unwrap_or(self.rest.len());
                let (word, rest) = self.rest.split_at(end);
                self.rest = rest;
                match serde_json::from_str(word.trim()) {
                    Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::Null)) => {
                        Ok(Argument::Literal(value))
                    }
                    _ => Err(format!("invalid argument '{}'", word.trim())),
                }
            }
        }
    }

    /// A string in single quotes. An escaped brace keeps its backslash for `States.Format`.
    ///
    /// Source: AWS, "Intrinsics for JSONPath states in Step Functions", reserved characters: a
    /// backslash escapes a quote, a brace and itself. Escapes of whitespace are accepted too. Any
    /// other makes the call invalid.
    fn text(&mut self) -> Result<Argument> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, char)) = chars.next() {
            match char {
                '\'' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(Argument::Literal(Value::String(text)));
                }
                '\\' => match chars.next() {
                    Some((_, brace @ ('{' | '}'))) => text.extend(['\\', brace]),
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, escaped @ ('\'' | '\\'))) => text.push(escaped),
                    Some((_, other)) => return Err(format!("invalid escape '\\{other}'")),
                    None => break,
                },
                char => text.push(char),
            }
        }
        Err("unterminated string".to_owned())
    }
}

/// The end of a path among arguments: a comma or parenthesis outside brackets.
fn path_end(text: &str) -> usize {
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    for (at, char) in text.char_indices() {
        match (quote, char) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), char) if open == char => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') if depth > 0 => quote = Some(char),
            (None, '[') => depth += 1,
            (None, ']') => depth = depth.saturating_sub(1),
            (None, ',' | ')') if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}
