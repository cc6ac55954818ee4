//! Terminal output: pure functions from records to lines of text.
//!
//! - [`timeline`] draws one line per record, on a time [`axis`]; [`ending`] renders the parts around it.
//! - [`arguments`] renders the arguments of a call that a person is asked about.
//! - [`conclusion`] renders an agent's conclusion.
//! - [`report`] renders lists: sessions, agents, tools and verification results.
//! - [`cost`] renders tokens and dollars, and [`bill`] the AWS usage.
//! - [`checks`] renders the results of `doctor`.

pub mod arguments;
pub mod axis;
pub mod bill;
pub mod checks;
pub mod conclusion;
pub mod cost;
pub mod ending;
pub mod ink;
pub mod report;
pub mod timeline;

pub use views::{brief, text};

/// Width and colour of the output.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Columns per line.
    pub width: usize,
    /// Whether colour is enabled. Colour is never the only carrier of a meaning.
    pub colour: bool,
}
