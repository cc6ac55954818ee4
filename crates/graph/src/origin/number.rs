//! Numbers in other notations: `1,000`, `1e3` and `1000.0` are one number; `250mg` is 250 with a unit.

use super::text;

/// Longest unit, in characters.
const UNIT_CHARS_MAX: usize = 12;

/// A decimal number without leading and trailing zeros, so that equal numbers are equal values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

/// A number in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spotted {
    pub(super) value: Decimal,
    /// The word after it, attached or after one space; may be empty.
    pub(super) unit: String,
    /// Whether the unit, if any, is attached.
    pub(super) is_attached: bool,
    /// Whether it is a word of its own, with or without its unit.
    pub(super) is_word: bool,
}

impl Decimal {
    /// Parses digits with an optional fraction and exponent, and groups of three. A comma that does
    /// not separate groups of three is ambiguous and not a number.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (is_negative, text) = match text.strip_prefix(['-', '−']) {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let whole = ungrouped(whole)?;
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_digits(&whole) || !is_digits(fraction) {
            return None;
        }
        let exponent = i64::from(exponent) - i64::try_from(fraction.len()).ok()?;
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0').trim_end_matches('0');
        if digits.is_empty() {
            return Some(Self::default());
        }
        let zeros = all.len() - all.trim_end_matches('0').len();
        let exponent = exponent + i64::try_from(zeros).ok()?;
        Some(Self { is_negative, digits: digits.to_owned(), exponent })
    }

    /// Digits without an exponent and without leading zeros.
    pub(super) fn digit_count(&self) -> usize {
        let zeros = usize::try_from(self.exponent).unwrap_or(0);
        self.digits.len().saturating_add(zeros)
    }
}

/// Removes the separators between groups of three digits; `None` if they separate anything else.
fn ungrouped(whole: &str) -> Option<String> {
    let Some(separator) = whole.chars().find(|c| matches!(c, ',' | '_' | '\'')) else {
        return Some(whole.to_owned());
    };
    let mut groups = whole.split(separator);
    let first = groups.next()?;
    let fits = (1..=3).contains(&first.len()) && groups.all(|group| group.len() == 3);
    fits.then(|| whole.replace(separator, ""))
}

/// A text that is one number, with or without a unit. Leading zeros make it an identifier.
pub(super) fn quantity(text: &str) -> Option<(Decimal, String)> {
    let text = text.trim();
    let unsigned = text.trim_start_matches(['-', '+', '−']);
    if unsigned.len() > 1 && unsigned.starts_with('0') && !unsigned.starts_with("0.") {
        return None;
    }
    let (end, value) = digits(text, text.find(|c: char| c.is_ascii_digit())?)?;
    let sign = &text[..text.len() - unsigned.len()];
    let value = match sign {
        "" | "+" => value,
        "-" | "−" => Decimal { is_negative: value != Decimal::default(), ..value },
        _ => return None,
    };
    let (unit, _) = unit(&text[end..]);
    let rest = text[end..].trim_start();
    let is_whole = text.starts_with(sign) && unsigned.starts_with(|c: char| c.is_ascii_digit());
    (is_whole && rest == unit).then(|| (value, unit.to_owned()))
}

/// The numbers in a text. Digits within words, such as in `5f3d`, are none.
pub(super) fn numbers(text: &str) -> Vec<Spotted> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(offset) = text[from..].find(|c: char| c.is_ascii_digit()) {
        let start = from + offset;
        from = number_end(text, start);
        let before = text[..start].chars().next_back();
        let rest = &text[start..];
        // Leading zeros make it an identifier.
        let is_padded =
            rest.starts_with('0') && rest[1..].starts_with(|c: char| c.is_ascii_digit());
        if text::is_one_run(before, Some('0')) || is_fraction(text, start) || is_padded {
            continue;
        }
        if let Some((end, value)) = digits(text, start) {
            from = from.max(end);
            found.extend(spotted(text, start, end, value));
        }
    }
    found
}

/// Whether the digits follow a point or comma after other digits.
fn is_fraction(text: &str, start: usize) -> bool {
    let before = text[..start].strip_suffix(['.', ',']);
    before.is_some_and(|before| before.ends_with(|c: char| c.is_ascii_digit()))
}

fn spotted(text: &str, start: usize, end: usize, value: Decimal) -> Option<Spotted> {
    let (unit, is_attached) = unit(&text[end..]);
    let after = if is_attached { end + unit.len() } else { end };
    if text::is_one_run(text[..after].chars().next_back(), text[after..].chars().next()) {
        return None;
    }
    let mut first = start;
    let mut value = value;
    let before = &text[..start];
    if let Some(sign) = before.chars().next_back().filter(|c| matches!(c, '-' | '−' | '+')) {
        let at = start - sign.len_utf8();
        if text::begins_word(text, at) {
            value.is_negative = sign != '+' && value != Decimal::default();
            first = at;
        }
    }
    if let Some(sign) = text[..first].chars().next_back().filter(|c| "$€£¥".contains(*c)) {
        first -= sign.len_utf8();
    }
    let is_word = text::begins_word(text, first) && text::ends_word(text, after);
    Some(Spotted { value, unit: unit.to_owned(), is_attached, is_word })
}

/// The number that starts here, and its end.
fn digits(text: &str, start: usize) -> Option<(usize, Decimal)> {
    let mut end = number_end(text, start);
    if let Some(rest) = text[end..].strip_prefix(['e', 'E']) {
        let unsigned = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        let count = unsigned.bytes().take_while(u8::is_ascii_digit).count();
        if count > 0 && !unsigned[count..].starts_with(char::is_alphanumeric) {
            end = text.len() - unsigned.len() + count;
        }
    }
    Some((end, Decimal::parse(&text[start..end])?))
}

/// The end of digits with separators between them.
fn number_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut end = start;
    while is_digit(end)
        || (bytes.get(end).is_some_and(|byte| b".,_'".contains(byte)) && is_digit(end + 1))
    {
        end += 1;
    }
    end
}

/// The unit at the start of a text, and whether nothing separates it.
fn unit(rest: &str) -> (&str, bool) {
    let word = rest.strip_prefix([' ', '\u{a0}', '\u{202f}']).unwrap_or(rest);
    let is_unit = |c: char| c.is_alphabetic() || "%°/²³·".contains(c);
    let end = word.find(|c: char| !is_unit(c)).unwrap_or(word.len());
    let unit = &word[..end];
    if unit.chars().count() > UNIT_CHARS_MAX {
        return ("", false);
    }
    (unit, !unit.is_empty() && word.len() == rest.len())
}
