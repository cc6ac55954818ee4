//! Every way in which a call can go wrong. The texts are what a model or a person reads.

use std::fmt;
use std::io;

use super::function_name::FunctionName;

/// Why a tool has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// The incident folder has no such function; the caller asks for one that it has.
    #[error("no function named {asked} in this incident folder, {}", Present(present))]
    NoSuchFunction { asked: FunctionName, present: Vec<FunctionName> },
    /// AWS calls that the answer needs gave none; asking again gives the same.
    #[error("{}", Lines(.0))]
    Calls(Vec<RefusedCall>),
}

/// An AWS call that gave no answer.
#[derive(Debug, thiserror::Error)]
#[error("{call} failed: {file}: {reason}")]
pub(super) struct RefusedCall {
    /// The AWS call, as an IAM action is spelled: `logs:FilterLogEvents`.
    pub call: &'static str,
    /// The file that should have held its answer, relative to the incident folder.
    pub file: String,
    /// What is wrong with the file.
    pub reason: Reason,
}

/// What is wrong with a saved answer.
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
    /// The file holds the error that the AWS CLI printed in place of an answer.
    #[error("{0}")]
    RefusedByAws(String),
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
