//! What a person sees: pure functions from records to lines of text.
//!
//! [`timeline`] is a line a record, on an [`axis`] of time, [`ending`] the verdict and the result below it, [`diagnosis`] an
//! incident's result, [`investigation`] that of a card payment, [`ranking`] how well many of those
//! separate frauds, [`network`] a router's result, [`report`] everything else that is listed, [`cost`]
//! the tokens, [`bill`] what an account would ask for, [`checks`] what the doctor found.

pub mod axis;
pub mod bill;
pub mod checks;
pub mod cost;
pub mod diagnosis;
pub mod ending;
mod field;
pub mod ink;
pub mod investigation;
pub mod network;
pub mod ranking;
pub mod report;
pub mod timeline;

pub use ::timeline::{brief, text};

/// How output is to look.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Columns that a line may fill.
    pub width: usize,
    /// Whether it may be coloured. Colour never carries meaning of its own.
    pub colour: bool,
}
