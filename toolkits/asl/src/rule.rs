//! EventBridge rules: event patterns select events, input transformers build the target's input.

mod matcher;
mod parse;
mod pattern;
mod transformer;

pub use parse::{ALTERNATIVES_MAX, PATTERN_BYTES_MAX, PatternError, WILDCARD_REPEATS_MAX};
pub use pattern::{MATCH_STEPS_MAX, Pattern};
pub use transformer::{Origin, Transformer, TransformerError, input_at};
