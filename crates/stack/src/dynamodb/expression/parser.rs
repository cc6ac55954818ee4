//! Parses text to [`raw`] syntax. Finds exactly the errors that DynamoDB calls syntax errors.

use super::ast::{Comparator, raw};
use super::lexer::{Kind, Token, tokens};

/// Longest expression, in bytes.
///
/// Source: AWS, "Quotas in Amazon DynamoDB", expression parameters.
pub const EXPRESSION_BYTES_MAX: usize = 4096;

/// Most operators and functions in an expression.
///
/// Source: AWS, "Quotas in Amazon DynamoDB", expression parameters.
pub const OPERATORS_MAX: usize = 300;

/// Deepest nesting of parentheses, functions and NOT. DynamoDB's limit is 300. This one is lower, so
/// that no input overflows a thread's stack of 2 MiB, even in an unoptimised build.
pub const NESTING_MAX: usize = 100;

/// Why a text is not an expression: the rest of the sentence `Invalid FilterExpression: …`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    /// An empty text.
    #[error("The expression can not be empty;")]
    Empty,
    /// More than [`EXPRESSION_BYTES_MAX`].
    #[error("Expression size has exceeded the maximum allowed size; expression size: {0}")]
    TooLong(usize),
    /// An unexpected token.
    #[error("Syntax error; token: \"{token}\", near: \"{near}\"")]
    Unexpected {
        token: String,
        /// The text from the previous to the next token.
        near: String,
    },
    /// Redundant parentheses.
    #[error("The expression has redundant parentheses;")]
    RedundantParentheses,
    /// More than [`NESTING_MAX`].
    #[error("the expression is nested too deeply; levels at most: {NESTING_MAX}")]
    TooDeep,
    /// An update with more than SET of attributes to values.
    #[error("this endpoint supports only updates of the form SET name = :value, name = :value")]
    UnsupportedUpdate,
}

/// A condition or an operand, until the context decides.
struct Term {
    node: Node,
    grouped: bool,
}

enum Node {
    Condition(raw::Condition),
    Operand(raw::Operand),
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

/// Parses a filter, key or write condition.
pub fn condition(text: &str) -> Result<raw::Condition, SyntaxError> {
    let mut parser = Parser::new(text)?;
    let term = parser.any()?;
    let condition = parser.condition(term)?;
    parser.finish()?;
    Ok(condition)
}

/// Parses a projection.
pub fn projection(text: &str) -> Result<Vec<raw::Path>, SyntaxError> {
    let mut parser = Parser::new(text)?;
    let mut paths = vec![parser.path()?];
    while parser.accept(Kind::Comma) {
        paths.push(parser.path()?);
    }
    parser.finish()?;
    Ok(paths)
}

/// Parses an update that only sets attributes to values.
pub fn assignments(text: &str) -> Result<Vec<(raw::Path, raw::Operand)>, SyntaxError> {
    let mut parser = Parser::new(text)?;
    if parser.kind() == Kind::OtherSection {
        return Err(SyntaxError::UnsupportedUpdate);
    }
    parser.expect(Kind::Set)?;
    let mut assignments = Vec::new();
    loop {
        let path = parser.path()?;
        parser.expect(Kind::Equal)?;
        let value = parser.operand()?;
        if !matches!(value, raw::Operand::Value(_))
            || matches!(parser.kind(), Kind::Sign | Kind::Set | Kind::OtherSection)
        {
            return Err(SyntaxError::UnsupportedUpdate);
        }
        assignments.push((path, value));
        if !parser.accept(Kind::Comma) {
            break;
        }
    }
    parser.finish()?;
    Ok(assignments)
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self, SyntaxError> {
        if text.is_empty() {
            return Err(SyntaxError::Empty);
        }
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(SyntaxError::TooLong(text.len()));
        }
        Ok(Self { text, tokens: tokens(text), at: 0, depth: 0 })
    }

    fn finish(self) -> Result<(), SyntaxError> {
        if self.kind() != Kind::End {
            return Err(self.unexpected());
        }
        Ok(())
    }

    /// `a OR b OR c`.
    fn any(&mut self) -> Result<Term, SyntaxError> {
        let first = self.all()?;
        if self.kind() != Kind::Or {
            return Ok(first);
        }
        let mut conditions = vec![self.condition(first)?];
        while self.accept(Kind::Or) {
            let next = self.all()?;
            conditions.push(self.condition(next)?);
        }
        Ok(Term::of(raw::Condition::Any(conditions)))
    }

    /// `a AND b AND c`.
    fn all(&mut self) -> Result<Term, SyntaxError> {
        let first = self.not()?;
        if self.kind() != Kind::And {
            return Ok(first);
        }
        let mut conditions = vec![self.condition(first)?];
        while self.accept(Kind::And) {
            let next = self.not()?;
            conditions.push(self.condition(next)?);
        }
        Ok(Term::of(raw::Condition::All(conditions)))
    }

    /// `NOT NOT a`, without recursion.
    fn not(&mut self) -> Result<Term, SyntaxError> {
        let mut negations = 0;
        while self.accept(Kind::Not) {
            negations += 1;
        }
        let term = self.deeper(negations, Self::comparison)?;
        if negations == 0 {
            return Ok(term);
        }
        let mut condition = self.condition(term)?;
        for _ in 0..negations {
            condition = raw::Condition::Not(Box::new(condition));
        }
        Ok(Term::of(condition))
    }

