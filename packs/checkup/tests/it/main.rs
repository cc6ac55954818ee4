//! Whole sessions of the checkup agent with saved or served tool results.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod sessions;
