//! Exporting, importing, listing and following, on both stores.

use std::time::Duration;

use journal::announce::Announcer;
use journal::chain::{self, Author, End, Head};
use journal::clock::{Clock, Hlc, Stamp};
use journal::event::{About, Draft, EventStatus, Writer};
use journal::export::{self, Here, ImportError};
use journal::follow::{Follow, Record};
use journal::id::{EventId, Runner, SessionId};
use journal::item::{Hash, Item};
use journal::key;
use journal::limits::ITEM_BYTES_MAX;
use journal::listing::{self, Filter, Search, Summary, SummaryCache};
use journal::seal;
use journal::status::Status;
use journal::step::{EffectKind, EffectRef, Ending, StepBody};
use journal::store::{Condition, Key, Store, Written};
use journal::verify::{Anchor, Anchors, State, verify};
use serde_json::json;

use crate::golden;

on_both_stores!(
    a_session_survives_export_and_import,
    an_import_overwrites_nothing,
    a_damaged_file_is_not_imported,
    sessions_are_listed_newest_first,
    sessions_are_filtered_by_status_and_agent,
    pages_of_any_size_join_to_the_whole_list,
    a_listed_session_shows_its_new_records_next_time,
    an_unannounced_question_is_listed_as_waiting,
    a_session_is_listed_once_at_its_first_initiation,
    a_contradicting_timestamp_hides_no_other_session,
    a_histogram_counts_starts_and_ends_per_bucket,
    an_unreadable_session_does_not_hide_others,
    following_a_session_returns_each_record_once,
    a_follower_wakes_for_a_new_record,
    a_session_written_through_the_store_verifies,
);

fn exported(records: &[Item]) -> export::Export {
    let mut bytes = Vec::new();
    export::write(&golden::session(), records, &mut bytes).unwrap();
    export::read(&bytes[..]).unwrap()
}

async fn import<S: Store>(store: &S, records: &[Item]) -> Result<export::Imported, ImportError> {
    export::import(store, &Clock::system(), &exported(records), Here::default()).await
}

async fn a_session_survives_export_and_import<S: Store>(store: S) {
    let records = golden::large();
    let imported = import(&store, &records).await.unwrap();
    assert_eq!((imported.written, imported.present), (records.len(), 0));
    assert!(matches!(imported.report.state, State::Sealed { .. }), "{:?}", imported.report);
    assert_eq!(imported.report.anchors, [Anchor::Witness]);
    assert_eq!(export::records(&store, &golden::session()).await.unwrap(), records);
    let again = import(&store, &records).await.unwrap();
    assert_eq!((again.written, again.present), (0, records.len()));
}

async fn an_import_overwrites_nothing<S: Store>(store: S) {
    let records = golden::small();
    let other = records[12].clone().with("Subject", "other").hashed();
    store.put(other.clone(), Condition::Absent).await.unwrap();
    let error = import(&store, &records).await.unwrap_err();
    let place = Key::new(other.pk.as_str(), other.sk.as_str());
    assert!(matches!(error, ImportError::Conflict(ref key) if *key == place), "{error:?}");
    assert_eq!(export::records(&store, &golden::session()).await.unwrap(), [other]);
}

async fn a_damaged_file_is_not_imported<S: Store>(store: S) {
    let mut export = exported(&golden::small());
    export.records.remove(3);
    let foreign = exported(&[Item::new("ADMIT#incident", "SLOT#1")]);
    let lease = exported(&[Item::new(key::session(&golden::session()), key::LEASE)]);
    // The first records could be written; because of the last one, none is.
    let records = golden::small();
    let other = records[12].clone().with("Subject", "other").hashed();
    let twice = exported(&[&records[..], &[other]].concat());
    let part = Item::new(key::blob(&golden::session(), "aa"), key::part(0));
    let part = part.with("Bytes", vec![0; ITEM_BYTES_MAX]).hashed();
    let too_large = exported(&[&records[..], &[part]].concat());
    let no_export = export::read(&b"{}"[..]).unwrap();
    // All lines are what they state, but the records do not fit together.
    let gap = exported(&[&records[..13], &records[14..]].concat());
    for export in [export, foreign, lease, twice, too_large, no_export, gap] {
        let error =
            export::import(&store, &Clock::system(), &export, Here::default()).await.unwrap_err();
        assert!(matches!(error, ImportError::Damaged(_)), "{error:?}");
    }
    assert!(export::records(&store, &golden::session()).await.unwrap().is_empty());
}

