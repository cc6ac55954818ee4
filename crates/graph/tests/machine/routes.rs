//! Routes and inputs.

use graph::agent::Settings;
use graph::definition::InputError;
use graph::next::Next;
use journal::step::StepBody;
use serde_json::json;

use crate::listed::*;

#[test]
fn an_endless_loop_without_effects_fails_the_run() {
    let (error, category) = failed(&start(&[Op::Spin]));
    assert_eq!(error, "GraphError: TooManyMoves - more than 100 moves without an effect");
    assert_eq!(category, "graph");
    assert_eq!(finished(&start(&[const { Op::Nothing }; 100])), json!([]));
}

#[test]
fn a_note_is_journaled_unchanged_and_the_graph_continues() {
    let mut session = start(&[Op::Remark, Op::Nothing]);
    let Next::Note(note) = session.run().next() else { panic!("a note") };
    assert_eq!((note.subject.as_str(), &note.payload), ("remark", &json!(0)));
    // A note on another subject has no effect: the graph still requests its own.
    session.append(StepBody::Note { subject: "other".to_owned(), payload: json!({}) });
    assert_eq!(session.run().next(), Next::Note(note.clone()));
    session.append(note.body());
    assert_eq!(finished(&session), json!([]));
}

#[test]
fn an_undeclared_route_fails_the_run() {
    let (error, _) = failed(&start(&[Op::Astray]));
    assert_eq!(error, "GraphError: UndeclaredRoute - node `do` does not route to `nowhere`");
}

#[test]
fn an_input_error_names_the_field() {
    let error = agent().start(&json!({}), &Settings::default()).unwrap_err();
    assert_eq!(error, InputError::new("", "a list"));
}
