//! The shipped servers as a client sees them: MCP over a pipe, answers over incident folders.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod arguments;
mod bundled;
mod damaged;
#[cfg(feature = "embeddings")]
mod embedder;
mod harness;
mod listing;
mod network_inventory;
mod pk_sim;
mod transactions;
