//! Races on both stores, in every relevant order of operations.
//!
//! Small races run all orders on SQLite. Races with thousands of orders interrupt participants at
//! most twice, or once with three participants; on DynamoDB, which replies over HTTP, once. The
//! number of schedules is printed, and a race fails if it becomes smaller.

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
