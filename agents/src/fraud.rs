//! The fraud agent: is this card payment a fraud?
//!
//! A planner chooses one of six tools after the other ([`planner`], [`tool`]), each is called at most
//! once, and [`conclusion`] weighs what they brought. A model may plan; [`planner`] checks each of its
//! choices and follows a fixed sequence where they do not hold. What a model says decides the order
//! of the steps and nothing else. [`options`] are the limits and switches, [`state`] is what is
//! known, `prompt` what a model is told; [`graph`] ties them together.

pub mod answer;
pub mod conclusion;
pub mod graph;
pub mod input;
pub mod options;
pub mod planner;
mod prompt;
pub mod state;
pub mod tool;
