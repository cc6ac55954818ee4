//! The assistant: a conversation about pharmacokinetic simulations in which nothing that changes or
//! computes anything happens without a person's word.
//!
//! A thread is one session. [`graph`] plans, selects, confirms, executes, recovers and responds, and
//! between turns waits for the next message; `admission` says what may be called at all. [`tool`] has the tools with their confirmation texts,
//! [`state`] what the agent knows. A model may plan; `policy` does it without one, for requests that
//! `request` can read, and says plainly what it does not understand.

mod admission;
pub mod graph;
mod policy;
mod prompt;
mod request;
pub mod state;
pub mod tool;
