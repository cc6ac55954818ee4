//! Steps and events on a store: chains, ends and announcements with concurrent writers.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::noise;
use crate::announce::Announcer;
use crate::chain::{self, AppendError, Author, Body, End, Head};
use crate::clock::{Clock, Hlc, Stamp};
use crate::event::{About, Draft, EventStatus, Writer};
use crate::id::{Runner, SessionId};
use crate::read;
use crate::step::{Ending, StepBody};
use crate::store::Store;

fn hlc() -> Hlc {
    Hlc::new(Clock::system(), Stamp::default())
}

fn author(session: &SessionId, runner: &str) -> Author {
    Author {
        session: session.clone(),
        runner: Runner::named(runner),
        expires_at: Clock::system().now().seconds() + 86_400,
    }
}

fn is_end(body: &Body) -> bool {
    matches!(body, StepBody::End { .. })
}

fn note(text: &str) -> Body {
    StepBody::Note { subject: "case".to_owned(), principal: None, payload: json!(text) }
}

/// Appends until it succeeds, reading the steps of others first, or until the session has ended.
/// Returns the head.
async fn append_after_all<S: Store>(
    store: &S,
    author: &Author,
    mut head: Head,
    text: &str,
) -> Head {
    let hlc = hlc();
    loop {
        match chain::append(store, &hlc, author, &head, 1, note(text)).await {
            Ok(step) => return Head::after(&step),
            Err(AppendError::Collision(winner)) if is_end(&winner.body) => {
                return Head::after(&winner);
            }
            Err(AppendError::Collision(winner)) => head = Head::after(&winner),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Eight concurrent runners lose no step and leave no gap.
pub async fn concurrent_runners_leave_a_dense_chain<S: Store>(store: &S) {
    let session = SessionId::fresh();
    let mut runners = tokio::task::JoinSet::new();
    for runner in 0..8 {
        let (store, author) = (store.clone(), author(&session, &format!("runner:{runner}")));
        runners.spawn(async move {
            let mut head = Head::genesis();
            for n in 0..5 {
                head = append_after_all(&store, &author, head, &format!("{runner}/{n}")).await;
            }
        });
    }
    runners.join_all().await;
    let steps = read::resolved_steps(store, &session).await.unwrap();
    assert_eq!(steps.len(), 40);
    let texts: BTreeSet<_> =
        steps.iter().filter_map(|step| step.body.payload()).map(Json::to_string).collect();
    assert_eq!(texts.len(), 40, "a note is missing or duplicated");
    for runner in 0..8 {
        let name = format!("runner:{runner}");
        let mine = steps.iter().filter(|step| step.runner.as_str() == name);
        let order: Vec<_> = mine.filter_map(|step| step.body.payload()?.as_str()).collect();
        let expected: Vec<_> = (0..5).map(|n| format!("{runner}/{n}")).collect();
        assert_eq!(order, expected);
    }
}

/// All that end a session concurrently learn of the same end, and nothing follows it.
pub async fn a_session_ends_once<S: Store>(store: &S) {
    for _ in 0..5 {
        let session = SessionId::fresh();
        let mut enders = tokio::task::JoinSet::new();
        for ending in [Ending::Completed, Ending::Failed, Ending::Cancelled, Ending::TimedOut] {
            let (store, author) = (store.clone(), author(&session, ending.as_str()));
            enders.spawn(async move {
                append_after_all(&store, &author, Head::genesis(), "work").await;
                let result = json!({ "by": ending.as_str() });
                let end = End { ending, error: None, category: None, result };
                chain::end_session(&store, &hlc(), &author, &end).await.unwrap()
            });
        }
        let ends = enders.join_all().await;
        let steps = read::resolved_steps(store, &session).await.unwrap();
        let last = steps.last().unwrap();
        assert_eq!(steps.iter().filter(|step| is_end(&step.body)).count(), 1);
        assert!(ends.iter().all(|end| end == last), "the end is not the session's last step");
    }
}

/// Writers whose clocks show the same nanosecond overwrite nothing.
pub async fn announcements_at_one_nanosecond_are_all_kept<S: Store>(store: &S) {
    let session = SessionId::fresh();
    let at = Stamp::from_millis(1_795_000_000_000);
    let mut writers = tokio::task::JoinSet::new();
    for attempt in 1..=8 {
        let (store, session) = (store.clone(), session.clone());
        writers.spawn(async move {
            let hlc = Hlc::new(Clock::fixed(at), Stamp::default());
            let announcer = Announcer {
                store: &store,
                hlc: &hlc,
                session: &session,
                writer: Writer::Invoker,
                expires_at: 1_795_000_000,
            };
            let draft = Draft::new(EventStatus::AgentInvocationStarted, About::Attempt(attempt));
            announcer.announce(&draft).await.unwrap()
        });
    }
    let written = writers.join_all().await;
    let listed = read::events(store, &session).await.unwrap();
    assert_eq!(listed.len(), 8);
    for event in &written {
        assert!(listed.contains(event));
    }
    let stamps: Vec<_> = listed.iter().map(|event| event.stamp.nanos() - at.nanos()).collect();
    assert_eq!(stamps, (0..8).collect::<Vec<_>>());
}

/// A second attempt adopts what the first one wrote, and readers show a duplicate once.
pub async fn an_announcement_is_written_once<S: Store>(store: &S) {
    let session = SessionId::fresh();
    let draft = Draft::new(EventStatus::AgentInvocationStarted, About::Attempt(1));
    let mut announced = Vec::new();
    for once in [true, true, false] {
        let hlc = hlc();
        let announcer = Announcer {
            store,
            hlc: &hlc,
            session: &session,
            writer: Writer::Invoker,
            expires_at: hlc.clock().now().seconds() + 86_400,
        };
        announced.push(if once {
            announcer.announce_once(&draft).await.unwrap()
        } else {
            announcer.announce(&draft).await.unwrap()
        });
    }
    assert_eq!(announced[0], announced[1]);
    assert_ne!(announced[0].sk, announced[2].sk);
    assert_eq!(read::events(store, &session).await.unwrap(), announced[..1]);
}

pub async fn a_large_payload_is_read_back<S: Store>(store: &S) {
    let session = SessionId::fresh();
    let text = hex::encode(noise(900_000));
    let (author, hlc) = (author(&session, "runner:1"), hlc());
    let step = chain::append(store, &hlc, &author, &Head::genesis(), 1, note(&text)).await.unwrap();
    let read = read::resolved_steps(store, &session).await.unwrap();
    assert_eq!(read, [step]);
    assert_eq!(read[0].body.payload(), Some(&json!(text)));
}
