//! Why an execution was not started, called back or stopped. Each variant needs another reaction.

use asl::definition::DefinitionError;
use asl::execution::PAYLOAD_BYTES_MAX;
use journal::store::Error;

/// Why executions cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("invalid state machine definition")]
    Definition(#[from] DefinitionError),
    #[error(transparent)]
    Store(#[from] Error),
}

/// Why an execution was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("invalid name: '{0}'")]
    InvalidName(String),
    #[error("the input is not JSON: {0}")]
    InvalidInput(String),
    /// The input exceeds Step Functions' limit.
    #[error("input of {0} bytes is larger than {PAYLOAD_BYTES_MAX}")]
    TooLarge(usize),
    /// Another execution has the name, or this one has ended.
    #[error("execution already exists: '{0}'")]
    AlreadyExists(String),
    /// The outcome is unknown: it may have been started.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Why a callback was refused.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// Not a token of this stack.
    #[error("invalid token")]
    InvalidToken,
    /// The token's execution does not exist.
    #[error("the task does not exist")]
    DoesNotExist,
    #[error("the task has ended or timed out")]
    TimedOut,
    /// Not delivered; the caller may retry.
    #[error("the execution cannot take a request at the moment; try again")]
    Busy,
    #[error(transparent)]
    Store(#[from] Error),
}

/// Why an execution was not stopped.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    #[error("execution does not exist: '{0}'")]
    DoesNotExist(String),
    /// Not delivered; the caller may retry.
    #[error("the execution cannot take a request at the moment; try again")]
    Busy,
    #[error(transparent)]
    Store(#[from] Error),
}
