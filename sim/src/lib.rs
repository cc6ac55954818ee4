//! Runs whole sessions in a simulated cloud, with faults, and says what did not hold.
//!
//! [`run`] takes a seed. The `invoker`, the `poller`, the agent host, the shipped agents and the
//! state machine's text are the real ones; simulated are time (tokio's, paused), the table
//! ([`store`]), the network under the AWS clients ([`network`]), the processes ([`process`]) that
//! [`world`] starts, loses and stops, and the state machine's shell. [`faults`] decides by the seed
//! what goes wrong, and [`check`] reads the table, its log of writes and the executions' ends.
//!
//! [`interleave`] drives a few participants over a real store through every order of their
//! operations that matters, where a seed would meet it only by luck.
//!
//! [`crash_points`] and [`prefixes`] take any agent, as a [`scenario`], and go through every place at
//! which its session can be cut off, on any store ([`beneath`]); [`run_scenario`] draws faults for
//! it. Its tools ([`tools`]) and its people ([`person`]) are simulated, each call is counted.
//!
//! A seed and a commit reproduce a run, but for the random names of runners, which nothing depends
//! on, and for tokio's choice between branches of a `select!` that are ready at the same instant.

pub mod beneath;
pub mod check;
pub mod clerk;
pub mod crash_points;
mod effects;
mod execution;
pub mod faults;
mod functions;
pub mod interleave;
pub mod network;
pub mod person;
pub mod prefixes;
pub mod process;
pub mod scenario;
mod session;
pub mod store;
mod table;
pub mod tasks;
pub mod tools;
pub mod world;

pub use session::{Ended, Report, run, run_scenario};
