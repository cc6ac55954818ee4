//! Dialogues with a kernel: recorded ones, which need no Node.js, and the same ones live.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod failures;
mod transcript;
