//! The finished functions against Lambda's Runtime API.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[macro_use]
mod conformance;
mod events;
mod fake;
mod invoker;
mod poller;
mod watchdog;
