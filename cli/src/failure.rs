//! How a command ends, and how anything goes wrong.

use std::fmt;
use std::io;

use crate::output;

/// What the program's exit says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It was done; the session succeeded.
    Succeeded = 0,
    /// The session did not succeed, or verification found damage.
    Failed = 1,
    /// It could not be found out.
    Unknown = 2,
    /// The command line or the environment makes no sense.
    Usage = 64,
}

/// Why a command did not do what it was asked for, and what to do about it.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    error: anyhow::Error,
    hint: Option<String>,
}

impl Failure {
    /// It could not be found out.
    pub fn unknown(error: impl fmt::Display + fmt::Debug + Send + Sync + 'static) -> Self {
        Self { exit: Exit::Unknown, error: anyhow::Error::msg(error), hint: None }
    }

    /// What was asked for makes no sense.
    pub fn usage(error: impl fmt::Display + fmt::Debug + Send + Sync + 'static) -> Self {
        Self { exit: Exit::Usage, error: anyhow::Error::msg(error), hint: None }
    }

    /// The same failure and what the user does next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What the user does next, if it says so.
    pub fn next(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The exit that it leads to.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// What went wrong, with what the user does next, for somebody who is told over HTTP.
    pub fn sentence(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{:#} ({hint})", self.error),
            None => format!("{:#}", self.error),
        }
    }

    /// Says it on stderr. That nobody reads our output any more is no news to anybody.
    pub fn report(&self) {
        let closed = |cause: &(dyn std::error::Error + 'static)| {
            cause
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        };
        if self.error.chain().any(closed) {
            return;
        }
        output::error(&format!("{:#}", self.error));
        if let Some(hint) = &self.hint {
            output::hint(hint);
        }
    }
}

/// What was asked for needs what this build was made without.
#[cfg(not(feature = "live"))]
pub fn not_live(what: &str) -> Failure {
    Failure::unknown(format!("this build does not reach {what}"))
        .hint("build it with: cargo build -p cli --profile local --features live")
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { exit: Exit::Unknown, error: error.into(), hint: None }
    }
}
