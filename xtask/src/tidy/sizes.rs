//! A source file is short enough to read in one sitting.

use crate::tree::{Finding, Tree};

/// Longest source file, in lines before its tests.
const LINES_MAX: usize = 500;

/// Files that may be longer, each with the reason why reading it is still quick.
const TABLES: &[(&str, &str)] = &[];

pub(crate) fn findings(tree: &Tree) -> Vec<Finding> {
    judge(tree, TABLES)
}

fn judge(tree: &Tree, tables: &[(&str, &str)]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| path.ends_with(".rs") && !is_tests(path)) {
        let lines = lines_before_tests(text);
        if lines > LINES_MAX && !tables.iter().any(|(table, _)| *table == path) {
            let what = format!(
                "{lines} lines before its tests, {LINES_MAX} at most: split it where a reader would"
            );
            found.push(Finding::new(path, LINES_MAX + 1, what));
        }
    }
    for (table, reason) in tables {
        if tree.text(table).is_none_or(|text| lines_before_tests(text) <= LINES_MAX) {
            let what =
                format!("{table} ({reason}) needs no exception any more: remove it from TABLES");
            found.push(Finding::new("xtask/src/tidy/sizes.rs", 1, what));
        }
    }
    found
}

/// Whether the whole file is tests.
fn is_tests(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/") || path.contains("/benches/")
}

/// Counts up to an inline test module; `#[cfg(test)] mod tests;` in the middle of a file ends nothing.
fn lines_before_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let opens = |index: usize| {
        let next = lines[index + 1..].iter().find(|line| !line.starts_with("#["));
        lines[index] == "#[cfg(test)]"
            && next.is_some_and(|line| line.contains("mod ") && line.ends_with('{'))
    };
    (0..lines.len()).find(|index| opens(*index)).unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use crate::tree::fixture;

    #[track_caller]
    fn check(before_tests: usize, tables: &[(&str, &str)], expected: &[&str]) {
        let tests = "#[cfg(test)]\n#[rustfmt::skip]\nmod tests {\n".to_owned() + &"\n".repeat(600);
        let input = format!("//- journal/src/fold.rs\n{}{tests}", "\n".repeat(before_tests));
        fixture::check(|tree| super::judge(tree, tables), &input, expected);
    }

    #[test]
    fn tests_and_tables_do_not_count() {
        check(500, &[], &[]);
        check(501, &[("journal/src/fold.rs", "a table")], &[]);
    }

    #[test]
    fn a_long_file_and_a_stale_exception_are_named() {
        check(
            501,
            &[],
            &[
                "journal/src/fold.rs:501: 501 lines before its tests, 500 at most: split it where a reader would",
            ],
        );
        check(
            500,
            &[("journal/src/fold.rs", "a table")],
            &[
                "xtask/src/tidy/sizes.rs:1: journal/src/fold.rs (a table) needs no exception any more: remove it from TABLES",
            ],
        );
    }
}
