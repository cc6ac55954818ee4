//! The poller handles a session with five hundred events like one with five.

use journal::announce::Announcer;
use journal::event::{About, Draft, EventStatus, Writer};
use journal::item::Hash;
use journal::lease::Lease;
use journal::read;
use journal::step::{EffectKind, EffectRef, Ending, StepBody};
use journal::store::Store;
use serde_json::json;
use sim::interleave::{Limits, Race};
use std::time::Duration;
use workflow::contract::Mode;

use super::bench::{Bench, at_least};
use super::stage::{Stage, spelled};

on_both_stores!(a_session_with_five_hundred_events_is_decided_correctly);

const EVENTS: usize = 500;

/// The state of the session at the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Ended,
    Asking,
    Silent,
    /// Cancelled before this many of the events.
    Cancelled(usize),
}

fn a_session_with_five_hundred_events_is_decided_correctly<S: Store>(bench: &Bench<S>) {
    for (case, expected) in [
        (Case::Ended, "COMPLETED"),
        (Case::Asking, "WAITING"),
        (Case::Silent, "LOST"),
        (Case::Cancelled(0), "CANCELLED"),
        (Case::Cancelled(5), "CANCELLED"),
        (Case::Cancelled(450), "CANCELLED"),
    ] {
        bench.race(
            at_least(1, Limits::NONE),
            at_least(1, Limits::NONE),
            async |race| session(race, case).await,
            async |race, stage| {
                let mut broken = Vec::new();
                let shown = stage.events().await.len();
                let poller = stage.poller(stage.store.clone());
                let reply = poller.handle(stage.check_request(Mode::Check)).await.unwrap();
                if (shown, spelled(reply.status).as_str()) != (EVENTS, expected) {
                    broken.push(format!("{case:?}: {shown} events, status {:?}", reply.status));
                }
                if reply.verdict.is_some() {
                    broken.extend(stage.judge(race).await);
                    broken.extend(unsealed(&stage).await);
                }
                broken
            },
        );
    }
}

/// Events that the verdict does not name.
async fn unsealed<S: Store>(stage: &Stage<S>) -> Vec<String> {
    let events = stage.events().await;
    let verdict = events.iter().find(|event| event.status.is_verdict());
    let seal = verdict.and_then(|verdict| verdict.seal.as_ref()).unwrap();
    let manifest = read::payload(&stage.store, &stage.session, &seal.manifest).await.unwrap();
    let named = |sk: &str| manifest.as_array().unwrap().iter().any(|entry| entry[0] == sk);
    let others = events.iter().filter(|event| !event.status.is_verdict());
    let unsealed = others.filter(|event| !named(&event.sk));
    unsealed.map(|event| format!("{} is not sealed", event.sk)).collect()
}

/// A session whose agent was invoked repeatedly.
async fn session<S: Store>(race: &Race<S>, case: Case) -> Stage<S> {
    use EventStatus as E;
    let stage = Stage::begun(race).await;
    let (store, hlc, session) = (&stage.store, &stage.hlc(), &stage.session);
    let claim = StepBody::Claim {
        supersedes: 0,
        agent: "checkup".to_owned(),
        graph_version: "1".to_owned(),
        input: Some(json!({ "input": {} })),
    };
    let claimed = stage.append("agent-one", 1, claim).await;
    hlc.observe(claimed.stamp);
    let events = [
        (Writer::Invoker, E::AgentInvocationStarted),
        (Writer::Agent, E::AgentEntrypointStarted),
        (Writer::Invoker, E::AgentInvocationSucceeded),
    ];
    let attempts = (10_u32..).flat_map(|n| events.map(|(writer, status)| (writer, status, n)));
    let mut attempts = attempts.map(|(writer, status, n)| (writer, status, About::Attempt(n)));
    for place in 1..EVENTS {
        let cancelled = matches!(case, Case::Cancelled(before) if place + before + 1 == EVENTS);
        let next = (Writer::Person, E::CancelRequested, About::Session);
        let (writer, status, about) =
            if cancelled { next } else { attempts.next().unwrap_or(next) };
        let announcer = Announcer { store, hlc, session, writer, expires_at: stage.expires_at };
        announcer.announce(&Draft::new(status, about)).await.unwrap();
    }
    match case {
        Case::Ended => {
            let end = StepBody::End {
                answered_by: None,
                ending: Ending::Completed,
                error: None,
                category: None,
                payload: json!(null),
            };
            let ended = stage.append("agent-one", 1, end).await;
            hlc.observe(ended.stamp);
        }
        Case::Asking => {
            let (node, digest) = ("ask".to_owned(), Hash::genesis());
            let effect = EffectRef { node, kind: EffectKind::Ask, digest, call: 0 };
            let expires_at = stage.clock.now().after(Duration::from_secs(86_400));
            let ask = StepBody::Ask { effect, expires_at, payload: json!({}) };
            stage.append("agent-one", 1, ask).await;
        }
        Case::Silent | Case::Cancelled(_) => {
            let released = Lease { heartbeat: 1, ..Lease::unclaimed(1, stage.clock.now()) };
            assert!(released.write(store, session, stage.expires_at).await.unwrap());
        }
    }
    stage
}
