//! Models that lie, wander, stop early, call everything at once, speak another language or answer with 200 KB,
//! in both of their roles. Each session ends in one of three values, with the scores and actions of the
//! policy.
//!
//! The behaviours are those that the trade fears; the texts are invented.

use graph::agent::{OnModelFailure, Settings};
use graph::conclusion::Tone;
use graph::definition::Finish;
use graph::effect::{Author, Chat, Reply, ToolCall};
use graph::outcome::{Brought, Failure};
use graph::testing::{TestSession, World};
use journal::step::{StepBody, Usage};
use serde_json::{Value, json};

use super::{Desk, agent, completed};

type Turn = fn(usize) -> Brought;

fn says(text: &str, calls: Vec<ToolCall>) -> Brought {
    let by = Author::Model("m".to_owned());
    Brought::Reply(Reply { text: Some(text.to_owned()), calls, by })
}

fn choice(tool: &str) -> ToolCall {
    let arguments = json!({"tool": tool, "reason": "because", "confidence": 0.9});
    ToolCall::built_in("select_next_step", arguments)
}

fn explanation(hypothesis: &str, patterns: &[&str], text: &str) -> ToolCall {
    let arguments = json!({"hypothesis": hypothesis, "patterns": patterns, "explanation": text});
    ToolCall::built_in("explain_evidence", arguments)
}

const TOOLS: [&str; 6] = [
    "context_tool",
    "pattern_tool",
    "similarity_tool",
    "reasoning_tool",
    "recommendation_tool",
    "rule_draft_tool",
];

const MODELS: [(&str, Turn); 10] = [
    ("lies", |_| says("All tools were called. It is honest: release it.", vec![])),
    ("lies with a choice", |_| says("It is honest.", vec![choice("COMPLETE")])),
    ("lies with an explanation", |_| {
        says("", vec![explanation("cardholder", &[], "It is honest. Release it.")])
    }),
    ("wanders", |n| says("", vec![choice(TOOLS[5 - n % 6])])),
    ("stops early", |_| says("", vec![choice("COMPLETE")])),
    ("calls everything at once", |_| says("", TOOLS.map(choice).to_vec())),
    ("speaks another language", |_| says("この支払いは問題ありません。", vec![])),
    ("answers with 200 KB", |_| says(&"fine ".repeat(40_000), vec![])),
    ("answers with an argument of 200 KB", |_| says("", vec![choice(&"x".repeat(200 * 1024))])),
    ("breaks off", |_| Brought::Failure(Failure::refused("unknown", "no"))),
];

fn settings(on_model_failure: OnModelFailure, is_explaining: bool) -> Settings {
    let mut options = json!(fraud::options::Options::default());
    options["reasoning_llm"] = json!(is_explaining);
    Settings { model: Some("m".to_owned()), on_model_failure, options, ..Settings::default() }
}

fn run(
    desk: &Desk,
    id: &str,
    settings: Settings,
    turn: impl Fn(usize, &Chat) -> Brought,
) -> Finish {
    let mut number = 0;
    let mut session = TestSession::start(agent(), desk.input(id), settings).unwrap();
    session.drive(&mut World::new(|call| desk.serve(call)).models(|chat| {
        number += 1;
        (turn(number, chat), Usage::default())
    }))
}

fn is_explaining(chat: &Chat) -> bool {
    chat.tools[0].name == "explain_evidence"
}

/// A planner that keeps the rules, and this explanation.
fn explained(desk: &Desk, id: &str, explain: impl Fn() -> Brought) -> Value {
    let number = std::cell::Cell::new(0);
    let settings = settings(OnModelFailure::Policy, true);
    completed(run(desk, id, settings, |_, chat| {
        if is_explaining(chat) {
            return explain();
        }
        let next = number.replace(number.get() + 1);
        says("", vec![choice(TOOLS.get(next).copied().unwrap_or("COMPLETE"))])
    }))
}

fn verdict(result: &Value) -> (String, Tone) {
    let conclusion = agent().presentation().conclusion_of(result).unwrap();
    let verdict = conclusion.verdict.unwrap();
    (verdict.word, verdict.tone)
}

#[test]
fn every_misbehaving_model_ends_in_one_of_three_values() {
    let desk = Desk::generated(5, 600, 60);
    let (frauds, honest) = desk.targets(1);
    for row in [frauds.last().unwrap(), honest.last().unwrap()] {
        let by_policy = desk.investigate(&row.id);
        for (name, turn) in MODELS {
            for is_explaining in [false, true] {
                let settings = settings(OnModelFailure::Policy, is_explaining);
                let result = completed(run(&desk, &row.id, settings, |n, _| turn(n)));
                assert_eq!(verdict(&result), verdict(&by_policy), "{name}");
                for field in ["score", "severity", "recommendations", "status"] {
                    assert_eq!(result[field], by_policy[field], "{name}: {field}");
                }
            }
        }
    }
}

#[test]
fn a_model_that_names_only_unknown_tools_has_failed() {
    let desk = Desk::generated(5, 600, 60);
    let id = desk.targets(1).0.last().unwrap().id.clone();
    let asked = std::cell::Cell::new(0);
    let guesses = |_: usize, _: &Chat| {
        asked.set(asked.get() + 1);
        says("", vec![choice("read_minds")])
    };
    let result = completed(run(&desk, &id, settings(OnModelFailure::Policy, true), guesses));
    assert_eq!(asked.get(), 3, "a failed model is not asked again");
    assert_eq!(result["model_failed"], "the model named only tools that do not exist");
    assert_eq!(result["status"], "COMPLETED");
    let finish = run(&desk, &id, settings(OnModelFailure::Fail, false), guesses);
    let Finish::Failed { error, category, result } = finish else { panic!("{finish:?}") };
    assert!(error.as_str().starts_with("ModelError: UnknownTools"), "{error}");
    assert_eq!((category.as_str(), &result["score"]), ("model_invalid", &Value::Null));
    assert_eq!(verdict(&result).0, "not assessed");
    // After a valid choice it is a model that errs.
    let errs = |n: usize, _: &Chat| {
        says("", vec![choice(if n == 1 { "context_tool" } else { "read_minds" })])
    };
    let result = completed(run(&desk, &id, settings(OnModelFailure::Fail, false), errs));
    assert_eq!(result["model_failed"], Value::Null);
}

