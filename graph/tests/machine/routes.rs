//! Routes and inputs.

use graph::agent::Settings;
use graph::definition::InputError;
use graph::next::Next;
use journal::step::StepBody;
use serde_json::json;

use crate::listed::*;

#[test]
fn a_run_that_moves_without_an_effect_for_ever_fails() {
    let (error, category) = failed(&start(&[Op::Spin]));
    assert_eq!(error, "GraphError: TooManyMoves - more than 100 moves without an effect");
    assert_eq!(category, "graph");
    assert_eq!(finished(&start(&[const { Op::Nothing }; 100])), json!([]));
}

#[test]
fn a_note_is_journaled_as_it_is_and_lets_the_graph_go_on() {
    let mut session = start(&[Op::Remark, Op::Nothing]);
    let Next::Note(note) = session.run().next() else { panic!("a note") };
    assert_eq!((note.subject.as_str(), &note.payload), ("remark", &json!(0)));
    // Another's note changes nothing: the graph still asks for its own.
    session.append(StepBody::Note { subject: "other".to_owned(), payload: json!({}) });
    assert_eq!(session.run().next(), Next::Note(note.clone()));
    session.append(note.body());
    assert_eq!(finished(&session), json!([]));
}

#[test]
fn a_route_that_the_node_does_not_declare_fails() {
    let (error, _) = failed(&start(&[Op::Astray]));
    assert_eq!(error, "GraphError: UndeclaredRoute - node `do` does not route to `nowhere`");
}

#[test]
fn an_input_that_does_not_fit_names_the_field() {
    let error = agent().start(&json!({}), &Settings::default()).unwrap_err();
    assert_eq!(error, InputError::new("", "a list"));
}
