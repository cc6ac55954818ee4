//! Tool calls: parallel, at-most-once, retried.

use std::time::Duration;

use graph::agent::OnModelFailure;
use graph::effect::{Author, Reply, ToolCall};
use graph::error::FoldError;
use graph::outcome::{Brought, Failure, ToolOutcome};
use journal::step::Usage;
use serde_json::{Value, json};

use crate::listed::*;

#[test]
fn parallel_results_fold_in_the_order_of_the_calls() {
    let calls = vec![json!(0), json!(1), json!(2)];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut session = start(&[Op::Look(calls.clone())]);
        let all = requests(&session);
        for (done, index) in order.into_iter().enumerate() {
            assert_eq!(requests(&session).len(), 3 - done);
            let brought = echo(all[index].call().unwrap());
            session.append(all[index].outcome(brought, session.now(), Usage::default()));
        }
        let of = |n: u32| json!({"ok": {"tool": "look", "of": n}});
        assert_eq!(finished(&session), json!([of(0), of(1), of(2)]));
    }
}

#[test]
fn an_open_call_is_repeated_unless_it_is_at_most_once() {
    let mut session = start(&[Op::Look(vec![json!(0), json!(1)])]);
    bring(&mut session, Brought::Error("no".to_owned()));
    session.claim(None);
    let open: Vec<_> = requests(&session).iter().map(|request| request.effect.call).collect();
    assert_eq!(open, [1]);
    bring(&mut session, Brought::Ok(json!(1)));
    assert_eq!(finished(&session), json!([{"error": "no"}, {"ok": 1}]));
}

#[test]
fn an_at_most_once_call_without_an_intent_is_rejected() {
    let mut session = start(&[Op::Change(json!({}))]);
    let request = &requests(&session)[0];
    let body = request.outcome(Brought::Ok(json!(1)), session.now(), Usage::default());
    assert!(matches!(session.try_append(body), Err(FoldError::Unexpected { .. })));
}

#[test]
fn an_at_most_once_call_is_retried_only_if_not_sent() {
    let mut session = start(&[Op::Change(json!({}))]);
    for attempt in 1..=3 {
        let request = intend(&mut session);
        assert_eq!(request.attempt, attempt);
        bring(&mut session, Brought::Failure(Failure::not_sent("mcp_connection", "refused")));
    }
    let log = finished(&session);
    assert_eq!(log[0]["failed"]["kind"], "not_sent");
}

#[test]
fn tools_a_server_declares_mutating_become_at_most_once() {
    let look = Op::Look(vec![json!({})]);
    let lists = |names: Value| {
        let mut session = start(&[look.clone(), Op::List, look.clone(), Op::Change(json!({}))]);
        bring(&mut session, Brought::Ok(json!(1)));
        bring(&mut session, Brought::Ok(json!({"tools": [], "at_most_once": names})));
        session
    };
    let mut session = lists(json!(["look"]));
    intend(&mut session);
    bring(&mut session, Brought::Failure(Failure::unknown("mcp_connection", "gone")));
    assert!(open_question(&mut session).question.prompt.contains("not known whether"));
    // No catalogue can remove a tool from the set defined in code.
    for names in [json!([]), json!(["elsewhere"]), json!("look"), json!(null)] {
        let mut session = lists(names);
        bring(&mut session, Brought::Ok(json!(1)));
        intend(&mut session);
    }
}

#[test]
fn retries_wait_one_second_then_two() {
    let mut session = start(&[Op::Look(vec![json!({})])]);
    for seconds in [1, 2] {
        bring(&mut session, Brought::Failure(Failure::unknown("timeout", "30 s")));
        let not_before = requests(&session)[0].not_before.unwrap();
        assert_eq!(not_before.since(session.now()), Duration::from_secs(seconds));
    }
    bring(&mut session, Brought::Failure(Failure::unknown("timeout", "30 s")));
    assert_eq!(finished(&session)[0]["failed"]["category"], "timeout");
}

#[test]
fn a_reply_gets_author_call_ids_and_servers() {
    let session = start_with(&[Op::Chat], with_model(OnModelFailure::Policy));
    let reply = Reply::calls(vec![
        ToolCall::built_in("look", json!({})),
        ToolCall::built_in("x", json!({})),
    ]);
    let body =
        requests(&session)[0].outcome(Brought::Reply(reply), session.now(), Usage::default());
    let reply: Reply = serde_json::from_value(body.payload().unwrap()["reply"].clone()).unwrap();
    assert_eq!(reply.by, Author::Model("big".to_owned()));
    assert_eq!(reply.calls[0].server.as_deref(), Some("world"));
    assert_eq!(reply.calls[1].server, None);
    assert!(reply.calls[1].id.as_ref().unwrap().ends_with("-1"));
}

#[test]
fn an_outcome_that_does_not_fit_the_effect_is_malformed() {
    let mut session = start(&[Op::Look(vec![json!({})])]);
    let request = &requests(&session)[0];
    let reply = request.outcome(Brought::Reply(Reply::says("a")), session.now(), Usage::default());
    assert!(matches!(session.try_append(reply), Err(FoldError::Malformed { .. })));
    assert_eq!(json!(ToolOutcome::Ok(json!(1))), json!({"ok": 1}));
}
