//! The binary `daybook` from outside: what it says, what it exits with, and whole runs.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod bad_input;
mod document;
mod fixture;
mod harness;
mod journal_file;
mod kills;
mod mcp;
mod runs;
mod usage;
mod verifying;
