//! Every error of a tool call. Models and people read the messages.

use std::fmt;
use std::io;

use super::call::Call;
use super::function_name::FunctionName;

/// Why a tool failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// The incident folder has no such function; ask for one that it has.
    #[error("no function named {asked} in this incident folder, {}", Present(present))]
    NoSuchFunction { asked: FunctionName, present: Vec<FunctionName> },
    /// Required AWS calls failed.
    #[error("{}", Lines(.0))]
    Calls(Vec<RefusedCall>),
    /// AWS's responses could not be recorded, so the tool fails.
    #[cfg(feature = "live")]
    #[error("cannot record {file}: {error}")]
    NotRecorded { file: String, error: io::Error },
}

/// A failed AWS call.
#[derive(Debug, thiserror::Error)]
#[error("{call} failed: {}{reason}", FilePrefix(file.as_deref()))]
pub(super) struct RefusedCall {
    /// The call's IAM action: `logs:FilterLogEvents`.
    pub call: &'static str,
    /// The file of its response, relative to the incident folder; none for a live call.
    pub file: Option<String>,
    pub reason: Reason,
}

impl RefusedCall {
    /// An incident folder has no valid response of a call.
    pub(super) fn saved(name: &FunctionName, call: Call<'_>, reason: Reason) -> Self {
        let file = format!("functions/{name}/{}", call.file());
        Self { call: call.action(), file: Some(file), reason }
    }
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Reason {
    #[error("no such file")]
    Missing,
    #[error("the path leads out of the incident folder")]
    Outside,
    #[error("not a regular file")]
    NotAFile,
    #[error("larger than {bytes_max} bytes")]
    TooLarge { bytes_max: u64 },
    #[error("the file is empty")]
    Empty,
    /// AWS refused the call, now or when the file was saved. The text is the AWS CLI's.
    #[error("{0}")]
    RefusedByAws(String),
    /// No response, or a retryable error.
    #[cfg(feature = "live")]
    #[error("{0}")]
    Unanswered(String),
    #[error("not the output of this call: {0}")]
    Malformed(String),
    #[error("{0}")]
    Unreadable(#[source] io::Error),
}

impl From<io::Error> for Reason {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
            _ => Self::Unreadable(error),
        }
    }
}

impl From<RefusedCall> for Refusal {
    fn from(call: RefusedCall) -> Self {
        Self::Calls(vec![call])
    }
}

struct FilePrefix<'a>(Option<&'a str>);

impl fmt::Display for FilePrefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |file| write!(f, "{file}: "))
    }
}

struct Present<'a>(&'a [FunctionName]);

impl fmt::Display for Present<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((last, others)) = self.0.split_last() else {
            return f.write_str("which holds no functions");
        };
        f.write_str("which holds ")?;
        for name in others {
            write!(f, "{name}, ")?;
        }
        write!(f, "{last}")
    }
}

struct Lines<'a>(&'a [RefusedCall]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, call) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{call}")?;
        }
        Ok(())
    }
}