/// Session ids that start with every digit, so that all partitions of a day are used.
fn id(number: u32) -> SessionId {
    format!("{number:08x}-7b1e-4cc3-98c4-dc0c0c07398f")
        .chars()
        .rev()
        .collect::<String>()
        .parse()
        .unwrap()
}

fn spread(number: u32) -> SessionId {
    format!("{:x}{}", number % 16, &id(number).as_str()[1..]).parse().unwrap()
}

fn start() -> Stamp {
    Stamp::parse("2026-11-20T23:00:00Z").unwrap()
}

fn began(number: u32) -> Stamp {
    start().after(Duration::from_secs(u64::from(number) * 600))
}

async fn begin<S: Store>(store: &S, session: &SessionId, at: Stamp) {
    let item = Item::new(key::session(session), key::event(at))
        .with("V", 1_i64)
        .with("Status", "SESSION_INITIATED")
        .with("Timestamp", at.to_string())
        .with("EventId", EventId::initiated().as_str())
        .with("Writer", "state-machine")
        .with("Day", key::day(at, session))
        .with("ExecutionArn", format!("arn:{session}"))
        .with("ExpiresAt", at.seconds() + 90 * 86_400);
    assert_eq!(store.put(item, Condition::Absent).await.unwrap(), Written::Done);
}

/// Runs a session from its claim to its verdict.
async fn finish<S: Store>(store: &S, session: &SessionId, agent: &str, ending: Ending, at: Stamp) {
    let hlc = Hlc::new(Clock::fixed(at), at);
    let expires_at = at.seconds() + 90 * 86_400;
    let author = Author { session: session.clone(), runner: Runner::named("agent:1"), expires_at };
    let claim = StepBody::Claim {
        supersedes: 0,
        agent: agent.to_owned(),
        graph_version: "1".to_owned(),
        input: Some(json!({})),
    };
    chain::append(store, &hlc, &author, &Head::genesis(), 1, claim).await.unwrap();
    let end = End { ending, error: None, category: Some("c".to_owned()), result: json!("done") };
    let end = chain::end_session(store, &hlc, &author, &end).await.unwrap();
    let announcer = Announcer { store, hlc: &hlc, session, writer: Writer::Poller, expires_at };
    seal::seal(store, &announcer, &end).await.unwrap();
}

/// Twenty sessions, ten minutes apart, across midnight; every third has ended.
async fn fill<S: Store>(store: &S) {
    for number in 0..20 {
        let session = spread(number);
        begin(store, &session, began(number)).await;
        if number % 3 == 0 {
            let ending = if number % 2 == 0 { Ending::Completed } else { Ending::Failed };
            let later = began(number).after(Duration::from_secs(4_000));
            finish(store, &session, if number < 9 { "incident" } else { "fraud" }, ending, later)
                .await;
        }
    }
}

