//! Budgets, lost replies, time, and runs without the model.

use std::time::Duration;

use graph::agent::{Agent, OnModelFailure, Settings};
use graph::budget::{Budget, Limit};
use graph::definition::Finish;
use graph::effect::{Chat, Reply};
use graph::next::{Next, Work};
use graph::outcome::{Brought, Failure};
use graph::testing::{TestSession, World};
use journal::step::{StepBody, StepKind};
use serde_json::json;

use crate::listed::*;

#[test]
fn budgets_accumulate_over_resumes_and_lost_chats() {
    let settings = with_budget(Budget { tokens: Some(3_000), ..Budget::default() });
    let mut session = start_with(&[Op::Chat, Op::Chat, Op::Chat], settings);
    bring_with(&mut session, Brought::Reply(Reply::says("a")), tokens(700, 700));
    let mut session = TestSession::resume(&agent(), session.steps().to_vec()).unwrap();
    bring_with(&mut session, Brought::Reply(Reply::says("b")), tokens(700, 700));
    let used = session.run().usage();
    assert_eq!((used.input_tokens, used.output_tokens), (1_400, 1_400));
    assert!((1_000..1_400).contains(&used.unsettled_tokens), "{used:?}");
    assert!(matches!(session.run().next(), Next::Note(_)));
}

#[test]
fn an_agent_lost_in_every_chat_reaches_its_budget() {
    let budget = Budget { tokens: Some(3_000), ..Budget::default() };
    let mut session = start_with(&[Op::Chat], with_budget(budget));
    assert!(matches!(session.run().next(), Next::Perform(_)));
    for _ in 0..3 {
        session.claim(None);
    }
    assert!(matches!(session.run().next(), Next::Note(_)), "{:?}", session.run().usage());
}

#[test]
fn reaching_a_limit_is_a_note_with_a_route_of_its_own() {
    let budget = Budget { tokens: Some(60), ..Budget::default() };
    let mut session = start_with(&[Op::Chat, Op::Chat, Op::Chat], with_budget(budget));
    bring_with(&mut session, Brought::Reply(Reply::says("a")), tokens(50, 10));
    let Next::Note(note) = session.run().next() else { panic!("no note") };
    assert_eq!(note.payload, json!({"limit": "tokens", "used": 60, "allowed": 60, "node": "do"}));
    session.append(note.body());
    for text in ["b", "c"] {
        bring_with(&mut session, Brought::Reply(Reply::says(text)), tokens(50, 10));
    }
    assert_eq!(finished(&session), json!(["a", "tokens", "b", "c"]));
}

#[test]
fn every_limit_is_checked_and_has_a_second_bound() {
    let chats = vec![Op::Chat; 200];
    for (limit, budget) in [
        (Limit::Visits, Budget { visits: Some(12), ..Budget::default() }),
        (Limit::Calls, Budget { calls: Some(3), ..Budget::default() }),
        (Limit::Seconds, Budget { seconds: Some(5), ..Budget::default() }),
    ] {
        let stop =
            Settings { budget, options: json!({"stop_at_limit": true}), ..Settings::default() };
        let stopped = start_with(&chats, stop.clone()).drive(&mut talkative());
        let Finish::Completed(log) = stopped else { panic!("{limit:?}: {stopped:?}") };
        assert_eq!(log.as_array().unwrap().last(), Some(&json!(limit)));
        every_prefix_with_budget(&chats, &stop);

        let go_on = Settings { options: json!({}), ..stop };
        let ended = start_with(&chats, go_on).drive(&mut talkative());
        assert!(
            matches!(&ended, Finish::Failed { category, .. } if category == "budget"),
            "{ended:?}"
        );
    }
}

/// Claims take time, so for a time limit only the kind of end is the same.
fn every_prefix_with_budget(list: &[Op], settings: &Settings) {
    let kind = |finish: &Finish| matches!(finish, Finish::Completed(_));
    graph::testing::every_prefix_by(&agent(), &ops(list), settings, talkative, kind);
}

#[test]
fn lost_chats_are_charged_and_recorded_at_their_maximum() {
    let mut session = start_with(&[Op::Chat, Op::Chat], with_model(OnModelFailure::Policy));
    session.claim(None);
    session.claim(None);
    let unsettled = requests(&session)[0].unsettled_tokens;
    bring_with(&mut session, Brought::Reply(Reply::says("a")), tokens(1, 2));
    let StepBody::Outcome { usage, .. } = &session.steps()[3].body else { panic!("no outcome") };
    assert_eq!(usage.unsettled_tokens, unsettled);
    let used = session.run().usage();
    assert_eq!((used.unsettled_tokens, used.calls), (u64::from(unsettled), 3));
    assert_eq!(used.tokens(), u64::from(unsettled) + 3);
}

