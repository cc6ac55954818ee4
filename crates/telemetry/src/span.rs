//! A span that has ended.

use std::num::NonZeroU64;

use crate::attribute;
use crate::context::TraceParent;

/// Longest text of an attribute or name, in bytes; the rest is truncated. Models and servers choose their own names.
pub const TEXT_BYTES_MAX: usize = 256;

#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub context: TraceParent,
    /// Its parent; `None` for the first span of a trace.
    pub parent: Option<NonZeroU64>,
    /// The name of its tracer.
    pub scope: &'static str,
    pub name: String,
    pub kind: Kind,
    /// Start, in nanoseconds since 1970.
    pub start: i64,
    /// End, in nanoseconds since 1970.
    pub end: i64,
    pub attributes: Vec<(&'static str, Value)>,
    pub failed: bool,
}

/// The side of a call that a span represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Within a process.
    Internal,
    /// The caller.
    Client,
    /// The callee.
    Server,
    /// The sender of a message, which does not wait.
    Producer,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text of at most [`TEXT_BYTES_MAX`].
    Text(String),
    Number(i64),
    Flag(bool),
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

    /// Sets the kind.
    #[must_use]
    pub fn of_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// Sets start and end, in nanoseconds since 1970; the duration is at least zero.
    #[must_use]
    pub fn lasting(self, start: i64, end: i64) -> Self {
        Self { start, end: end.max(start), ..self }
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    /// Marks it as failed with this error type, one word.
    #[must_use]
    pub fn failing(self, why: &str) -> Self {
        Self { failed: true, ..self.with(attribute::ERROR_TYPE, why) }
    }
}

/// The system clock, in nanoseconds since 1970, for spans outside a session with a clock of its own.
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
