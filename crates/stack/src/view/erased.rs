//! That a session was erased.

use journal::cipher::Erasure;
use journal::clock::Stamp;
use serde::Serialize;

/// The key of a session's contents was destroyed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Erased {
    pub at: Stamp,
    pub by: String,
    pub reason: String,
}

impl Erased {
    pub(super) fn of(erasure: &Erasure) -> Self {
        let Erasure { at, by, reason } = erasure;
        Self { at: *at, by: by.to_string(), reason: reason.clone() }
    }

    pub fn sentence(&self) -> String {
        format!("erased at {} by {} because: {}", self.at, self.by, self.reason)
    }
}
