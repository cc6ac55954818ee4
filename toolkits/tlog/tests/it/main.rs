//! Tests of the public interface, with test vectors of other implementations.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

mod checkpoints;
mod log;
mod merkle;
mod notes;
mod vectors;
mod witnesses;
