//! Agents that are files: a prompt, schemas, servers and limits, without code.
//!
//! [`mod@file`] reads and checks such a file. [`looped`] runs it: a model calls the tools of the file's servers until it gives
//! its result. Approvals, budgets, resumption and verification are those of every graph. The file's digest is the agent's
//! version, so a session never goes on with another prompt than it began with.

pub mod file;
pub mod looped;
