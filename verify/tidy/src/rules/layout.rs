//! Each crate has documentation and one integration test binary.

use super::manifest;
use crate::tree::{Finding, Tree};

pub(crate) fn findings(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for member in manifest::members(tree) {
        let roots = tree.iter().filter(|(path, _)| is_crate_root(&member, path));
        found.extend(roots.filter(|(_, text)| !text.starts_with("//!")).map(|(path, _)| {
            Finding::new(
                path,
                1,
                "no crate documentation: begin with `//!` and a sentence on what the crate is",
            )
        }));
        let binaries: Vec<&str> = tree
            .iter()
            .map(|(path, _)| path)
            .filter(|path| is_test_binary(&member, path))
            .collect();
        found.extend(binaries.iter().skip(1).map(|path| {
            let what = format!(
                "a crate has one integration test binary, {}: make this file a module of it",
                binaries[0]
            );
            Finding::new(path, 1, what)
        }));
    }
    found
}

fn is_crate_root(member: &str, path: &str) -> bool {
    let Some(inside) = path.strip_prefix(&format!("{member}/src/")) else { return false };
    match inside.split('/').collect::<Vec<_>>()[..] {
        ["lib.rs" | "main.rs"] => true,
        ["bin", name] => name.ends_with(".rs"),
        ["bin", _, "main.rs"] => true,
        _ => false,
    }
}

fn is_test_binary(member: &str, path: &str) -> bool {
    let Some(inside) = path.strip_prefix(&format!("{member}/tests/")) else { return false };
    match inside.split('/').collect::<Vec<_>>()[..] {
        [name] => name.ends_with(".rs"),
        [_, "main.rs"] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::tree::fixture;

    #[track_caller]
    fn check(input: &str, expected: &[&str]) {
        let workspace = "//- Cargo.toml\n[workspace]\nmembers = [\"journal\"]\n";
        fixture::check(super::findings, &format!("{workspace}{input}"), expected);
    }

    #[test]
    fn one_sentence_and_one_test_binary_pass() {
        check(
            "//- journal/src/lib.rs\n//! Keeps.\n//- journal/tests/it/main.rs\n//- journal/tests/it/fold.rs\n",
            &[],
        );
    }

    #[test]
    fn a_silent_crate_is_named() {
        let what = "no crate documentation: begin with `//!` and a sentence on what the crate is";
        check(
            "//- journal/src/bin/keep.rs\nfn main() {}\n//- journal/src/lib.rs\n\n//! Late.\n",
            &[
                &format!("journal/src/bin/keep.rs:1: {what}"),
                &format!("journal/src/lib.rs:1: {what}"),
            ],
        );
    }

    #[test]
    fn a_second_test_binary_is_named() {
        check(
            "//- journal/tests/it/main.rs\n//- journal/tests/more.rs\n",
            &[
                "journal/tests/more.rs:1: a crate has one integration test binary, journal/tests/it/main.rs: make this file a module of it",
            ],
        );
    }
}
