//! Integration tests of the agent host.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod host;
mod journaling;
mod model;
mod ping;
mod programs;
mod receipts;
mod tool;
mod versions;