#[test]
fn an_explanation_is_shown_as_the_models_words() {
    let desk = Desk::generated(5, 600, 60);
    let id = desk.targets(1).0.last().unwrap().id.clone();
    let by_policy = desk.investigate(&id);
    let pattern = by_policy["findings"][0]["pattern"].as_str().unwrap();
    let text = "The card was used as a thief would use it.";
    let said = || says("", vec![explanation("cardholder", &[pattern], text)]);
    let result = explained(&desk, &id, said);
    assert_eq!(result["feature_flags"]["reasoning_llm_enabled"], true);
    assert_eq!(result["reasoning"]["explanation"]["text"], text);
    for field in ["score", "severity", "recommendations", "findings"] {
        assert_eq!(result[field], by_policy[field], "{field}");
    }
    let conclusion = agent().presentation().conclusion_of(&result).unwrap();
    let note = conclusion.notes.iter().find(|note| note.title == "A model's explanation").unwrap();
    let lines = note.lines.join("\n");
    assert!(lines.contains(text) && lines.contains("change no score"), "{lines}");
    assert!(lines.contains("m holds cardholder most likely; the evidence, "), "{lines}");
}

#[test]
fn an_explanation_of_invented_evidence_is_dropped() {
    let desk = Desk::generated(5, 600, 60);
    let id = desk.targets(1).0.last().unwrap().id.clone();
    let table = [
        (says("It is honest.", vec![]), "the reply is not one explanation"),
        (says("", vec![choice("context_tool")]), "the reply calls an unknown tool"),
        (says("", vec![explanation("aliens", &[], "x")]), "an unknown hypothesis"),
        (says("", vec![explanation("cardholder", &["levitation"], "x")]), "was not found"),
        (says("", vec![explanation("cardholder", &[], "\u{1b}\n ")]), "is empty"),
    ];
    for (reply, expected) in table {
        let result = explained(&desk, &id, || reply.clone());
        let found = &result["reasoning"]["explanation"];
        assert_eq!(found["status"], "rejected");
        assert!(found["reason"].as_str().unwrap().contains(expected), "{found}");
    }
    let long = explained(&desk, &id, || {
        says("", vec![explanation("cardholder", &[], &"x".repeat(200 * 1024))])
    });
    let text = long["reasoning"]["explanation"]["text"].as_str().unwrap();
    assert_eq!(text.chars().count(), 1_001, "cut, with an ellipsis");
}

#[test]
fn an_end_without_answers_is_rejected_while_tools_are_left() {
    let desk = Desk::generated(5, 600, 60);
    let id = desk.targets(1).0.last().unwrap().id.clone();
    let number = std::cell::Cell::new(0);
    let mut session =
        TestSession::start(agent(), desk.input(&id), settings(OnModelFailure::Policy, false))
            .unwrap();
    let result = completed(
        session.drive(
            &mut World::new(|call| match call.tool.as_str() {
                "pattern_tool" => Brought::Error("the disk is on fire".to_owned()),
                _ => desk.serve(call),
            })
            .models(|_| {
                let next = number.replace(number.get() + 1);
                let tool = TOOLS[..5].get(next).copied().unwrap_or("COMPLETE");
                (says("", vec![choice(tool)]), Usage::default())
            }),
        ),
    );
    let decision = &result["planner_decisions"][5];
    assert_eq!(decision["rejected"], "the evidence is not sufficient: pattern_tool gave no answer");
    assert_eq!(result["error"], "the evidence is not sufficient: pattern_tool gave no answer");
    assert_ne!(verdict(&result).1, Tone::Good);
}

#[test]
fn a_session_of_version_1_goes_on_by_its_rules() {
    let earlier = agent().at("1").expect("version 1 is kept");
    let desk = Desk::generated(5, 600, 60);
    let id = desk.targets(1).0.last().unwrap().id.clone();
    let mut session = TestSession::start(earlier, desk.input(&id), Settings::default()).unwrap();
    let result = completed(session.drive(&mut World::new(|call| desk.serve(call))));
    let notes = session.steps().iter().filter_map(|step| match &step.body {
        StepBody::Note { subject, .. } => Some(subject.as_str()),
        _ => None,
    });
    assert_eq!(notes.collect::<Vec<_>>(), ["audit"]);
    assert_eq!(result["score"], desk.investigate(&id)["score"]);
}

#[test]
fn a_run_out_of_time_without_evidence_has_no_score() {
    let desk = Desk::generated(5, 600, 60);
    let id = desk.targets(1).0.last().unwrap().id.clone();
    let budget = graph::budget::Budget { seconds: Some(2), ..graph::budget::Budget::UNLIMITED };
    let settings = Settings { budget, ..Settings::default() };
    let mut session = TestSession::start(agent(), desk.input(&id), settings).unwrap();
    let result = completed(session.drive(&mut World::new(|call| desk.serve(call))));
    assert_eq!((&result["status"], &result["score"]), (&json!("TIMED_OUT"), &Value::Null));
    assert_eq!(result["severity"], Value::Null);
    assert_eq!(verdict(&result), ("not assessed".to_owned(), Tone::Warn));
}
