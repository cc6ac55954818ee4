//! Writing when replies are lost, writers collide, or the store fails.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use journal::announce::Announcer;
use journal::chain::{self, AppendError, Author, Body, End, Head};
use journal::clock::{Clock, Hlc, Stamp};
use journal::event::{About, Draft, Event, EventStatus, Writer};
use journal::id::{Runner, SessionId};
use journal::item::{Item, Value};
use journal::key;
use journal::lease::{Holder, HostEnd, HowHostEnded, Lease, end_host};
use journal::limits::{PAYLOAD_BYTES_MAX, WRITE_ATTEMPTS_MAX};
use journal::read::{self, ChainDamage};
use journal::seal;
use journal::step::{Ending, Step, StepBody};
use journal::store::{self, Condition, Error, Key, Page, Query, Store, Written};
use journal::wait::{Turn, Wait};
use serde_json::json;

on_both_stores!(
    after_a_lost_reply_a_writer_finds_its_own_record,
    after_a_lost_reply_a_writer_finds_anothers_record,
    a_lost_reply_announces_only_once,
    an_unavailable_store_is_an_error_in_bounded_time,
    a_collision_returns_the_winner_and_its_time,
    a_step_is_later_than_its_predecessor_on_any_clock,
    an_append_that_is_too_large_writes_nothing,
    no_record_names_missing_payload_parts,
    an_end_takes_the_next_number_after_a_collision,
    an_ended_session_keeps_its_end,
    a_gap_in_the_chain_is_corruption,
    a_step_with_a_wrong_previous_hash_is_corruption,
    a_verdict_names_the_end_and_every_event,
    a_session_is_sealed_once,
    an_event_concurrent_with_the_verdict_is_unsealed,
    only_an_end_can_be_sealed,
    a_stamp_far_from_its_writers_clock_stores_the_clock,
    a_full_session_accepts_only_its_verdict,
    a_cause_is_not_announced_after_its_effect,
    a_lease_rejects_older_epochs_and_a_second_invoker,
    the_exit_of_a_host_that_handed_over_tells_nothing_new,
    a_later_wait_wins_whatever_the_clocks_showed,
);

/// A fault of one write.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The write succeeds, but its reply is lost.
    AnswerLost,
    /// It does not happen.
    NotSent,
    None,
}

/// A store with faults.
#[derive(Clone)]
struct Faulty<S> {
    store: S,
    faults: Arc<Mutex<VecDeque<Fault>>>,
}

impl<S> Faulty<S> {
    fn new(store: S, faults: impl IntoIterator<Item = Fault>) -> Self {
        Self { store, faults: Arc::new(Mutex::new(faults.into_iter().collect())) }
    }

    fn next(&self) -> Fault {
        self.faults.lock().unwrap().pop_front().unwrap_or(Fault::None)
    }
}

impl<S: Store> Store for Faulty<S> {
    async fn put(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        match self.next() {
            Fault::NotSent => Err(Error::Unavailable("not sent".into())),
            Fault::AnswerLost => {
                self.store.put(item, condition).await?;
                Err(Error::Unknown("answer lost".into()))
            }
            Fault::None => self.store.put(item, condition).await,
        }
    }

    async fn update(
        &self,
        key: Key,
        set: BTreeMap<String, Value>,
        condition: Condition,
    ) -> Result<Written, Error> {
        self.store.update(key, set, condition).await
    }

    async fn get(&self, key: Key) -> Result<Option<Item>, Error> {
        self.store.get(key).await
    }

    async fn query(&self, query: Query) -> Result<Page, Error> {
        self.store.query(query).await
    }

    async fn changed(&self, timeout: Duration) {
        self.store.changed(timeout).await;
    }
}

const EXPIRES_AT: i64 = 1_900_000_000;

fn start() -> Stamp {
    Stamp::parse("2026-11-21T10:30:00Z").unwrap()
}

fn hlc() -> Hlc {
    Hlc::new(Clock::fixed(start()), Stamp::default())
}

fn author(session: &SessionId, runner: &str) -> Author {
    Author { session: session.clone(), runner: Runner::named(runner), expires_at: EXPIRES_AT }
}