async fn sessions_are_listed_newest_first<S: Store>(store: S) {
    fill(&store).await;
    let far = began(1_000);
    let list = async |since, until, limit| {
        let listed = listing::list(&store, since, until, limit).await.unwrap();
        listed.into_iter().map(|listed| listed.session).collect::<Vec<_>>()
    };
    let newest_first = |range: std::ops::Range<u32>| range.rev().map(spread).collect::<Vec<_>>();
    assert_eq!(list(start(), far, 100).await, newest_first(0..20));
    assert_eq!(list(start(), far, 5).await, newest_first(15..20));
    assert_eq!(list(start(), far, 0).await, []);
    assert_eq!(list(began(3), began(8), 100).await, newest_first(3..9));
    assert_eq!(list(far, start(), 100).await, []);
    let listed = listing::list(&store, start(), far, 100).await.unwrap();
    for (number, listed) in (0..20).rev().zip(listed) {
        assert_eq!(listed.initiated.stamp, began(number));
        assert_eq!(listed.verdict.is_some(), number % 3 == 0, "{number}");
        assert!(listed.verdict.iter().all(|verdict| verdict.session == listed.session));
    }
}

/// A filter that matches every session of [`fill`].
fn any() -> Filter {
    let (since, until) = (start(), began(1_000));
    Filter { since, until, after: None, statuses: Vec::new(), agent: None }
}

async fn sessions_are_filtered_by_status_and_agent<S: Store>(store: S) {
    fill(&store).await;
    let found = async |filter: &Filter, limit| {
        let mut found = paged(&store, filter.clone(), 1_000).await;
        found.truncate(limit);
        found
    };
    assert_eq!(found(&any(), 100).await.len(), 20);
    let succeeded = Filter { statuses: vec![Status::Succeeded], ..any() };
    assert_eq!(found(&succeeded, 100).await, [spread(18), spread(12), spread(6), spread(0)]);
    let incident = Filter { agent: Some("incident".to_owned()), ..any() };
    assert_eq!(found(&incident, 100).await, [spread(6), spread(3), spread(0)]);
    let both = Filter { statuses: vec![Status::Succeeded, Status::Waiting], ..incident };
    assert_eq!(found(&both, 1).await, [spread(6)]);
    let open = Filter { statuses: vec![Status::Initiated], until: began(3), ..any() };
    assert_eq!(found(&open, 100).await, [spread(2), spread(1)]);
    let summary = alone(&store, &spread(3), began(3)).await;
    assert_eq!((summary.reported.status, summary.tally.steps), (Status::Failed, 2));
    assert_eq!(summary.agent(), Some("incident"));
    assert_eq!(summary.tally.end.unwrap().error_category.as_deref(), Some("c"));
    assert_eq!(summary.reported.initiated_at, Some(began(3)));
    assert!(summary.reported.ended_at > summary.reported.initiated_at);
}

/// A session's summary without a cache.
async fn alone<S: Store>(store: &S, session: &SessionId, at: Stamp) -> Summary {
    let (cache, filter) = (SummaryCache::default(), Filter { since: at, until: at, ..any() });
    let mut search = Search::new(store, &cache, &filter, began(1_000));
    let summary = search.next().await.unwrap().unwrap();
    assert_eq!(summary.session, *session);
    (*summary).clone()
}

/// All sessions of a filter, in pages of this size.
async fn paged<S: Store>(store: &S, mut filter: Filter, size: usize) -> Vec<SessionId> {
    let cache = SummaryCache::default();
    let mut found = Vec::new();
    loop {
        let mut search = Search::new(store, &cache, &filter, began(1_000));
        for _ in 0..size {
            found.extend(search.next().await.unwrap().map(|summary| summary.session.clone()));
        }
        filter.after = search.more();
        if filter.after.is_none() {
            return found;
        }
    }
}

async fn pages_of_any_size_join_to_the_whole_list<S: Store>(store: S) {
    fill(&store).await;
    // Many sessions start at one instant, several of them in the same index partition.
    for number in 100..140 {
        begin(&store, &spread(number), began(5)).await;
    }
    let whole = paged(&store, any(), 1_000).await;
    assert_eq!(whole.len(), 60);
    for size in [1, 7, 16, 59, 60] {
        assert_eq!(paged(&store, any(), size).await, whole, "{size}");
    }
    let failed = Filter { statuses: vec![Status::Failed], ..any() };
    let whole = paged(&store, failed.clone(), 1_000).await;
    assert_eq!(whole, [spread(15), spread(9), spread(3)]);
    assert_eq!(paged(&store, failed, 1).await, whole);
}

