//! The conformance suite of [`Store`], which every implementation runs.
//!
//! The cases here test items; [`records`] tests what is built on them.
//!
//! Each case uses a session or partition of its own, so that all of them can share a store and run
//! concurrently. A case panics if the store does not conform.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and says where")]

pub mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::clock::Stamp;
use crate::id::{Runner, SessionId};
use crate::item::{Item, Value};
use crate::key;
use crate::lease::{self, Holder, Lease};
use crate::limits::{ITEM_BYTES_MAX, PART_BYTES_MAX};
use crate::store::{Condition, Error, Key, Query, Store, Written, query_all};

pub async fn all<S: Store>(store: S) {
    only_the_first_put_of_a_key_lands(&store).await;
    a_second_delivery_is_distinguished_from_a_retry(&store).await;
    at_most_compares_numbers_as_numbers_and_text_as_bytes(&store).await;
    conditions_combine(&store).await;
    an_update_keeps_what_it_does_not_set(&store).await;
    an_update_creates_only_where_its_condition_allows(&store).await;
    every_kind_of_value_survives(&store).await;
    a_part_of_full_size_survives(&store).await;
    an_item_over_the_limit_is_rejected(&store).await;
    a_query_reads_its_range_in_order(&store).await;
    sort_keys_are_ordered_by_bytes(&store).await;
    pages_join_without_gap_or_repetition(&store).await;
    a_write_is_seen_by_the_next_read(&store).await;
    partitions_are_apart(&store).await;
    one_of_two_concurrent_writers_wins(&store).await;
    the_index_lists_a_day_by_time(&store).await;
    open_leases_are_indexed_by_their_last_heartbeat(&store).await;
    waiting_for_a_change_ends(&store).await;
    records::concurrent_runners_leave_a_dense_chain(&store).await;
    records::a_session_ends_once(&store).await;
    records::announcements_at_one_nanosecond_are_all_kept(&store).await;
    records::an_announcement_is_written_once(&store).await;
    records::a_large_payload_is_read_back(&store).await;
}

fn place(name: &str) -> Key {
    Key::new(format!("CASE#{}", SessionId::fresh()), name)
}

fn item(key: &Key) -> Item {
    Item::new(key.pk.as_str(), key.sk.as_str())
}

async fn put<S: Store>(store: &S, item: Item) {
    assert_eq!(store.put(item, Condition::Absent).await.unwrap(), Written::Done);
}

/// A second put changes nothing and returns what the first one wrote.
pub async fn only_the_first_put_of_a_key_lands<S: Store>(store: &S) {
    let key = place("A");
    let first = item(&key).with("Writer", "first");
    put(store, first.clone()).await;
    for second in ["second", "first"] {
        let refused = store.put(item(&key).with("Writer", second), Condition::Absent).await;
        assert_eq!(refused.unwrap(), Written::Refused(Some(first.clone())));
    }
    assert_eq!(store.get(key).await.unwrap(), Some(first));
    assert_eq!(store.get(place("A")).await.unwrap(), None);
}

/// The condition of SESSION_INITIATED: absent, or written by the same execution.
pub async fn a_second_delivery_is_distinguished_from_a_retry<S: Store>(store: &S) {
    let key = place("EVENT#2026-11-21T10:30:00.000000000Z");
    let deliver = |execution: &'static str| {
        let mine = Condition::equals("ExecutionArn", execution);
        let item = item(&key).with("ExecutionArn", execution);
        store.put(item, Condition::Any(vec![Condition::Absent, mine]))
    };
    assert_eq!(deliver("arn:one").await.unwrap(), Written::Done);
    assert_eq!(deliver("arn:one").await.unwrap(), Written::Done);
    let there = item(&key).with("ExecutionArn", "arn:one");
    assert_eq!(deliver("arn:two").await.unwrap(), Written::Refused(Some(there)));
}

