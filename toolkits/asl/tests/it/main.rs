//! Tests of the public interface: AWS recordings, the specification, and every prefix of a history.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

mod callbacks;
mod conformance;
mod errors;
mod flow;
mod forks;
mod given;
mod map_runs;
mod masks;
mod prefixes;
mod recorded;
mod redrive;
mod run;
mod table;
mod validation;
