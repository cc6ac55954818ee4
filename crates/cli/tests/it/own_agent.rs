//! `daybook new agent`: compiles and tests the new crate, and runs docs/your-own-agent.md.
//!
//! An external crate would compile all of Daybook again, with other features than the workspace. So the
//! crates here use the workspace's target folder and lock file, and compile only the agent and its tests.
//! Their programs are the workspace's examples, which have the same source files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::harness::{Ran, daybook, run, run_in};
use crate::page::{check, page, put_program, root};

const PAGE: &str = "docs/your-own-agent.md";

/// Most lines of the agent, those apart that import, comment or are blank.
const LINES_MAX: usize = 60;

/// Deadline of a first compilation on a busy machine.
const PAGE_WITHIN: Duration = Duration::from_secs(240);

/// The workspace's target folder.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned()
}

/// One of the workspace's examples.
fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_daybook")).parent().unwrap().join("examples").join(name)
}

/// The current cargo, offline.
#[expect(
    clippy::disallowed_methods,
    reason = "the caller's cargo is found by the caller's variables"
)]
fn cargo_script() -> String {
    let mut script = String::new();
    for name in ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
        if let Ok(value) = std::env::var(name) {
            script.push_str(&format!("export {name}='{value}'\n"));
        }
    }
    script.push_str(&format!(
        "export CARGO_TARGET_DIR='{}' CARGO_NET_OFFLINE=true CARGO_INCREMENTAL=0\n\
         cp -f '{}' Cargo.lock\n",
        target().display(),
        root().join("Cargo.lock").display()
    ));
    script
}

/// The file of the template that becomes the agent.
fn agent() -> String {
    page("crates/cli/template/src/lib.rs")
}

/// The page's blocks of Rust.
fn code_of_the_page() -> Vec<String> {
    let page = page(PAGE);
    let blocks = page.split("```rust\n").skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_documented_agent_is_the_compiled_template() {
    let said =
        |line: &&str| !(line.is_empty() || line.starts_with("//") || line.starts_with("use "));
    let agent = agent();
    let lines = agent.lines().map(str::trim).filter(said).count();
    assert!(lines <= LINES_MAX, "{lines} lines");
    let code = code_of_the_page();
    assert_eq!(code[0], agent, "{PAGE} shows another agent than the template has");
    let tests = page("crates/cli/template/tests/agent.rs");
    for block in code[1..].iter().flat_map(|block| block.trim_end().split("\n\n")) {
        assert!(
            tests.contains(block),
            "{PAGE} shows tests that the template does not have:\n{block}"
        );
    }
    assert_eq!(code.len(), 3);
}

#[test]
fn every_command_of_your_own_agent_md_works() {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    put_program(&bin, "daybook", &format!("exec {} \"$@\"", env!("CARGO_BIN_EXE_daybook")));
    // The build of all of Daybook is spared: the programs that it would make are there.
    let built = format!(
        "mkdir -p target/debug && ln -s {} target/debug/daybook && ln -s {} target/debug/files && exit",
        example("own_daybook").display(),
        example("own_files").display()
    );
    let script = format!(
        "[ \"$*\" = 'build --features daybook' ] && {built}\n{}exec '{}' \"$@\"",
        cargo_script(),
        env!("CARGO")
    );
    put_program(&bin, "cargo", &script);
    check(PAGE, folder.path(), &bin, PAGE_WITHIN);
}

#[test]
fn a_new_agent_compiles_and_passes_its_tests() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run_in(folder.path(), &["new", "agent", "disk-tidy_2"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, "disk-tidy_2\n"), "{ran:#?}");
    let cargo = folder.path().join("cargo");
    put_program(
        folder.path(),
        "cargo",
        &format!("{}exec '{}' \"$@\"", cargo_script(), env!("CARGO")),
    );
    let cargo = |arguments: &[&str]| -> Ran {
        let mut command = Command::new("timeout");
        command.arg(PAGE_WITHIN.as_secs().to_string()).arg(&cargo).args(arguments);
        let output = command.current_dir(folder.path().join("disk-tidy_2")).output().unwrap();
        Ran::of(output)
    };
    let tested = cargo(&["test", "--quiet"]);
    assert_eq!(tested.exit, 0, "{tested:#?}");
    assert!(tested.stdout.contains("6 passed"), "{tested:#?}");
    // The programs' manifest asks for nothing that is not there.
    let tree = cargo(&["tree", "--quiet", "--features", "daybook,container", "--depth", "1"]);
    assert_eq!(tree.exit, 0, "{tree:#?}");
    for name in ["agent v", "cli v", "graph v", "rmcp v"] {
        assert!(tree.stdout.contains(name), "{tree:#?}");
    }
    let formatted = cargo(&["fmt", "--check"]);
    assert_eq!(formatted.exit, 0, "{formatted:#?}");
}

#[test]
fn a_folder_that_exists_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("janitor")).unwrap();
    let ran = run_in(folder.path(), &["new", "agent", "janitor"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (2, ""), "{ran:#?}");
    for text in ["error: janitor already exists", "hint:"] {
        assert!(ran.stderr.contains(text), "{ran:#?}");
    }
    assert_eq!(std::fs::read_dir(folder.path().join("janitor")).unwrap().count(), 0);
}

#[test]
fn an_invalid_agent_name_or_source_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, said) in [
        (&["7up"][..], "invalid agent name `7up`"),
        (&["../up"], "invalid agent name"),
        (&["match"], "agent name `match` is reserved"),
        (&["incident"], "agent `incident` already exists"),
        (&["tidy", "--daybook", "/"], "--daybook is `/`, which is not a checkout of Daybook"),
    ] {
        let ran = run(daybook(folder.path()).args(["new", "agent"]).args(arguments));
        assert_eq!((ran.exit, ran.stdout.as_str()), (64, ""), "{arguments:?}: {ran:#?}");
        assert!(ran.stderr.contains(said) && ran.stderr.contains("hint:"), "{ran:#?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_custom_agent_is_listed_with_its_input_schema() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(example("own_daybook"));
    let agents =
        run(command.current_dir(folder.path()).env_clear().args(["agents", "--json"])).json();
    let own = agents.iter().find(|agent| agent["name"] == "janitor").unwrap();
    assert_eq!(own["critical"], serde_json::json!(["delete_file"]));
    assert_eq!(own["input_schema"]["required"], serde_json::json!(["folder", "bytes_max"]));
    assert!(agents.iter().any(|agent| agent["name"] == "incident"));
}

/// It depends on the kit alone; cargo builds it in the workspace's target folder, as every crate here.
#[test]
fn a_new_program_in_rust_compiles_and_runs() {
    let folder = tempfile::tempdir().unwrap();
    let made = crate::projects::made(folder.path(), "rust");
    put_program(
        folder.path(),
        "cargo",
        &format!("{}exec '{}' \"$@\"", cargo_script(), env!("CARGO")),
    );
    for arguments in [&["test"][..], &["build"]] {
        let mut command = Command::new("timeout");
        command.arg(PAGE_WITHIN.as_secs().to_string()).arg(folder.path().join("cargo"));
        let output = command.args(arguments).current_dir(&made).output().unwrap();
        let ran = Ran::of(output);
        assert_eq!(ran.exit, 0, "{ran:#?}");
    }
    std::fs::create_dir_all(made.join("target/debug")).unwrap();
    std::fs::copy(target().join("debug/tidy"), made.join("target/debug/tidy")).unwrap();
    crate::projects::the_first_run_of(&made, &[]);
}
