//! Whole sessions of the incident agent over saved or served tool answers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adversaries;
mod folder;
mod injections;
mod sessions;
