//! Splits a text into tokens. Every character is part of a token or is white space.

/// A token and its place in the text, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Number(f64),
    /// Digits that can be read in two ways, such as 0,5 or 1.2.3.
    Unclear,
    /// Letters and apostrophes in lower case; `b.i.d.` without its full stops.
    Word(String),
    Symbol(char),
}

impl Kind {
    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            _ => None,
        }
    }
}

/// Vulgar fractions with their values.
const FRACTIONS: [(char, f64); 5] =
    [('½', 0.5), ('¼', 0.25), ('¾', 0.75), ('⅓', 1.0 / 3.0), ('⅔', 2.0 / 3.0)];

pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (kind, length) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if first.is_numeric() || (first == '.' && second_is_digit(rest)) {
            number(rest)
        } else if first.is_alphabetic() {
            word(rest)
        } else {
            (Kind::Symbol(first), first.len_utf8())
        };
        found.push(Token { kind, start: at, end: at + length });
        at += length;
    }
    found
}

fn second_is_digit(text: &str) -> bool {
    text[1..].starts_with(|c: char| c.is_ascii_digit())
}

fn number(text: &str) -> (Kind, usize) {
    let mut end = digits(text);
    end += exponent(&text[end..]).filter(|_| end > 0).unwrap_or(0);
    let whole = if end == 0 { Some(0.0) } else { value(&text[..end]) };
    let rest = &text[end..];
    let fraction = FRACTIONS.iter().find(|(sign, _)| rest.starts_with(*sign));
    let kind = match (whole, fraction) {
        (Some(whole), Some((_, part))) if whole.fract() == 0.0 => Kind::Number(whole + part),
        (_, Some(_)) => Kind::Unclear,
        (Some(whole), None) if end > 0 => Kind::Number(whole),
        _ => Kind::Unclear,
    };
    end += fraction.map_or(0, |(sign, _)| sign.len_utf8());
    // Other digits, such as ³ or ٣, make the number unclear as a whole.
    let others: usize =
        text[end..].chars().take_while(|c| c.is_numeric()).map(char::len_utf8).sum();
    if others == 0 { (kind, end) } else { (Kind::Unclear, end + others) }
}

/// Length of the digits at the start, with the full stops and commas between them.
fn digits(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is_part =
        |at: &usize| is_digit(*at) || (matches!(bytes[*at], b'.' | b',') && is_digit(*at + 1));
    (0..bytes.len()).take_while(is_part).count()
}

/// Length of an exponent such as `e3`, if one is here and no letter follows it.
fn exponent(text: &str) -> Option<usize> {
    let rest = text.strip_prefix(['e', 'E'])?;
    let unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let is_end = !unsigned[digits..].starts_with(|c: char| c.is_alphanumeric() || c == '.');
    (digits > 0 && is_end).then(|| text.len() - unsigned.len() + digits)
}

/// The value of plain digits, or of digits in groups of three: 1,200. `None` if it is unclear.
///
/// 1.000 is one with trailing zeros or, in much of the world, a thousand.
fn value(text: &str) -> Option<f64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() == 3 && decimals.ends_with('0') && !["", "0"].contains(&whole) {
        return None;
    }
    let value = if text.contains(',') { grouped(text)? } else { text.to_owned() };
    value.parse::<f64>().ok().filter(|value| value.is_finite())
}

fn grouped(text: &str) -> Option<String> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let is_first = (1..=3).contains(&first.len()) && !first.starts_with('0');
    let are_rest = groups.all(|group| group.len() == 3);
    (is_first && are_rest && !decimals.contains(','))
        .then(|| format!("{}.{decimals}", whole.replace(',', "")))
}

fn word(text: &str) -> (Kind, usize) {
    if let Some(end) = abbreviation(text) {
        return (Kind::Word(text[..end].replace('.', "").to_lowercase()), end);
    }
    let mut end = 0;
    for (at, c) in text.char_indices() {
        let follows = || text[at + c.len_utf8()..].starts_with(char::is_alphabetic);
        if !(c.is_alphabetic() || (matches!(c, '\'' | '\u{2019}') && follows())) {
            break;
        }
        end = at + c.len_utf8();
    }
    (Kind::Word(text[..end].to_lowercase().replace('\u{2019}', "'")), end)
}

/// Length of single letters with full stops between them, such as `b.i.d.` or `p.o`.
fn abbreviation(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_letter = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphabetic);
    let mut end = 0;
    let mut letters = 0;
    while is_letter(end) && !is_letter(end + 1) {
        letters += 1;
        end += 1;
        if bytes.get(end) != Some(&b'.') {
            break;
        }
        end += 1;
    }
    let is_whole = !text[end..].starts_with(char::is_alphanumeric);
    // One full stop ends a sentence after the last letter.
    (letters > 1 && is_whole && text[..end].contains('.')).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_whole_or_not_at_all() {
        for (text, expected) in [
            ("1,200", Some(1200.0)),
            ("1,200.5", Some(1200.5)),
            ("0.25", Some(0.25)),
            (".5", Some(0.5)),
            ("1.2e3", Some(1200.0)),
            ("½", Some(0.5)),
            ("1½", Some(1.5)),
            ("1.000", None),
            ("1.250", None),
            ("0.250", Some(0.25)),
            ("1.125", Some(1.125)),
            ("0,5", None),
            ("1,2", None),
            ("12,50", None),
            ("1.2.3", None),
            ("10³", None),
            ("٣", None),
            ("1e999", None),
        ] {
            let found = tokens(text);
            let kind = expected.map_or(Kind::Unclear, Kind::Number);
            assert_eq!(found, [Token { kind, start: 0, end: text.len() }], "{text}");
        }
    }

    #[test]
    fn every_character_is_in_one_token() {
        for text in ["q8h, 250mg b.i.d. p.o.", "don’t — \u{1f48a} µg/mL 3½", "5 d. Then é"] {
            let found = tokens(text);
            let mut at = 0;
            for token in &found {
                assert!(text[at..token.start].trim().is_empty(), "{text}: {found:?}");
                at = token.end;
            }
            assert!(text[at..].trim().is_empty(), "{text}");
        }
        let words = tokens("b.i.d. i.v. don’t");
        let words: Vec<_> = words.iter().filter_map(|token| token.kind.word()).collect();
        assert_eq!(words, ["bid", "iv", "don't"]);
    }
}
