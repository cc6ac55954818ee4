//! Writers that are killed, and writers that meet.

use journal::announce::Announcer;
use journal::chain::{Author, End, end_session, put_until_known};
use journal::clock::{Clock, Hlc, Stamp};
use journal::event::{EventStatus, Writer};
use journal::export;
use journal::id::{Runner, SessionId};
use journal::item::{Item, Value};
use journal::key;
use journal::log::table::TableLog;
use journal::log::{Leaf, SHARDS, SessionLog, Shard};
use journal::seal::seal;
use journal::step::Ending;
use journal::store::{AllWritten, Condition, Error, Key, Page, Query, Store, Transact, Written};
use journal::verify::{Anchor, Outcome};
use serde_json::json;

use super::killed::{Counted, Kill, Killed};
use super::memory::Memory;
use super::{
    EXPIRES_AT, audit, checkpoint, logged, on_both_tables, put, put_unlogged, record, recorded,
    sessions, sign, start, trust, verdict,
};

use EventStatus::{SessionFailed as Failed, SessionInitiated as Initiated};

on_both_tables!(
    a_transaction_writes_all_items_or_none,
    a_writer_killed_at_any_write_leaves_a_log_that_fits,
    concurrent_writers_of_one_shard_leave_no_gap,
    a_verdict_brings_the_leaf_of_the_start,
    a_leaf_is_appended_once,
    a_lost_reply_appends_nothing_twice,
    a_refused_record_has_no_leaf,
    a_sealed_session_is_proven_from_its_export,
);

fn hlc() -> Hlc {
    Hlc::new(Clock::system(), Stamp::default())
}

/// What components do in a session's life: log its start, write its verdict, sign.
async fn live<S: Transact>(store: S, session: SessionId) {
    let log = TableLog::new(store.clone());
    log.log_session(&session).await.unwrap();
    let written =
        put_until_known(&store, &hlc(), &verdict(&session), &Condition::Absent).await.unwrap();
    assert!(matches!(written, Written::Done | Written::Refused(Some(_))), "{written:?}");
    let head = log.advance().await.unwrap();
    log.put_checkpoint(head.size, sign(head)).await.unwrap();
}

async fn a_writer_killed_at_any_write_leaves_a_log_that_fits<S: Transact>(store: S) {
    let kills = kill_at_each(store, Counted::Writes).await;
    assert!(kills >= 8, "there are four writes, not {kills} / 2");
}

#[tokio::test]
async fn a_writer_killed_at_any_call_leaves_a_log_that_fits() {
    let kills = kill_at_each(Memory::default().with_log(), Counted::All).await;
    assert!(kills > 100, "{kills} calls are those of no append");
}

/// Kills a writer at its first call, another one at its second, and so on. What each leaves must fit, and another one
/// must be able to go on with it.
async fn kill_at_each<S: Transact>(store: S, counted: Counted) -> usize {
    let mut sessions = sessions(SHARDS[3]);
    let mut kills = 0;
    for call in 0.. {
        let mut ended = 0;
        for kill in [Kill::Before(call), Kill::After(call)] {
            let session = sessions.next().unwrap();
            put_unlogged(&store, start(&session)).await;
            let killed = Killed::new(store.clone(), kill, counted);
            match killed.run(live(killed.clone(), session.clone())).await {
                Some(()) => ended += 1,
                None => kills += 1,
            }
            let found = audit(&store).await;
            assert_eq!(found.problems, Vec::<String>::new(), "{kill:?}");
            let (records, leaves) =
                (recorded(&store, &session).await, logged(&store, &session).await);
            // A verdict is never without its leaf; a start is, until somebody of ours has touched the session.
            assert!(leaves == records || (leaves.is_empty() && records == [Initiated]), "{kill:?}");
            live(store.clone(), session.clone()).await;
            assert_eq!(logged(&store, &session).await, [Initiated, Failed], "{kill:?}");
            let extract = TableLog::new(store.clone()).log_of(&session).await.unwrap().unwrap();
            let judged = extract.judge(&session, &trust());
            assert_eq!(judged.leaves().count(), 2);
            assert!(extract.entries.iter().all(|entry| entry.proof.is_some()), "{kill:?}");
        }
        if ended == 2 {
            break;
        }
    }
    let found = audit(&store).await;
    assert_eq!(found.problems, Vec::<String>::new());
    assert_eq!(found.leaves, 2 * found.sessions.len() as u64);
    assert_eq!(found.covered, found.leaves);
    kills
}

