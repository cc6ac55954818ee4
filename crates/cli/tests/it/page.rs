//! Runs a document: every `sh` block in order, in one shell. Its output must contain the `text` block
//! below it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::harness::free_endpoint;

/// The address that pages name.
const ENDPOINT_OF_PAGE: &str = "http://127.0.0.1:4599";

/// Other addresses that pages name: two more stacks and a collector of spans.
const BESIDE_OF_PAGE: [&str; 3] = ["127.0.0.1:4598", "127.0.0.1:4610", "127.0.0.1:4318"];

/// How a page starts a stack in the background, and how the test does: on a free port, and waiting
/// until it is ready, as a reader does.
const START_OF_PAGE: &str = "daybook dev";
const START: &str = "rm -f dev.log
command daybook devARGUMENTS >dev.log 2>&1 &
stacks=\"$stacks $!\"
until grep -qs ready dev.log; do sleep 0.1; done
cat dev.log";

struct Block {
    line: usize,
    script: String,
    expected: Vec<String>,
}

/// The workspace's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A page of the workspace.
pub fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

/// Puts a program of this name into a folder: a shell script.
pub fn put_program(bin: &Path, name: &str, script: &str) {
    std::fs::write(bin.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
    Command::new("chmod").arg("+x").arg(bin.join(name)).status().unwrap();
}

/// Runs a page in a folder, with the programs in `bin` before all others, within a time after which
/// a command that hangs is ended.
///
/// # Panics
/// When something that the page says was not printed.
pub fn check(name: &str, folder: &Path, bin: &Path, within: Duration) {
    let blocks = blocks(&page(name));
    let printed = run(&blocks, folder, bin, within);
    let mut failures = String::new();
    for (index, block) in blocks.iter().enumerate() {
        let output = printed.split(&mark(index)).nth(1).unwrap_or("(not reached)");
        if let Some(missing) = first_missing(&block.expected, output) {
            writeln!(
                failures,
                "{name}:{}: `{missing}` was not printed by\n{}---\n{output}",
                block.line, block.script
            )
            .unwrap();
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// The page's `sh` blocks, each with the `text` block that follows it.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut fence: Option<&str> = None;
    for (index, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), fence) {
            (Some("sh"), None) => {
                blocks.push(Block { line: index + 2, script: String::new(), expected: vec![] });
                fence = Some("sh");
            }
            (Some(kind), None) => fence = Some(kind),
            (Some(_), Some(_)) => fence = None,
            (None, Some("sh")) => writeln!(blocks.last_mut().unwrap().script, "{line}").unwrap(),
            (None, Some("text")) => blocks.last_mut().unwrap().expected.push(line.to_owned()),
            (None, _) => {}
        }
    }
    blocks
}

/// Whether the expected lines occur in this order; `…` stands for anything within a line.
fn first_missing<'a>(expected: &'a [String], printed: &str) -> Option<&'a str> {
    let mut lines = printed.lines();
    expected.iter().find(|wanted| !lines.any(|line| matches(wanted, line))).map(String::as_str)
}

fn matches(wanted: &str, line: &str) -> bool {
    // Columns may be aligned by more than one space.
    let squeezed = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut rest = squeezed.as_str();
    wanted.split('…').map(str::trim).all(|piece| match rest.find(piece) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    })
}

/// A line of a page as it is run here.
fn here(line: &str) -> String {
    let start = line.strip_prefix(START_OF_PAGE).and_then(|rest| rest.strip_suffix(" &"));
    let Some(arguments) = start else { return line.to_owned() };
    let listen =
        if arguments.contains("--listen") { "" } else { " --listen \"${endpoint#http://}\"" };
    START.replace("ARGUMENTS", &format!("{listen}{arguments}"))
}

fn mark(index: usize) -> String {
    format!("@@block {index}@@")
}

/// Runs all blocks in one shell and returns what it printed, each block's part between its marks.
fn run(blocks: &[Block], folder: &Path, bin: &Path, within: Duration) -> String {
    let endpoint = free_endpoint();
    let mut script = format!(
        "endpoint={endpoint}\n\
         daybook() {{ command daybook --endpoint \"$endpoint\" \"$@\"; }}\n\
         trap 'kill $stacks 2>/dev/null; wait' EXIT\n"
    );
    let beside = BESIDE_OF_PAGE.map(|address| (address, free_endpoint().replace("http://", "")));
    for (index, block) in blocks.iter().enumerate() {
        let lines: Vec<_> = block.script.lines().map(here).collect();
        // A program that the page starts does not see the shell's function.
        let started = format!(r#"["daybook", "--endpoint", "{endpoint}", "#);
        let mut here = lines.join("\n").replace(ENDPOINT_OF_PAGE, &endpoint);
        here = here.replace(r#"["daybook", "#, &started);
        for (address, free) in &beside {
            here = here.replace(address, free);
        }
        writeln!(script, "echo '{0}'\n{here}\necho '{0}'", mark(index)).unwrap();
    }
    std::fs::write(folder.join("page.sh"), script).unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
    let home = tempfile::tempdir().unwrap();
    let output = Command::new("timeout")
        .arg(within.as_secs().to_string())
        .args(["bash", "-c", "source ./page.sh 2>&1"])
        .current_dir(folder)
        .env_clear()
        .env("PATH", path)
        // A working directory that is a home, or above one, allows no files to triggers.
        .env("HOME", home.path())
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).replace(&endpoint, ENDPOINT_OF_PAGE);
    beside.iter().fold(printed, |printed, (address, free)| printed.replace(free, address))
}

#[test]
fn an_expected_line_is_found_in_order_and_with_gaps() {
    let expected = ["one … three".to_owned(), "four".to_owned()];
    assert_eq!(first_missing(&expected, "zero\none   two three\nfour"), None);
    assert_eq!(first_missing(&expected, "four\none two three"), Some("four"));
}
