//! The invoker's errors, by the state machine's reaction.

use agentcore::invoke::CallError;
use journal::chain::AppendError;
use workflow::error_name;
use workflow::trigger::InvalidTrigger;

/// The state machine distinguishes the variants by [`Error::name`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The trigger is invalid. The session fails.
    #[error(transparent)]
    InvalidTrigger(#[from] InvalidTrigger),
    /// The call was certainly not accepted and may be retried.
    #[error("the agent runtime did not accept the invocation: {0}")]
    Throttled(String),
    /// The call was refused for good. The session fails.
    #[error("{0}")]
    Failed(String),
    /// The call may have been accepted. Only the journal can tell.
    #[error("the agent runtime may have accepted the invocation: {0}")]
    Unknown(String),
    /// The journal failed while the session was admitted or rejected.
    #[error(transparent)]
    Journal(#[from] journal::store::Error),
}

impl Error {
    /// The name that the state machine matches.
    pub fn name(&self) -> &'static str {
        match self {
            Self::InvalidTrigger(_) => error_name::INVALID_TRIGGER,
            Self::Throttled(_) => error_name::INVOCATION_THROTTLED,
            Self::Failed(_) => error_name::INVOCATION_FAILED,
            Self::Unknown(_) => error_name::INVOCATION_UNKNOWN,
            Self::Journal(_) => error_name::JOURNAL_UNAVAILABLE,
        }
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        match error {
            CallError::NotAccepted { message } | CallError::NoCapacity { message } => {
                Self::Throttled(message.to_string())
            }
            CallError::Refused { message, .. } => Self::Failed(message.to_string()),
            CallError::MayBeAccepted { what } => Self::Unknown(what),
        }
    }
}

impl From<AppendError> for Error {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Store(error) => Self::Journal(error),
            other => Self::Journal(journal::store::Error::Refused(other.into())),
        }
    }
}
