//! Validates the state machine with an independent validator, and tests traces.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod traces;

use std::path::PathBuf;
use std::process::Command;

#[expect(clippy::disallowed_methods, reason = "how the test runner says where the tool is")]
fn asl_validator() -> Option<PathBuf> {
    std::env::var_os("DAYBOOK_TEST_ASL_VALIDATOR").map(PathBuf::from)
}

fn judged(validator: &PathBuf, file: &std::path::Path) -> (bool, String) {
    let output = Command::new(validator).arg("--json-path").arg(file).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn asl_validator_accepts_only_a_valid_state_machine() {
    let Some(validator) = asl_validator() else {
        eprintln!("skipped: DAYBOOK_TEST_ASL_VALIDATOR is not set (`make verify` sets it)");
        return;
    };
    let text = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/state_machine.asl.json");
    let (accepted, said) = judged(&validator, &text);
    assert!(accepted, "{said}");
    let broken = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("broken.asl.json");
    let text = std::fs::read_to_string(&text).unwrap();
    std::fs::write(&broken, text.replace("\"Next\": \"CheckStatus\"", "\"Next\": \"Nowhere\""))
        .unwrap();
    let (accepted, said) = judged(&validator, &broken);
    assert!(!accepted, "{said}");
}