/// 9 is less than 10, and `"10"` less than `"9"`. A missing attribute or one of another type is
/// never at most a value.
pub async fn at_most_compares_numbers_as_numbers_and_text_as_bytes<S: Store>(store: &S) {
    for (found, bound, holds) in [
        (Value::N(9), Value::N(10), true),
        (Value::N(10), Value::N(10), true),
        (Value::N(10), Value::N(9), false),
        (Value::N(-5), Value::N(-4), true),
        (Value::N(i64::MAX - 1), Value::N(i64::MAX), true),
        (Value::N(i64::MAX), Value::N(i64::MAX - 1), false),
        (Value::from("10"), Value::from("9"), true),
        (Value::from("b"), Value::from("a"), false),
        (Value::from("Z"), Value::from("a"), true),
        (Value::from("é"), Value::from("z"), false),
        (Value::B(vec![0xff]), Value::B(vec![0x01]), false),
        (Value::B(vec![0x01]), Value::B(vec![0x01, 0x00]), true),
        (Value::N(1), Value::from("9"), false),
        (Value::from("1"), Value::N(9), false),
    ] {
        let key = place("A");
        let there = item(&key).with("Epoch", found.clone());
        put(store, there.clone()).await;
        let condition = Condition::AtMost("Epoch".to_owned(), bound.clone());
        assert_eq!(condition.holds(Some(&there)), holds, "{found:?} {bound:?}");
        let written = store.put(item(&key).with("Epoch", 0_i64), condition).await.unwrap();
        let expected = if holds { Written::Done } else { Written::Refused(Some(there)) };
        assert_eq!(written, expected, "{found:?} at most {bound:?}");
    }
    let (missing, absent) = (place("A"), place("A"));
    put(store, item(&missing)).await;
    for key in [missing, absent] {
        let there = store.get(key.clone()).await.unwrap();
        let refused = store.put(item(&key), Condition::at_most("Epoch", 9_i64)).await.unwrap();
        assert_eq!(refused, Written::Refused(there));
    }
}

/// All, any, none and nested conditions, also on attribute names that DynamoDB reserves.
pub async fn conditions_combine<S: Store>(store: &S) {
    let is = |name: &str, value: &str| Condition::equals(name, value);
    for (condition, on_absent, on_present) in [
        (Condition::All(vec![]), true, true),
        (Condition::Any(vec![]), false, false),
        (Condition::All(vec![is("Status", "A"), is("Timestamp", "B")]), false, true),
        (Condition::All(vec![is("Status", "A"), is("Timestamp", "C")]), false, false),
        (Condition::Any(vec![Condition::Absent, is("Status", "Z")]), true, false),
        (Condition::Any(vec![is("Status", "Z"), is("Timestamp", "B")]), false, true),
        (
            Condition::Any(vec![
                Condition::Absent,
                Condition::All(vec![is("Status", "A"), Condition::Any(vec![is("Name", "N")])]),
            ]),
            true,
            true,
        ),
        (Condition::All(vec![Condition::Absent, is("Status", "A")]), false, false),
        (is("Status", "a"), false, false),
        (Condition::equals("Status", 1_i64), false, false),
    ] {
        let absent = place("A");
        let done = store.put(item(&absent), condition.clone()).await.unwrap() == Written::Done;
        assert_eq!(done, on_absent, "absent: {condition:?}");
        let key = place("A");
        let there = item(&key).with("Status", "A").with("Timestamp", "B").with("Name", "N");
        put(store, there).await;
        let done = store.put(item(&key), condition.clone()).await.unwrap() == Written::Done;
        assert_eq!(done, on_present, "present: {condition:?}");
    }
}

/// An update sets attributes and keeps the others; a rejected one returns the stored item.
pub async fn an_update_keeps_what_it_does_not_set<S: Store>(store: &S) {
    let key = place("LEASE");
    put(store, item(&key).with("Epoch", 1_i64).with("Runner", "a")).await;
    let beat = |beat: i64| BTreeMap::from([("Beat".to_owned(), Value::N(beat))]);
    let mine =
        Condition::All(vec![Condition::equals("Epoch", 1_i64), Condition::equals("Runner", "a")]);
    assert_eq!(store.update(key.clone(), beat(1), mine.clone()).await.unwrap(), Written::Done);
    assert_eq!(store.update(key.clone(), beat(2), mine).await.unwrap(), Written::Done);
    let there = item(&key).with("Epoch", 1_i64).with("Runner", "a").with("Beat", 2_i64);
    let other = Condition::equals("Runner", "b");
    let refused = store.update(key.clone(), beat(3), other).await.unwrap();
    assert_eq!(refused, Written::Refused(Some(there.clone())));
    assert_eq!(store.get(key).await.unwrap(), Some(there));
}

