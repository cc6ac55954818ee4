//! ARCHITECTURE.md names only what exists: paths, and the tests that keep its invariants.

use crate::tree::{Finding, Tree};

const PAGE: &str = "ARCHITECTURE.md";

/// Heading of the column that names the tests.
const KEPT_BY: &str = "kept by";

/// Ends of file names: what ends so is a path even without a folder.
const FILE_ENDS: &[&str] = &[".rs", ".md", ".json", ".toml", ".sh"];

/// Every backticked path on the page exists.
pub(crate) fn paths(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.text(PAGE) else {
        return vec![Finding::new(PAGE, 1, "is missing: write it")];
    };
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let missing = backticked(line).filter(|word| is_path(word) && !exists(tree, word));
        found.extend(missing.map(|word| {
            Finding::new(PAGE, index + 1, format!("{word} does not exist: name what does"))
        }));
    }
    found
}

/// Every test in the column "kept by" of a table exists.
pub(crate) fn invariants(tree: &Tree) -> Vec<Finding> {
    let page = tree.text(PAGE).unwrap_or_default();
    let mut found = Vec::new();
    let mut column = None;
    for (index, line) in page.lines().enumerate() {
        if !line.starts_with('|') {
            column = None;
            continue;
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let Some(kept_by) = column else {
            column = cells
                .iter()
                .position(|cell| cell.eq_ignore_ascii_case(KEPT_BY))
                .or(Some(usize::MAX));
            continue;
        };
        let names = cells
            .get(kept_by)
            .into_iter()
            .flat_map(|cell| backticked(cell))
            .filter(|word| is_function(word));
        for name in names.filter(|name| !is_defined(tree, name)) {
            let what =
                format!("no test is called {name}: name the one that keeps this, or write it");
            found.push(Finding::new(PAGE, index + 1, what));
        }
    }
    found
}

fn backticked(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Routes (`/ping`), addresses, globs and placeholders are no paths.
fn is_path(word: &str) -> bool {
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    plain
        && !word.starts_with('/')
        && (word.contains('/') || FILE_ENDS.iter().any(|end| word.ends_with(end)))
}

/// A name without a folder is found in any.
fn exists(tree: &Tree, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let in_any_folder = format!("/{path}");
    tree.has(path) || (!path.contains('/') && tree.iter().any(|(p, _)| p.ends_with(&in_any_folder)))
}

/// Commands, paths, types and the names of lints with a space are not looked for.
fn is_function(word: &str) -> bool {
    !word.is_empty()
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c))
}

fn is_defined(tree: &Tree, name: &str) -> bool {
    let name = name.rsplit("::").next().unwrap_or(name);
    let definitions = [format!("fn {name}("), format!("fn {name}<")];
    let defines = |text: &str| definitions.iter().any(|definition| text.contains(definition));
    tree.iter().any(|(path, text)| path.ends_with(".rs") && defines(text))
}

#[cfg(test)]
mod tests {
    use crate::tree::fixture;

    const TREE: &str =
        "//- journal/src/fold.rs\nfn any_order_folds_the_same() {}\n//- Cargo.toml\n";

    #[track_caller]
    fn check_paths(page: &str, expected: &[&str]) {
        fixture::check(super::paths, &format!("{TREE}//- ARCHITECTURE.md\n{page}\n"), expected);
    }

    #[track_caller]
    fn check_invariants(page: &str, expected: &[&str]) {
        fixture::check(
            super::invariants,
            &format!("{TREE}//- ARCHITECTURE.md\n{page}\n"),
            expected,
        );
    }

    #[test]
    fn a_path_that_exists_passes() {
        check_paths(
            "`journal/src/fold.rs`, `journal/src/`, `fold.rs`, `Cargo.toml`, `journal`",
            &[],
        );
        check_paths(
            "`POST /invocations`, `/ping`, `SESSION#{id}/x`, `http://a/b`, `status(events)`",
            &[],
        );
        check_paths("```\n`journal/gone.rs`\n```", &[]);
    }

    #[test]
    fn a_path_that_is_gone_is_named() {
        check_paths(
            "# Map\n`journal/src/gone.rs` and `gone.json`",
            &[
                "ARCHITECTURE.md:2: journal/src/gone.rs does not exist: name what does",
                "ARCHITECTURE.md:2: gone.json does not exist: name what does",
            ],
        );
    }

    #[test]
    fn an_invariant_kept_by_a_test_passes() {
        check_invariants(
            "| invariant | kept by |\n|---|---|\n| order | `fold::any_order_folds_the_same`, `cargo deny` |",
            &[],
        );
        check_invariants("| crate | job |\n|---|---|\n| x | `no_such_test` |", &[]);
    }

    #[test]
    fn an_invariant_that_nothing_keeps_is_named() {
        check_invariants(
            "| kept by | invariant |\n|---|---|\n| `no_such_test` | order |",
            &[
                "ARCHITECTURE.md:3: no test is called no_such_test: name the one that keeps this, or write it",
            ],
        );
    }

    #[test]
    fn a_missing_page_is_named() {
        fixture::check(super::paths, TREE, &["ARCHITECTURE.md:1: is missing: write it"]);
    }
}
