//! Tests of the binary `daybook`: output, exit codes and whole runs.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[cfg(feature = "live")]
mod account;
mod bad_input;
mod browser;
#[cfg(feature = "live")]
mod chaos;
mod conversations;
#[cfg(feature = "live")]
mod deployed;
#[cfg(feature = "live")]
mod deploying;
mod document;
mod evaluations;
mod fixture;
mod fraud;
mod halts;
mod harness;
mod http_agents;
mod image;
#[cfg(feature = "live")]
mod in_account;
mod journal_file;
mod keeping;
mod kills;
mod kits;
mod lambdas;
mod langgraph;
#[cfg(feature = "live")]
mod live;
mod load;
mod log;
mod machine;
mod mcp;
mod mcp_clients;
mod metrics;
mod mutations;
mod network;
mod own_agent;
#[cfg(target_os = "linux")]
mod packaged;
mod page;
mod people;
mod planted;
mod programs;
mod projects;
mod pruning;
mod reader;
mod recovery;
mod reload;
mod runs;
#[cfg(feature = "live")]
mod servers;
mod tampering;
mod traces;
mod usage;
mod verifications;
mod verifying;
