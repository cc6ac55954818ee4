//! The stack's parts together: the table, executions of the real state machine, the endpoint, and whole
//! sessions.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

mod begin;
mod clocks;
mod conformance;
mod dynamodb;
mod endpoint;
mod erasure;
mod executions;
mod halts;
mod isolated;
mod list;
mod load;
mod machines;
mod map_runs;
mod ministack;
mod notices;
mod page;
mod people;
mod redrives;
mod released;
mod restarts;
mod resume;
mod services;
mod stack;
mod stream;
mod versions;
mod watchdog;
mod world;
