//! Exit codes, and failures with a hint.

use std::fmt;
use std::io;

/// The program's exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The command or the session succeeded.
    Succeeded = 0,
    /// The session did not succeed, or verification found damage.
    Failed = 1,
    /// The result is unknown.
    Unknown = 2,
    /// The command line or the environment is invalid.
    Usage = 64,
}

/// Why a command failed, with an optional hint.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    error: anyhow::Error,
    hint: Option<String>,
}

impl Failure {
    /// A failure with [`Exit::Unknown`].
    pub fn unknown(error: impl fmt::Display + fmt::Debug + Send + Sync + 'static) -> Self {
        Self { exit: Exit::Unknown, error: anyhow::Error::msg(error), hint: None }
    }

    /// A failure with [`Exit::Usage`].
    pub fn usage(error: impl fmt::Display + fmt::Debug + Send + Sync + 'static) -> Self {
        Self { exit: Exit::Usage, error: anyhow::Error::msg(error), hint: None }
    }

    /// A failure with [`Exit::Failed`]: what was verified is damaged.
    pub fn damaged(error: impl fmt::Display + fmt::Debug + Send + Sync + 'static) -> Self {
        Self { exit: Exit::Failed, error: anyhow::Error::msg(error), hint: None }
    }

    /// The failure for `what`, which needs the feature `live`.
    pub fn not_live(what: &str) -> Self {
        Self::unknown(format!("this build has no support for {what}"))
            .hint("build it with: cargo build -p cli --profile local --features live")
    }

    /// The failure for a command that works on this machine only; `why` is the hint.
    pub fn only_local(why: &str) -> Self {
        Self::unknown("this command works on this machine only (--target local)").hint(why)
    }

    /// Adds a hint: the next step for the user.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The hint.
    pub fn next(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// The error and the hint in one sentence, for an HTTP response.
    pub fn sentence(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{:#} ({hint})", self.error),
            None => format!("{:#}", self.error),
        }
    }

    /// Whether stdout was closed by its reader, which needs no report.
    pub fn is_closed_pipe(&self) -> bool {
        self.error.chain().any(|cause| {
            cause
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        })
    }
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
