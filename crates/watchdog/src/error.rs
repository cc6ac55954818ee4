//! The watchdog's errors. Its callers retry after each.

use journal::chain::AppendError;
use journal::store;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The journal is unavailable.
    #[error(transparent)]
    Journal(#[from] store::Error),
    /// The session could not be ended.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The session's end could not be told.
    #[error(transparent)]
    Notice(#[from] notify::bus::Error),
    /// The state of the session's execution is unknown.
    #[error("the executions could not be read: {0}")]
    Executions(String),
    /// The step after which to seal is not an end step.
    #[error("a session without an end step has no verdict")]
    NoEnd,
}
