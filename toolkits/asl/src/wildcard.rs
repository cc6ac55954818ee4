//! Wildcard patterns, in which `*` matches any text.

/// Literal pieces, separated by stars.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wildcard {
    pieces: Vec<String>,
}

impl Wildcard {
    /// A backslash escapes a star and itself.
    pub(crate) fn parse(text: &str) -> Wildcard {
        let (mut pieces, mut piece) = (Vec::new(), String::new());
        let mut chars = text.chars().peekable();
        while let Some(char) = chars.next() {
            match char {
                '\\' if matches!(chars.peek(), Some('*' | '\\')) => piece.extend(chars.next()),
                '*' => pieces.push(std::mem::take(&mut piece)),
                char => piece.push(char),
            }
        }
        pieces.push(piece);
        Wildcard { pieces }
    }

    /// The pieces between two stars.
    pub(crate) fn inner_pieces(&self) -> &[String] {
        match self.pieces.as_slice() {
            [_, inner @ .., _] => inner,
            _ => &[],
        }
    }

    /// Whether the pattern matches the text; linear in both.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let [first, middle @ .., last] = self.pieces.as_slice() else {
            return self.pieces.first().is_some_and(|only| only == text);
        };
        let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
        for piece in middle {
            match rest.find(piece.as_str()) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        rest.ends_with(last.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_anything_and_an_escaped_star_itself() {
        for (pattern, text, expected) in [
            ("log-*.txt", "log-1.txt", true),
            ("log-*.txt", "log-1.txd", false),
            ("*", "", true),
            ("a*a", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("a\\\\*", "a\\b", true),
            ("", "x", false),
            ("plain", "plain", true),
            ("plain", "plainer", false),
        ] {
            assert_eq!(Wildcard::parse(pattern).matches(text), expected, "{pattern} {text}");
        }
    }
}
