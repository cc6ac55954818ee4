//! The diagnostics server as an MCP client sees it, over incident folders.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod arguments;
mod bundled;
mod damaged;
mod harness;
mod listing;
