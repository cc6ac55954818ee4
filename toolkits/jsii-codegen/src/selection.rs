//! The classes and members to generate.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

/// Classes and interfaces by full name, each with its members to generate: methods, properties, and `new` for the
/// constructor.
///
/// A class may be listed without members: its objects can then only be passed on. A struct need not be listed; if it
/// is, the listed members are its only optional ones.
pub type Selection = BTreeMap<String, Vec<String>>;

/// Parses a selection: TOML, a line per class.
///
/// # Errors
/// The text is not such a table.
pub fn parse(text: &str) -> Result<Selection> {
    toml::from_str(text)
        .context("a selection has a line for each class: \"a.b.C\" = [\"new\", \"method\"]")
}