async fn a_listed_session_shows_its_new_records_next_time<S: Store>(store: S) {
    let cache = SummaryCache::default();
    let session = spread(7);
    begin(&store, &session, began(7)).await;
    let listed = async |now| {
        let filter = any();
        let mut search = Search::new(&store, &cache, &filter, now);
        let summary = search.next().await.unwrap().unwrap();
        assert_eq!(*summary, alone(&store, &session, began(7)).await);
        summary
    };
    let far = began(1_000);
    assert_eq!(listed(far).await.reported.status, Status::Initiated);
    let hlc = Hlc::new(Clock::fixed(began(8)), began(8));
    let expires_at = began(8).seconds() + 90 * 86_400;
    let author = Author { session: session.clone(), runner: Runner::named("agent:1"), expires_at };
    let mut head = Head::genesis();
    for text in ["first", "second", "third"] {
        let body =
            StepBody::Note { subject: text.to_owned(), principal: None, payload: json!(text) };
        let step = chain::append(&store, &hlc, &author, &head, 1, body).await.unwrap();
        head = Head::after(&step);
        assert_eq!(listed(far).await.tally.steps, step.seq);
    }
    let end = End { ending: Ending::Failed, error: None, category: None, result: json!("done") };
    let end = chain::end_session(&store, &hlc, &author, &end).await.unwrap();
    assert_eq!(listed(far).await.reported.status, Status::Running);
    let announcer = Announcer {
        store: &store,
        hlc: &hlc,
        session: &session,
        writer: Writer::Poller,
        expires_at,
    };
    seal::seal(&store, &announcer, &end).await.unwrap();
    assert_eq!(listed(began(8)).await.reported.status, Status::Failed);
    // Late records are listed too, even after the verdict has settled.
    let draft = Draft::new(EventStatus::AgentBackgroundTaskStarted, About::Epoch(1));
    announcer.announce(&draft).await.unwrap();
    assert!(listed(began(8)).await.reported.has_run);
    assert_eq!(listed(far).await.reported.status, Status::Failed);
}

async fn a_histogram_counts_starts_and_ends_per_bucket<S: Store>(store: S) {
    fill(&store).await;
    let (cache, now) = (SummaryCache::default(), began(1_000));
    let hour = Duration::from_secs(3_600);
    let stretches = listing::buckets(start(), began(19), hour).unwrap();
    let counted = listing::histogram(&store, &cache, &stretches, now).await.unwrap();
    let shown: Vec<_> = counted.iter().map(|bucket| (bucket.began, bucket.ended.clone())).collect();
    let ended = |counts: &[(Status, u64)]| counts.iter().copied().collect();
    let (good, bad) = (Status::Succeeded, Status::Failed);
    assert_eq!(
        shown,
        [
            (6, ended(&[])),
            (6, ended(&[(good, 1), (bad, 1)])),
            (6, ended(&[(good, 1), (bad, 1)])),
            (2, ended(&[(good, 1), (bad, 1)])),
        ]
    );
    assert_eq!(listing::histogram(&store, &cache, &stretches, now).await.unwrap(), counted);
}

async fn an_unreadable_session_does_not_hide_others<S: Store>(store: S) {
    fill(&store).await;
    let broken = Item::new(key::session(&spread(3)), key::step(3)).with("V", 1_i64);
    store.put(broken, Condition::Absent).await.unwrap();
    assert_eq!(paged(&store, any(), 100).await.len(), 20);
    let found = alone(&store, &spread(3), began(3)).await;
    let error = found.reported.error.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(error.starts_with("Journal: Unreadable - STEP#00000003"), "{error}");
}

