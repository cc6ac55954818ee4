//! LangGraph and Pydantic AI themselves, from the registry, in memory.

use std::process::Command;

use crate::harness::{run, tool};
use crate::page::root;

fn passes(python: &str, test: &str) {
    let Some(python) = tool(python) else { return };
    let mut command = Command::new(python);
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(root().join("sdk/python/tests").join(test));
    let ran = run(&mut command);
    assert_eq!(ran.exit, 0, "{ran:#?}");
}

#[test]
fn the_checkpointer_for_langgraph_passes_its_tests() {
    passes("DAYBOOK_TEST_LANGGRAPH", "test_langgraph.py");
}

#[test]
fn the_wrapper_of_pydantic_ai_passes_its_tests() {
    passes("DAYBOOK_TEST_PYDANTIC_AI", "test_pydantic_ai.py");
}
