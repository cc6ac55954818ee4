//! Texts in other notations, and where a word begins and ends.

/// Quotes that may enclose a value, opening and closing.
const QUOTES: [(char, char); 6] =
    [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('‘', '’'), ('«', '»')];

/// A text in lower case, with single spaces, without whitespace and quotes around it.
///
/// A letter keeps its case if it has no lower case of its own: the Kelvin sign is no `k`, and a look-alike of
/// an address must not match it.
pub(super) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in unquoted(text).chars() {
        if c.is_whitespace() {
            if !folded.ends_with(' ') {
                folded.push(' ');
            }
        } else if c.is_ascii() {
            folded.push(c.to_ascii_lowercase());
        } else {
            folded.push(lower(c));
        }
    }
    folded
}

fn lower(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) if one.to_uppercase().eq([c]) => one,
        _ => c,
    }
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let enclosed = |(open, close): &(char, char)| text.strip_prefix(*open)?.strip_suffix(*close);
    QUOTES.iter().find_map(enclosed).map_or(text, str::trim)
}

/// Whether a word begins here: nothing before belongs to it. A letter, a digit and most symbols
/// belong to a word, so that `evil.example` is no word of `not-evil.example`.
pub(super) fn begins_word(text: &str, at: usize) -> bool {
    let mut before = text[..at].chars().rev();
    match before.next() {
        None => true,
        Some('\'' | '’' | '‘') => before.next().is_none_or(|c| !c.is_alphanumeric()),
        Some(c @ (',' | ';')) => !is_between_digits(text, at - c.len_utf8()),
        Some(c) => c.is_whitespace() || is_quote(c) || "([{<".contains(c),
    }
}

/// Whether a word ends here.
pub(super) fn ends_word(text: &str, at: usize) -> bool {
    let mut after = text[at..].chars();
    match after.next() {
        None => true,
        Some('\'' | '’' | '‘') => after.next().is_none_or(|c| !c.is_alphanumeric()),
        Some(',' | ';') => !is_between_digits(text, at),
        Some('.' | '!' | '?' | ':') => {
            after.next().is_none_or(|c| c.is_whitespace() || is_quote(c) || ")]}>".contains(c))
        }
        Some(c) => c.is_whitespace() || is_quote(c) || ")]}>".contains(c),
    }
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '`' | '“' | '”' | '„' | '«' | '»')
}

fn is_between_digits(text: &str, at: usize) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    text[..at].ends_with(is_digit) && text[at..].chars().nth(1).is_some_and(is_digit)
}

/// Where a folded value stands in a folded text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// As words of its own.
    Words,
    /// Cut out of a longer word, at a symbol.
    Cut,
}

/// Whether two characters belong to one run of letters and digits. Scripts without spaces write a foreign word
/// directly after their own.
pub(super) fn is_one_run(before: Option<char>, after: Option<char>) -> bool {
    let pair = before.zip(after);
    pair.is_some_and(|(a, b)| {
        a.is_alphanumeric() && b.is_alphanumeric() && a.is_ascii() == b.is_ascii()
    })
}

/// The best standing of a value in a text; `None` if it is not there, or only within letters or digits.
pub(super) fn standing(text: &str, value: &str) -> Option<Standing> {
    let (first, last) = (value.chars().next(), value.chars().next_back());
    let places = text.match_indices(value).filter_map(|(at, _)| {
        let end = at + value.len();
        let before = text[..at].chars().next_back();
        let after = text[end..].chars().next();
        if is_one_run(before, first) || is_one_run(last, after) {
            return None;
        }
        let is_word = begins_word(text, at) && ends_word(text, end);
        Some(if is_word { Standing::Words } else { Standing::Cut })
    });
    places.min()
}

/// The words of a value that can be recognised by themselves, such as addresses and identifiers, and the parts
/// of such words.
pub(super) fn fragments(value: &str) -> impl Iterator<Item = &str> {
    let is_space = |c: char| c.is_whitespace() || is_quote(c) || "'()[]{}<>,;".contains(c);
    let words = value.split(is_space).map(|word| word.trim_end_matches(['.', '!', '?', ':']));
    let parts = words.flat_map(|word| {
        let inner = word.split(['/', '@', '?', '=', '&', ':', '#', '|']);
        [word].into_iter().chain(inner.filter(move |part| *part != word))
    });
    parts.filter(|part| is_identifier(part))
}

/// Fewest letters and digits of a fragment.
const FRAGMENT_CHARS_MIN: usize = 6;

fn is_identifier(word: &str) -> bool {
    alphanumerics(word) >= FRAGMENT_CHARS_MIN && word.chars().any(|c| !c.is_alphabetic())
}

pub(super) fn alphanumerics(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphanumeric()).count()
}
