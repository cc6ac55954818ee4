//! The agent host from outside.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod host;
mod journaling;
mod model;
mod ping;
mod tool;
