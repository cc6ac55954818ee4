//! The diagnostics server as a client sees it: MCP over a pipe, answers over incident folders.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod arguments;
mod bundled;
mod damaged;
mod harness;
mod listing;
