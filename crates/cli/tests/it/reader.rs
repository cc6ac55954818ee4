//! `daybook verify` and the second verifier in `verify/reader`, which shares no line with it, agree.

use std::path::Path;
use std::process::Command;

use crate::harness::tool;

/// Mutations of each base: single ones, and pairs.
const SINGLES: &str = "40";
const PAIRS: &str = "15";

fn python(python: &Path, arguments: &[&str]) -> String {
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../verify/reader");
    let mut command = Command::new(python);
    command.args(["-B"]).args(arguments).current_dir(reader);
    let ran = command.output().unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{arguments:?}\n{said}\n{complained}");
    said.into_owned()
}

#[test]
fn two_verifiers_agree_on_every_mutation() {
    let Some(program) = tool("DAYBOOK_TEST_PYTHON") else { return };
    let folder = tempfile::tempdir().unwrap();
    let [mutations, edges] = ["mutations", "edges"].map(|name| folder.path().join(name));
    let bases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../verify/reader/bases");
    let bases = std::fs::read_dir(bases).unwrap();
    let mut bases: Vec<_> = bases.map(|base| base.unwrap().path().display().to_string()).collect();
    bases.sort();
    let [mutations, edges] = [mutations, edges].map(|path| path.display().to_string());
    let out = ["--out", &mutations, "--seed", "7", "--singles", SINGLES, "--pairs", PAIRS];
    let bases: Vec<&str> = bases.iter().map(String::as_str).collect();
    python(&program, &[&["mutate.py"], &bases[..], &out].concat());
    python(&program, &["edges.py", &edges]);
    python(&program, &["-m", "unittest", "-q", "test_reader"]);
    for files in [&mutations, &edges] {
        let said = python(&program, &["compare.py", env!("CARGO_BIN_EXE_daybook"), files]);
        let only_same =
            said.trim().strip_prefix("{'same': ").is_some_and(|rest| !rest.contains(','));
        assert!(only_same, "{said}");
    }
}
