//! What the poller signs of the log of sessions, and what it refuses to sign.

#[path = "../../../journal/tests/it/log/memory.rs"]
mod memory;

use journal::event::EventStatus;
use journal::id::SessionId;
use journal::item::Item;
use journal::key::{self, attribute};
use journal::log::table::TableLog;
use journal::log::{SessionLog as _, Shard, Trust, walk};
use journal::store::{Condition, Store as _};
use poller::Error;
use poller::checkpoint::{Checkpoints, LogKey};
use tlog::key::{SignerKey, VerifierKey};

use memory::Memory;

/// A key that signs here.
#[derive(Clone, Debug)]
struct OwnKey(u8);

impl OwnKey {
    fn signer(&self) -> SignerKey {
        SignerKey::from_seed("daybook.example/log".parse().unwrap(), &[self.0; 32])
    }
}

impl LogKey for OwnKey {
    async fn public(&self) -> Result<VerifierKey, Error> {
        Ok(self.signer().verifier().clone())
    }

    async fn sign(&self, text: &str) -> Result<Vec<u8>, Error> {
        Ok(self.signer().sign(text).bytes().to_vec())
    }
}

/// A key that signs something else.
#[derive(Clone, Debug)]
struct Deceived;

impl LogKey for Deceived {
    async fn public(&self) -> Result<VerifierKey, Error> {
        OwnKey(7).public().await
    }

    async fn sign(&self, text: &str) -> Result<Vec<u8>, Error> {
        OwnKey(7).sign(&text.to_uppercase()).await
    }
}

fn table() -> Memory {
    Memory::default().with_log()
}

/// Runs sessions from their start to their verdict.
async fn ended(table: &Memory, sessions: std::ops::Range<u32>) -> Vec<SessionId> {
    let mut ids = Vec::new();
    for n in sessions {
        let id: SessionId = format!("session-{n:030}").parse().unwrap();
        for (second, status) in
            [(0, EventStatus::SessionInitiated), (1, EventStatus::SessionFailed)]
        {
            let sk = format!("EVENT#2026-01-01T00:00:{second:02}.000000000Z");
            let item = Item::new(key::session(&id), sk)
                .with(attribute::STATUS, status.as_str())
                .with(attribute::EXPIRES_AT, 1_900_000_000_i64);
            table.put(item, Condition::Absent).await.unwrap();
        }
        ids.push(id);
    }
    ids
}

fn trust() -> Trust {
    Trust {
        log: vec![OwnKey(7).signer().verifier().clone()],
        witnesses: Vec::new(),
        is_required: true,
    }
}

#[tokio::test]
async fn the_log_is_signed_when_it_has_grown() {
    let table = table();
    let checkpoints = Checkpoints::new(table.clone(), OwnKey(7));
    assert_eq!(checkpoints.sign().await.unwrap(), None, "an empty log has no checkpoint");
    let ids = ended(&table, 0..20).await;
    let first = checkpoints.sign().await.unwrap().unwrap();
    assert_eq!(checkpoints.sign().await.unwrap(), None, "nothing is new");
    let log = TableLog::new(table.clone());
    for id in &ids {
        let extract = log.log_of(id).await.unwrap().unwrap();
        let judged = extract.judge(id, &trust());
        assert_eq!(judged.leaves().count(), 2);
    }
    ended(&table, 20..23).await;
    let second = checkpoints.sign().await.unwrap().unwrap();
    assert!(first.name < second.name, "{} {}", first.name, second.name);
    let state = log.log().await.unwrap().unwrap();
    assert_eq!(state.checkpoint, Some(second.note));
    let walked = walk::walk(&log, state.head.size).await.unwrap();
    assert_eq!((walked.covered, walked.problems), (46, Vec::new()));
}

#[tokio::test]
async fn two_pollers_that_sign_at_once_agree() {
    let table = table();
    let checkpoints = Checkpoints::new(table.clone(), OwnKey(7));
    for round in 0..10 {
        ended(&table, round * 4..round * 4 + 4).await;
        let (one, other) = tokio::join!(checkpoints.sign(), checkpoints.sign());
        assert!(one.unwrap().is_some() || other.unwrap().is_some());
        let log = TableLog::new(table.clone());
        let state = log.log().await.unwrap().unwrap();
        assert_eq!(walk::walk(&log, state.head.size).await.unwrap().problems, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_log_that_does_not_continue_the_last_checkpoint_is_not_signed() {
    let table = table();
    let checkpoints = Checkpoints::new(table.clone(), OwnKey(7));
    let ids = ended(&table, 0..20).await;
    checkpoints.sign().await.unwrap().unwrap();
    let other = Checkpoints::new(table.clone(), OwnKey(8)).sign().await.unwrap_err();
    assert!(other.to_string().contains("not of this log's key"), "{other}");

    let shard = Shard::of(&ids[0]);
    let pk = format!("LOG#{shard}");
    let leaves = table.items().into_iter().filter(|it| it.pk == pk && it.sk.starts_with("LEAF#"));
    let last = leaves.map(|leaf| leaf.sk).max().unwrap();
    table.tamper(&pk, &last, |leaf| *leaf = None);
    let refused = checkpoints.sign().await.unwrap_err();
    assert!(matches!(refused, Error::Log(_)), "{refused}");
}

#[tokio::test]
async fn a_root_log_that_was_set_back_is_not_signed() {
    let table = table();
    let checkpoints = Checkpoints::new(table.clone(), OwnKey(7));
    ended(&table, 0..20).await;
    checkpoints.sign().await.unwrap().unwrap();
    // Everything but the checkpoint is taken away, and another history is told.
    for item in table.items() {
        if !item.sk.starts_with("CHECKPOINT#") {
            table.tamper(&item.pk, &item.sk, |stored| *stored = None);
        }
    }
    ended(&table, 20..22).await;
    let refused = checkpoints.sign().await.unwrap_err();
    assert!(refused.to_string().contains("set back"), "{refused}");
    ended(&table, 22..80).await;
    let refused = checkpoints.sign().await.unwrap_err();
    assert!(refused.to_string().contains("another history"), "{refused}");
}

#[tokio::test]
async fn a_signature_of_something_else_is_not_stored() {
    let table = table();
    ended(&table, 0..3).await;
    let refused = Checkpoints::new(table.clone(), Deceived).sign().await.unwrap_err();
    assert!(matches!(refused, Error::Log(_)), "{refused}");
    let state = TableLog::new(table).log().await.unwrap().unwrap();
    assert_eq!(state.checkpoint, None);
}

#[tokio::test]
async fn a_shard_whose_heads_are_hidden_is_not_signed_anew() {
    for hidden in [0, 1] {
        let table = table();
        let checkpoints = Checkpoints::new(table.clone(), OwnKey(7));
        let ids = ended(&table, 0..20).await;
        checkpoints.sign().await.unwrap().unwrap();
        ended(&table, 20..120).await;
        checkpoints.sign().await.unwrap().unwrap();
        let shard = Shard::of(&ids[0]);
        let pointer = format!("SHARD#{shard}#");
        let heads: Vec<_> =
            table.items().into_iter().filter(|item| item.sk.starts_with(&pointer)).collect();
        assert_eq!(heads.len(), 2);
        // All of them, or all but the first.
        for head in heads.iter().skip(hidden) {
            table.tamper(&head.pk, &head.sk, |stored| *stored = None);
        }
        let refused = checkpoints.sign().await.unwrap_err();
        assert!(refused.to_string().contains("not found under it"), "{refused}");
    }
}
