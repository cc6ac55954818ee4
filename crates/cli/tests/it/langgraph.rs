//! LangGraph and Pydantic AI themselves, from the registry, on the journal.

use std::process::Command;

use serde_json::json;

use crate::harness::{daybook, run, tool};
use crate::page::root;
use crate::projects::{at, dev, session, until, write};

/// The graph of the kit's own test, as a program.
const PROGRAM: &str = "import sys\nsys.path.insert(0, TESTS)\nimport time\nimport test_langgraph\n\
    from daybook import run\n\
    slow = test_langgraph.think\n\
    def think(state):\n    with open('done.log', 'a') as file:\n        file.write('think\\n')\n    time.sleep(0.5)\n    return slow(state)\n\
    test_langgraph.think = think\n\
    if __name__ == '__main__':\n    run(test_langgraph.research)\n";

#[test]
fn the_checkpointer_for_langgraph_passes_its_tests() {
    let Some(python) = tool("DAYBOOK_TEST_LANGGRAPH") else { return };
    let mut command = Command::new(python);
    let ran = run(command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(root().join("sdk/python/tests/test_langgraph.py")));
    assert_eq!(ran.exit, 0, "{ran:#?}");
}

#[test]
fn the_wrapper_of_pydantic_ai_passes_its_tests() {
    let Some(python) = tool("DAYBOOK_TEST_PYDANTIC_AI") else { return };
    let mut command = Command::new(python);
    let ran = run(command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(root().join("sdk/python/tests/test_pydantic_ai.py")));
    assert_eq!(ran.exit, 0, "{ran:#?}");
}

#[test]
fn a_killed_langgraph_program_goes_on_and_verifies() {
    let Some(python) = tool("DAYBOOK_TEST_LANGGRAPH") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let kit = root().join("sdk/python");
    let tests = json!(kit.join("tests")).to_string();
    write(folder, "research.py", &PROGRAM.replace("TESTS", &tests));
    let (python, kit) = (json!(python), json!(kit));
    let text = format!(
        "[agents.research]\ncommand = [{python}, \"research.py\"]\nenv = {{ PYTHONPATH = {kit} }}\n"
    );
    write(folder, "daybook.toml", &text);
    write(folder, "input.json", r#"{"topic": "tea"}"#);
    let mut stack = dev(folder, &[]);
    let detail = json!({ "agent": "research", "input": { "topic": "tea" } }).to_string();
    let begun = session(&at(folder, &stack, &["trigger", "--json", "--detail", &detail]));
    let id = begun["session_id"].as_str().unwrap().to_owned();
    for rounds in 1..=2 {
        let done = || std::fs::read_to_string(folder.join("done.log")).unwrap_or_default();
        while done().lines().count() < rounds {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        stack.kill();
        stack = dev(folder, &[]);
    }
    until(folder, &stack, &id, "WAITING");
    assert_eq!(at(folder, &stack, &["answer", &id, "--approve"]).exit, 0);
    let ended = until(folder, &stack, &id, "SUCCEEDED");
    let found = ["forums of tea", "news of tea", "papers of tea"];
    assert_eq!(ended["result"], json!({ "found": found, "approved": "approve", "rounds": 3 }));
    let done = std::fs::read_to_string(folder.join("done.log")).unwrap();
    // A node that was interrupted runs again: at most once for each kill.
    assert!((3..=5).contains(&done.lines().count()), "{done}");
    assert_eq!(at(folder, &stack, &["verify", "--all"]).exit, 0);
    assert_eq!(stack.stop("-TERM"), 0);
    assert_eq!(run(daybook(folder).arg("agents")).exit, 0);
}
