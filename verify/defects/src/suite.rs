//! Copies the workspace, builds its tests, and runs single tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::plant::SWITCHED_BY;
use tidy::rules::manifest::members;
use tidy::tree::Tree;

/// Interval of checks of a running test.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Exit code of a test binary with a failed test.
const TEST_FAILED: i32 = 101;

/// Makes `copy` equal to the tree with the planted files. Leaves unchanged files untouched, so that cargo
/// does not rebuild them.
///
/// # Errors
/// If a file cannot be read or written.
pub(super) fn copy(
    root: &Path,
    copy: &Path,
    tree: &Tree,
    planted: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let mut paths = BTreeSet::new();
    for (path, _) in tree.iter().filter(|(path, _)| !planted.contains_key(*path)) {
        let bytes = fs::read(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        write(&copy.join(path), &bytes)?;
        paths.insert(copy.join(path));
    }
    for (path, text) in planted {
        write(&copy.join(path), text.as_bytes())?;
        paths.insert(copy.join(path));
    }
    remove_others(copy, &paths)
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let folder = path.parent().context("a file lies in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Removes files of an earlier tree or a test.
fn remove_others(folder: &Path, paths: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, paths)?;
        } else if !paths.contains(&path) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

#[derive(Debug, Deserialize)]
pub(super) struct Suite {
    #[serde(rename = "rust-suites")]
    binaries: BTreeMap<String, Binary>,
    /// The folder of the tests' output.
    #[serde(skip)]
    folder: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Binary {
    binary_path: PathBuf,
    cwd: PathBuf,
    testcases: BTreeMap<String, serde::de::IgnoredAny>,
}

pub(super) struct Test<'a> {
    binary: &'a Binary,
    name: &'a str,
}

#[derive(Debug)]
pub(super) struct Ran {
    /// Whether it passed; `None` if it did not end.
    pub(super) passed: Option<bool>,
    pub(super) took: Duration,
    pub(super) output: String,
}

impl Suite {
    /// Builds the tests of these packages with the features of the whole workspace, so that dependencies
    /// are shared with other test builds. Programs go to a separate folder: a program with planted
    /// defects must not replace the real one.
    ///
    /// # Errors
    /// If the copy does not build.
    pub(super) fn build(
        copy: &Path,
        target: &Path,
        tree: &Tree,
        packages: &BTreeSet<&str>,
    ) -> anyhow::Result<Self> {
        let mut list = Command::new("cargo");
        list.args(["nextest", "list", "--locked", "--workspace", "--all-features"]);
        list.args(["--message-format", "json", "--cargo-quiet"]);
        for member in members(tree) {
            // A crate has the name of its folder.
            let name = member.rsplit('/').next().unwrap_or(&member);
            if !packages.contains(name) {
                list.args(["--exclude", name]);
            }
        }
        let listed = list
            .current_dir(copy)
            .env("CARGO_BUILD_BUILD_DIR", target)
            .env("CARGO_TARGET_DIR", target.join("defects"))
            // The wrapper changes nothing, but gives the copy's crates other file names than the
            // workspace's. Otherwise cargo would reuse the newer of the two.
            .env("RUSTC_WORKSPACE_WRAPPER", "/usr/bin/env")
            .env_remove(SWITCHED_BY)
            .output()
            .context("cannot start cargo nextest")?;
        let complaint = String::from_utf8_lossy(&listed.stderr);
        ensure!(
            listed.status.success(),
            "the copy in {} does not build:\n{complaint}",
            copy.display()
        );
        let suite: Self = serde_json::from_slice(&listed.stdout)
            .context("cannot parse the test list of cargo nextest")?;
        let folder = target.join("defects").join("output");
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Self { folder, ..suite })
    }

    /// The test of this name, `binary name::of::the::test`.
    pub(super) fn find<'a>(&'a self, test: &'a str) -> Option<Test<'a>> {
        let (binary, name) = test.split_once(' ')?;
        let binary = self.binaries.get(binary)?;
        binary.testcases.contains_key(name).then_some(Test { binary, name })
    }

    /// Runs a defect's test, with the defect or without it, and kills it after `timeout`.
    ///
    /// # Errors
    /// If it cannot be started, or exits with a code other than a test's.
    #[expect(clippy::disallowed_methods, reason = "measures real time")]
    pub(super) fn run(
        &self,
        test: &Test<'_>,
        defect: &str,
        switched: bool,
        timeout: Duration,
    ) -> anyhow::Result<Ran> {
        let started = Instant::now();
        // A file, because a test's leftover process could hold a pipe open.
        let path = self.folder.join(format!("{defect}.txt"));
        let output =
            fs::File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut child = Command::new(&test.binary.binary_path)
            .args(["--exact", test.name, "--nocapture"])
            .current_dir(&test.binary.cwd)
            .env(SWITCHED_BY, if switched { defect } else { "" })
            .env("INSTA_UPDATE", "no")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot run {}", test.binary.binary_path.display()))?;
        let status = loop {
            match child.try_wait()? {
                None if started.elapsed() < timeout => std::thread::sleep(LOOK_EVERY),
                ended => break ended,
            }
        };
        let took = started.elapsed();
        // Kills the test's process group, including processes that it left behind.
        let group = format!("-{}", child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        child.wait()?;
        let output = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let output = String::from_utf8_lossy(&output).into_owned();
        let passed = match status.map(|status| status.code()) {
            None => None,
            Some(Some(0)) => Some(true),
            Some(Some(TEST_FAILED)) => Some(false),
            Some(other) => anyhow::bail!("it exited with {other:?}:\n{output}"),
        };
        Ok(Ran { passed, took, output })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidy::tree::fixture;

    #[test]
    fn a_copy_is_exactly_the_tree_with_planted_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let (root, there) = (folder.path().join("root"), folder.path().join("copy"));
        let tree = fixture::parse("//- a/b.rs\nold\n//- c.bin\n");
        write(&root.join("a/b.rs"), b"old\n").expect("written");
        write(&root.join("c.bin"), b"\xff\0").expect("written");
        write(&there.join("d/stale.rs"), b"of an earlier tree").expect("written");
        let planted = BTreeMap::from([
            ("a/b.rs".to_owned(), "new\n".to_owned()),
            ("a/planted.rs".to_owned(), "switch\n".to_owned()),
        ]);
        for _ in 0..2 {
            copy(&root, &there, &tree, &planted).expect("copied");
            let read = |path: &str| fs::read(there.join(path)).ok();
            assert_eq!(read("a/b.rs").as_deref(), Some(&b"new\n"[..]));
            assert_eq!(read("a/planted.rs").as_deref(), Some(&b"switch\n"[..]));
            assert_eq!(read("c.bin").as_deref(), Some(&b"\xff\0"[..]), "as it is, text or not");
            assert_eq!(read("d/stale.rs"), None);
        }
    }

    #[test]
    fn unchanged_files_are_not_written_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.rs");
        write(&path, b"same").expect("written");
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        let file = fs::File::options().write(true).open(&path).expect("opened");
        file.set_modified(long_ago).expect("dated");
        let modified = || fs::metadata(&path).and_then(|metadata| metadata.modified()).ok();
        write(&path, b"same").expect("written");
        assert_eq!(modified(), Some(long_ago), "cargo would build it again");
        write(&path, b"other").expect("written");
        assert_ne!(modified(), Some(long_ago));
    }
}
