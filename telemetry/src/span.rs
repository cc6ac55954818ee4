//! A span that has ended.

use std::num::NonZeroU64;

use crate::attribute;
use crate::context::TraceParent;

/// Longest text that an attribute or a name keeps, in bytes; the rest is cut off. What models and
/// servers call things is theirs to choose.
pub const TEXT_BYTES_MAX: usize = 256;

/// One span.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Its own identity.
    pub context: TraceParent,
    /// Its parent; a span without one begins its trace.
    pub parent: Option<NonZeroU64>,
    /// The name of the tracer that it is of.
    pub scope: &'static str,
    /// Its name.
    pub name: String,
    /// On which side of a call it stands.
    pub kind: Kind,
    /// When it began, in nanoseconds since 1970.
    pub start: i64,
    /// When it ended, in nanoseconds since 1970.
    pub end: i64,
    /// More about it.
    pub attributes: Vec<(&'static str, Value)>,
    /// Whether what it stands for went wrong.
    pub failed: bool,
}

/// On which side of a call a span stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Within a process.
    Internal,
    /// Whoever asks.
    Client,
    /// Whoever is asked.
    Server,
    /// Whoever sends a message and does not wait.
    Producer,
}

/// An attribute's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text of at most [`TEXT_BYTES_MAX`].
    Text(String),
    /// A number.
    Number(i64),
    /// A flag.
    Flag(bool),
    /// Several texts.
    Texts(Vec<String>),
}

impl Span {
    /// A span within a process, without attributes.
    pub fn new(context: TraceParent, parent: Option<TraceParent>, name: impl Into<String>) -> Self {
        Self {
            context,
            parent: parent.map(|parent| parent.span_id),
            scope: "daybook",
            name: cut(name.into()),
            kind: Kind::Internal,
            start: 0,
            end: 0,
            attributes: Vec::new(),
            failed: false,
        }
    }

    /// The same with another kind.
    #[must_use]
    pub fn of_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// The same from `start` to `end`, in nanoseconds since 1970; never shorter than nothing.
    #[must_use]
    pub fn lasting(self, start: i64, end: i64) -> Self {
        Self { start, end: end.max(start), ..self }
    }

    /// The same with one attribute more.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    /// The same, gone wrong for this reason, which is a word and no message.
    #[must_use]
    pub fn failing(self, why: &str) -> Self {
        Self { failed: true, ..self.with(attribute::ERROR_TYPE, why) }
    }
}

/// The machine's time, in nanoseconds since 1970, for what stands in no session with a clock of its own.
#[expect(clippy::disallowed_methods, reason = "spans outside of sessions")]
pub fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    text
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(cut(text.to_owned()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(cut(text))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}