#[test]
fn an_abandoned_lost_chat_is_recorded_with_the_next_chat() {
    let budget = Budget { tokens: Some(10), ..Budget::default() };
    let mut session = start_with(&[Op::Chat, Op::Chat], with_budget(budget));
    session.claim(None);
    let Next::Note(note) = session.run().next() else { panic!("no note") };
    session.append(note.body());
    bring_with(&mut session, Brought::Reply(Reply::says("a")), tokens(1, 2));
    let recorded = session.steps().iter().map(|step| match &step.body {
        StepBody::Outcome { usage, .. } => u64::from(usage.unsettled_tokens),
        _ => 0,
    });
    let used = session.run().usage();
    assert!(used.unsettled_tokens > 0);
    assert_eq!(recorded.sum::<u64>(), used.unsettled_tokens, "the records add up to the ledger");
}

#[test]
fn a_chat_with_a_lost_reply_is_charged_at_its_maximum() {
    let mut session = start_with(&[Op::Chat], with_model(OnModelFailure::Policy));
    bring(&mut session, Brought::Failure(Failure::unknown("timeout", "60 s")));
    assert!(session.run().usage().unsettled_tokens > 1_000);
    assert_eq!(requests(&session)[0].unsettled_tokens, 0);
}

#[test]
fn waiting_does_not_count_as_running() {
    let hour = Duration::from_secs(3_600);
    let mut session = start(&[Op::Say, Op::Nap(3_600), Op::Chat]);
    session.pass(Duration::from_secs(4));
    let open = open_question(&mut session);
    session.pass(hour);
    session.append(open.question.read(open.question_id, "go on").body());
    session.pass(hour);
    session.claim(None);
    let Next::Sleep(sleep) = session.run().next() else { panic!("no sleep") };
    session.pass(hour);
    session.append(sleep.body(session.now()));
    session.pass(hour);
    session.claim(None);
    session.pass(Duration::from_secs(9));
    bring(&mut session, Brought::Reply(Reply::says("a")));
    // Five seconds until the question was asked, ten until the chat's outcome.
    assert_eq!(session.run().usage().of(Limit::Seconds), 15);
}

#[test]
fn text_starts_a_new_budget_turn_and_approvals_do_not() {
    let settings =
        Settings { budget: Budget { calls: Some(2), ..Budget::default() }, ..Settings::default() };
    let confirm = Op::Confirm(json!({}));
    for (between, crossed) in [(Op::Say, false), (confirm, true)] {
        let list = [Op::Chat, Op::Chat, between, Op::Chat];
        let agent = Agent::of(&BY_TURN);
        let mut session = TestSession::start(&agent, ops(&list), settings.clone()).unwrap();
        session.drive(&mut talkative());
        let notes = session.steps().iter().filter(|step| step.body.kind() == StepKind::Note);
        assert_eq!(notes.count() == 1, crossed);
        assert_eq!(session.run().usage().calls, 3);
    }
}

#[test]
fn the_policy_replaces_a_failed_model_with_a_note() {
    let mut session = start_with(&[Op::Chat, Op::Chat], with_model(OnModelFailure::Policy));
    for _ in 0..2 {
        bring(&mut session, Brought::Failure(Failure::not_sent("bedrock_transient", "throttled")));
    }
    let Next::Note(note) = session.run().next() else { panic!("no note") };
    let expected = json!({"model": "big", "category": "bedrock_transient", "message": "throttled"});
    assert_eq!((note.subject.as_str(), &note.payload), ("fallback", &expected));
    session.append(note.body());
    assert!(matches!(requests(&session)[0].work, Work::Policy { .. }));
    let finish = session.drive(&mut talkative());
    assert_eq!(finish, Finish::Completed(json!(["policy 0", "policy 1"])));
}

#[test]
fn a_failed_model_ends_the_session_if_the_trigger_says_so() {
    let mut session = start_with(&[Op::Chat], with_model(OnModelFailure::Fail));
    bring(&mut session, Brought::Failure(Failure::refused("bedrock_auth", "access denied")));
    let (error, category) = failed(&session);
    assert_eq!(error, "ModelError: bedrock_auth - access denied");
    assert_eq!(category, "bedrock_auth");
}

#[test]
fn a_failed_models_error_has_the_services_code() {
    let mut session = start_with(&[Op::Chat], with_model(OnModelFailure::Fail));
    let throttled = "ThrottlingException: Rate exceeded";
    let throttled =
        Failure::refused("bedrock_transient", throttled).with_code("ThrottlingException");
    bring(&mut session, Brought::Failure(throttled));
    let (error, category) = failed(&session);
    assert_eq!(error, "ClientError: ThrottlingException - Rate exceeded");
    assert_eq!(category, "bedrock_transient");
}

#[test]
fn the_policy_finishes_when_all_tokens_are_used() {
    let budget = Budget { tokens: Some(10), ..Budget::default() };
    let mut session = start_with(&[Op::Chat, Op::Chat, Op::Chat], with_budget(budget));
    let costly = |_: &Chat| (Brought::Reply(Reply::says("a")), tokens(30_000, 0));
    let finish = session.drive(&mut World::new(echo).models(costly));
    // The second bound comes first here; once the policy works, the limit is reached as well.
    assert_eq!(finish, Finish::Completed(json!(["a", "tokens", "policy 1", "policy 2"])));
}
