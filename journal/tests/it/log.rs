//! The log of sessions in a table: appending, proofs, and what an auditor finds.

mod killed;
pub mod memory;
mod proofs;
mod tampered;
mod writers;

use journal::event::EventStatus;
use journal::id::SessionId;
use journal::item::Item;
use journal::key::{self, attribute};
use journal::log::table::TableLog;
use journal::log::walk::{Walk, heads, walk};
use journal::log::{Leaf, SessionLog, Shard, Trust};
use journal::store::{Condition, Query, Transact, query_all};
use tlog::checkpoint::{Checkpoint, SignedCheckpoint};
use tlog::key::{SignerKey, Verifier as _};
use tlog::tree::TreeHead;

const EXPIRES_AT: i64 = 1_900_000_000;

fn key() -> SignerKey {
    SignerKey::from_seed("daybook.example/log".parse().unwrap(), &[7; 32])
}

fn trust() -> Trust {
    Trust { log: vec![key().verifier().clone()], witnesses: Vec::new(), is_required: true }
}

fn sign(head: TreeHead) -> String {
    let checkpoint = Checkpoint::new(key().verifier().name().as_str().parse().unwrap(), head);
    let signature = key().sign(&checkpoint.to_string());
    SignedCheckpoint::new(checkpoint, signature).unwrap().to_string()
}

/// Sessions of one shard.
fn sessions(shard: Shard) -> impl Iterator<Item = SessionId> {
    let all = (0..).map(|n| format!("session-{n:030}").parse::<SessionId>().unwrap());
    all.filter(move |session| Shard::of(session) == shard)
}

fn record(session: &SessionId, second: u32, status: EventStatus) -> Item {
    let at = format!("2026-01-01T00:{:02}:{:02}.000000000Z", second / 60, second % 60);
    Item::new(key::session(session), format!("EVENT#{at}"))
        .with(attribute::STATUS, status.as_str())
        .with(attribute::EXPIRES_AT, EXPIRES_AT)
}

fn start(session: &SessionId) -> Item {
    record(session, 0, EventStatus::SessionInitiated)
}

fn verdict(session: &SessionId) -> Item {
    record(session, 1, EventStatus::SessionFailed)
}

/// Writes a record past the log, as Step Functions does.
async fn put_unlogged<S: Transact>(store: &S, item: Item) {
    let condition = Condition::Any(vec![Condition::Absent, Condition::All(Vec::new())]);
    while store.put_all(vec![(item.clone(), condition.clone())]).await.unwrap()
        != journal::store::AllWritten::Done
    {}
}

/// Writes a record with its leaf.
async fn put<S: Transact>(store: &S, item: Item) -> journal::store::Written {
    let leaf = Leaf::of(&item).unwrap();
    TableLog::new(store.clone()).put(item, Condition::Absent, &leaf).await.unwrap()
}

/// Signs what there is.
async fn checkpoint<S: Transact>(store: &S) -> TreeHead {
    let log = TableLog::new(store.clone());
    let head = log.advance().await.unwrap();
    log.put_checkpoint(head.size, sign(head)).await.unwrap();
    head
}

async fn audit<S: Transact>(store: &S) -> Walk {
    let log = TableLog::new(store.clone());
    let size = log.log_size(journal::log::Tree::Signed).await.unwrap();
    let mut found = walk(&log, size).await.unwrap();
    found.problems.extend(heads(&log, size).await.unwrap());
    found
}

/// The statuses of a session's leaves, in their order.
async fn logged<S: Transact>(store: &S, session: &SessionId) -> Vec<EventStatus> {
    let extract = TableLog::new(store.clone()).log_of(session).await.unwrap().unwrap_or_default();
    let leaves = extract.entries.iter().map(|entry| Leaf::parse(&entry.leaf).unwrap());
    leaves.map(|leaf| leaf.status).collect()
}

/// The statuses of a session's records.
async fn recorded<S: Transact>(store: &S, session: &SessionId) -> Vec<EventStatus> {
    let items = query_all(store, Query::all(key::session(session))).await.unwrap();
    items.iter().filter_map(Leaf::of).map(|leaf| leaf.status).collect()
}

/// Generates a test per function and table.
macro_rules! on_both_tables {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(crate::log::memory::Memory::default().with_log()).await;
            })+
        }
        #[cfg(all(feature = "sqlite", feature = "dynamodb"))]
        mod dynamodb {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let Some(store) = crate::stores::dynamodb().await else { return };
                super::$name(store.with_log()).await;
            })+
        }
    };
}
use on_both_tables;