/// A writer waits at each of its calls in turn, while another one does the same work and more.
#[tokio::test]
async fn a_writer_overtaken_at_any_call_appends_nothing_twice() {
    let store = Memory::default().with_log();
    let mut sessions = sessions(SHARDS[11]);
    let mut count = 0;
    for call in 0.. {
        let (session, other) = (sessions.next().unwrap(), sessions.next().unwrap());
        put_unlogged(&store, start(&session)).await;
        let slow = Killed::new(store.clone(), Kill::After(call), Counted::All);
        let mut work = std::pin::pin!(live(slow.clone(), session.clone()));
        let is_done = tokio::select! {
            // The work goes on below.
            () = slow.stopped() => false,
            () = &mut work => true,
        };
        if is_done {
            break;
        }
        live(store.clone(), session.clone()).await;
        live(store.clone(), other.clone()).await;
        slow.resume();
        work.await;
        assert_eq!(logged(&store, &session).await, [Initiated, Failed], "call {call}");
        assert_eq!(audit(&store).await.problems, Vec::<String>::new(), "call {call}");
        count += 1;
    }
    assert!(count > 50, "{count} calls are those of no append");
}

/// More writers than a shard ever has at once, and two signers among them.
async fn concurrent_writers_of_one_shard_leave_no_gap<S: Transact>(store: S) {
    const WRITERS: usize = 24;
    let mut tasks = tokio::task::JoinSet::new();
    let all: Vec<_> = sessions(SHARDS[5]).take(WRITERS).collect();
    for session in all.clone() {
        let store = store.clone();
        tasks.spawn(async move {
            put_unlogged(&store, start(&session)).await;
            // Two components find the session, and two seal it.
            let (one, other) =
                tokio::join!(store.log_session(&session), store.log_session(&session));
            one.and(other).unwrap();
            let (hlc, item) = (hlc(), verdict(&session));
            let put = || put_until_known(&store, &hlc, &item, &Condition::Absent);
            let (one, other) = tokio::join!(put(), put());
            let done = [one.unwrap(), other.unwrap()];
            assert_eq!(done.iter().filter(|written| **written == Written::Done).count(), 1);
        });
    }
    for signer in [store.clone(), store.clone()] {
        tasks.spawn(async move {
            for _ in 0..5 {
                checkpoint(&signer).await;
            }
        });
    }
    tasks.join_all().await;
    let head = checkpoint(&store).await;
    let found = audit(&store).await;
    assert_eq!(found.problems, Vec::<String>::new());
    assert_eq!((found.leaves, found.covered), (2 * WRITERS as u64, 2 * WRITERS as u64));
    assert!(head.size <= 11, "the root log has {} heads of one shard", head.size);
    for session in &all {
        assert_eq!(logged(&store, session).await, [Initiated, Failed]);
    }
    assert_eq!(found.open().count(), 0);
}

