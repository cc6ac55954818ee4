//! Failures of work on the SQLite file, and how a caller reacts to each.

use std::any::Any;

use super::place::Lost;
use crate::store::Error;

/// Why work on a connection was not done, or its transaction not committed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The journal rejected it.
    #[error(transparent)]
    Store(#[from] Error),
    /// The work panicked, with this message.
    #[error("the database work panicked: {0}")]
    Panicked(String),
    /// SQLite itself rolled back the transaction, as it does after some errors, such as a full
    /// disk.
    #[error("SQLite rolled back the transaction before its commit")]
    TransactionEnded,
    /// The transaction was rolled back, because nobody would find it.
    #[error("nothing was written: {0}")]
    Lost(#[from] Lost),
}

impl Failure {
    /// The failure for a panic with this payload.
    pub(super) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let literal = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = literal.or_else(|| panic.downcast_ref::<String>().cloned());
        Self::Panicked(text.unwrap_or_else(|| "no message".to_owned()))
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Sqlite(error) => error.into(),
            Failure::Store(error) => error,
            // The same work would panic again.
            Failure::Panicked(_) => Self::Refused(failure.into()),
            Failure::TransactionEnded => Self::Unknown(failure.into()),
            // The file may be put back.
            Failure::Lost(_) => Self::Unavailable(failure.into()),
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        match error.sqlite_error_code() {
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => Self::Corrupt(error.into()),
            Some(
                Code::ReadOnly | Code::ConstraintViolation | Code::TypeMismatch | Code::ApiMisuse,
            ) => Self::Refused(error.into()),
            _ => Self::Unavailable(error.into()),
        }
    }
}
