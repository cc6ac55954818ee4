//! Paths into a tool's result: `inline_policies.data-access.Statement[0].Action`.
//!
//! A path has names and indices. A name with a dot or a bracket is quoted,
//! `inline_policies['team.access']`; a leading `$` is allowed. There are no wildcards, because a path
//! names one value.

use std::fmt;

use serde_json::Value;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Key(String),
    Index(usize),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(Vec<Segment>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a field path: {0}")]
pub struct NotAPath(&'static str);

impl FieldPath {
    pub fn key(name: &str) -> Self {
        Self::default().then(name)
    }

    #[must_use]
    pub fn then(&self, name: &str) -> Self {
        let mut segments = self.0.clone();
        segments.push(Segment::Key(name.to_owned()));
        Self(segments)
    }

    #[must_use]
    pub fn at(&self, index: usize) -> Self {
        let mut segments = self.0.clone();
        segments.push(Segment::Index(index));
        Self(segments)
    }

    /// # Errors
    ///
    /// When the text is not a valid path; the caller reports it to the author.
    pub fn parse(text: &str) -> Result<Self, NotAPath> {
        let text = text.trim();
        let mut rest = text.strip_prefix('$').unwrap_or(text);
        let mut segments = Vec::new();
        let mut is_first = true;
        while !rest.is_empty() {
            let (segment, after) = if let Some(inner) = rest.strip_prefix('[') {
                bracketed(inner)?
            } else {
                let dotted = rest.strip_prefix('.');
                if dotted.is_none() && !is_first {
                    return Err(NotAPath("a dot or a bracket must follow a bracket"));
                }
                named(dotted.unwrap_or(rest))?
            };
            segments.push(segment);
            rest = after;
            is_first = false;
        }
        if segments.is_empty() { Err(NotAPath("it is empty")) } else { Ok(Self(segments)) }
    }

    /// The value at this path.
    pub fn resolve<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(value, |value, segment| match (segment, value) {
            (Segment::Key(key), Value::Object(members)) => members.get(key),
            (Segment::Index(index), Value::Array(elements)) => elements.get(*index),
            // Most models write an index as `events.3.message`.
            (Segment::Key(key), Value::Array(elements)) => elements.get(key.parse::<usize>().ok()?),
            _ => None,
        })
    }
}

impl FieldPath {
    pub fn to_pointer(&self) -> String {
        self.0.iter().fold(String::new(), |pointer, segment| match segment {
            Segment::Key(key) => format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")),
            Segment::Index(index) => format!("{pointer}/{index}"),
        })
    }
}

/// A bare name, up to the next dot or bracket.
fn named(text: &str) -> Result<(Segment, &str), NotAPath> {
    let end = text.find(['.', '[', ']']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    match name {
        "" => Err(NotAPath("a name is empty")),
        "*" => Err(NotAPath("wildcards point at more than one thing")),
        _ => Ok((Segment::Key(name.to_owned()), rest)),
    }
}

/// An index or a quoted name, after its opening bracket.
fn bracketed(text: &str) -> Result<(Segment, &str), NotAPath> {
    let Some(quote @ ('\'' | '"')) = text.chars().next() else {
        let (index, rest) = text.split_once(']').ok_or(NotAPath("a bracket is not closed"))?;
        let index = index.trim().parse();
        let index = index.map_err(|_| NotAPath("an index must be a number from 0"))?;
        return Ok((Segment::Index(index), rest));
    };
    let mut name = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            name.extend(chars.next().map(|(_, escaped)| escaped));
        } else if c == quote {
            let rest = text[at + 1..].strip_prefix(']');
            return rest
                .map(|rest| (Segment::Key(name), rest))
                .ok_or(NotAPath("a bracket is not closed"));
        } else {
            name.push(c);
        }
    }
    Err(NotAPath("a quote is not closed"))
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) if is_bare(key) && position == 0 => f.write_str(key)?,
                Segment::Key(key) if is_bare(key) => write!(f, ".{key}")?,
                Segment::Key(key) => {
                    write!(f, "['{}']", key.replace('\\', "\\\\").replace('\'', "\\'"))?;
                }
            }
        }
        Ok(())
    }
}

/// Whether a name needs no quotes.
fn is_bare(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check(path: &str, expected: Option<Value>) {
        let value = json!({
            "inline_policies": {
                "data-access": {"Statement": [{"Action": ["s3:GetObject"]}]},
                "team.access": {"Statement": []},
                "it's": 1,
            },
            "events": [{"message": "a"}, {"message": "b"}],
            "3": "three",
        });
        let found = FieldPath::parse(path).ok().and_then(|path| path.resolve(&value).cloned());
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn a_path_points_at_one_thing() {
        check("inline_policies.data-access.Statement[0].Action", Some(json!(["s3:GetObject"])));
        check("inline_policies.data-access.Statement[0].Action[0]", Some(json!("s3:GetObject")));
        check("$.events[1].message", Some(json!("b")));
        check("$['events'][1][\"message\"]", Some(json!("b")));
        check("events.1.message", Some(json!("b")));
        check("inline_policies['team.access'].Statement", Some(json!([])));
        check("inline_policies['it\\'s']", Some(json!(1)));
        check("inline_policies[\"it's\"]", Some(json!(1)));
        check("3", Some(json!("three")));
        check(" events[0].message ", Some(json!("a")));
    }

    #[test]
    fn a_pointer_finds_what_the_path_finds() {
        let value = json!({"a/b": {"c~d": [{"e": 1}, {"e": 2}]}});
        for (path, expected) in [
            ("['a/b']['c~d'][1].e", Some("/a~1b/c~0d/1/e")),
            ("['a/b'].c~d.0", Some("/a~1b/c~0d/0")),
            ("['a/b'].x", None),
        ] {
            let path = FieldPath::parse(path).unwrap();
            let (pointer, found) = (path.to_pointer(), path.resolve(&value));
            assert_eq!(found.map(|_| pointer.as_str()), expected);
            assert_eq!(value.pointer(&pointer), found);
        }
    }

    #[test]
    fn a_missing_member_does_not_resolve() {
        for path in [
            "",
            "$",
            "events[2].message",
            "events[-1]",
            "events[*].message",
            "events.*",
            "events[",
            "events[0",
            "events]",
            "events[0]message",
            "events..message",
            "events.",
            ".",
            "events['0",
            "events['0'",
            "inline_policies.team.access",
            "events[99999999999999999999]",
        ] {
            check(path, None);
        }
    }

    proptest! {
        #[test]
        fn a_written_path_is_read_back(keys in prop::collection::vec(("\\PC{1,8}", 0..99_usize), 1..4)) {
            let path = keys.iter().fold(FieldPath::default(), |path, (key, index)| {
                path.then(key).at(*index)
            });
            prop_assert_eq!(FieldPath::parse(&path.to_string()), Ok(path));
        }

        #[test]
        fn no_text_panics(text in "[.$a\\[\\]'\"\\\\0-9é]{0,12}") {
            let _ = FieldPath::parse(&text);
        }
    }
}
