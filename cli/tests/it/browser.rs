//! The page in a browser: a headless Chromium that `scripts/browser.mjs` drives as a person would.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::harness::{run_within, tool};

/// What the whole of it may take on a busy machine. The script gives up before.
const WITHIN: Duration = Duration::from_secs(170);

#[test]
fn a_person_finds_reads_compares_and_answers_sessions_in_a_browser() {
    let (Some(node), Some(playwright), Some(chromium)) =
        (tool("DAYBOOK_TEST_NODE"), tool("DAYBOOK_TEST_PLAYWRIGHT"), tool("DAYBOOK_TEST_CHROMIUM"))
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let screenshots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
    std::fs::create_dir_all(&screenshots).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let mut browser = Command::new(node);
    browser
        .arg(root.join("scripts/browser.mjs"))
        .arg(root.join("incidents"))
        .arg(screenshots)
        .env("DAYBOOK", env!("CARGO_BIN_EXE_daybook"))
        .env("FOLDER", folder.path())
        .env("PLAYWRIGHT", playwright)
        .env("CHROMIUM", chromium)
        .env("HOME", folder.path())
        .stdin(Stdio::null());
    let ran = run_within(&mut browser, WITHIN);
    assert_eq!(ran.exit, 0, "{}\n{}", ran.stdout, ran.stderr);
}
