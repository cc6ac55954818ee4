//! What crosses a process boundary: the trigger, the messages between the state machine, its
//! functions and the agent, the names of errors and metrics, every environment variable, and the
//! state machine's own text.
//!
//! An event becomes the state machine's input by [`rule`]; [`state_machine`] sends its functions the
//! messages of [`contract`] and tells their errors apart by [`error_name`]; [`trigger`] is what a
//! user may ask for, [`admission`] how many of them are let in; [`execution`] says what a session's
//! executions are called, and [`standing`] what one that carries a session on is told; [`trace`] is the
//! tree of spans that a session leaves. Nothing here does IO or reads a clock.

pub mod admission;
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