fn note(text: &str) -> Body {
    StepBody::Note { subject: "case".to_owned(), principal: None, payload: json!(text) }
}

async fn append<S: Store>(
    store: &S,
    author: &Author,
    head: &Head,
    text: &str,
) -> Result<Step<serde_json::Value>, AppendError> {
    chain::append(store, &hlc(), author, head, 1, note(text)).await
}

async fn steps<S: Store>(store: &S, session: &SessionId) -> Vec<Step<serde_json::Value>> {
    read::resolved_steps(store, session).await.unwrap()
}

fn announcer<'a, S>(store: &'a S, hlc: &'a Hlc, session: &'a SessionId) -> Announcer<'a, S> {
    Announcer { store, hlc, session, writer: Writer::Poller, expires_at: EXPIRES_AT }
}

fn end(ending: Ending) -> End {
    End { ending, error: None, category: None, result: json!({ "by": ending.as_str() }) }
}

async fn after_a_lost_reply_a_writer_finds_its_own_record<S: Store>(store: S) {
    let session = SessionId::fresh();
    let faulty = Faulty::new(store.clone(), [Fault::AnswerLost, Fault::NotSent]);
    let step = append(&faulty, &author(&session, "a"), &Head::genesis(), "x").await.unwrap();
    assert_eq!(steps(&store, &session).await, [step]);
}

async fn after_a_lost_reply_a_writer_finds_anothers_record<S: Store>(store: S) {
    let session = SessionId::fresh();
    let winner = append(&store, &author(&session, "b"), &Head::genesis(), "y").await.unwrap();
    let faulty = Faulty::new(store.clone(), [Fault::NotSent, Fault::AnswerLost]);
    let error = append(&faulty, &author(&session, "a"), &Head::genesis(), "x").await.unwrap_err();
    assert!(matches!(error, AppendError::Collision(found) if *found == winner));
    assert_eq!(steps(&store, &session).await, [winner]);
}

async fn a_lost_reply_announces_only_once<S: Store>(store: S) {
    let session = SessionId::fresh();
    let faulty = Faulty::new(store.clone(), [Fault::AnswerLost, Fault::AnswerLost]);
    let hlc = hlc();
    let draft = Draft::new(EventStatus::AgentLost, About::Epoch(1));
    let event = announcer(&faulty, &hlc, &session).announce(&draft).await.unwrap();
    let announced = items(&store, &session, key::EVENT_PREFIX).await;
    assert_eq!(announced.into_iter().map(|item| item.sk).collect::<Vec<_>>(), [event.sk]);
}

async fn an_unavailable_store_is_an_error_in_bounded_time<S: Store>(store: S) {
    let session = SessionId::fresh();
    let attempts = usize::try_from(WRITE_ATTEMPTS_MAX).unwrap();
    let faulty = Faulty::new(store.clone(), vec![Fault::NotSent; attempts]);
    let error = append(&faulty, &author(&session, "a"), &Head::genesis(), "x").await.unwrap_err();
    assert!(matches!(error, AppendError::Store(Error::Unavailable(_))), "{error:?}");
    assert!(faulty.faults.lock().unwrap().is_empty());
    assert!(steps(&store, &session).await.is_empty());
}

async fn a_collision_returns_the_winner_and_its_time<S: Store>(store: S) {
    let session = SessionId::fresh();
    let large = "a payload of the winner ".repeat(1_000);
    let ahead = Hlc::new(Clock::fixed(start().after(Duration::from_secs(300))), Stamp::default());
    let body = note(&large);
    let winner = chain::append(&store, &ahead, &author(&session, "b"), &Head::genesis(), 1, body)
        .await
        .unwrap();
    let mine = hlc();
    let error =
        chain::append(&store, &mine, &author(&session, "a"), &Head::genesis(), 1, note("x"))
            .await
            .unwrap_err();
    assert!(matches!(error, AppendError::Collision(found) if *found == winner));
    let next =
        chain::append(&store, &mine, &author(&session, "a"), &Head::after(&winner), 1, note("x"))
            .await
            .unwrap();
    assert!(next.stamp > winner.stamp, "a cause sorts after its effect");
    assert_eq!((next.seq, &next.prev_hash), (2, &winner.hash));
    assert_eq!(steps(&store, &session).await, [winner, next]);
}

