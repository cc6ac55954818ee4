//! The network inventory as a client sees it: MCP over a pipe.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod network_inventory;
