//! Deterministic simulation: runs whole sessions in a simulated cloud with faults, and checks
//! invariants.
//!
//! [`run`] runs the session of a seed. Real are the `invoker`, the `poller`, the agent host, the
//! shipped agents and the state machine's definition. Simulated are time (tokio's, paused), the table
//! ([`store`]), the network under the AWS clients ([`network`]), the processes ([`process`]) that
//! [`world`] starts and kills, and Step Functions itself. [`faults`] draws the faults from the seed,
//! and [`check`] checks the table, its log of writes and the results of the executions.
//!
//! - [`run_scenario`] runs any agent, as a [`scenario`], with random faults. Its tools ([`tools`]) and
//!   people ([`person`]) are simulated, and each call is logged.
//! - [`crash_points`] and [`prefixes`] interrupt a scenario's session at every possible place, on any
//!   store ([`backing_store`]).
//! - [`interleave`] runs a race of a few participants in every relevant order of their operations,
//!   which random seeds would rarely find.
//! - [`payment_agent`] is an agent that uses every effect.
//!
//! A seed and a commit reproduce a run, except for the random names of runners, which have no effect,
//! and for tokio's choice between branches of a `select!` that are ready at the same instant.

pub mod backing_store;
pub mod check;
pub mod crash_points;
mod effects;
mod execution;
mod executions;
pub mod faults;
mod functions;
pub mod interleave;
pub mod network;
pub mod payment_agent;
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
