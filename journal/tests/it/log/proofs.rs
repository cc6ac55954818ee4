//! Proofs of sessions in a log with shards, and their exported form.

use journal::clock::Stamp;
use journal::item::Item;
use journal::key;
use journal::log::table::TableLog;
use journal::log::{Entry, Extract, HeadEntry, Leaf, Proof, SHARDS, SessionLog as _, Shard, Tree};
use journal::store::{Condition, Store as _};
use journal::verify::{Anchors, verify};
use tlog::hash::Hash;
use tlog::proof::verify_inclusion;
use tlog::tree::TreeHead;

use crate::format::is_on_the_page;

use super::memory::Memory;
use super::{checkpoint, sessions, sign, start, trust, verdict};

/// A log with this many sessions in each of two shards, all ended, and signed now and then.
async fn signed(count: usize) -> Memory {
    let store = Memory::default().with_log();
    for n in 0..count {
        for shard in [SHARDS[1], SHARDS[14]] {
            let session = sessions(shard).nth(n).unwrap();
            store.put(start(&session), Condition::Absent).await.unwrap();
            store.put(verdict(&session), Condition::Absent).await.unwrap();
        }
        if n % 3 == 0 {
            checkpoint(&store).await;
        }
    }
    checkpoint(&store).await;
    store
}

/// Whether an extract proves that a session started and ended.
fn is_proven(extract: &Extract, session: &journal::id::SessionId) -> bool {
    let judged = extract.judge(session, &trust());
    let leaves: Vec<_> = judged.leaves().cloned().collect();
    let expected = [start(session), verdict(session)].map(|item| Leaf::of(&item).unwrap());
    // What `judge` found wrong is not public: damage and unmet demands are what verification makes of it.
    let report = journal::verify::verify(
        session,
        &[],
        &journal::verify::Anchors { log: Some(judged), ..Default::default() },
        journal::clock::Stamp::default(),
    );
    let is_of_the_log =
        |damage: &journal::verify::Damage| matches!(damage, journal::verify::Damage::Log { .. });
    leaves == expected && report.unmet.is_empty() && !report.damage.iter().any(is_of_the_log)
}

#[tokio::test]
async fn every_leaf_of_every_size_is_proven() {
    for count in [1, 2, 3, 7, 16] {
        let store = signed(count).await;
        for shard in [SHARDS[1], SHARDS[14]] {
            for session in sessions(shard).take(count) {
                let extract = TableLog::new(store.clone()).log_of(&session).await.unwrap().unwrap();
                assert!(is_proven(&extract, &session), "{session} of {count}");
            }
        }
    }
}

/// Whatever byte of the exported form is changed, it proves nothing any more.
#[tokio::test]
async fn any_flipped_byte_of_a_proof_is_noticed() {
    let store = signed(5).await;
    let session = sessions(SHARDS[14]).nth(2).unwrap();
    let extract = TableLog::new(store).log_of(&session).await.unwrap().unwrap();
    assert!(is_proven(&extract, &session));
    let text = extract.to_json().to_string().into_bytes();
    let mut parsed = 0;
    for at in 0..text.len() {
        for bit in [0x01, 0x02, 0x10, 0x20] {
            let mut flipped = text.clone();
            flipped[at] ^= bit;
            let json = serde_json::from_slice::<serde_json::Value>(&flipped);
            let Some(changed) = json.ok().as_ref().and_then(Extract::from_json) else { continue };
            parsed += 1;
            let what = String::from_utf8_lossy(&flipped[at.saturating_sub(20)..=at]).into_owned();
            assert!(!is_proven(&changed, &session), "byte {at}: …{what}");
        }
    }
    assert!(parsed > 1_000, "{parsed} of them are of the form at all");
}

#[tokio::test]
async fn a_proof_through_another_shard_is_refused() {
    let store = signed(4).await;
    let (mine, other) = (sessions(SHARDS[1]).next().unwrap(), sessions(SHARDS[14]).next().unwrap());
    let log = TableLog::new(store);
    let mut extract = log.log_of(&mine).await.unwrap().unwrap();
    let foreign = log.log_of(&other).await.unwrap().unwrap();
    for (entry, foreign) in extract.entries.iter_mut().zip(foreign.entries) {
        entry.proof = foreign.proof;
    }
    assert_eq!(extract.judge(&mine, &trust()).leaves().count(), 0);
    // A log that filed the session in two shards would prove both.
    let leaf = Leaf::of(&start(&mine)).unwrap().to_bytes();
    let tree = TreeHead { size: 1, root: Hash::leaf(&leaf) };
    let stated = journal::log::ShardHead { shard: SHARDS[14], head: tree }.to_bytes();
    let head = TreeHead { size: 1, root: Hash::leaf(&stated) };
    let proof = |leaf: &[u8]| Proof::Shard {
        path: Vec::new(),
        head: HeadEntry { index: 0, leaf: leaf.to_vec(), path: Vec::new() },
    };
    let filed = |stated: &[u8], head| Extract {
        checkpoint: Some(sign(head)),
        entries: vec![Entry { index: 0, leaf: leaf.clone(), proof: Some(proof(stated)) }],
    };
    assert_eq!(filed(&stated, head).judge(&mine, &trust()).leaves().count(), 0);
    let stated = journal::log::ShardHead { shard: SHARDS[1], head: tree }.to_bytes();
    let head = TreeHead { size: 1, root: Hash::leaf(&stated) };
    assert_eq!(filed(&stated, head).judge(&mine, &trust()).leaves().count(), 1);
}

