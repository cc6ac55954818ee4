//! Which classes and members are wanted.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

/// Classes and interfaces by full name, each with the members that are wanted: methods, properties, and
/// `new` for making one.
///
/// A class may be listed without members: then its objects can be passed on and no more. A struct need not
/// be listed; one that is has no optional members but these.
pub type Selection = BTreeMap<String, Vec<String>>;

/// Reads a selection: TOML, a line a class.
///
/// # Errors
/// When it is no such table.
pub fn parse(text: &str) -> Result<Selection> {
    toml::from_str(text)
        .context("a selection has a line for each class: \"a.b.C\" = [\"new\", \"method\"]")
}