/// An update of an absent item creates it, unless its condition requires one.
pub async fn an_update_creates_only_where_its_condition_allows<S: Store>(store: &S) {
    let set = BTreeMap::from([("Status".to_owned(), Value::from("x"))]);
    let key = place("A");
    let needs = Condition::equals("Status", "x");
    assert_eq!(
        store.update(key.clone(), set.clone(), needs).await.unwrap(),
        Written::Refused(None)
    );
    assert_eq!(store.get(key.clone()).await.unwrap(), None);
    let created = store.update(key.clone(), set, Condition::Absent).await.unwrap();
    assert_eq!(created, Written::Done);
    assert_eq!(store.get(key.clone()).await.unwrap(), Some(item(&key).with("Status", "x")));
}

/// Text in any script, empty text, empty and arbitrary bytes, the largest and smallest numbers.
pub async fn every_kind_of_value_survives<S: Store>(store: &S) {
    let key = place("EVENT#ü/日本/🦀 %_'\"");
    let whole = item(&key)
        .with("Text", "Grüße, 世界 🦀 \u{0} \n \\ ' \" ; --")
        .with("EmptyText", "")
        .with("Bytes", (0..=255).collect::<Vec<u8>>())
        .with("EmptyBytes", Vec::new())
        .with("Largest", i64::MAX)
        .with("Smallest", i64::MIN)
        .with("Zero", 0_i64)
        .with("Name with spaces, ünd.points#:", "x")
        .with("Status", "reserved")
        .with("Hash", "reserved");
    put(store, whole.clone()).await;
    assert_eq!(store.get(key.clone()).await.unwrap().as_ref(), Some(&whole));
    assert_eq!(query_all(store, Query::all(key.pk)).await.unwrap(), [whole]);
}

/// Bytes that do not compress.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..bytes).map(|_| next()).collect()
}

/// The largest part of a payload fits into an item, and several fit into a partition.
pub async fn a_part_of_full_size_survives<S: Store>(store: &S) {
    let pk = place("").pk;
    let part = |n: u32| {
        Item::new(pk.as_str(), key::part(n))
            .with("Bytes", noise(PART_BYTES_MAX))
            .with("Timestamp", "x".repeat(100))
    };
    for n in 0..4 {
        put(store, part(n)).await;
    }
    // More than the megabyte that fits on a page of DynamoDB.
    let items = query_all(store, Query::all(pk.as_str())).await.unwrap();
    assert_eq!(items, (0..4).map(part).collect::<Vec<_>>());
}

/// A too large item is rejected permanently, and nothing is written.
pub async fn an_item_over_the_limit_is_rejected<S: Store>(store: &S) {
    let key = place("A");
    let large = item(&key).with("Bytes", noise(ITEM_BYTES_MAX));
    let error = store.put(large, Condition::Absent).await.unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error:?}");
    assert_eq!(store.get(key).await.unwrap(), None);
}

async fn fill<S: Store>(store: &S, sks: &[&str]) -> String {
    let pk = place("").pk;
    for sk in sks {
        put(store, Item::new(pk.as_str(), *sk).with("Value", *sk)).await;
    }
    pk
}

async fn sks<S: Store>(store: &S, query: Query) -> Vec<String> {
    query_all(store, query).await.unwrap().into_iter().map(|item| item.sk).collect()
}

/// Whole partitions, prefixes, inclusive ranges, in both directions, with a limit.
pub async fn a_query_reads_its_range_in_order<S: Store>(store: &S) {
    let pk = fill(store, &["WAIT", "STEP#02", "EVENT#b", "LEASE", "STEP#01", "EVENT#a"]).await;
    let all = ["EVENT#a", "EVENT#b", "LEASE", "STEP#01", "STEP#02", "WAIT"];
    assert_eq!(sks(store, Query::all(pk.as_str())).await, all);
    let steps = Query::prefix(pk.as_str(), "STEP#");
    assert_eq!(sks(store, steps.clone()).await, ["STEP#01", "STEP#02"]);
    assert_eq!(sks(store, steps.clone().reversed()).await, ["STEP#02", "STEP#01"]);
    let newest = store.query(steps.reversed().limited(1)).await.unwrap();
    assert_eq!(newest.items.len(), 1);
    assert_eq!(newest.items[0].sk, "STEP#02");
    assert_eq!(newest.items[0].get("Value"), Some("STEP#02".into()));
    let between = Query::between(pk.as_str(), "EVENT#b", "STEP#01");
    assert_eq!(sks(store, between.clone()).await, ["EVENT#b", "LEASE", "STEP#01"]);
    assert_eq!(sks(store, between.reversed()).await, ["STEP#01", "LEASE", "EVENT#b"]);
    let from = Query { from: Some("STEP#01".to_owned()), ..Query::all(pk.as_str()) };
    assert_eq!(sks(store, from).await, ["STEP#01", "STEP#02", "WAIT"]);
    let to = Query { to: Some("EVENT#b".to_owned()), ..Query::all(pk.as_str()) };
    assert_eq!(sks(store, to).await, ["EVENT#a", "EVENT#b"]);
    assert!(sks(store, Query::between(pk.as_str(), "b", "a")).await.is_empty());
    assert!(sks(store, Query::prefix(pk.as_str(), "NONE#")).await.is_empty());
    assert!(sks(store, Query::all(place("").pk)).await.is_empty());
}

