//! Questions to a person, and what an answer allows.

use graph::agent::Settings;
use graph::effect::ToolOffer;
use graph::next::{Next, Work};
use graph::outcome::{Brought, Failure};
use graph::question::{Answer, Decision, OpenQuestion};
use graph::testing::TestSession;
use journal::item::Hash;
use journal::step::StepBody;
use serde_json::json;

use crate::listed::*;

#[test]
fn an_at_most_once_call_in_doubt_goes_to_a_person() {
    let crash = |session: &mut TestSession| {
        intend(session);
        session.claim(None);
    };
    let unknown = |session: &mut TestSession| {
        intend(session);
        bring(session, Brought::Failure(Failure::unknown("timeout", "no answer")));
    };
    let say = |id| Answer { text: Some("done".to_owned()), ..Answer::new(id, Decision::Say) };
    for doubt in [crash, unknown] {
        let answered = |answer: &dyn Fn(u32) -> Answer| {
            let mut session = start(&[Op::Change(json!({"to": 1}))]);
            doubt(&mut session);
            let open = open_question(&mut session);
            assert!(open.question.prompt.contains("not known whether this call was made"));
            session.append(answer(open.question_id).body());
            session.claim(None);
            session
        };
        assert_eq!(finished(&answered(&say)), json!([{"ok": "done"}]));
        let rejected = finished(&answered(&|id| Answer::new(id, Decision::Reject)));
        assert_eq!(rejected[0]["failed"]["kind"], "unknown");
        let expired = finished(&answered(&Answer::expired));
        assert_eq!(expired[0]["failed"]["category"], "expired");
        let mut again = answered(&|id| Answer::new(id, Decision::Approve));
        intend(&mut again);
        bring(&mut again, Brought::Ok(json!(1)));
        assert_eq!(finished(&again), json!([{"ok": 1}]));
    }
}

#[test]
fn an_approval_covers_exactly_one_call_once() {
    let x = |n: u32| json!({"x": n});
    let critical = |n| Op::Critical(x(n));
    let mut session = start(&[Op::Confirm(x(1)), critical(1), critical(1)]);
    let open = open_question(&mut session);
    session.append(open.question.read(open.question_id, "approve").body());
    intend(&mut session);
    bring(&mut session, Brought::Ok(json!(1)));
    let second = open_question(&mut session);
    assert_eq!(
        second.question.prompt,
        "Server: world\nTool: blast\nArguments: {\"x\":1}\nApprove? (yes/no)"
    );

    let mut session = start(&[Op::Confirm(x(1)), critical(2)]);
    let open = open_question(&mut session);
    session.append(open.question.read(open.question_id, "approve").body());
    let other = open_question(&mut session);
    session.append(other.question.read(other.question_id, "no").body());
    assert_eq!(finished(&session)[1]["failed"]["category"], "rejected");

    let mut session = start(&[Op::Confirm(x(1)), critical(2)]);
    let open = shown(&mut session, "a");
    let edit = Answer { arguments: Some(x(2)), ..Answer::new(open.question_id, Decision::Edit) };
    session.append(edit.body());
    intend(&mut session);
}

/// The open question, asked while the server offers a tool with this hash.
fn shown(session: &mut TestSession, hash: &str) -> OpenQuestion {
    let Next::Ask(ask) = session.run().next() else { panic!("{:?}", session.run().next()) };
    let (schema_hash, input_schema) = (Hash::from_record(hash), json!({"type": "object"}));
    session.append(ask.about(Some(ToolOffer { schema_hash, input_schema })).body());
    waiting(session)
}

fn waiting(session: &TestSession) -> OpenQuestion {
    match session.run().next() {
        Next::Wait(open) => open,
        other => panic!("no question is open: {other:?}"),
    }
}

#[test]
fn an_approval_covers_the_tool_that_was_shown() {
    let bound = |session: &TestSession| match session.run().next() {
        Next::Perform(requests) => match &requests[0].work {
            Work::Tool { schema, .. } => schema.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let x = json!({"x": 1});
    for ops in [vec![Op::Critical(x.clone())], vec![Op::Confirm(x.clone()), Op::Critical(x)]] {
        let mut session = start(&ops);
        let open = shown(&mut session, "a");
        session.append(open.question.read(open.question_id, "approve").body());
        assert_eq!(bound(&session).as_deref(), Some("a"));
        let resumed = TestSession::resume(&agent(), session.steps().to_vec()).unwrap();
        assert_eq!(bound(&resumed).as_deref(), Some("a"));
    }
    let mut session = start(&[Op::Critical(json!({}))]);
    let Next::Ask(ask) = session.run().next() else { panic!("no question") };
    session.append(ask.about(None).body());
    let open = waiting(&session);
    session.append(open.question.read(open.question_id, "approve").body());
    assert_eq!(bound(&session).as_deref(), Some("unknown"), "it covers no tool");
}

#[test]
fn an_answer_with_another_digest_is_not_folded() {
    let mut session = start(&[Op::Critical(json!({}))]);
    let open = open_question(&mut session);
    let answer = Answer::new(open.question_id, Decision::Approve);
    let other = Answer { digest: Some("0".repeat(64)), ..answer.clone() };
    let mut forged = TestSession::resume(&agent(), session.steps().to_vec()).unwrap();
    assert!(forged.try_append(other.body()).is_err());
    let digest = Some(open.digest.as_str().to_owned());
    session.append(Answer { digest, ..answer }.body());
    intend(&mut session);
}

#[test]
fn a_long_sleep_suspends_the_session_until_its_time() {
    let mut session = start(&[Op::Nap(3_600)]);
    let open = open_question(&mut session);
    assert!(open.question.is_sleep());
    assert_eq!(session.steps()[1].body.payload().unwrap()["about"], "sleep");
    for answer in [Answer::new(2, Decision::Approve), Answer::new(2, Decision::Reject)] {
        let mut early = TestSession::resume(&agent(), session.steps().to_vec()).unwrap();
        assert!(early.try_append(answer.body()).is_err());
    }
    session.append(Answer::expired(open.question_id).body());
    session.claim(None);
    assert_eq!(finished(&session), json!(["woke"]));
    let short = start(&[Op::Nap(60)]);
    assert!(matches!(short.run().next(), Next::Sleep(_)), "a minute is slept by the runner");
}

#[test]
fn configuration_makes_a_tool_critical() {
    let settings = Settings { critical: vec!["world.look".to_owned()], ..Settings::default() };
    let mut session = start_with(&[Op::Look(vec![json!({})])], settings);
    let open = open_question(&mut session);
    assert_eq!(open.question.tool.as_deref(), Some("look"));
    assert_eq!(session.steps()[1].body.payload().unwrap()["about"], "approval");
}

#[test]
fn only_an_answer_or_the_end_follows_an_open_question() {
    let mut session = start(&[Op::Say]);
    let open = open_question(&mut session);
    let claim = StepBody::Claim {
        supersedes: 1,
        agent: "listed".to_owned(),
        graph_version: "1".to_owned(),
        input: None,
    };
    for body in [
        claim,
        StepBody::Note { subject: "other".to_owned(), principal: None, payload: json!({}) },
        Answer::new(99, Decision::Say).body(),
    ] {
        let mut other = TestSession::resume(&agent(), session.steps().to_vec()).unwrap();
        assert!(other.try_append(body).is_err());
    }
    session.append(Answer::expired(open.question_id).body());
    assert_eq!(finished(&session), json!(["expired"]));
}
