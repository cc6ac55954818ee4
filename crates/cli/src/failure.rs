//! Exit codes and failures, and how they are reported.

pub use extension::failure::{Exit, Failure};

use crate::output;

/// Writes a failure and its hint to stderr.
pub fn report(failure: &Failure) {
    if failure.is_closed_pipe() {
        return;
    }
    output::error(&failure.to_string());
    if let Some(hint) = failure.next() {
        output::hint(hint);
    }
}
