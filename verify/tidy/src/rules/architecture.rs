//! The documents name only what exists: paths, and the tests that keep the invariants of ARCHITECTURE.md.

use crate::tree::{Finding, Tree};

const PAGE: &str = "ARCHITECTURE.md";

/// The documents with a table of invariants.
const INVARIANTS: [&str; 2] = [PAGE, "docs/invariants.md"];

/// Heading of the column that names the tests.
const KEPT_BY: &str = "kept by";

/// File name suffixes that mark a path even without a folder.
const FILE_ENDS: &[&str] = &[".rs", ".md", ".json", ".toml", ".sh"];

const CONTRIBUTING: &str = "CONTRIBUTING.md";

/// The change log: it may name files that no longer exist.
const HISTORY: &str = "CHANGELOG.md";

/// Folder of the documents that are not at the top.
const DOCS: &str = "docs/";

/// Every path in backticks and every link in the documents at the top and in `docs` exists in the tree.
pub(crate) fn paths(tree: &Tree) -> Vec<Finding> {
    if tree.text(PAGE).is_none() {
        return vec![Finding::new(PAGE, 1, "is missing: write it")];
    }
    let is_document = |path: &str| {
        let name = path.strip_prefix(DOCS).unwrap_or(path);
        name.ends_with(".md") && !name.contains('/') && path != HISTORY
    };
    let documents = tree.iter().filter(|(path, _)| is_document(path));
    documents.flat_map(|(path, text)| paths_of(tree, path, text)).collect()
}

fn paths_of(tree: &Tree, document: &str, text: &str) -> Vec<Finding> {
    // Elsewhere a bare name such as `config.json` is often a file of the reader's own.
    let names_files = [PAGE, CONTRIBUTING].contains(&document);
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let words = backticked(line).filter(|word| is_path(word));
        let words = words.filter(|word| names_files || word.contains('/'));
        let gone = words.filter(|word| !exists(tree, word));
        let dead = links(line).filter(|link| !leads_somewhere(tree, document, link));
        found.extend(gone.chain(dead).map(|word| {
            Finding::new(document, index + 1, format!("{word} does not exist: correct the path"))
        }));
    }
    found
}

/// Every test in the column "kept by" of a table exists.
pub(crate) fn invariants(tree: &Tree) -> Vec<Finding> {
    INVARIANTS.iter().flat_map(|page| invariants_of(tree, page)).collect()
}

fn invariants_of(tree: &Tree, name: &str) -> Vec<Finding> {
    let page = tree.text(name).unwrap_or_default();
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
        for test in names.filter(|test| !is_defined(tree, test)) {
            let what = format!(
                "no test is named {test}: name the test that keeps this invariant, or write it"
            );
            found.push(Finding::new(name, index + 1, what));
        }
    }
    found
}

fn backticked(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The targets of a line's links to files, without fragments.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let targets = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    targets.map(|target| target.split('#').next().unwrap_or(target))
}

/// A link is relative to the folder of its document.
fn leads_somewhere(tree: &Tree, document: &str, link: &str) -> bool {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." if parts.pop().is_none() => return false,
            ".." | "." => {}
            part => parts.push(part),
        }
    }
    tree.has(parts.join("/").trim_end_matches('/'))
}

/// Whether a word is a path in the tree, and not a route (`/ping`), address, glob, placeholder (`packs/NAME`), build
/// output or path outside the tree.
fn is_path(word: &str) -> bool {
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    let outside = ["/", "../", "target/"].iter().any(|start| word.starts_with(start));
    let is_placeholder =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_uppercase());
    let has_shape = word.contains('/') || FILE_ENDS.iter().any(|end| word.ends_with(end));
    plain && !outside && has_shape && !word.split('/').any(is_placeholder)
}

/// Whether a path, or a file whose path ends with it, exists: `src/lib.rs` in the template's README is relative.
fn exists(tree: &Tree, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let in_any_folder = format!("/{path}");
    tree.has(path) || tree.iter().any(|(p, _)| p.ends_with(&in_any_folder))
}

/// Commands, paths, types and names with a space are not test names.
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
                "ARCHITECTURE.md:2: journal/src/gone.rs does not exist: correct the path",
                "ARCHITECTURE.md:2: gone.json does not exist: correct the path",
            ],
        );
    }

    #[test]
    fn a_broken_link_is_named_in_every_document() {
        let documents = "//- ARCHITECTURE.md\n//- docs/page.md\n\
            [fold](../journal/src/fold.rs#L3) [top](#top) [site](https://x/y) [gone](gone.md) `config.json`\n\
            //- CONTRIBUTING.md\n`config.json` `src/fold.rs` `target/local` `../shared/x` `packs/NAME/src` [docs](docs/page.md)\n\
            //- CHANGELOG.md\n`journal/was.rs` [was](was.md)\n";
        fixture::check(
            super::paths,
            &format!("{TREE}{documents}"),
            &[
                "CONTRIBUTING.md:1: config.json does not exist: correct the path",
                "docs/page.md:1: gone.md does not exist: correct the path",
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
                "ARCHITECTURE.md:3: no test is named no_such_test: name the test that keeps this invariant, or write it",
            ],
        );
    }

    #[test]
    fn a_missing_page_is_named() {
        fixture::check(super::paths, TREE, &["ARCHITECTURE.md:1: is missing: write it"]);
    }
}
