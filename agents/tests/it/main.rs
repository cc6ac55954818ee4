//! The agents as a host runs them: whole sessions over saved tool answers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod assistant;
mod checkup;
mod folder;
mod fraud;
mod incident;
mod network;
