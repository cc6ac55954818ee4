//! Models that are down, throttled, interrupted, too verbose or silent.

use std::time::Duration;

use graph::outcome::FailureKind;
use journal::clock::{Clock, Stamp};
use journal::step::Ending;
use serde_json::json;

use super::server::{Say, Server, Wire};
use super::world::{Went, World, detail, good_replies, models, went};

/// Checks both endings of a session whose model always fails the same way: with a fallback to the
/// policy, and in failure.
async fn always(say: Say, tries: usize, kind: FailureKind, category: impl Fn(Wire) -> String) {
    for wire in Wire::ALL.iter().copied() {
        for on_model_failure in ["policy", "fail"] {
            let say = say.clone();
            let more = json!({ "on_model_failure": on_model_failure });
            let (went, server) = went(wire, more, move |_, _| say.clone()).await;
            assert_eq!(server.heard().len(), tries, "{wire:?}: no other retries");
            check(&went, wire, on_model_failure, tries, kind, &category(wire));
        }
    }
}

fn check(
    went: &Went,
    wire: Wire,
    on_model_failure: &str,
    tries: usize,
    kind: FailureKind,
    category: &str,
) {
    let failures = went.failures();
    assert_eq!(failures.len(), tries, "{wire:?}");
    for failure in &failures {
        assert_eq!((failure.kind, failure.category.as_str()), (kind, category), "{failure:?}");
        assert_eq!(failure.model.as_deref(), Some(wire.model()));
    }
    let charged = went.attempts().iter().any(|attempt| attempt.usage.unsettled_tokens > 0);
    assert_eq!(charged, kind == FailureKind::Unknown, "what may have been used is charged");
    let (ending, ended_as, result) = went.end();
    let notes = went.notes("fallback");
    if on_model_failure == "fail" {
        assert_eq!((ending, ended_as.as_deref()), (Ending::Failed, Some(category)), "{wire:?}");
        assert!(notes.is_empty());
    } else {
        assert_eq!((ending, &result["diagnosed_by"]), (Ending::Completed, &json!("policy")));
        assert_eq!(notes.len(), 1);
        assert_eq!(
            (&notes[0]["category"], &notes[0]["model"]),
            (&json!(category), &json!(wire.model()))
        );
    }
}

#[tokio::test]
async fn a_throttled_model_is_retried_once() {
    always(Say::Throttled, 2, FailureKind::NotSent, |wire| wire.category("transient")).await;
}

#[tokio::test]
async fn refused_credentials_are_not_retried() {
    always(Say::Denied, 1, FailureKind::Refused, |wire| wire.category("auth")).await;
}

#[tokio::test]
async fn a_reply_of_five_megabytes_is_refused() {
    let invalid = |_| "model_invalid".to_owned();
    always(Say::Large(5_000_000), 2, FailureKind::Unknown, invalid).await;
}

#[tokio::test]
async fn a_stream_that_always_breaks_fails_the_model() {
    always(Say::Cut, 2, FailureKind::Unknown, |wire| wire.category("transient")).await;
}

#[tokio::test]
async fn a_server_that_is_not_a_model_fails() {
    let wire = Wire::OpenAi;
    let (went, _server) = went(wire, json!({"on_model_failure": "fail"}), |_, _| Say::Page).await;
    check(&went, wire, "fail", 2, FailureKind::Unknown, "model_invalid");
}

#[tokio::test]
async fn a_model_that_recovers_in_time_is_used() {
    let good = good_replies().await;
    for wire in Wire::ALL.iter().copied() {
        for say in [Say::Throttled, Say::Down, Say::Cut] {
            let says = good.clone();
            let script = move |turn: usize, number: usize| match number {
                1 => say.clone(),
                _ => says[turn].clone(),
            };
            let (went, server) = went(wire, json!({}), script).await;
            assert_eq!(went.end().2["diagnosed_by"], json!(wire.model()));
            assert_eq!(server.heard().len(), good.len() + 1);
            assert_eq!((went.failures().len(), went.notes("fallback").len()), (1, 0));
            let attempts = went.attempts();
            let pause = attempts[2].began.since(attempts[1].began);
            assert!(pause >= Duration::from_secs(1), "{pause:?}");
        }
    }
}

#[tokio::test]
async fn a_refused_connection_loses_no_reply() {
    for wire in Wire::ALL.iter().copied() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let world = World::new(models(&format!("http://{closed}")));
        let more = json!({"on_model_failure": "fail"});
        let went = world.work(&detail(wire.model(), &more), 0).await;
        let category = wire.category("transient");
        check(&went, wire, "fail", 2, FailureKind::NotSent, &category);
    }
}

#[tokio::test]
async fn a_model_that_never_answers_fails_after_two_timeouts() {
    for wire in Wire::ALL.iter().copied() {
        let server = Server::start(|_, _| Say::Hang).await;
        let clock = Clock::scaled(Stamp::from_millis(1_795_000_000_000), 30);
        let world = World::at(models(&server.url), clock);
        let more = json!({"on_model_failure": "fail"});
        let went = world.work(&detail(wire.model(), &more), 0).await;
        check(&went, wire, "fail", 2, FailureKind::Unknown, &wire.category("transient"));
        for attempt in went.attempts() {
            assert!(attempt.took >= Duration::from_secs(60), "{:?}", attempt.took);
        }
        assert_eq!(server.heard().len(), 2);
    }
}
