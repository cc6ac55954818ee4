//! View models of sessions for the terminal and the page, and the page's files.
//!
//! This crate performs no IO: it takes records and returns values to draw.
//!
//! - One session: [`line`](mod@line) describes each record in one line, [`waterfall`] places all records on a time
//!   axis, [`drawing`] lays out the agent's graph and the state machine with the path taken, [`runs`]
//!   lists the runs, and [`ledger`] sums up time, tokens and cost.
//! - Its result: the agent itself makes the conclusion ([`graph::conclusion`]), and [`evidence`] links
//!   each finding to its record. [`failure`] explains an error, and [`advice`] says what to do next.
//! - Several sessions: [`compare`] aligns two, [`health`] counts many.
//! - Formatting: [`brief`] shortens values. [`text`] escapes control characters, because journal
//!   content is untrusted.
//! - [`page`]: the files of the page, which fetches the view models through the API.

pub mod advice;
pub mod brief;
pub mod compare;
pub mod drawing;
pub mod evidence;
pub mod failure;
pub mod health;
pub mod ledger;
pub mod line;
pub mod page;
pub mod runs;
#[cfg(test)]
mod testing;
pub mod text;
pub mod waterfall;
