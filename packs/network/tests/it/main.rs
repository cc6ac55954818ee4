//! Whole sessions of the network agent over saved or served tool answers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod sessions;
