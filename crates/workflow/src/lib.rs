//! The contract between the processes of a session: state machine, Lambda functions and agent.
//!
//! - [`trigger`]: the detail of a trigger event. [`rule`]: the event patterns and input transformers
//!   that make it the state machine's input.
//! - [`state_machine`]: the definition in Amazon States Language. It exchanges the messages of
//!   [`contract`] with the functions and matches their errors by [`error_name`].
//! - [`execution`]: names of executions. [`standing`]: the input of an execution that resumes a session.
//! - [`trace`]: the spans of a session. [`metric`]: names of metrics.
//! - [`mod@env`]: environment variables. [`limits`]: bounds and intervals. [`cost`]: AWS cost of a session.
//!
//! This crate performs no IO and reads no clock.

pub mod contract;
pub mod cost;
pub mod env;
pub mod error_name;
pub mod execution;
pub mod limits;
pub mod metric;
pub mod rule;
pub mod standing;
pub mod state_machine;
pub mod trace;
pub mod trigger;
