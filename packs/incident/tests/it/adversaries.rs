//! Models that lie, wander, stop early, call everything at once, speak another language or answer with 200
//! KB. Each session ends with one of the three values, and never with a false all-clear.
//!
//! The behaviours are those that the issue names; the texts are invented.

use graph::agent::{OnModelFailure, Settings};
use graph::conclusion::Tone;
use graph::definition::Finish;
use graph::effect::{Author, CATALOGUE, Chat, Reply, ToolCall};
use graph::outcome::{Brought, Failure};
use graph::testing::{TestSession, World};
use journal::step::Usage;
use serde_json::{Value, json};

use crate::folder::Folder;

const TOOLS: [&str; 3] = ["get_recent_logs", "get_iam_state", "get_lambda_config"];

fn serve(folder: &Folder, call: &ToolCall) -> Brought {
    if call.tool == CATALOGUE {
        let tool = |name| json!({"name": name, "input_schema": {"type": "object"}});
        return Brought::Ok(json!({"tools": TOOLS.map(tool)}));
    }
    let function = call.arguments["lambda_name"].as_str().unwrap();
    folder.answer(&call.tool, function).map_or_else(Brought::Error, Brought::Ok)
}

fn says(text: &str, calls: Vec<ToolCall>) -> Brought {
    let by = Author::Model("m".to_owned());
    Brought::Reply(Reply { text: Some(text.to_owned()), calls, by })
}

fn call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall::built_in(tool, arguments)
}

fn diagnosis(faults: &[&str], root_cause: &str, evidence: Value) -> ToolCall {
    call(
        "submit_diagnosis",
        json!({"root_cause": root_cause, "fault_types": faults, "affected_resources": [],
            "severity": "low", "remediation_plan": [], "evidence": evidence}),
    )
}

/// Runs the S3 incident with a model, which gets the number of its reply.
fn run(on_model_failure: OnModelFailure, model: impl Fn(usize, &Chat) -> Brought) -> Finish {
    let folder = Folder::named("s3-permission-revoked");
    let settings =
        Settings { model: Some("m".to_owned()), on_model_failure, ..Settings::default() };
    let mut session = TestSession::start(incident::agent(), folder.input(), settings).unwrap();
    let mut number = 0;
    let mut world = World::new(|call| serve(&folder, call)).models(|chat| {
        number += 1;
        let usage = Usage { input_tokens: 900, output_tokens: 90, ..Usage::default() };
        (model(number, chat), usage)
    });
    session.drive(&mut world)
}

/// The word and tone of the conclusion; `failed` for a session without one.
fn verdict(finish: &Finish) -> (String, Tone) {
    let result = match finish {
        Finish::Completed(result) => result,
        Finish::Failed { .. } => return ("failed".to_owned(), Tone::Neutral),
    };
    let conclusion = incident::agent().presentation().conclusion_of(result);
    let verdict = conclusion.and_then(|found| found.verdict).unwrap();
    (verdict.word, verdict.tone)
}

fn own() -> Value {
    json!({"lambda_name": "data-processor"})
}

#[test]
fn every_misbehaving_model_ends_in_one_of_three_values() {
    type Model = fn(usize, &Chat) -> Brought;
    let models: [(&str, Model, &str); 8] = [
        (
            "lies",
            |_, _| {
                says(
                    "",
                    vec![diagnosis(
                        &["throttling"],
                        "All is fine.",
                        json!([{
            "tool": "get_lambda_config", "field": "ReservedConcurrentExecutions", "value": "0",
            "interpretation": "i"}]),
                    )],
                )
            },
            "failed",
        ),
        (
            "lies after a look",
            |n, _| {
                if n == 1 {
                    says("", vec![call("get_recent_logs", own())])
                } else {
                    says(
                        "",
                        vec![diagnosis(
                            &["unknown"],
                            "Nothing is wrong.",
                            json!([{
                "tool": "get_recent_logs", "field": "events[0].message", "value": "no errors",
                "interpretation": "i"}]),
                        )],
                    )
                }
            },
            "diagnosed",
        ),
        ("wanders", |n, _| says("", vec![call(TOOLS[n % 3], own())]), "diagnosed"),
        ("stops early", |_, _| says("Done.", vec![]), "failed"),
        (
            "calls everything at once",
            |_, _| says("", TOOLS.iter().cycle().take(60).map(|tool| call(tool, own())).collect()),
            "diagnosed",
        ),
        ("speaks another language", |_, _| says("Die Funktion ist in Ordnung.", vec![]), "failed"),
        (
            "answers with 200 KB",
            |n, _| {
                if n == 1 {
                    says("", vec![call("get_iam_state", own())])
                } else {
                    says(&"x".repeat(200 * 1024), vec![])
                }
            },
            "diagnosed",
        ),
        ("breaks off", |_, _| Brought::Failure(Failure::refused("unknown", "no")), "diagnosed"),
    ];
    for (name, model, expected) in models {
        let finish = run(OnModelFailure::Policy, model);
        let (word, tone) = verdict(&finish);
        assert_eq!(word, expected, "{name}");
        assert_ne!(tone, Tone::Good, "{name}");
    }
}

#[test]
fn a_model_that_names_only_unknown_tools_has_failed() {
    let guesses = |_: usize, _: &Chat| says("", vec![call("read_minds", own())]);
    let Finish::Completed(result) = run(OnModelFailure::Policy, guesses) else { panic!() };
    assert_eq!(result["fault_types"], json!(["permission_loss"]));
    assert_eq!(result["diagnosed_by"], "policy");
    assert_eq!(result["model_failed"], "it named only tools that do not exist");
    let Finish::Failed { error, category, .. } = run(OnModelFailure::Fail, guesses) else {
        panic!()
    };
    assert!(error.as_str().starts_with("ModelError: UnknownTools"));
    assert_eq!(category, "model_invalid");
}

#[test]
fn a_model_that_corrects_itself_goes_on() {
    let finish = run(OnModelFailure::Fail, |n, _| match n {
        1 => says("", vec![call("read_minds", own())]),
        2 => says("", vec![call("get_lambda_config", own())]),
        _ => says(
            "",
            vec![diagnosis(
                &["unknown"],
                "It runs.",
                json!([{
            "tool": "get_lambda_config", "field": "FunctionName", "value": "data-processor",
            "interpretation": "i"}]),
            )],
        ),
    });
    assert_eq!(verdict(&finish), ("unknown".to_owned(), Tone::Warn));
}
