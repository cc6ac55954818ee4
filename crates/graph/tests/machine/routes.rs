//! Routes and inputs.

use graph::agent::Settings;
use graph::definition::InputError;
use graph::error::StartError;
use graph::next::{Next, Work};
use graph::outcome::Brought;
use graph::testing::TestSession;
use journal::step::{StepBody, StepKind};
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
    session.append(StepBody::Note {
        subject: "other".to_owned(),
        principal: None,
        payload: json!({}),
    });
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
    assert_eq!(error, InputError::new("", "a list").into());
}

#[test]
fn a_panic_in_an_agents_code_fails_its_run() {
    let told = |session: &TestSession| {
        let (error, category) = failed(session);
        assert_eq!(category, "graph", "{error}");
        error.lines().next().unwrap().to_owned()
    };
    let at_request = told(&start(&[Op::Nothing, Op::PanicAtRequest]));
    assert_eq!(at_request, "GraphError: Panicked - the request of node `do` panicked: no request");

    let mut session = start(&[Op::PanicAtFold]);
    bring(&mut session, echo(&look(&json!({}))));
    let at_fold = told(&session);
    assert!(at_fold.starts_with("GraphError: Panicked - the fold of node `do` panicked: "));

    let mut session = start(&[Op::PanicInPolicy]);
    let Work::Policy { chat } = &requests(&session)[0].work else { panic!("a policy") };
    let failure = session.run().policy(chat).unwrap_err();
    bring(&mut session, Brought::Failure(failure));
    assert!(told(&session).starts_with("GraphError: Panicked - the policy panicked: "));

    let error = agent().start(&json!("panic"), &Settings::default()).unwrap_err();
    assert!(matches!(error, StartError::Panicked(_)), "{error}");
}

#[test]
fn a_panic_recurs_wherever_the_session_is_resumed() {
    let mut session = start(&[Op::Chat, Op::PanicAtFold]);
    let finish = session.drive(&mut talkative());
    let steps = session.steps().to_vec();
    assert_eq!(steps.last().unwrap().body.kind(), StepKind::End);
    for cut in 1..steps.len() {
        let mut resumed = TestSession::resume(&agent(), steps[..cut].to_vec()).unwrap();
        assert_eq!(resumed.drive(&mut talkative()), finish, "cut after step {cut}");
    }
}
