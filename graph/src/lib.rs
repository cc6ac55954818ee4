//! The agent graph: a pure machine that says what to do next and is told what came of it.
//!
//! An author writes a [`definition::Graph`]: nodes that look at a typed state and ask for one
//! [`effect::Effect`], and that turn its [`outcome::Outcome`] into a new state and a route.
//! [`agent::Agent`] hides the state's type. [`run::Run`] is one session's machine: it folds the
//! steps of the journal, live and on resuming by the same code, and answers what comes next
//! ([`next::Next`]) with the bodies of the steps to journal. [`question`] holds what a person is
//! asked and may answer, [`budget`] what a run may use, [`digest`] what identifies an effect,
//! [`schema`] what arguments and results are held against.
//!
//! Nothing here does IO or reads a clock: time enters as the stamps of steps.

pub mod agent;
pub mod budget;
pub mod definition;
pub mod digest;
pub mod effect;
pub mod error;
mod fold;
pub mod next;
mod open;
pub mod outcome;
mod plan;
pub mod question;
pub mod run;
pub mod schema;
pub mod testing;
