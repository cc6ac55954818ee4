//! The rules, and the one list that runs them.

mod absences;
mod architecture;
mod directions;
mod layout;
pub mod manifest;
mod packs;
mod pins;
mod profiles;
mod sizes;
mod text;
mod versions;

use crate::tree::{self, Finding};
use std::path::Path;

/// All findings under `root`, in order of file and line.
///
/// # Errors
///
/// If git or cargo fails.
pub fn findings(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let tree = tree::load(root)?;
    let rules = [
        directions::findings,
        versions::findings,
        layout::findings,
        sizes::findings,
        packs::findings,
        text::findings,
        packs::findings,
        architecture::paths,
        architecture::invariants,
        pins::findings,
        profiles::findings,
    ];
    let mut findings: Vec<Finding> = rules.iter().flat_map(|rule| rule(&tree)).collect();
    findings.extend(absences::findings(&tree, &absences::linked(&tree, root)?));
    findings.sort();
    findings.dedup();
    Ok(findings)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_workspace_is_tidy() {
        let found = super::findings(crate::workspace_root()).expect("git and cargo answer");
        let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
    }
}
