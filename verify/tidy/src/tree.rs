//! The workspace's files in memory, as the rules read them.

use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// A violation and its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub path: String,
    /// Counted from 1.
    pub line: usize,
    /// The violation and its fix, in one sentence.
    pub what: String,
}

impl Finding {
    pub fn new(path: &str, line: usize, what: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Every file of the workspace by its path from the root, with `/` between folders.
#[derive(Debug, Default)]
pub struct Tree {
    /// A file that is not UTF-8 has no text here, but exists.
    files: BTreeMap<String, String>,
}

impl Tree {
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether `path` is a file or a folder with files in it.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        self.files.contains_key(path)
            || self
                .files
                .range(folder.clone()..)
                .next()
                .is_some_and(|(p, _)| p.starts_with(&folder))
    }
}

/// Reads the files that git tracks or would track, so that a new file is checked before its first commit.
///
/// # Errors
///
/// If git is missing or `root` is not a repository.
pub fn load(root: &Path) -> anyhow::Result<Tree> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("cannot start git, which lists the files to check")?;
    ensure!(
        output.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let mut tree = Tree::default();
    for path in String::from_utf8_lossy(&output.stdout).split_terminator('\0') {
        // A file that is deleted and not yet committed is still listed.
        if let Ok(bytes) = std::fs::read(root.join(path)) {
            tree.files.insert(path.to_owned(), String::from_utf8(bytes).unwrap_or_default());
        }
    }
    Ok(tree)
}

/// Builds trees for tests.
pub mod fixture {
    use super::{Finding, Tree};

    /// Builds a tree from text: a line `//- path` opens each file.
    pub fn parse(fixture: &str) -> Tree {
        let mut tree = Tree::default();
        for part in fixture.split("//- ").skip(1) {
            let (path, text) = part.split_once('\n').expect("a path ends its line");
            tree.files.insert(path.to_owned(), text.to_owned());
        }
        tree
    }

    /// Runs one rule over a fixture and compares all that it finds.
    #[track_caller]
    pub fn check(rule: impl Fn(&Tree) -> Vec<Finding>, fixture: &str, expected: &[&str]) {
        let found: Vec<String> = rule(&parse(fixture)).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }
}
