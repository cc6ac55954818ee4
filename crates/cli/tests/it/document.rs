//! Runs every command in LOCAL_DEVELOPMENT.md and checks its output.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::page::{check, put_program, root};

/// Deadline; the page takes less than a minute.
const PAGE_WITHIN: Duration = Duration::from_secs(100);

/// The independent tools, if available.
#[expect(clippy::disallowed_methods, reason = "how the test runner says where they are")]
fn tools() -> Option<(PathBuf, PathBuf)> {
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    Some((path("DAYBOOK_TEST_AWS")?, path("DAYBOOK_TEST_PYTHON")?))
}

#[test]
fn every_command_of_local_development_md_works() {
    let Some((aws, python)) = tools() else {
        eprintln!(
            "skipped: DAYBOOK_TEST_AWS and DAYBOOK_TEST_PYTHON are not set (`make verify` sets them)"
        );
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for (name, target) in [
        ("daybook", PathBuf::from(env!("CARGO_BIN_EXE_daybook"))),
        ("aws", aws),
        ("python3", python),
    ] {
        put_program(&bin, name, &format!("exec {} \"$@\"", target.display()));
    }
    // A copy: a link would lead out of the folders that a trigger may name.
    let mut copy = Command::new("cp");
    copy.arg("-r").args([root().join("packs"), folder.path().join("packs")]);
    assert!(copy.status().unwrap().success());
    check("LOCAL_DEVELOPMENT.md", folder.path(), &bin, PAGE_WITHIN);
}
