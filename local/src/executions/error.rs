//! Why an execution was not started, reached or stopped: by what the caller does next.

use journal::store::Error;
use states::definition::DefinitionError;
use states::execution::PAYLOAD_BYTES_MAX;

/// Why executions cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The state machine's text is wrong.
    #[error("the state machine's text is refused")]
    Definition(#[from] DefinitionError),
    /// The file cannot be read or written.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Why an execution was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The name is not one.
    #[error("invalid name: '{0}'")]
    InvalidName(String),
    /// The input is not JSON.
    #[error("the input is not JSON: {0}")]
    InvalidInput(String),
    /// The input is larger than Step Functions takes.
    #[error("input of {0} bytes is larger than {PAYLOAD_BYTES_MAX}")]
    TooLarge(usize),
    /// Another has the name, or this one has ended.
    #[error("execution already exists: '{0}'")]
    AlreadyExists(String),
    /// It may have been started.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Why a token was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// It is no token of ours.
    #[error("invalid token")]
    InvalidToken,
    /// The execution that it names is not there.
    #[error("the task does not exist")]
    DoesNotExist,
    /// Its task has ended or timed out.
    #[error("the task has ended or timed out")]
    TimedOut,
    /// It could not be tried; send it again.
    #[error("the execution is not being driven at the moment")]
    Busy,
    /// The file cannot be read or written.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Why an execution was not stopped.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// There is no such execution.
    #[error("execution does not exist: '{0}'")]
    DoesNotExist(String),
    /// It could not be tried; ask again.
    #[error("the execution is not being driven at the moment")]
    Busy,
    /// The file cannot be read or written.
    #[error(transparent)]
    Store(#[from] Error),
}
