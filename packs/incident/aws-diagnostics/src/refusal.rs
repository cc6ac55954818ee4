//! Every error of a call. A model or a person reads the texts.

use std::fmt;
use std::io;

use super::call::Call;
use super::function_name::FunctionName;

/// Why a tool has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// The incident folder has no such function; the caller asks for one that it has.
    #[error("no function named {asked} in this incident folder, {}", Present(present))]
    NoSuchFunction { asked: FunctionName, present: Vec<FunctionName> },
    /// AWS calls that the answer needs gave none.
    #[error("{}", Lines(.0))]
    Calls(Vec<RefusedCall>),
    /// What AWS answered could not be written down, so it is not answered either.
    #[cfg(feature = "live")]
    #[error("cannot record {file}: {error}")]
    NotRecorded { file: String, error: io::Error },
}

/// An AWS call that gave no answer.
#[derive(Debug, thiserror::Error)]
#[error("{call} failed: {}{reason}", FilePrefix(file.as_deref()))]
pub(super) struct RefusedCall {
    /// The AWS call, as an IAM action is spelled: `logs:FilterLogEvents`.
    pub call: &'static str,
    /// The file that should have held its answer, relative to the incident folder; none when the
    /// call was made.
    pub file: Option<String>,
    /// Why there is no answer.
    pub reason: Reason,
}

impl RefusedCall {
    /// An incident folder has no answer to a call on this function.
    pub(super) fn saved(name: &FunctionName, call: Call<'_>, reason: Reason) -> Self {
        let file = format!("functions/{name}/{}", call.file());
        Self { call: call.action(), file: Some(file), reason }
    }
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Reason {
    #[error("no such file")]
    Missing,
    #[error("it leads out of the incident folder")]
    Outside,
    #[error("not a regular file")]
    NotAFile,
    #[error("larger than {bytes_max} bytes")]
    TooLarge { bytes_max: u64 },
    #[error("the file is empty")]
    Empty,
    /// AWS refused, in the words of the AWS CLI: just now, or when the file was saved.
    #[error("{0}")]
    RefusedByAws(String),
    /// Nobody answered, or with "not now"; another time the call may succeed.
    #[cfg(feature = "live")]
    #[error("{0}")]
    Unanswered(String),
    #[error("not what this call prints: {0}")]
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
