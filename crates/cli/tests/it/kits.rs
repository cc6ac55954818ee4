//! The kits for agents as programs run their own tests, which share `sdk/protocol-vectors.json`.

use std::path::Path;
use std::process::Command;

use crate::harness::tool;

fn passes(mut command: Command) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

fn kit(folder: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk").join(folder)
}

#[test]
fn the_kit_for_python_passes_its_tests() {
    let mut command = Command::new("python3");
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(kit("python").join("tests/test_kit.py"));
    passes(command);
}

#[test]
fn the_kit_for_typescript_passes_its_tests() {
    let Some(node) = tool("DAYBOOK_TEST_NODE") else { return };
    let tests = ["json", "agent", "stdio"].map(|name| format!("test/{name}.test.js"));
    let mut command = Command::new(node);
    command.current_dir(kit("typescript")).args(["--test", "--test-timeout=20000"]).args(tests);
    passes(command);
}
