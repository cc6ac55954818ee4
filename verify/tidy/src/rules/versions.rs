//! One version of each dependency, in `[workspace.dependencies]`, and no unused dependencies.

use super::manifest;
use crate::tree::{Finding, Tree};
use std::collections::BTreeSet;
use toml::Value;

pub(crate) fn findings(tree: &Tree) -> Vec<Finding> {
    let root = match manifest::parse(tree, "Cargo.toml") {
        Ok(root) => root,
        Err(finding) => return vec![finding],
    };
    let mut found = Vec::new();
    let mut used = BTreeSet::new();
    for member in manifest::members(tree) {
        let path = format!("{member}/Cargo.toml");
        // The rule on directions reports an invalid manifest.
        let Ok(table) = manifest::parse(tree, &path) else { continue };
        for dependency in manifest::dependencies(&table, tree.text(&path).unwrap_or_default()) {
            if !dependency.inherited {
                let what = format!(
                    "{0} has its own version: move it to [workspace.dependencies] and write `{0}.workspace = true`",
                    dependency.name
                );
                found.push(Finding::new(&path, dependency.line, what));
            }
            used.insert(dependency.name);
        }
    }
    let text = tree.text("Cargo.toml").unwrap_or_default();
    let listed =
        root.get("workspace").and_then(|w| w.get("dependencies")).and_then(Value::as_table);
    for (key, value) in listed.into_iter().flatten() {
        let name = value.get("package").and_then(Value::as_str).unwrap_or(key);
        if !used.contains(name) && !used.contains(key) {
            let line = manifest::line_of(text, "workspace.dependencies", key);
            found.push(Finding::new(
                "Cargo.toml",
                line,
                format!("no member uses {key}: remove it"),
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::tree::fixture;

    #[track_caller]
    fn check(input: &str, expected: &[&str]) {
        fixture::check(super::findings, input, expected);
    }

    #[test]
    fn inherited_and_used_dependencies_pass() {
        check(
            "//- Cargo.toml\n[workspace]\nmembers = [\"journal\"]\n[workspace.dependencies]\nserde = \"1\"\n\
             //- journal/Cargo.toml\n[dev-dependencies]\nserde.workspace = true\n",
            &[],
        );
    }

    #[test]
    fn an_unused_and_an_own_version_are_named() {
        check(
            "//- Cargo.toml\n[workspace]\nmembers = [\"journal\"]\n[workspace.dependencies]\nserde = \"1\"\nhex = \"1\"\n\
             //- journal/Cargo.toml\n[dependencies]\nserde = { version = \"1\" }\n",
            &[
                "journal/Cargo.toml:2: serde has its own version: move it to [workspace.dependencies] and write `serde.workspace = true`",
                "Cargo.toml:5: no member uses hex: remove it",
            ],
        );
    }
}