#[tokio::test]
async fn a_later_root_log_continues_an_earlier_one() {
    let store = signed(6).await;
    let log = TableLog::new(store.clone());
    let old = log.log().await.unwrap().unwrap().head;
    let session = sessions(SHARDS[1]).nth(6).unwrap();
    store.put(start(&session), Condition::Absent).await.unwrap();
    let new = checkpoint(&store).await;
    let proof = log.log_consistency(Tree::Signed, old.size, new.size).await.unwrap();
    tlog::proof::verify_consistency(&old, &new, &proof).unwrap();
    let other = TreeHead { root: Hash::leaf(b"other"), ..old };
    tlog::proof::verify_consistency(&other, &new, &proof).unwrap_err();
    for size in 1..=13 {
        let head = log.log_head(Tree::Shard(SHARDS[1]), size).await.unwrap();
        let leaves = log.log_leaves(Tree::Shard(SHARDS[1]), 0, 100).await.unwrap();
        if size == 1 {
            verify_inclusion(&Hash::leaf(&leaves[0].bytes), 0, &head, &[]).unwrap();
        }
    }
    log.log_head(Tree::Shard(SHARDS[1]), 14).await.unwrap_err();
}

#[tokio::test]
async fn a_cosigned_checkpoint_is_preferred_and_kept() {
    let store = signed(2).await;
    let log = TableLog::new(store.clone());
    let session = sessions(SHARDS[1]).next().unwrap();
    let note = log.log().await.unwrap().unwrap().checkpoint.unwrap();
    let size = Extract::size_of(&note).unwrap();
    let line = note.lines().last().unwrap();
    let cosigned = format!("{note}{}\n", line.replace("daybook.example/log", "witness.example"));
    log.put_checkpoint(size, cosigned.clone()).await.unwrap();
    log.put_checkpoint(size, note.clone()).await.unwrap();
    assert_eq!(log.log().await.unwrap().unwrap().checkpoint, Some(cosigned.clone()));
    let later = sessions(SHARDS[1]).nth(2).unwrap();
    store.put(start(&later), Condition::Absent).await.unwrap();
    checkpoint(&store).await;
    let of = async |session| log.log_of(session).await.unwrap().unwrap().checkpoint.unwrap();
    assert_eq!(of(&session).await, cosigned, "it covers the session");
    assert_eq!(Extract::signatures_of(&of(&later).await), 1, "no cosigned one covers it");
}

#[test]
fn a_log_without_shards_is_exported_as_ever() {
    let leaf = br#"["daybook session 1","x"]"#.to_vec();
    let (one, two) = (Hash::leaf(b"1"), Hash::leaf(b"2"));
    let proof = Some(Proof::Signed(vec![one, two]));
    let entries =
        vec![Entry { index: 4, leaf: leaf.clone(), proof }, Entry { index: 9, leaf, proof: None }];
    let extract = Extract { checkpoint: None, entries };
    let text = format!(
        r#"{{"checkpoint":null,"leaves":[{{"index":4,"leaf":"[\"daybook session 1\",\"x\"]","proof":["{one}","{two}"]}},{{"index":9,"leaf":"[\"daybook session 1\",\"x\"]","proof":null}}]}}"#
    );
    assert_eq!(extract.to_json().to_string(), text);
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(Extract::from_json(&json), Some(extract));
    json["leaves"][1]["shard"] = serde_json::json!({ "index": 0, "leaf": "[]", "proof": [] });
    assert_eq!(Extract::from_json(&json), None, "a leaf without a proof has no shard's head");
}

/// The items of a small log, as written, and its checkpoint: today's logs must stay readable.
#[tokio::test]
async fn the_items_of_a_log_are_as_documented() {
    let store = Memory::default();
    let session: journal::id::SessionId = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap();
    let other = sessions(SHARDS[9]).next().unwrap();
    for item in [start(&session), start(&other), verdict(&session)] {
        super::put(&store, item).await;
    }
    let head = checkpoint(&store).await;
    let items = store.items().into_iter().filter(|item| item.pk.starts_with("LOG#"));
    let lines: Vec<_> = items.map(|item| item.to_json().to_string()).collect();
    insta::assert_snapshot!("log_items", lines.join("\n"));
    let extract = TableLog::new(store).log_of(&session).await.unwrap().unwrap();
    assert!(is_proven(&extract, &session));
    assert_eq!(extract.checkpoint, Some(sign(head)));
    is_on_the_page(&format!("\n{}\n", extract.to_json()));
    is_on_the_page(&format!("`{}`", super::key().verifier()));
    is_on_the_page(&format!("in shard `{}`", Shard::of(&session)));
}

/// A checkpoint of the log's key, and records that were invented: no leaf shows that there was such a session.
#[test]
fn an_invented_session_without_a_leaf_is_not_provable() {
    let session = sessions(SHARDS[3]).next().unwrap();
    let head = TreeHead { size: 1, root: Hash::leaf(b"of another session") };
    let extract = Extract { checkpoint: Some(sign(head)), entries: Vec::new() };
    let log = Some(extract.judge(&session, &trust()));
    let anchors = Anchors { log, ..Anchors::default() };
    let now = Stamp::parse("2026-01-02T00:00:00Z").unwrap();
    let invented = Item::new(key::session(&session), key::step(1)).hashed();
    for left in [Vec::new(), vec![invented]] {
        let report = verify(&session, &left, &anchors, now);
        assert!(!report.is_sound(), "{report:?}");
        let expected = "the log of sessions has no leaf of this session";
        assert!(report.unmet.iter().any(|unmet| unmet == expected), "{report:?}");
    }
}
