//! What somebody who can write the table can do to the log, and who notices.

use journal::clock::Stamp;
use journal::event::EventStatus;
use journal::id::SessionId;
use journal::item::Item;
use journal::log::table::TableLog;
use journal::log::{Leaf, SHARDS, SessionLog as _, ShardHead, Tree};
use journal::store::{Condition, Error, Store as _};
use tlog::hash::Hash;
use tlog::tree::TreeHead;

use super::memory::Memory;
use super::{EXPIRES_AT, audit, checkpoint, record, sessions, start, verdict};

const SHARD: &str = "LOG#3";

fn leaf(index: u64) -> String {
    format!("LEAF#{index:019}")
}

fn found_under(session: &SessionId, item: &Item) -> String {
    let bytes = Leaf::of(item).unwrap().to_bytes();
    format!("OF#{session}#{}", hex::encode(Hash::leaf(&bytes).as_bytes()))
}

/// Six sessions of shard 3, with a checkpoint after the third and after the last.
async fn signed() -> (Memory, Vec<SessionId>) {
    let store = Memory::default().with_log();
    let sessions: Vec<_> = sessions(SHARDS[3]).take(6).collect();
    for (n, session) in sessions.iter().enumerate() {
        store.put(start(session), Condition::Absent).await.unwrap();
        store.put(verdict(session), Condition::Absent).await.unwrap();
        if n % 3 == 2 {
            checkpoint(&store).await;
        }
    }
    (store, sessions)
}

/// Applies a change to a signed log, and returns what an auditor says of it.
async fn after(change: impl FnOnce(&Memory, &[SessionId])) -> Vec<String> {
    let (store, sessions) = signed().await;
    assert_eq!(audit(&store).await.problems, Vec::<String>::new());
    change(&store, &sessions);
    audit(&store).await.problems
}

#[track_caller]
fn says(problems: &[String], expected: &str) {
    assert!(problems.iter().any(|problem| problem.contains(expected)), "{expected}: {problems:#?}");
}

#[tokio::test]
async fn a_removed_leaf_is_named() {
    let problems = after(|store, _| store.tamper(SHARD, &leaf(4), |item| *item = None)).await;
    says(&problems, "shard 3 has leaf 5 in the place of 4");
}

#[tokio::test]
async fn a_long_list_of_problems_ends() {
    let store = Memory::default().with_log();
    for session in sessions(SHARDS[3]).take(120) {
        store.put(start(&session), Condition::Absent).await.unwrap();
    }
    checkpoint(&store).await;
    store.tamper(SHARD, &leaf(0), |item| *item = None);
    let problems = audit(&store).await.problems;
    assert_eq!(problems[100], "further problems are not listed");
    assert!(problems.len() < 110, "{}", problems.len());
}

#[tokio::test]
async fn a_changed_leaf_is_named() {
    let problems = after(|store, sessions| {
        let other = record(&sessions[0], 1, EventStatus::SessionSucceeded);
        store.tamper(SHARD, &leaf(1), |item| {
            let leaf = Leaf::of(&other).unwrap().to_bytes();
            item.as_mut()
                .unwrap()
                .attributes
                .insert("Leaf".to_owned(), String::from_utf8(leaf).unwrap().as_str().into());
        });
    })
    .await;
    says(&problems, "shard 3 has other leaves than leaf 0 of the root log");
    says(&problems, "is not found under it");
}

#[tokio::test]
async fn a_changed_node_is_named() {
    let problems = after(|store, _| {
        store.tamper(SHARD, &leaf(7), |item| {
            let nodes = journal::item::Value::B(vec![1; 4 * 32]);
            item.as_mut().unwrap().attributes.insert("Nodes".to_owned(), nodes);
        });
    })
    .await;
    says(&problems, "shard 3 is not that of its leaves");
    says(&problems, "shard 3 has another history");
}

/// Records and leaves are removed together: as if the sessions had never been.
#[tokio::test]
async fn a_shard_that_was_set_back_is_named() {
    let set_back = |store: &Memory, sessions: &[SessionId]| {
        for index in [10, 11] {
            store.tamper(SHARD, &leaf(index), |item| *item = None);
        }
        for item in [start(&sessions[5]), verdict(&sessions[5])] {
            store.tamper(SHARD, &found_under(&sessions[5], &item), |item| *item = None);
            store.tamper(&item.pk, &item.sk, |item| *item = None);
        }
    };
    says(&after(set_back).await, "shard 3 has 10 leaves, but the root log states 12");
    let (store, sessions) = signed().await;
    set_back(&store, &sessions);
    let log = TableLog::new(store.clone());
    assert!(matches!(log.advance().await, Err(Error::Corrupt(_))), "it must not be signed");
    // Another session in its place.
    let other = super::sessions(SHARDS[3]).nth(9).unwrap();
    store.put(start(&other), Condition::Absent).await.unwrap();
    store.put(verdict(&other), Condition::Absent).await.unwrap();
    store.put(start(&sessions[5]), Condition::Absent).await.unwrap();
    let error = log.advance().await.unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(why, "shard 3 of the log of sessions has another history than its root log states");
    let problems = audit(&store).await.problems;
    says(&problems, "shard 3 has other leaves than leaf 1 of the root log");
    says(&problems, "shard 3 has another history");
}

