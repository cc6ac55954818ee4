//! The agent graph: a pure state machine that requests effects and folds their outcomes.
//!
//! - [`definition`]: an agent is a [`definition::Graph`]. Each node reads a typed state, requests one
//!   [`effect::Effect`], and folds its [`outcome::Outcome`] into a new state and a route.
//!   [`agent::Agent`] erases the state type, and [`check`] validates the graph when it is registered.
//! - [`run::Run`] is the run of one session. It folds the journal's steps, with the same code for new
//!   steps and on resume, and returns what to do next ([`next::Next`]) with the steps to journal.
//! - [`question`]: questions to a person, and valid answers.
//! - [`budget`]: limits of a run, and what it has used.
//! - [`origin`]: where each argument of a call came from.
//! - [`digest`]: the identity of an effect.
//! - [`request`]: what a model is sent, as the journal holds it.
//! - [`schema`]: validation of arguments and results.
//! - [`testing`]: runs agents in memory.
//! - [`presentation`]: how an agent's sessions are shown. [`conclusion`]: a result for viewers.
//! - [`panics`]: a panic of an agent's code ends its session and nothing else.
//! - [`program`]: agents that are programs of their own, in any language.
//! - [`profile`]: an agent's requirements of its host: settings, admission, metrics, MCP servers.
//!
//! This crate performs no IO and reads no clock: time comes from the timestamps of steps.

pub mod agent;
pub mod budget;
pub mod built_in;
pub mod check;
pub mod conclusion;
pub mod definition;
pub mod desk;
pub mod digest;
pub mod effect;
pub mod error;
mod fold;
pub mod next;
mod open;
pub mod origin;
pub mod outcome;
pub mod panics;
mod plan;
pub mod presentation;
pub mod profile;
pub mod program;
pub mod question;
pub mod request;
pub mod run;
pub mod schema;
pub mod testing;
