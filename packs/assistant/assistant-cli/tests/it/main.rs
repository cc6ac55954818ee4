//! The cases of `packs/assistant/eval`, played in memory with the policy and the real simulator. `daybook eval` runs them
//! as sessions of a stack.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

use std::path::{Path, PathBuf};

use graph::agent::Settings;
use graph::conclusion::{Conclusion, Tone};
use graph::effect::{CATALOGUE, ToolCall};
use graph::outcome::Brought;
use graph::question::{Answer, Decision, OpenQuestion};
use graph::testing::{TestSession, World};
use journal::step::StepBody;
use mcp::testing::{Connection, text};
use serde_json::{Value, json};

const READS: [&str; 4] = ["list_models", "list_parameters", "get_parameter_value", "get_results"];

/// What a case shows: the calls, and the conclusion.
struct Played {
    calls: Vec<(String, Value)>,
    conclusion: Conclusion,
}

fn catalogue(runtime: &tokio::runtime::Runtime, connection: &Connection) -> Value {
    let tools = runtime.block_on(connection.client().list_all_tools()).unwrap();
    let tools = tools.iter().map(
        |tool| json!({ "name": tool.name, "description": "", "input_schema": tool.input_schema }),
    );
    json!({ "tools": tools.collect::<Vec<_>>(), "reads": READS })
}

fn play(case: &Value) -> Played {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let connection = runtime.block_on(Connection::serve(pk_sim::server(None, None).unwrap()));
    let offered = catalogue(&runtime, &connection);
    let mut calls = Vec::new();
    let tools = |call: &ToolCall| {
        if call.tool == CATALOGUE {
            return Brought::Ok(offered.clone());
        }
        calls.push((call.tool.clone(), call.arguments.clone()));
        let result = runtime.block_on(connection.call(&call.tool, call.arguments.clone())).unwrap();
        match result.is_error {
            Some(true) => Brought::Error(text(&result)),
            _ => Brought::Ok(result.structured_content.unwrap()),
        }
    };
    let mut answers = case["answers"].as_array().unwrap().iter();
    let people = |open: &OpenQuestion| {
        if open.question.tool.is_some() && case["approves"] == true {
            return Answer::new(open.question_id, Decision::Approve);
        }
        let Some(answer) = answers.next() else { return Answer::expired(open.question_id) };
        let mut answer = answer.clone();
        answer["question_id"] = open.question_id.into();
        serde_json::from_value(answer).unwrap()
    };
    let agent = assistant::agent();
    let input = case["input"].clone();
    let mut session = TestSession::start(agent, input, Settings::default()).unwrap();
    session.drive(&mut World::new(tools).people(people));
    let result = session.steps().iter().rev().find_map(|step| match &step.body {
        StepBody::End { payload, .. } => Some(payload.clone()),
        _ => None,
    });
    let conclusion = agent.presentation().conclusion_of(&result.unwrap()).unwrap();
    runtime.block_on(connection.close());
    Played { calls, conclusion }
}

/// What a case expects and the conversation does not show.
fn missed(case: &Value) -> Vec<String> {
    let Played { calls, conclusion } = play(case);
    let mut missed = Vec::new();
    let tone = conclusion.verdict.as_ref().map(|verdict| verdict.tone);
    let verdict = match tone {
        Some(Tone::Good) => "fine",
        Some(Tone::Bad) => "not_fine",
        _ => "open",
    };
    if case["expect"]["verdict"] != verdict {
        missed.push(format!("the verdict is {verdict}"));
    }
    let all = json!(conclusion).to_string().to_lowercase();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for said in list(&case["expect"]["says"]) {
        let wanted = json!(said.as_str().unwrap().to_lowercase()).to_string();
        if !all.contains(wanted.trim_matches('"')) {
            missed.push(format!("it does not say {said}: {}", conclusion.summary));
        }
    }
    let made = |call: &Value| {
        let tool = call.as_str().or_else(|| call["tool"].as_str()).unwrap();
        let has = |arguments: &Value| {
            let wanted = call["arguments"].as_object();
            wanted.into_iter().flatten().all(|(name, value)| {
                match (value.as_f64(), arguments[name].as_f64()) {
                    (Some(wanted), Some(found)) => (wanted - found).abs() <= 1e-9 * wanted.abs(),
                    _ => arguments[name] == *value,
                }
            })
        };
        calls.iter().any(|(name, arguments)| name == tool && has(arguments))
    };
    let required = list(&case["required_calls"]).into_iter().filter(|call| !made(call));
    missed.extend(required.map(|call| format!("it did not call {call}: {}", conclusion.summary)));
    let forbidden = list(&case["forbidden_calls"]).into_iter().filter(made);
    missed.extend(forbidden.map(|call| format!("it called {call}")));
    missed
}

#[test]
fn the_cases_of_the_assistant_hold_in_memory() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../eval");
    let is_case = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "json") && !path.ends_with("baseline.json")
    };
    let paths = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = paths.filter(is_case).collect();
    paths.sort();
    assert!(paths.len() >= 40, "{} cases", paths.len());
    let mut wrong = Vec::new();
    for path in paths {
        let case: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        wrong.extend(missed(&case).into_iter().map(|missed| format!("{name}: {missed}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