/// A runner that takes over has read the chain and may have received no other timestamp.
async fn a_step_is_later_than_its_predecessor_on_any_clock<S: Store>(store: S) {
    let session = SessionId::fresh();
    let ahead = Hlc::new(Clock::fixed(start().after(Duration::from_secs(300))), Stamp::default());
    let (lost, next) = (author(&session, "lost"), author(&session, "next"));
    let before = chain::append(&store, &ahead, &lost, &Head::genesis(), 1, note("x")).await;
    let before = before.unwrap();
    let after = chain::append(&store, &hlc(), &next, &Head::after(&before), 2, note("y")).await;
    assert!(after.unwrap().stamp > before.stamp, "a cause sorts after its effect");
    let end = End { ending: Ending::Cancelled, error: None, category: None, result: json!(null) };
    let ended = chain::end_session(&store, &hlc(), &next, &end).await.unwrap();
    assert!(ended.stamp > before.stamp, "an end sorts before what it ends");
}

async fn an_append_that_is_too_large_writes_nothing<S: Store>(store: S) {
    let session = SessionId::fresh();
    let faulty = Faulty::new(store, vec![Fault::NotSent; 100]);
    let large = "x".repeat(PAYLOAD_BYTES_MAX);
    let error =
        append(&faulty, &author(&session, "a"), &Head::genesis(), &large).await.unwrap_err();
    assert!(matches!(error, AppendError::TooLarge(_)), "{error:?}");
    assert_eq!(faulty.faults.lock().unwrap().len(), 100, "something was written");
    let full = Head { seq: journal::limits::STEPS_MAX, ..Head::genesis() };
    let error = append(&faulty, &author(&session, "a"), &full, "x").await.unwrap_err();
    assert!(matches!(error, AppendError::Full), "{error:?}");
}

/// Text that does not compress.
fn noise() -> String {
    let mut hash = journal::item::Hash::genesis();
    let mut text = String::new();
    while text.len() < 1_000_000 {
        hash = journal::item::Hash::of(hash.as_str().as_bytes());
        text.push_str(hash.as_str());
    }
    text
}

async fn no_record_names_missing_payload_parts<S: Store>(store: S) {
    let attempts = usize::try_from(WRITE_ATTEMPTS_MAX).unwrap();
    // Each of the two parts, then the record, cannot be written.
    for written in 0..3 {
        let session = SessionId::fresh();
        let mut faults = vec![Fault::None; written];
        faults.extend(vec![Fault::NotSent; attempts]);
        let faulty = Faulty::new(store.clone(), faults);
        let author = author(&session, "a");
        append(&faulty, &author, &Head::genesis(), &noise()).await.unwrap_err();
        assert!(steps(&store, &session).await.is_empty());
        let step = append(&faulty, &author, &Head::genesis(), &noise()).await.unwrap();
        assert_eq!(steps(&store, &session).await, [step]);
    }
}

async fn an_end_takes_the_next_number_after_a_collision<S: Store>(store: S) {
    let session = SessionId::fresh();
    let agent = author(&session, "agent");
    let mut head = Head::genesis();
    for text in ["1", "2"] {
        head = Head::after(&append(&store, &agent, &head, text).await.unwrap());
    }
    let poller = author(&session, "poller");
    let ended = chain::end_session(&store, &hlc(), &poller, &end(Ending::TimedOut)).await.unwrap();
    assert_eq!((ended.seq, ended.epoch, &ended.runner), (3, 1, &poller.runner));
    // The agent did not notice, and its append collides with the end.
    let error = append(&store, &agent, &head, "3").await.unwrap_err();
    assert!(matches!(error, AppendError::Collision(found) if *found == ended));
    assert_eq!(steps(&store, &session).await.len(), 3);
}

