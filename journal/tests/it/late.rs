//! Announcements that are stored after the verdict but made before it.

use journal::announce::Announcer;
use journal::chain::{Author, End, Head, append, end_session};
use journal::clock::{Clock, Hlc, Stamp};
use journal::event::{About, Draft, EventStatus, Writer};
use journal::id::{Runner, SessionId};
use journal::item::{Hash, Item};
use journal::key;
use journal::seal::{seal, suspension};
use journal::step::{EffectKind, EffectRef, Ending, StepBody};
use journal::store::{Query, query_all};
use journal::verify::{Anchors, Damage, verify};
use serde_json::json;

const EXPIRES_AT: i64 = 1_900_000_000;

fn now() -> Stamp {
    Stamp::parse("2026-11-21T10:30:00Z").unwrap()
}

/// A session whose question was answered, then ended and sealed at once, before either announcement
/// was stored.
#[tokio::test]
async fn a_late_announcement_of_a_sealed_step_is_unsealed() {
    let temporary = crate::stores::sqlite();
    let (store, session) = (&temporary.store, &SessionId::fresh());
    let hlc = Hlc::new(Clock::fixed(now()), now());
    let author =
        Author { session: session.clone(), runner: Runner::named("agent"), expires_at: EXPIRES_AT };
    let claim = StepBody::Claim {
        supersedes: 0,
        agent: "a".to_owned(),
        graph_version: "1".to_owned(),
        input: Some(json!({})),
    };
    let effect = EffectRef {
        node: "ask".to_owned(),
        kind: EffectKind::Ask,
        digest: Hash::genesis(),
        call: 0,
    };
    let ask = StepBody::Ask { effect, expires_at: now(), payload: json!({ "question": "?" }) };
    let answer = StepBody::Answer {
        question: 2,
        principal: None,
        payload: json!({ "decision": "approve" }),
    };
    let mut head = Head::genesis();
    for body in [claim, ask, answer] {
        head = Head::after(&append(store, &hlc, &author, &head, 1, body).await.unwrap());
    }
    let announcer =
        Announcer { store, hlc: &hlc, session, writer: Writer::Agent, expires_at: EXPIRES_AT };
    let (asked_at, answered_at) = (hlc.tick(), hlc.tick());
    let end = End { ending: Ending::Cancelled, error: None, category: None, result: json!(null) };
    let end = end_session(store, &hlc, &author, &end).await.unwrap();
    let verdict = seal(store, &announcer, &end).await.unwrap();
    assert!(answered_at < verdict.stamp);
    let anchors = Anchors::of(Some(verdict.hash));
    let records = query_all(store, Query::all(key::session(session))).await.unwrap();
    let with = |late: &Item| {
        let mut records = records.clone();
        records.push(late.clone());
        records.sort_by(|a, b| a.sk.cmp(&b.sk));
        verify(session, &records, &anchors, now())
    };
    let announced = |draft: Draft, at| draft.to_item(session, Writer::Person, at, None, EXPIRES_AT);
    let answered = |step| Draft::new(EventStatus::InputReceived, About::Step(step));
    for late in [announced(suspension(2), asked_at), announced(answered(3), answered_at)] {
        let report = with(&late);
        assert_eq!((report.damage, report.unsealed), (vec![], vec![late.sk]));
    }
    for forged in [
        announced(answered(2), answered_at),
        announced(answered(3).with_detail(json!({ "by": "nobody" })), answered_at),
        announced(suspension(3), asked_at),
    ] {
        let report = with(&forged);
        let added =
            |damage: &Damage| matches!(damage, Damage::Added { place, .. } if *place == forged.sk);
        assert!(report.damage.iter().any(added), "{forged:?} {report:?}");
    }
}
