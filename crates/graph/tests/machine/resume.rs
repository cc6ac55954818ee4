//! Resuming: the same end, no repeated effects, differences named.

use graph::agent::{Agent, OnModelFailure, Settings};
use graph::definition::Finish;
use graph::outcome::Brought;
use graph::testing::{TestSession, World, every_prefix};
use journal::step::{Step, StepKind};
use serde_json::{Value, json};

use crate::listed::*;

#[test]
fn resuming_from_any_prefix_reaches_the_same_end() {
    for settings in [Settings::default(), with_model(OnModelFailure::Policy)] {
        let steps = every_prefix(&agent(), &ops(&everything()), &settings, talkative);
        assert_eq!(steps.last().unwrap().body.kind(), StepKind::End);
    }
}

#[test]
fn a_digest_mismatch_names_both_effects_and_versions() {
    let mut session = start(&[Op::Look(vec![json!({})])]);
    session.drive(&mut World::new(echo));
    let steps = session.steps();
    let error = Agent::of(&LATER).resume(&steps[..2]).unwrap_err();
    insta::assert_snapshot!(error, @"step 2 recorded tools of node `do` call 0 digest 185732c31ef2 under graph version 1, graph version 2 requests tools of node `do` call 0 digest c82034c89309");
    assert!(matches!(error.finish(), Finish::Failed { category, .. } if category == "replay"));
}

#[test]
fn a_newer_graph_resumes_from_the_questions_snapshot() {
    let mut session = start(&[Op::Look(vec![json!({})]), Op::Say, Op::Look(vec![json!({})])]);
    bring(&mut session, echo(&look(&json!({}))));
    let open = open_question(&mut session);
    let mut later = TestSession::resume(&Agent::of(&LATER), session.steps().to_vec()).unwrap();
    later.append(open.question.read(open.question_id, "on with it").body());
    later.claim(None);
    let Finish::Completed(log) = later.drive(&mut World::new(echo)) else { panic!("failed") };
    let first = json!({"ok": {"tool": "look", "of": {}}});
    assert_eq!(log, json!([first, "say", {"ok": {"tool": "peek", "of": {}}}]));
}

#[test]
fn steps_out_of_sequence_are_an_error() {
    let mut session = start(&[Op::Chat]);
    session.drive(&mut talkative());
    let mut steps = session.steps().to_vec();
    steps.remove(1);
    let error = agent().resume(&steps).unwrap_err();
    assert_eq!(error.to_string(), "expected step 2, got step 3");
}

#[test]
fn step_payloads_match_the_golden_file() {
    let mut session = start(&[Op::Change(json!({"b": 1, "a": 2})), Op::Say, Op::Nap(1)]);
    session.drive(
        &mut World::new(|_| Brought::Error("no".to_owned()))
            .people(|open| open.question.read(open.question_id, "fine")),
    );
    let lines: Vec<String> = session.steps().iter().map(line).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

fn line(step: &Step<Value>) -> String {
    let payload = step.body.payload().map_or("-".to_owned(), Value::to_string);
    format!("{} {} {payload}", step.seq, step.body.kind().as_str())
}