async fn an_ended_session_keeps_its_end<S: Store>(store: S) {
    let session = SessionId::fresh();
    let author = author(&session, "a");
    let first = chain::end_session(&store, &hlc(), &author, &end(Ending::Rejected)).await.unwrap();
    let second = chain::end_session(&store, &hlc(), &author, &end(Ending::Failed)).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(steps(&store, &session).await, [first]);
}

async fn items<S: Store>(store: &S, session: &SessionId, prefix: &str) -> Vec<Item> {
    store::query_all(store, Query::prefix(key::session(session), prefix)).await.unwrap()
}

/// Writes the items of a chain of three steps, changed by `with`, and returns the damage found.
async fn damaged<S: Store>(store: &S, with: impl Fn(usize, Item) -> Option<Item>) -> ChainDamage {
    let (whole, broken) = (SessionId::fresh(), SessionId::fresh());
    let mut head = Head::genesis();
    for text in ["1", "2", "3"] {
        head = Head::after(&append(store, &author(&whole, "a"), &head, text).await.unwrap());
    }
    let items = items(store, &whole, key::STEP_PREFIX).await;
    for (place, item) in items.into_iter().enumerate() {
        let item = Item { pk: key::session(&broken), ..item };
        if let Some(item) = with(place, item) {
            store.put(item, Condition::Absent).await.unwrap();
        }
    }
    match read::steps(store, &broken).await.unwrap_err() {
        Error::Corrupt(cause) => cause.downcast_ref::<ChainDamage>().unwrap().clone(),
        other => panic!("{other:?}"),
    }
}

async fn a_gap_in_the_chain_is_corruption<S: Store>(store: S) {
    let without_first = damaged(&store, |place, item| (place != 0).then_some(item)).await;
    assert_eq!(without_first, ChainDamage::Gap { missing: 1, found: 2 });
}

async fn a_step_with_a_wrong_previous_hash_is_corruption<S: Store>(store: S) {
    // The hash covers the partition, so that no step of another session fits.
    let foreign = damaged(&store, |_, item| Some(item)).await;
    assert!(matches!(foreign, ChainDamage::Broken { seq: 2, .. }), "{foreign:?}");
}

async fn a_verdict_names_the_end_and_every_event<S: Store>(store: S) {
    let session = SessionId::fresh();
    let hlc = hlc();
    let announcer = announcer(&store, &hlc, &session);
    let mut announced = Vec::new();
    for attempt in 1..=3 {
        let draft = Draft::new(EventStatus::AgentInvocationStarted, About::Attempt(attempt));
        announced.push(announcer.announce(&draft).await.unwrap());
    }
    let author = author(&session, "poller");
    let end = chain::end_session(&store, &hlc, &author, &end(Ending::Cancelled)).await.unwrap();
    let verdict = seal::seal(&store, &announcer, &end).await.unwrap();
    assert_eq!((verdict.status, verdict.about), (EventStatus::SessionCancelled, About::Step(1)));
    assert!(verdict.stamp > end.stamp);
    let seal = verdict.seal.unwrap();
    assert_eq!((seal.end_seq, seal.end_hash), (1, end.hash));
    let expected: serde_json::Value =
        announced.iter().map(|event: &Event| json!([event.sk, event.hash.as_str()])).collect();
    assert_eq!(seal.manifest.decode(&[]).unwrap(), expected);
}

async fn a_session_is_sealed_once<S: Store>(store: S) {
    let session = SessionId::fresh();
    let hlc = hlc();
    let announcer = announcer(&store, &hlc, &session);
    let author = author(&session, "poller");
    let end = chain::end_session(&store, &hlc, &author, &end(Ending::Failed)).await.unwrap();
    let first = seal::seal(&store, &announcer, &end).await.unwrap();
    let second = seal::seal(&store, &announcer, &end).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(read::events(&store, &session).await.unwrap(), [first]);
}

