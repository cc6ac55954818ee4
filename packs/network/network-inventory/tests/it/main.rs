//! The network inventory as an MCP client sees it, over a pipe.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod network_inventory;
