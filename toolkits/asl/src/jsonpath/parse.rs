//! Parses text into a path.

use serde_json::Value;

use super::filter::{Comparison, Filter, Operand};
use super::{FILTER_DEPTH_MAX, PATH_BYTES_MAX, Path, PathError, Reference, Root, Step};

type Result<T> = std::result::Result<T, Problem>;

/// A problem and its byte offset.
struct Problem {
    what: &'static str,
    at: usize,
}

pub(super) fn reference(text: &str) -> std::result::Result<Reference, PathError> {
    let parsed = if text.len() > PATH_BYTES_MAX {
        Err(Problem { what: "text longer than 4096 bytes", at: 0 })
    } else {
        Cursor { text, at: 0 }.reference()
    };
    match parsed {
        Ok((root, path)) => Ok(Reference { text: text.to_owned(), root, path }),
        Err(Problem { what, at }) => {
            let at = text.get(..at).map_or(at, |before| before.chars().count()) + 1;
            Err(PathError { text: text.to_owned(), problem: what, at })
        }
    }
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn fail<T>(&self, what: &'static str) -> Result<T> {
        Err(Problem { what, at: self.at })
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &'static str, what: &'static str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { self.fail(what) }
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|char| !accept(char)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn reference(&mut self) -> Result<(Root, Path)> {
        self.expect("$", "expected '$'")?;
        let root = if self.eat("$") {
            Root::Context
        } else {
            let name = self.take_while(|char| char.is_alphanumeric() || char == '_');
            match name {
                "" => Root::Input,
                name => Root::Variable(name.to_owned()),
            }
        };
        let path = Path { steps: self.steps(0)? };
        if self.rest().is_empty() { Ok((root, path)) } else { self.fail("unexpected character") }
    }

    fn steps(&mut self, depth: usize) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        loop {
            if self.eat("..") {
                steps.push(Step::Descend);
                if self.rest().starts_with('[') {
                    continue;
                }
                steps.push(self.dotted()?);
            } else if self.eat(".") {
                steps.push(self.dotted()?);
            } else if self.eat("[") {
                steps.push(self.bracketed(depth)?);
                self.expect("]", "expected ']'")?;
            } else {
                return Ok(steps);
            }
        }
    }

    fn dotted(&mut self) -> Result<Step> {
        if self.eat("*") {
            return Ok(Step::Every);
        }
        let ends = |char: char| char.is_whitespace() || ".[]()'\",=!<>&|".contains(char);
        match self.take_while(|char| !ends(char)) {
            "" => self.fail("expected a name"),
            _ if self.rest().starts_with('(') => self.fail("functions are not supported"),
            name => Ok(Step::Children(vec![name.to_owned()])),
        }
    }

    fn bracketed(&mut self, depth: usize) -> Result<Step> {
        self.skip_spaces();
        let step = match self.rest().chars().next() {
            Some('*') => {
                self.at += 1;
                Step::Every
            }
            Some('\'' | '"') => {
                let mut names = vec![self.quoted()?];
                while self.comma() {
                    names.push(self.quoted()?);
                }
                Step::Children(names)
            }
            Some('?') => {
                self.at += 1;
                self.skip_spaces();
                self.expect("(", "expected '('")?;
                let filter = self.any_of(depth + 1)?;
                self.expect(")", "expected ')'")?;
                Step::Where(filter)
            }
            Some(':' | '-' | '0'..='9') => self.indexes()?,
            _ => return self.fail("expected a name, an index, '*' or a filter"),
        };
        self.skip_spaces();
        Ok(step)
    }

    fn comma(&mut self) -> bool {
        self.skip_spaces();
        let found = self.eat(",");
        self.skip_spaces();
        found
    }

    fn indexes(&mut self) -> Result<Step> {
        let first = self.whole()?;
        if self.eat(":") {
            let to = self.whole()?;
            let by = if self.eat(":") { self.whole()? } else { None };
            return Ok(Step::Slice { from: first, to, by: by.unwrap_or(1) });
        }
        let mut indexes = vec![first];
        while self.comma() {
            indexes.push(self.whole()?);
        }
        match indexes.into_iter().collect() {
            Some(indexes) => Ok(Step::Items(indexes)),
            None => self.fail("expected an index"),
        }
    }

    fn whole(&mut self) -> Result<Option<i64>> {
        match self.take_while(|char| char == '-' || char.is_ascii_digit()) {
            "" => Ok(None),
            digits => match digits.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => self.fail("expected a whole number"),
            },
        }
    }

    /// A quoted string; a backslash escapes the quote and itself.
    fn quoted(&mut self) -> Result<String> {
        let start = self.at;
        let mut chars = self.rest().char_indices();
        let Some((_, quote @ ('\'' | '"'))) = chars.next() else {
            return self.fail("expected a quote");
        };
        let mut text = String::new();
        let mut escaped = false;
        for (at, char) in chars {
            if escaped || (char != '\\' && char != quote) {
                if escaped && char != '\\' && char != quote {
                    text.push('\\');
                }
                text.push(char);
                escaped = false;
            } else if char == '\\' {
                escaped = true;
            } else {
                self.at += at + char.len_utf8();
                return Ok(text);
            }
        }
        Err(Problem { what: "unterminated string", at: start })
    }

    fn any_of(&mut self, depth: usize) -> Result<Filter> {
        let mut filters = vec![self.all_of(depth)?];
        while self.operator("||") {
            filters.push(self.all_of(depth)?);
        }
        Ok(Filter::Any(filters))
    }

    fn all_of(&mut self, depth: usize) -> Result<Filter> {
        let mut filters = vec![self.condition(depth)?];
        while self.operator("&&") {
            filters.push(self.condition(depth)?);
        }
        Ok(Filter::All(filters))
    }

    fn operator(&mut self, token: &str) -> bool {
        self.skip_spaces();
        let found = self.eat(token);
        self.skip_spaces();
        found
    }

    fn condition(&mut self, depth: usize) -> Result<Filter> {
        if depth > FILTER_DEPTH_MAX {
            return self.fail("filter nested more than 32 levels deep");
        }
        if self.operator("!") {
            return Ok(Filter::Not(Box::new(self.condition(depth + 1)?)));
        }
        if self.operator("(") {
            let inner = self.any_of(depth + 1)?;
            self.skip_spaces();
            self.expect(")", "expected ')'")?;
            return Ok(inner);
        }
        let left = self.operand(depth)?;
        self.skip_spaces();
        let comparisons = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
            ("nin ", Comparison::NotIn),
            ("in ", Comparison::In),
        ];
        for (token, comparison) in comparisons {
            if self.eat(token) {
                self.skip_spaces();
                let right = self.operand(depth)?;
                self.skip_spaces();
                return Ok(Filter::Compare(left, comparison, right));
            }
        }
        match self.rest().chars().next() {
            Some(')' | '&' | '|') => Ok(Filter::Exists(left)),
            _ => self.fail("unknown operator"),
        }
    }

    fn operand(&mut self, depth: usize) -> Result<Operand> {
        if self.eat("@") {
            return Ok(Operand::Item(Path { steps: self.steps(depth + 1)? }));
        }
        if self.eat("$") {
            return Ok(Operand::Root(Path { steps: self.steps(depth + 1)? }));
        }
        Ok(Operand::Literal(self.literal(depth)?))
    }

    fn literal(&mut self, depth: usize) -> Result<Value> {
        if depth > FILTER_DEPTH_MAX {
            return self.fail("filter nested more than 32 levels deep");
        }
        match self.rest().chars().next() {
            Some('\'' | '"') => Ok(Value::String(self.quoted()?)),
            Some('[') => {
                self.at += 1;
                let mut items = Vec::new();
                self.skip_spaces();
                while !self.eat("]") {
                    items.push(self.literal(depth + 1)?);
                    if !self.comma() && !self.rest().starts_with(']') {
                        return self.fail("expected ']'");
                    }
                }
                Ok(Value::Array(items))
            }
            _ => {
                let start = self.at;
                let word =
                    self.take_while(|char| char.is_ascii_alphanumeric() || "+-.".contains(char));
                match serde_json::from_str(word) {
                    Ok(value) => Ok(value),
                    Err(_) => Err(Problem { what: "expected a value", at: start }),
                }
            }
        }
    }
}