/// Sort keys are ordered by their UTF-8 bytes, not by a language's rules.
pub async fn sort_keys_are_ordered_by_bytes<S: Store>(store: &S) {
    let mut expected =
        vec!["a", "B", "b", "Z", "_", "-", "é", "e\u{301}", "日", "🦀", "\u{ffee}", "1", "10", "9"];
    let pk = fill(store, &expected).await;
    expected.sort_unstable();
    assert_eq!(sks(store, Query::all(pk.as_str())).await, expected);
    expected.reverse();
    assert_eq!(sks(store, Query::all(pk.as_str()).reversed()).await, expected);
}

/// Pages of any size, in both directions, add up to the range.
pub async fn pages_join_without_gap_or_repetition<S: Store>(store: &S) {
    let names: Vec<_> = (1..=7).map(key::step).collect();
    let pk = fill(store, &names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for limit in [1, 2, 3, 7, 8] {
        for reverse in [false, true] {
            let mut query = Query { reverse, ..Query::between(pk.as_str(), &names[1], &names[5]) }
                .limited(limit);
            let mut found = Vec::new();
            loop {
                let page = store.query(query.clone()).await.unwrap();
                assert!(page.items.len() <= limit, "a page of {} over {limit}", page.items.len());
                found.extend(page.items.into_iter().map(|item| item.sk));
                match page.next {
                    Some(next) => query.after = Some(next),
                    None => break,
                }
                assert!(found.len() <= names.len(), "the query does not end");
            }
            let mut expected = names[1..=5].to_vec();
            if reverse {
                expected.reverse();
            }
            assert_eq!(found, expected, "pages of {limit}");
        }
    }
}

/// Every kind of read shows an acknowledged write.
pub async fn a_write_is_seen_by_the_next_read<S: Store>(store: &S) {
    let pk = place("").pk;
    for n in 1..=20 {
        let item = Item::new(pk.as_str(), key::step(n)).with("Seq", n);
        put(store, item.clone()).await;
        let newest = Query::prefix(pk.as_str(), key::STEP_PREFIX).reversed().limited(1);
        assert_eq!(store.query(newest).await.unwrap().items, std::slice::from_ref(&item));
        assert_eq!(store.get(Key::new(pk.as_str(), item.sk.as_str())).await.unwrap(), Some(item));
    }
}

/// A partition whose key is a prefix of another's does not contain its items.
pub async fn partitions_are_apart<S: Store>(store: &S) {
    let pk = fill(store, &["A"]).await;
    for other in [format!("{pk}#"), format!("{pk} "), pk.to_lowercase(), pk[..pk.len() - 1].into()]
    {
        assert_eq!(store.get(Key::new(other.as_str(), "A")).await.unwrap(), None, "{other}");
        assert!(sks(store, Query::all(other)).await.is_empty());
    }
}

/// Of concurrent writers of one key one succeeds, and the others receive its item.
pub async fn one_of_two_concurrent_writers_wins<S: Store>(store: &S) {
    for _ in 0..10 {
        let key = place("STEP#00000001");
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..8_i64 {
            let (store, mine) = (store.clone(), item(&key).with("Writer", writer));
            writers.spawn(async move {
                let written = store.put(mine.clone(), Condition::Absent).await.unwrap();
                (mine, written)
            });
        }
        let results = writers.join_all().await;
        let mut winners = results.iter().filter(|(_, written)| *written == Written::Done);
        let winner = &winners.next().unwrap().0;
        assert!(winners.next().is_none(), "two writers succeeded");
        for (mine, written) in &results {
            if mine != winner {
                assert_eq!(*written, Written::Refused(Some(winner.clone())));
            }
        }
        assert_eq!(store.get(key).await.unwrap().as_ref(), Some(winner));
    }
}

/// The by-day index holds items with a day, by time, in both directions and in pages.
pub async fn the_index_lists_a_day_by_time<S: Store>(store: &S) {
    let day = format!("DAY#2026-11-21#{}", SessionId::fresh());
    let at = |n: i64| Stamp::from_millis(1_795_000_000_000 + n).to_string();
    let entry = |n: i64| {
        Item::new(format!("SESSION#{day}#{n}"), format!("EVENT#{}", at(n % 5)))
            .with("Day", day.as_str())
            .with("Timestamp", at(n % 5))
            .with("Status", "SESSION_INITIATED")
    };
    let entries: Vec<_> = (0..7).map(entry).collect();
    for entry in &entries {
        put(store, entry.clone()).await;
    }
    put(store, Item::new(format!("SESSION#{day}"), "EVENT#x").with("Timestamp", at(1))).await;
    // The index may lag behind its table.
    for attempt in 0.. {
        if query_all(store, Query::day(day.as_str())).await.unwrap().len() == entries.len() {
            break;
        }
        assert!(attempt < 100, "the index does not catch up");
        store.changed(Duration::from_millis(50)).await;
    }
    for limit in [1, 2, 100] {
        for reverse in [false, true] {
            let query = Query { reverse, ..Query::day(day.as_str()) }.limited(limit);
            let found = query_all(store, query).await.unwrap();
            let times: Vec<_> = found.iter().map(|item| item.get("Timestamp")).collect();
            let mut expected: Vec<_> = entries.iter().map(|item| item.get("Timestamp")).collect();
            expected.sort_by_key(|at| format!("{at:?}"));
            if reverse {
                expected.reverse();
            }
            assert_eq!(times, expected, "pages of {limit}");
            let distinct: BTreeSet<_> = found.iter().map(|item| item.pk.clone()).collect();
            assert_eq!(distinct.len(), entries.len());
            assert!(found.iter().all(|item| entries.contains(item)));
        }
    }
    let mut range = Query::day(day.as_str());
    (range.from, range.to) = (Some(at(1)), Some(at(2)));
    assert_eq!(query_all(store, range).await.unwrap().len(), 3);
}

/// The index of open leases holds a lease while it is open, ordered by its last heartbeat.
pub async fn open_leases_are_indexed_by_their_last_heartbeat<S: Store>(store: &S) {
    let at = |n: i64| Stamp::from_millis(1_795_000_000_000 + n);
    let sessions: Vec<_> = (0..5).map(|_| SessionId::fresh()).collect();
    let expires_at = 4_000_000_000;
    for (session, n) in sessions.iter().zip(0..) {
        let lease = Lease::unclaimed(0, at(n));
        assert!(lease.create(store, session, expires_at).await.unwrap());
    }
    // The first sends another heartbeat and comes last; the second's session has ended.
    let beating = Lease {
        epoch: 1,
        holder: Holder::Runner(Runner::named("agent:1")),
        heartbeat: 2,
        heartbeat_at: at(9),
    };
    assert!(beating.write(store, &sessions[0], expires_at).await.unwrap());
    lease::close(store, &sessions[1], expires_at).await.unwrap();
    lease::close(store, &SessionId::fresh(), expires_at).await.unwrap();
    let expected = [2, 3, 4, 0].map(|n| sessions[n].clone());
    for attempt in 0.. {
        let mut found = Vec::new();
        for digit in key::SHARDS.chars() {
            let query = Query::open(lease::shard(digit)).limited(2);
            found.extend(query_all(store, query).await.unwrap());
        }
        found.sort_by_key(|item| item.text_opt(lease::HEARTBEAT_AT).map(str::to_owned));
        let found: Vec<_> = found.iter().filter_map(|item| key::session_of(&item.pk)).collect();
        let found: Vec<_> = found.into_iter().filter(|id| sessions.contains(id)).collect();
        if found == expected {
            break;
        }
        // The index may lag behind its table.
        assert!(attempt < 100, "{found:?}");
        store.changed(Duration::from_millis(50)).await;
    }
    let closed = Lease::read(store, &sessions[1]).await.unwrap().unwrap();
    assert!(closed.runner().is_none(), "the lease is still there");
}

/// A wait ends within its timeout although nothing is written.
pub async fn waiting_for_a_change_ends<S: Store>(store: &S) {
    let timeout = Duration::from_millis(20);
    let waited = tokio::time::timeout(Duration::from_secs(10), store.changed(timeout)).await;
    assert!(waited.is_ok(), "waiting far exceeded its timeout");
}
