//! What a person sees: pure functions from records to lines of text.
//!
//! [`timeline`] is a line a record, [`ending`] the verdict and the result below it, [`diagnosis`] an
//! incident's result, [`investigation`] that of a card payment, [`network`] a router's, [`report`]
//! everything else that is listed, [`bill`] what an account would ask for it, [`checks`] what the doctor
//! found. [`brief`] makes values short, [`text`] makes them harmless: what stands in a journal may have
//! been written by anybody.

pub mod bill;
pub mod brief;
pub mod checks;
pub mod diagnosis;
pub mod ending;
mod field;
pub mod ink;
pub mod investigation;
pub mod network;
pub mod report;
pub mod text;
pub mod timeline;

/// How output is to look.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Columns that a line may fill.
    pub width: usize,
    /// Whether it may be coloured. Colour never carries meaning of its own.
    pub colour: bool,
}
