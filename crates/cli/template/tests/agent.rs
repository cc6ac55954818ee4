//! Tests that run sessions in memory: a script has the responses of tools, models and people.

use graph::agent::{Agent, Settings};
use graph::definition::Finish;
use graph::effect::{Reply, ToolCall};
use graph::question::{Answer, Decision};
use graph::testing::script::Script;
use serde_json::{Value, json};

fn agent() -> Agent {
    janitor::agent()
}

fn input() -> Value {
    json!({ "folder": "box", "bytes_max": 100 })
}

/// A folder over its limit, and the server's tools.
fn too_much() -> Script {
    let tools = ["list_files", "delete_file"];
    let tools = tools.map(|name| json!({ "server": "files", "name": name, "input_schema": {} }));
    let files = json!([{ "name": "old.log", "bytes": 90 }, { "name": "a.txt", "bytes": 40 }]);
    Script::new()
        .tool("tools/list", json!({ "tools": tools }))
        .tool("list_files", json!({ "bytes": 130, "files": files }))
}

fn one_deletion() -> Script {
    let files = json!([{ "name": "a.txt", "bytes": 40 }]);
    too_much()
        .person(Decision::Approve)
        .tool("delete_file", json!({ "deleted": "old.log" }))
        .tool("list_files", json!({ "bytes": 40, "files": files }))
}

fn reports(text: &str) -> Finish {
    Finish::Completed(json!({ "report": text }))
}

#[test]
fn an_approved_file_is_deleted() {
    assert_eq!(one_deletion().play(&agent(), &input()), reports("40 bytes left"));
}

#[test]
fn a_rejected_file_is_not_deleted() {
    let no = Answer { reason: Some("we need it".to_owned()), ..Answer::new(0, Decision::Reject) };
    // No line answers `delete_file`: calling it would fail the test.
    let finish = too_much().answer(no).play(&agent(), &input());
    assert_eq!(finish, reports("rejected: we need it"));
}

#[test]
fn a_model_decides_if_there_is_one() {
    let call = ToolCall::built_in("list_files", json!({ "folder": "box" }));
    let script = too_much().model(Reply::calls(vec![call])).model(Reply::says("I'd rather not."));
    assert_eq!(script.play(&agent(), &input()), reports("I'd rather not."));
    script.every_prefix(&agent(), &input());
}

#[test]
fn a_killed_run_resumes_to_the_same_result() {
    one_deletion().every_prefix(&agent(), &input());
}

#[test]
fn it_ends_within_any_budget() {
    one_deletion().every_budget(&agent(), &input());
}

#[test]
fn an_invalid_input_is_rejected_with_its_field() {
    let refusal = agent().start(&json!({ "folder": 7 }), &Settings::default()).unwrap_err();
    assert!(refusal.to_string().contains("`folder`"), "{refusal}");
}