async fn an_event_concurrent_with_the_verdict_is_unsealed<S: Store>(store: S) {
    let session = SessionId::fresh();
    let (early, late) = (hlc(), hlc());
    late.observe(start().after(Duration::from_secs(10)));
    let author = author(&session, "poller");
    let end = chain::end_session(&store, &early, &author, &end(Ending::Failed)).await.unwrap();
    let verdict = seal::seal(&store, &announcer(&store, &late, &session), &end).await.unwrap();
    // A delayed writer's timestamp, earlier than the sealer's own time.
    let announced = Draft::new(EventStatus::AgentInvocationSucceeded, About::Attempt(10));
    let announced = announcer(&store, &early, &session).announce(&announced).await.unwrap();
    let records = journal::export::records(&store, &session).await.unwrap();
    let anchors = journal::verify::Anchors::of(Some(verdict.hash));
    let report = journal::verify::verify(&session, &records, &anchors, start());
    assert_eq!((report.damage, report.unsealed), (vec![], vec![announced.sk]));
}

async fn only_an_end_can_be_sealed<S: Store>(store: S) {
    let session = SessionId::fresh();
    let hlc = hlc();
    let step = append(&store, &author(&session, "a"), &Head::genesis(), "x").await.unwrap();
    let error = seal::seal(&store, &announcer(&store, &hlc, &session), &step).await.unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error:?}");
    assert!(read::events(&store, &session).await.unwrap().is_empty());
}

async fn a_stamp_far_from_its_writers_clock_stores_the_clock<S: Store>(store: S) {
    let session = SessionId::fresh();
    for (behind, noted) in [(0, false), (1_000, false), (1_001, true), (300_000, true)] {
        let seen = start().after(Duration::from_millis(behind));
        let hlc = Hlc::new(Clock::fixed(start()), seen.before(Duration::from_nanos(1)));
        let draft = Draft::new(EventStatus::AgentLost, About::Epoch(1));
        let event = announcer(&store, &hlc, &session).announce(&draft).await.unwrap();
        assert_eq!(event.stamp, seen);
        assert_eq!(event.wall, noted.then_some(start()), "{behind} ms behind");
    }
}

async fn a_cause_is_not_announced_after_its_effect<S: Store>(store: S) {
    let session = SessionId::fresh();
    let hlc = hlc();
    let announcer = announcer(&store, &hlc, &session);
    let of = |status, attempt| Draft::new(status, About::Attempt(attempt));
    let entered = of(EventStatus::AgentEntrypointStarted, 10);
    announcer.announce(&entered).await.unwrap();
    let late = announcer.announce_once(&of(EventStatus::AgentInvocationStarted, 10)).await;
    assert!(matches!(late, Err(Error::Refused(_))), "{late:?}");
    let another = of(EventStatus::AgentInvocationStarted, 11);
    announcer.announce_once(&another).await.unwrap();
    announcer.announce(&of(EventStatus::AgentEntrypointStarted, 11)).await.unwrap();
    assert!(announcer.announce_once(&another).await.is_ok(), "an event written in time is adopted");
}

async fn a_full_session_accepts_only_its_verdict<S: Store>(store: S) {
    let session = SessionId::fresh();
    let hlc = hlc();
    let announcer = announcer(&store, &hlc, &session);
    for attempt in 1..=999 {
        let draft = Draft::new(EventStatus::AgentInvocationStarted, About::Attempt(attempt));
        announcer.announce(&draft).await.unwrap();
    }
    let one_more = Draft::new(EventStatus::AgentInvocationStarted, About::Attempt(1_000));
    assert!(matches!(announcer.announce_once(&one_more).await, Err(Error::Refused(_))));
    let announced = Draft::new(EventStatus::AgentInvocationStarted, About::Attempt(999));
    assert!(
        announcer.announce_once(&announced).await.is_ok(),
        "an event already written is still adopted"
    );
    let author = author(&session, "poller");
    let end = chain::end_session(&store, &hlc, &author, &end(Ending::Failed)).await.unwrap();
    let verdict = seal::seal(&store, &announcer, &end).await.unwrap();
    let records = journal::export::records(&store, &session).await.unwrap();
    let anchors = journal::verify::Anchors {
        last_step: Some((1, end.hash)),
        ..journal::verify::Anchors::of(Some(verdict.hash))
    };
    let report = journal::verify::verify(&session, &records, &anchors, start());
    assert!(report.is_sound(), "{:?}", report.damage);
    assert_eq!(records.iter().filter(|item| item.sk.starts_with(key::EVENT_PREFIX)).count(), 1_000);
}

