//! Races, each on both stores, in every order of operations that matters.
//!
//! Small races run every such order on SQLite. Those of which there are thousands interrupt their
//! participants at most twice, or once where three take part; on DynamoDB, which answers over HTTP,
//! it is once. How many schedules ran is printed, and a race fails when they become fewer than they
//! were.

#[macro_use]
mod bench;
mod clocks;
mod deliveries;
mod endings;
mod execution;
mod explorer;
mod long;
mod person;
mod questions;
mod runners;
mod stage;
mod status;