async fn following_a_session_returns_each_record_once<S: Store>(store: S) {
    let timeout = Duration::from_millis(1);
    let records = golden::small();
    let mut follow = Follow::new(store.clone(), golden::session());
    assert_eq!(follow.next(timeout).await.unwrap(), []);
    let mut shown = Vec::new();
    // Events out of order, steps in order.
    let order = [1, 0, 2, 11, 12, 3, 5, 4, 13, 14, 15, 16, 6, 7, 9, 8, 17, 18, 19, 20, 10];
    for batch in order.chunks(3) {
        for place in batch {
            store.put(records[*place].clone(), Condition::Absent).await.unwrap();
        }
        let news = follow.next(timeout).await.unwrap();
        assert_eq!(news.len(), batch.len());
        assert!(news.is_sorted_by_key(Record::stamp));
        shown.extend(news);
    }
    assert_eq!(follow.next(timeout).await.unwrap(), []);
    shown.sort_by_key(Record::stamp);
    assert_eq!(shown.len(), records.len());
    let mut again = Follow::new(store, golden::session());
    assert_eq!(again.next(timeout).await.unwrap(), shown);
}

async fn a_follower_wakes_for_a_new_record<S: Store>(store: S) {
    let session = SessionId::fresh();
    let mut follow = Follow::new(store.clone(), session.clone());
    let follower = tokio::spawn(async move {
        loop {
            let news = follow.next(Duration::from_secs(20)).await.unwrap();
            if !news.is_empty() {
                return news;
            }
        }
    });
    let hlc = Hlc::new(Clock::system(), Stamp::default());
    let announcer = Announcer {
        store: &store,
        hlc: &hlc,
        session: &session,
        writer: Writer::Invoker,
        expires_at: hlc.clock().now().seconds() + 86_400,
    };
    let draft = Draft::new(EventStatus::AgentInvocationStarted, About::Attempt(1));
    let event = announcer.announce(&draft).await.unwrap();
    let news = tokio::time::timeout(Duration::from_secs(10), follower).await.unwrap().unwrap();
    assert_eq!(news, [Record::Event(event)]);
}

async fn a_session_written_through_the_store_verifies<S: Store>(store: S) {
    let session = SessionId::fresh();
    begin(&store, &session, start()).await;
    let unsealed = export::records(&store, &session).await.unwrap();
    let open = verify(&session, &unsealed, &Anchors::default(), start());
    assert_eq!((open.state, open.damage.len()), (State::Open, 0));
    finish(&store, &session, "incident", Ending::Completed, start()).await;
    let records = export::records(&store, &session).await.unwrap();
    let witness = export::witness(&session, &records);
    let anchors = Anchors { last_step: witness.last_step, ..Anchors::of(witness.head.clone()) };
    let report = verify(&session, &records, &anchors, start());
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.state, State::Sealed { head: witness.head.unwrap() });
}

/// A question whose announcement was lost: only its step is in the journal.
async fn an_unannounced_question_is_listed_as_waiting<S: Store>(store: S) {
    fill(&store).await;
    let session = spread(7);
    let hlc = Hlc::new(Clock::fixed(began(8)), began(8));
    let author =
        Author { session: session.clone(), runner: Runner::named("agent:1"), expires_at: 0 };
    let effect =
        EffectRef { node: "n".to_owned(), kind: EffectKind::Ask, digest: Hash::of(b"a"), call: 0 };
    let ask = StepBody::Ask { effect, expires_at: began(500), payload: json!({}) };
    let ask = chain::append(&store, &hlc, &author, &Head::genesis(), 1, ask).await.unwrap();
    let only = |status| Filter { statuses: vec![status], ..any() };
    assert_eq!(paged(&store, only(Status::Waiting), 100).await, std::slice::from_ref(&session));
    // The announcement of the question is there, that of the answer is not.
    let announcer = Announcer {
        store: &store,
        hlc: &hlc,
        session: &session,
        writer: Writer::Agent,
        expires_at: 0,
    };
    announcer.announce(&seal::suspension(ask.seq)).await.unwrap();
    assert_eq!(paged(&store, only(Status::Waiting), 100).await, std::slice::from_ref(&session));
    let answer = StepBody::Answer { question: ask.seq, principal: None, payload: json!({}) };
    chain::append(&store, &hlc, &author, &Head::after(&ask), 1, answer).await.unwrap();
    assert_eq!(paged(&store, only(Status::Waiting), 100).await, []);
    assert_eq!(paged(&store, only(Status::Running), 100).await, [session]);
}