    /// `a = b`, `a BETWEEN b AND c`, `a IN (b, c)`, or a single operand.
    fn comparison(&mut self) -> Result<Term, SyntaxError> {
        let term = if self.kind() == Kind::Open {
            self.group()?
        } else {
            Term { node: Node::Operand(self.operand()?), grouped: false }
        };
        let operand = match term.node {
            Node::Operand(operand) => operand,
            Node::Condition(_) => return Ok(term),
        };
        if let Some(comparator) = comparator(self.kind()) {
            self.at += 1;
            return Ok(Term::of(raw::Condition::Compare(operand, comparator, self.operand()?)));
        }
        if self.accept(Kind::Between) {
            let low = self.operand()?;
            self.expect(Kind::And)?;
            return Ok(Term::of(raw::Condition::Between(operand, low, self.operand()?)));
        }
        if self.accept(Kind::In) {
            self.expect(Kind::Open)?;
            return Ok(Term::of(raw::Condition::In(operand, self.operands()?)));
        }
        Ok(Term { node: Node::Operand(operand), grouped: term.grouped })
    }

    fn group(&mut self) -> Result<Term, SyntaxError> {
        self.expect(Kind::Open)?;
        let term = self.deeper(1, Self::any)?;
        self.expect(Kind::Close)?;
        if term.grouped {
            return Err(SyntaxError::RedundantParentheses);
        }
        Ok(Term { grouped: true, ..term })
    }

    /// A path, a value or a function, with or without parentheses.
    fn operand(&mut self) -> Result<raw::Operand, SyntaxError> {
        if self.accept(Kind::Open) {
            let grouped = self.kind() == Kind::Open;
            let operand = self.deeper(1, Self::operand)?;
            self.expect(Kind::Close)?;
            return if grouped { Err(SyntaxError::RedundantParentheses) } else { Ok(operand) };
        }
        let token = self.token();
        match token.kind {
            Kind::ValuePlaceholder => {
                self.at += 1;
                Ok(raw::Operand::Value(self.text(token).to_owned()))
            }
            Kind::Name if self.kind_after() == Kind::Open => {
                self.at += 2;
                let operands = self.deeper(1, Self::operands)?;
                let function = self.text(token).to_owned();
                Ok(raw::Operand::Call(raw::Call { function, operands }))
            }
            _ => self.path().map(raw::Operand::Path),
        }
    }

    /// `a, b)`.
    fn operands(&mut self) -> Result<Vec<raw::Operand>, SyntaxError> {
        let mut operands = vec![self.operand()?];
        while self.accept(Kind::Comma) {
            operands.push(self.operand()?);
        }
        self.expect(Kind::Close)?;
        Ok(operands)
    }

    fn path(&mut self) -> Result<raw::Path, SyntaxError> {
        let mut path = vec![self.name()?];
        loop {
            if self.accept(Kind::Dot) {
                path.push(self.name()?);
            } else if self.accept(Kind::OpenBracket) {
                let index = self.token();
                self.expect(Kind::Number)?;
                path.push(raw::Segment::Index(self.text(index).to_owned()));
                self.expect(Kind::CloseBracket)?;
            } else {
                return Ok(path);
            }
        }
    }

    fn name(&mut self) -> Result<raw::Segment, SyntaxError> {
        let token = self.token();
        let text = self.text(token).to_owned();
        let segment = match token.kind {
            Kind::Name => raw::Segment::Name(text),
            Kind::NamePlaceholder => raw::Segment::Placeholder(text),
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(segment)
    }

    /// An operand in place of a condition; only a function can be both.
    fn condition(&self, term: Term) -> Result<raw::Condition, SyntaxError> {
        match term.node {
            Node::Condition(condition) => Ok(condition),
            Node::Operand(raw::Operand::Call(call)) => Ok(raw::Condition::Call(call)),
            Node::Operand(_) => Err(self.unexpected()),
        }
    }

    /// Parses a nested expression, unless it is too deep.
    fn deeper<T>(
        &mut self,
        levels: usize,
        parse: impl FnOnce(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<T, SyntaxError> {
        self.depth += levels;
        if self.depth > NESTING_MAX {
            return Err(SyntaxError::TooDeep);
        }
        let parsed = parse(self)?;
        self.depth -= levels;
        Ok(parsed)
    }

    fn token(&self) -> Token {
        // The last token is the end, and nothing advances past it.
        self.tokens[self.at]
    }

    fn kind(&self) -> Kind {
        self.token().kind
    }

    fn kind_after(&self) -> Kind {
        self.tokens.get(self.at + 1).map_or(Kind::End, |token| token.kind)
    }

    fn text(&self, token: Token) -> &'a str {
        &self.text[token.start..token.end]
    }

    fn accept(&mut self, kind: Kind) -> bool {
        // Not `self.at += usize::from(self.kind() == kind)`: rustc 1.95 miscompiles that in an optimised
        // build, so that tokens are skipped or never consumed.
        if self.kind() != kind {
            return false;
        }
        self.at += 1;
        true
    }

    fn expect(&mut self, kind: Kind) -> Result<(), SyntaxError> {
        if self.accept(kind) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> SyntaxError {
        let token = self.token();
        let before = self.tokens[self.at.saturating_sub(1)];
        let after = self.tokens.get(self.at + 1).unwrap_or(&token);
        let text = if token.kind == Kind::End { "<EOF>" } else { self.text(token) };
        SyntaxError::Unexpected {
            token: text.to_owned(),
            near: self.text[before.start..after.end].to_owned(),
        }
    }
}

impl Term {
    fn of(condition: raw::Condition) -> Self {
        Self { node: Node::Condition(condition), grouped: false }
    }
}

fn comparator(kind: Kind) -> Option<Comparator> {
    Some(match kind {
        Kind::Equal => Comparator::Equal,
        Kind::NotEqual => Comparator::NotEqual,
        Kind::Less => Comparator::Less,
        Kind::LessOrEqual => Comparator::LessOrEqual,
        Kind::Greater => Comparator::Greater,
        Kind::GreaterOrEqual => Comparator::GreaterOrEqual,
        _ => return None,
    })
}
