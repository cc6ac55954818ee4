//! The pure crates link nothing that could do IO.

use super::manifest;
use crate::tree::{Finding, Tree};
use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Crates that do no IO and read no clock (`journal` without its features).
const PURE: &[&str] = &[
    "journal",
    "crates/workflow",
    "toolkits/asl",
    "toolkits/tlog",
    "crates/graph",
    "crates/views",
    "packs",
    "packs/checkup",
    "packs/incident",
    "packs/fraud",
    "packs/network",
    "packs/assistant",
];

/// Crates that exist to do IO.
const IO: &[&str] = &["tokio", "axum", "hyper", "reqwest", "rusqlite"];

/// Prefix of the AWS SDK's crates.
const AWS_PREFIX: &str = "aws-";

/// For each pure crate, the names of all crates that it links: `cargo tree` without default features.
///
/// # Errors
///
/// When cargo cannot resolve the workspace without the network; `cargo fetch` fixes that.
pub(crate) fn linked(tree: &Tree, root: &Path) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let members = manifest::members(tree);
    let mut linked = BTreeMap::new();
    for member in members.iter().filter(|m| PURE.contains(&m.as_str())) {
        let output = Command::new("cargo")
            .args(["tree", "--quiet", "--offline", "--package", name(member), "--edges", "normal"])
            .args(["--no-default-features", "--prefix", "none", "--format", "{p}"])
            .current_dir(root)
            .output()
            .context("cannot start cargo")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "cargo tree, for {member}; try `cargo fetch` first: {}",
            complaint.trim()
        );
        let lines = String::from_utf8_lossy(&output.stdout);
        linked.insert(
            member.clone(),
            lines.lines().filter_map(|l| l.split(' ').next()).map(str::to_owned).collect(),
        );
    }
    Ok(linked)
}

/// A crate has the name of its folder.
fn name(member: &str) -> &str {
    member.rsplit('/').next().unwrap_or(member)
}

pub(crate) fn findings(tree: &Tree, linked: &BTreeMap<String, Vec<String>>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (member, names) in linked {
        let path = format!("{member}/Cargo.toml");
        let text = tree.text(&path).unwrap_or_default();
        let line =
            text.lines().position(|l| l.trim() == "[dependencies]").map_or(1, |index| index + 1);
        let mut banned: Vec<&String> = names
            .iter()
            .filter(|n| IO.contains(&n.as_str()) || n.starts_with(AWS_PREFIX))
            .collect();
        banned.sort();
        banned.dedup();
        found.extend(banned.iter().map(|name| {
            let member = self::name(member);
            let what = format!(
                "{member} does no IO but links {name}: \
                 `cargo tree -p {member} -e normal --no-default-features -i {name}` shows through which dependency"
            );
            Finding::new(&path, line, what)
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::tree::fixture;
    use std::collections::BTreeMap;

    #[track_caller]
    fn check(linked: &[(&str, &[&str])], expected: &[&str]) {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let linked: BTreeMap<_, _> =
            linked.iter().map(|(member, list)| ((*member).to_owned(), names(list))).collect();
        let fixture = "//- crates/graph/Cargo.toml\n[package]\n[dependencies]\n";
        fixture::check(|tree| super::findings(tree, &linked), fixture, expected);
    }

    #[test]
    fn a_pure_crate_without_io_passes() {
        check(&[("graph", &["graph", "serde", "sha2"])], &[]);
    }

    #[test]
    fn io_behind_a_pure_crate_is_named_once() {
        check(
            &[("crates/graph", &["serde", "tokio", "tokio", "aws-sdk-sfn"])],
            &[
                "crates/graph/Cargo.toml:2: graph does no IO but links aws-sdk-sfn: `cargo tree -p graph -e normal --no-default-features -i aws-sdk-sfn` shows through which dependency",
                "crates/graph/Cargo.toml:2: graph does no IO but links tokio: `cargo tree -p graph -e normal --no-default-features -i tokio` shows through which dependency",
            ],
        );
    }
}