async fn a_session_is_listed_once_at_its_first_initiation<S: Store>(store: S) {
    fill(&store).await;
    // Copies of an open and of two ended sessions, before and after their verdicts.
    for (number, at) in (0..40).flat_map(|at| [(2, at + 3), (3, at + 4), (6, at + 7)]) {
        begin(&store, &spread(number), began(at).after(Duration::from_secs(1))).await;
    }
    let whole: Vec<_> = (0..20).rev().map(spread).collect();
    for size in [1, 7, 100] {
        assert_eq!(paged(&store, any(), size).await, whole, "{size}");
    }
    let only = |status| Filter { statuses: vec![status], ..any() };
    let failed = [spread(15), spread(9), spread(3)];
    assert_eq!(paged(&store, only(Status::Failed), 1).await, failed);
    assert_eq!(paged(&store, only(Status::Succeeded), 9).await.len(), 4);
    let listed = listing::list(&store, start(), began(1_000), 100).await.unwrap();
    assert_eq!(listed.iter().map(|listed| listed.session.clone()).collect::<Vec<_>>(), whole);
    assert_eq!(listed[16].initiated.stamp, began(3));
    let (cache, filter) = (SummaryCache::default(), any());
    let mut search = Search::new(&store, &cache, &filter, began(1_000));
    while search.next().await.unwrap().is_some() {}
    assert!(search.searched() <= 20 + 3, "{}", search.searched());
    // Verification names them.
    let records = export::records(&store, &spread(2)).await.unwrap();
    let report = verify(&spread(2), &records, &Anchors::default(), start());
    assert_eq!(report.damage.len(), 40);
    let copy = key::event(began(3).after(Duration::from_secs(1)));
    assert_eq!(
        report.damage[0].to_string(),
        format!("{copy} was added: the session was initiated before")
    );
}

/// The index is ordered by the attribute, a session by its key.
async fn a_contradicting_timestamp_hides_no_other_session<S: Store>(store: S) {
    fill(&store).await;
    let odd = |number: u32, timestamp: &str| {
        let (session, at) = (spread(number), began(number - 100));
        Item::new(key::session(&session), key::event(at))
            .with("Status", "SESSION_INITIATED")
            .with("Timestamp", timestamp)
            .with("Day", key::day(began(10), &session))
    };
    // Their keys say the first and the last minutes of the list; their places are in its middle.
    for (number, timestamp) in [
        (100, began(15).to_string()),
        (119, began(7).to_string()),
        (101, began(14).to_string().replace('Z', "+09:00")),
        (102, "2026-11-21T01:00".to_owned()),
        (103, began(13).to_string().replace(".000000000Z", "Z")),
        (104, "2026-11-21t01:00:00Z".to_owned()),
        (105, "2026-11-21 03:00:00Z".to_owned()),
        (106, began(1).to_string()),
    ] {
        store.put(odd(number, &timestamp), Condition::Absent).await.unwrap();
    }
    let whole = paged(&store, any(), 1_000).await;
    let known: Vec<_> = (0..20).rev().map(spread).collect();
    let of_fill = |found: &[SessionId]| {
        found.iter().filter(|id| known.contains(id)).cloned().collect::<Vec<_>>()
    };
    assert_eq!(of_fill(&whole), known);
    for size in [1, 2, 3, 7] {
        assert_eq!(paged(&store, any(), size).await, whole, "{size}");
    }
}
