//! LOCAL_DEVELOPMENT.md does what it says.

use std::path::PathBuf;
use std::time::Duration;

use crate::page::{check, put_program, root};

/// The whole page takes well under a minute; a command that hangs is ended.
const PAGE_WITHIN: Duration = Duration::from_secs(100);

/// The independent tools, if this run has them.
#[expect(clippy::disallowed_methods, reason = "how the test runner says where they are")]
fn tools() -> Option<(PathBuf, PathBuf)> {
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    Some((path("DAYBOOK_TEST_AWS")?, path("DAYBOOK_TEST_PYTHON")?))
}

#[test]
fn every_command_of_the_page_does_what_the_page_says() {
    let Some((aws, python)) = tools() else {
        eprintln!(
            "skipped: DAYBOOK_TEST_AWS and DAYBOOK_TEST_PYTHON are not set (`make test` sets them)"
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
    for bundled in ["incidents", "networks", "transactions"] {
        std::os::unix::fs::symlink(root().join(bundled), folder.path().join(bundled)).unwrap();
    }
    check("LOCAL_DEVELOPMENT.md", folder.path(), &bin, PAGE_WITHIN);
}