/// What the log relies on, of every table.
async fn a_transaction_writes_all_items_or_none<S: Transact>(store: S) {
    let item = |sk: &str, n: i64| Item::new("p", sk).with("N", n);
    let absent = |item: Item| (item, Condition::Absent);
    let put_all = async |items: Vec<(Item, Condition)>| loop {
        match store.put_all(items.clone()).await.unwrap() {
            AllWritten::Contended => {}
            written => break written,
        }
    };
    assert_eq!(put_all(vec![absent(item("a", 1)), absent(item("b", 1))]).await, AllWritten::Done);
    let items = vec![absent(item("c", 2)), absent(item("b", 2)), absent(item("a", 2))];
    let refused = AllWritten::Refused { at: 1, found: Some(item("b", 1)) };
    assert_eq!(put_all(items).await, refused);
    let equals = Condition::equals("N", 1_i64);
    let items = vec![(item("a", 3), equals.clone()), (item("d", 3), equals)];
    assert_eq!(put_all(items).await, AllWritten::Refused { at: 1, found: None });
    let stored = journal::store::query_all(&store, Query::all("p")).await.unwrap();
    assert_eq!(stored, [item("a", 1), item("b", 1)]);
    let most = journal::limits::TRANSACTION_ITEMS_MAX;
    let items = (0..most).map(|n| absent(item(&format!("e{n}"), 0))).collect();
    assert_eq!(put_all(items).await, AllWritten::Done);
}

async fn a_verdict_brings_the_leaf_of_the_start<S: Transact>(store: S) {
    let session = SessionId::fresh();
    put_unlogged(&store, start(&session)).await;
    assert_eq!(TableLog::new(store.clone()).log().await.unwrap(), None, "nothing was ever logged");
    let written = store.put(verdict(&session), Condition::Absent).await.unwrap();
    assert_eq!(written, Written::Done);
    assert_eq!(logged(&store, &session).await, [Initiated, Failed]);
    // A session whose first record could not be written has its end alone.
    let closed = SessionId::fresh();
    store.put(verdict(&closed), Condition::Absent).await.unwrap();
    assert_eq!(logged(&store, &closed).await, [Failed]);
}

async fn a_leaf_is_appended_once<S: Transact>(store: S) {
    let session = SessionId::fresh();
    put_unlogged(&store, start(&session)).await;
    for _ in 0..3 {
        store.log_session(&session).await.unwrap();
        put(&store, verdict(&session)).await;
    }
    assert_eq!(logged(&store, &session).await, [Initiated, Failed]);
    assert_eq!(audit(&store).await.leaves, 2);
    let head = checkpoint(&store).await;
    assert_eq!(checkpoint(&store).await, head, "a log that has not grown is not advanced");
}

async fn a_refused_record_has_no_leaf<S: Transact>(store: S) {
    let session = SessionId::fresh();
    put(&store, verdict(&session)).await;
    let other = record(&session, 1, EventStatus::SessionSucceeded);
    let written = put(&store, other).await;
    assert_eq!(written, Written::Refused(Some(verdict(&session))));
    assert_eq!(logged(&store, &session).await, [Failed]);
}

async fn a_sealed_session_is_proven_from_its_export<S: Transact>(store: S) {
    let session = SessionId::fresh();
    let hlc = hlc();
    let stamp = hlc.tick();
    let first = start(&session);
    put_unlogged(
        &store,
        Item { sk: key::event(stamp), ..first }
            .with("Timestamp", stamp.to_string())
            .with("Writer", "state-machine")
            .with("EventId", "initiated"),
    )
    .await;
    let author = Author {
        session: session.clone(),
        runner: Runner::named("poller"),
        expires_at: EXPIRES_AT,
    };
    let end =
        End { ending: Ending::Cancelled, error: None, category: None, result: json!({ "a": 1 }) };
    let end = end_session(&store, &hlc, &author, &end).await.unwrap();
    let announcer = Announcer {
        store: &store,
        hlc: &hlc,
        session: &session,
        writer: Writer::Poller,
        expires_at: EXPIRES_AT,
    };
    seal(&store, &announcer, &end).await.unwrap();
    assert_eq!(logged(&store, &session).await, [Initiated, EventStatus::SessionCancelled]);
    let log = TableLog::new(store.clone());
    let mut outcomes = Vec::new();
    for is_signed in [false, true] {
        if is_signed {
            checkpoint(&store).await;
        }
        let records = export::records(&store, &session).await.unwrap();
        let extract = log.log_of(&session).await.unwrap();
        let mut file = Vec::new();
        export::write_with_log(&session, &records, extract, &mut file).unwrap();
        let read = export::read(file.as_slice()).unwrap();
        assert_eq!(read.damage, []);
        let report =
            read.verify_with(None, &trust(), Stamp::parse("2026-01-02T00:00:00Z").unwrap());
        assert_eq!(report.damage, []);
        outcomes.push((report.outcome(), report.anchors.contains(&Anchor::Checkpoint)));
    }
    assert_eq!(outcomes, [(Outcome::NotProvable, false), (Outcome::Sound, true)]);
}

