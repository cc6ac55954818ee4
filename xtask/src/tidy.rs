//! The rules, and the one list that runs them.

mod absences;
mod architecture;
mod directions;
mod layout;
pub(crate) mod manifest;
mod sizes;
mod text;
mod versions;

use crate::tree::{self, Finding};
use std::path::Path;

/// All that is untidy under `root`, in order of file and line.
///
/// # Errors
///
/// When git or cargo cannot be asked.
pub(crate) fn findings(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let tree = tree::load(root)?;
    let rules = [
        directions::findings,
        versions::findings,
        layout::findings,
        sizes::findings,
        text::findings,
        architecture::paths,
        architecture::invariants,
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
