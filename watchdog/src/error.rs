//! Why the watchdog could not do what it was called for. Whoever calls it tries again.

use journal::chain::AppendError;
use journal::store;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The journal did not answer.
    #[error(transparent)]
    Journal(#[from] store::Error),
    /// The session could not be ended.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// Whether the session's execution runs could not be found out.
    #[error("the executions could not be read: {0}")]
    Executions(String),
    /// What should be an end step is none.
    #[error("a session without an end step has no verdict")]
    NoEnd,
}