#[tokio::test]
async fn many_missing_leaves_are_appended_in_several_transactions() {
    let (store, session) = (Memory::default(), SessionId::fresh());
    put_unlogged(&store, start(&session)).await;
    for second in 1..100 {
        put_unlogged(&store, record(&session, second, Failed)).await;
    }
    store.log_session(&session).await.unwrap();
    let mut expected = vec![Failed; 100];
    expected[0] = Initiated;
    assert_eq!(logged(&store, &session).await, expected);
    assert_eq!(audit(&store).await.problems, Vec::<String>::new());
}

#[tokio::test]
async fn sessions_of_all_shards_share_one_root() {
    let store = Memory::default().with_log();
    for n in 0..200 {
        let session: SessionId = format!("order-{n:034}").parse().unwrap();
        store.put(start(&session), Condition::Absent).await.unwrap();
        if n % 50 == 0 {
            checkpoint(&store).await;
        }
    }
    let head = checkpoint(&store).await;
    let found = audit(&store).await;
    assert_eq!(found.problems, Vec::<String>::new());
    assert_eq!((found.leaves, found.covered), (200, 200));
    assert!((17..=64).contains(&head.size), "{}", head.size);
    for session in &found.sessions {
        let extract = TableLog::new(store.clone()).log_of(session).await.unwrap().unwrap();
        let judged = extract.judge(session, &trust());
        assert_eq!(judged, extract.judge(session, &trust()));
        assert_eq!(judged.leaves().count(), 1, "{session} in {}", Shard::of(session));
        assert!(extract.entries[0].proof.is_some());
    }
}

/// A reply that got lost is settled by reading.
async fn a_lost_reply_appends_nothing_twice<S: Transact>(store: S) {
    let session = SessionId::fresh();
    put_unlogged(&store, start(&session)).await;
    let log = TableLog::new(Lossy { store: store.clone() });
    log.log_session(&session).await.unwrap();
    let item = verdict(&session);
    let leaf = Leaf::of(&item).unwrap();
    let first = log.put(item.clone(), Condition::Absent, &leaf).await;
    let again = match first {
        Err(Error::Unknown(_)) => log.put(item.clone(), Condition::Absent, &leaf).await.unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(again, Written::Refused(Some(item)));
    assert_eq!(logged(&store, &session).await, [Initiated, Failed]);
    assert_eq!(audit(&store).await.leaves, 2);
}

/// Loses the reply of every transaction that was written.
#[derive(Clone)]
struct Lossy<S> {
    store: S,
}

impl<S: Transact> Transact for Lossy<S> {
    async fn put_all(&self, items: Vec<(Item, Condition)>) -> Result<AllWritten, Error> {
        match self.store.put_all(items).await? {
            AllWritten::Done => Err(Error::Unknown("the reply was lost".into())),
            refused => Ok(refused),
        }
    }
}

impl<S: Transact> Store for Lossy<S> {
    async fn put(&self, item: Item, is: Condition) -> Result<Written, Error> {
        self.store.put(item, is).await
    }

    async fn update(
        &self,
        key: Key,
        set: std::collections::BTreeMap<String, Value>,
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

    async fn changed(&self, timeout: std::time::Duration) {
        self.store.changed(timeout).await;
    }
}
