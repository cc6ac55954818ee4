//! The poller's errors, by the state machine's reaction.

use journal::chain::AppendError;
use journal::store;
use workflow::error_name;

/// The state machine distinguishes the variants by [`Error::name`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The journal is temporarily unavailable.
    #[error("{0}")]
    JournalUnavailable(#[source] store::Error),
    /// A journal record is unreadable, or the journal refuses the operation.
    #[error("{0}")]
    JournalDamaged(#[source] store::Error),
    /// The workflow could not be woken.
    #[error("the callback failed: {0}")]
    Callback(String),
    /// The log of sessions is damaged, and is not signed.
    #[error("the log of sessions does not hold: {0}")]
    Log(String),
    /// The key that signs the log of sessions cannot be used.
    #[error("the log's key cannot be used: {0}")]
    LogKey(String),
    /// An event could not be put on the bus, and may be once more.
    #[error("{0}")]
    Notice(notify::bus::Error),
    #[error("invalid request: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("{0}")]
    Request(&'static str),
}

impl Error {
    /// The name that the state machine matches.
    pub fn name(&self) -> &'static str {
        match self {
            Self::JournalUnavailable(_) | Self::Callback(_) | Self::LogKey(_) | Self::Notice(_) => {
                error_name::JOURNAL_UNAVAILABLE
            }
            Self::JournalDamaged(_) | Self::Log(_) => error_name::JOURNAL_DAMAGED,
            Self::Malformed(_) | Self::Request(_) => error_name::INVALID_REQUEST,
        }
    }
}

impl From<notify::bus::Error> for Error {
    fn from(error: notify::bus::Error) -> Self {
        match error {
            notify::bus::Error::Journal(error) => error.into(),
            undelivered @ notify::bus::Error::Undelivered(_) => Self::Notice(undelivered),
        }
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Unavailable(_) | store::Error::Unknown(_) => {
                Self::JournalUnavailable(error)
            }
            store::Error::Refused(_) | store::Error::Corrupt(_) => Self::JournalDamaged(error),
        }
    }
}

impl From<AppendError> for Error {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Store(error) => error.into(),
            other => Self::JournalDamaged(store::Error::Refused(other.into())),
        }
    }
}