/// Somebody adds a head that the shard never had.
#[tokio::test]
async fn a_forged_head_is_named() {
    for (size, expected) in
        [(13, "but the root log states 13"), (11, "was set back from 12 leaves to 11")]
    {
        let (store, _) = signed().await;
        let head = TreeHead { size, root: Hash::leaf(b"forged") };
        let bytes = ShardHead { shard: SHARDS[3], head }.to_bytes();
        let mut tree = tlog::tree::Frontier::empty();
        let log = TableLog::new(store.clone());
        for leaf in log.log_leaves(Tree::Signed, 0, 10).await.unwrap() {
            tree.append(Hash::leaf(&leaf.bytes)).unwrap();
        }
        let nodes = tree.append(Hash::leaf(&bytes)).unwrap();
        let nodes = nodes.iter().flat_map(|(_, hash)| *hash.as_bytes()).collect();
        let item = Item::new("LOG#root", leaf(2))
            .with("Leaf", String::from_utf8(bytes).unwrap().as_str())
            .with("Nodes", journal::item::Value::B(nodes));
        store.put(item, Condition::Absent).await.unwrap();
        says(&audit(&store).await.problems, expected);
        says(&audit(&store).await.problems, "is not found under 3");
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_found_is_named() {
    let problems = after(|store, sessions| {
        store
            .tamper(SHARD, &found_under(&sessions[1], &verdict(&sessions[1])), |item| *item = None);
    })
    .await;
    says(&problems, "leaf 3 of shard 3, of");
    says(&problems, "is not found under it");
}

/// A leaf under a shard that no reader of the session would look in.
#[tokio::test]
async fn a_leaf_in_a_foreign_shard_is_named() {
    let problems = after(|store, _| {
        let stray = sessions(SHARDS[4]).next().unwrap();
        let bytes = Leaf::of(&start(&stray)).unwrap().to_bytes();
        store.tamper(SHARD, &leaf(12), |item| {
            let leaf = String::from_utf8(bytes).unwrap();
            let nodes = journal::item::Value::B(Hash::leaf(leaf.as_bytes()).as_bytes().to_vec());
            *item = Some(
                Item::new(SHARD, self::leaf(12)).with("Leaf", leaf.as_str()).with("Nodes", nodes),
            );
        });
    })
    .await;
    says(&problems, "leaf 12 of shard 3 belongs to shard 4");
}

#[tokio::test]
async fn sessions_that_never_ended_are_named() {
    let (store, sessions) = signed().await;
    let open = super::sessions(SHARDS[3]).nth(8).unwrap();
    store.put(start(&open), Condition::Absent).await.unwrap();
    let found = audit(&store).await;
    assert_eq!(found.open().collect::<Vec<_>>(), [&open]);
    assert_eq!(found.sessions.len(), sessions.len() + 1);
    assert_eq!((found.leaves, found.covered), (13, 12));
    let at = |seconds: i64| Stamp::from_millis(seconds * 1_000);
    assert_eq!(found.never_ended(at(EXPIRES_AT - 2 * 86_400 - 1)).count(), 0);
    assert_eq!(found.never_ended(at(EXPIRES_AT - 2 * 86_400)).collect::<Vec<_>>(), [&open]);
}

/// A log that cannot be read takes no verdict: one without a leaf would look forged.
#[tokio::test]
async fn a_damaged_shard_takes_no_record() {
    let (store, _) = signed().await;
    store.tamper(SHARD, &leaf(7), |item| *item = None);
    let session = super::sessions(SHARDS[3]).nth(7).unwrap();
    let error = store.put(verdict(&session), Condition::Absent).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt(_)), "{error:?}");
    let stored = verdict(&session);
    let key = journal::store::Key::new(stored.pk, stored.sk);
    assert_eq!(store.get(key).await.unwrap(), None);
}

/// A log without shards is walked by the same function.
#[cfg(all(feature = "sqlite", feature = "dynamodb"))]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_s_log_is_walked_too() {
    let file = crate::stores::sqlite();
    let store = &file.store;
    let ended = SessionId::fresh();
    for item in [start(&ended), verdict(&ended)] {
        store.put(item, Condition::Absent).await.unwrap();
    }
    let open = SessionId::fresh();
    store.put(start(&open), Condition::Absent).await.unwrap();
    let size = journal::log::SessionLog::log(store).await.unwrap().unwrap().head.size;
    let found = journal::log::walk::walk(store, size).await.unwrap();
    assert_eq!(found.problems, Vec::<String>::new());
    assert_eq!((found.leaves, found.covered, found.sessions.len()), (3, 3, 2));
    assert_eq!(found.open().collect::<Vec<_>>(), [&open]);
    let heads = journal::log::walk::heads(store, size).await.unwrap();
    assert_eq!(heads, Vec::<String>::new());
    // It has no shards, and says so.
    let shard = Tree::Shard(SHARDS[0]);
    assert_eq!(store.log_size(shard).await.unwrap(), 0);
    assert_eq!(journal::log::SessionLog::log_head(store, shard, 0).await.unwrap().size, 0);
    journal::log::SessionLog::log_head(store, shard, 1).await.unwrap_err();
    let found = journal::log::walk::walk(store, size + 1).await.unwrap();
    says(&found.problems, "the log lacks leaf 3 of 4");
}