async fn a_lease_rejects_older_epochs_and_a_second_invoker<S: Store>(store: S) {
    let session = SessionId::fresh();
    let beating = |epoch, heartbeat| Lease {
        epoch,
        holder: Holder::Runner(Runner::named("agent:1")),
        heartbeat,
        heartbeat_at: start(),
    };
    let invoked = Lease::unclaimed(1, start());
    assert!(invoked.create(&store, &session, EXPIRES_AT).await.unwrap());
    assert!(beating(2, 7).write(&store, &session, EXPIRES_AT).await.unwrap());
    assert!(!beating(1, 8).write(&store, &session, EXPIRES_AT).await.unwrap());
    assert!(!invoked.create(&store, &session, EXPIRES_AT).await.unwrap());
    let again = Lease::unclaimed(2, start());
    assert!(!again.create(&store, &session, EXPIRES_AT).await.unwrap());
    assert_eq!(Lease::read(&store, &session).await.unwrap(), Some(beating(2, 7)));
    let next = Lease::unclaimed(3, start());
    assert!(next.create(&store, &session, EXPIRES_AT).await.unwrap());
    assert_eq!(Lease::read(&store, &session).await.unwrap(), Some(next));
}

async fn the_exit_of_a_host_that_handed_over_tells_nothing_new<S: Store>(store: S) {
    let session = SessionId::fresh();
    let end = |how, second| HostEnd { how, at: start().after(Duration::from_secs(second)) };
    let handed_over = Lease {
        holder: Holder::Ended(end(HowHostEnded::HandedOver, 1)),
        ..Lease::unclaimed(2, start())
    };
    assert!(handed_over.write(&store, &session, EXPIRES_AT).await.unwrap());
    let exited = end(HowHostEnded::Exited, 2);
    assert!(!end_host(&store, &session, 2, exited).await.unwrap());
    assert_eq!(Lease::read(&store, &session).await.unwrap(), Some(handed_over.clone()));
    // At a start, its workflow has to look at it.
    assert!(end_host(&store, &session, 2, end(HowHostEnded::Restarted, 3)).await.unwrap());
    assert_eq!(Lease::read(&store, &session).await.unwrap(), Some(handed_over));
    // The next host has claimed it, and was lost.
    assert!(end_host(&store, &session, 3, exited).await.unwrap());
    let lease = Lease::read(&store, &session).await.unwrap().unwrap();
    assert_eq!((lease.epoch, lease.holder), (3, Holder::Ended(exited)));
}

async fn a_later_wait_wins_whatever_the_clocks_showed<S: Store>(store: S) {
    let session = SessionId::fresh();
    let turn = |resumes, checks, retry| Turn { resumes, checks, retry };
    let park = async |token: &str, turn| {
        let written = Wait::write(&store, &session, token, turn, EXPIRES_AT).await.unwrap();
        (written, Wait::read(&store, &session).await.unwrap().unwrap().token)
    };
    // As earlier versions wrote it, with a clock that was an hour ahead.
    let old = Item::new(key::session(&session), key::WAIT)
        .with("ExpiresAt", EXPIRES_AT)
        .with("Token", "old")
        .with("ParkedAt", start().after(Duration::from_secs(3_600)).to_string());
    assert_eq!(store.put(old, Condition::Absent).await.unwrap(), Written::Done);
    let read = Wait::read(&store, &session).await.unwrap().unwrap();
    assert_eq!((read.token.as_str(), read.turn), ("old", None));
    for (token, turn, expected) in [
        ("a", turn(0, 1, 0), "a"),
        ("b", turn(0, 2, 0), "b"),
        ("late", turn(0, 1, 5), "b"),
        ("retried", turn(0, 2, 1), "retried"),
        ("tenth", turn(0, 10, 0), "tenth"),
        ("ninth", turn(0, 9, 9), "tenth"),
        ("resumed", turn(1, 0, 0), "resumed"),
        ("gone", turn(0, 11, 0), "resumed"),
    ] {
        assert_eq!(park(token, turn).await, (token == expected, expected.to_owned()));
    }
}
