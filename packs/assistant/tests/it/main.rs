//! Whole sessions of the assistant with saved or served tool results.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod laboratory;
mod sentences;
mod sessions;
