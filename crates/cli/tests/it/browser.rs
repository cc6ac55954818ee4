//! Tests of the page in headless Chromium, driven by `scripts/browser.mjs`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::harness::{run_within, tool};

/// Deadline on a busy machine. The script times out earlier.
const WITHIN: Duration = Duration::from_secs(280);

/// Runs the script, or one part of it.
fn browse(part: &[&str]) {
    let (Some(node), Some(playwright), Some(chromium)) =
        (tool("DAYBOOK_TEST_NODE"), tool("DAYBOOK_TEST_PLAYWRIGHT"), tool("DAYBOOK_TEST_CHROMIUM"))
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let screenshots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
    std::fs::create_dir_all(&screenshots).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut browser = Command::new(node);
    browser
        .arg(root.join("scripts/browser.mjs"))
        .arg(root.join("packs/incident/incidents"))
        .arg(screenshots)
        .args(part)
        .env("DAYBOOK", env!("CARGO_BIN_EXE_daybook"))
        .env("FOLDER", folder.path())
        .env("PLAYWRIGHT", playwright)
        .env("CHROMIUM", chromium)
        .env("HOME", folder.path())
        .stdin(Stdio::null());
    let ran = run_within(&mut browser, WITHIN);
    assert_eq!(ran.exit, 0, "{}\n{}", ran.stdout, ran.stderr);
}

#[test]
fn the_main_path_of_the_page_works_in_a_browser() {
    browse(&["main"]);
}

#[test]
fn the_page_finds_shows_compares_and_answers_sessions() {
    browse(&[]);
}
