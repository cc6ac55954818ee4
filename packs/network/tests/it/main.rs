//! Whole sessions of the network agent with saved or served tool results.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod sessions;
