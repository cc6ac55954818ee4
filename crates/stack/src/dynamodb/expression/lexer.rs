//! Splits an expression into tokens.

/// A token and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

/// The kind of a token. The expression has its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A plain name: a letter, then letters, digits and underscores.
    Name,
    NamePlaceholder,
    ValuePlaceholder,
    /// A number without leading zeros.
    Number,
    /// `AND`; like all keywords, in any case.
    And,
    Or,
    Not,
    In,
    Between,
    Set,
    /// `REMOVE`, `ADD` or `DELETE`.
    OtherSection,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Open,
    Close,
    OpenBracket,
    CloseBracket,
    Comma,
    Dot,
    /// `+` or `-`; only update expressions use them.
    Sign,
    /// A character that starts no token.
    Unknown,
    /// The end, with the white space before it.
    End,
}

/// White space between tokens. Any other blank character is [`Kind::Unknown`].
pub const WHITE_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// All tokens of an expression; the last is [`Kind::End`].
pub fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let start = text.len() - rest.trim_start_matches(WHITE_SPACE).len();
        let Some(first) = text[start..].chars().next() else {
            tokens.push(Token { kind: Kind::End, start: at, end: text.len() });
            return tokens;
        };
        let (kind, length) = token(&text[start..], first);
        at = start + length;
        tokens.push(Token { kind, start, end: at });
    }
}

fn token(text: &str, first: char) -> (Kind, usize) {
    let second = text[first.len_utf8()..].chars().next();
    match first {
        '=' => (Kind::Equal, 1),
        '<' if second == Some('>') => (Kind::NotEqual, 2),
        '<' if second == Some('=') => (Kind::LessOrEqual, 2),
        '<' => (Kind::Less, 1),
        '>' if second == Some('=') => (Kind::GreaterOrEqual, 2),
        '>' => (Kind::Greater, 1),
        '(' => (Kind::Open, 1),
        ')' => (Kind::Close, 1),
        '[' => (Kind::OpenBracket, 1),
        ']' => (Kind::CloseBracket, 1),
        ',' => (Kind::Comma, 1),
        '.' => (Kind::Dot, 1),
        '+' | '-' => (Kind::Sign, 1),
        '0' => (Kind::Number, 1),
        '1'..='9' => (Kind::Number, leading(text, |c| c.is_ascii_digit())),
        '#' | ':' => match leading(&text[1..], is_name) {
            0 => (Kind::Unknown, 1),
            length if first == '#' => (Kind::NamePlaceholder, length + 1),
            length => (Kind::ValuePlaceholder, length + 1),
        },
        'a'..='z' | 'A'..='Z' => {
            let length = leading(text, is_name);
            (keyword(&text[..length]).unwrap_or(Kind::Name), length)
        }
        other => (Kind::Unknown, other.len_utf8()),
    }
}

/// Whether a placeholder is `mark` and at least one letter, digit or underscore.
pub fn is_placeholder(text: &str, mark: char) -> bool {
    text.strip_prefix(mark).is_some_and(|name| !name.is_empty() && name.chars().all(is_name))
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn leading(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.len() - text.trim_start_matches(belongs).len()
}

fn keyword(word: &str) -> Option<Kind> {
    Some(match word.to_ascii_uppercase().as_str() {
        "AND" => Kind::And,
        "OR" => Kind::Or,
        "NOT" => Kind::Not,
        "IN" => Kind::In,
        "BETWEEN" => Kind::Between,
        "SET" => Kind::Set,
        "REMOVE" | "ADD" | "DELETE" => Kind::OtherSection,
        _ => return None,
    })
}
