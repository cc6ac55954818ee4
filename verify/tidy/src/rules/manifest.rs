//! Parses the parts of a Cargo.toml that the rules need.

use crate::tree::{Finding, Tree};
use toml::{Table, Value};

/// One line under a dependencies heading.
#[derive(Debug)]
pub(crate) struct Dependency {
    /// The package's own name, also where the manifest renames it.
    pub(crate) name: String,
    pub(crate) dev: bool,
    /// Its version comes from `[workspace.dependencies]`.
    pub(crate) inherited: bool,
    pub(crate) line: usize,
}

/// Parses the file at `path`; invalid TOML is a finding.
///
/// # Errors
///
/// The finding that says so.
pub(crate) fn parse(tree: &Tree, path: &str) -> Result<Table, Finding> {
    let text = tree.text(path).ok_or_else(|| Finding::new(path, 1, "is missing: write it"))?;
    text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        Finding::new(path, line, format!("is not valid TOML: {}", error.message()))
    })
}

/// The workspace's members as the root manifest lists them.
pub fn members(tree: &Tree) -> Vec<String> {
    let Ok(root) = parse(tree, "Cargo.toml") else { return Vec::new() };
    let members = root.get("workspace").and_then(|w| w.get("members")).and_then(Value::as_array);
    members.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// All dependencies of a manifest: normal, build, dev and those of one platform only.
pub(crate) fn dependencies(manifest: &Table, text: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    gather(manifest, text, "", &mut found);
    for (platform, table) in manifest.get("target").and_then(Value::as_table).into_iter().flatten()
    {
        if let Some(table) = table.as_table() {
            gather(table, text, &format!("target.'{platform}'."), &mut found);
        }
    }
    found
}

fn gather(table: &Table, text: &str, prefix: &str, found: &mut Vec<Dependency>) {
    for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
        for (key, value) in table.get(section).and_then(Value::as_table).into_iter().flatten() {
            found.push(Dependency {
                name: value.get("package").and_then(Value::as_str).unwrap_or(key).to_owned(),
                dev: section == "dev-dependencies",
                inherited: value.get("workspace").and_then(Value::as_bool) == Some(true),
                line: line_of(text, &format!("{prefix}{section}"), key),
            });
        }
    }
}

/// The line of `key` under `[section]`; 1 if this does not recognise its spelling.
pub(crate) fn line_of(text: &str, section: &str, key: &str) -> usize {
    let heading = format!("[{section}]");
    let own_heading = format!("[{section}.{key}]");
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            inside = line == heading;
        }
        let names_key =
            line.strip_prefix(key).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
        if line == own_heading || (inside && names_key) {
            return index + 1;
        }
    }
    1
}
