//! What a session's trace is made of, and how it leaves the process.
//!
//! A [`context`] says where a span belongs and travels as W3C `traceparent`; a [`span`] is one that has
//! ended, with names from [`attribute`]. Whoever made one hands it to [`export`], which sends it to a
//! collector if the program was told of one, and otherwise costs nothing. Spans are plain values: they
//! are made of what is known when something has ended, so that one whose process died can be made again
//! by another. [`figures`] is the same for what is counted.

pub mod attribute;
pub mod context;
pub mod export;
pub mod figures;
#[cfg(feature = "otlp")]
mod otlp;
pub mod span;
