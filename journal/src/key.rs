//! Partition keys, sort keys and attribute names.

use crate::clock::Stamp;
use crate::id::SessionId;

/// The attribute that is the table's partition key.
pub const PARTITION: &str = "PK";

/// The attribute that is the table's sort key.
pub const SORT: &str = "SK";

/// The by-day index: `Day` is its partition key, `Timestamp` its sort key. It projects all
/// attributes.
pub const INDEX_BY_DAY: &str = "ByDay";

/// The sparse index of open leases: `OpenLease` is its partition key, `BeatAt` its sort key. It
/// projects all attributes.
pub const INDEX_OPEN_LEASES: &str = "OpenLeases";

/// Sort key of the lease.
pub const LEASE: &str = "LEASE";

/// Sort key of the item with the waiting workflow's callback token.
pub const WAIT: &str = "WAIT";

/// Prefix of every event's sort key.
pub const EVENT_PREFIX: &str = "EVENT#";

/// Prefix of every step's sort key.
pub const STEP_PREFIX: &str = "STEP#";

pub mod attribute {
    /// The schema version, a number.
    pub const VERSION: &str = "V";
    /// When the item expires, in seconds since 1970; the table's TTL attribute.
    pub const EXPIRES_AT: &str = "ExpiresAt";
    pub const TIMESTAMP: &str = "Timestamp";
    pub const STATUS: &str = "Status";
    pub const DAY: &str = "Day";
    /// The execution that started the session.
    pub const EXECUTION_ARN: &str = "ExecutionArn";
    /// Who triggered, answered, cancelled or resumed.
    pub const PRINCIPAL: &str = "Principal";
}

pub fn session(id: &SessionId) -> String {
    format!("SESSION#{id}")
}

/// The session of a partition, if it is a session's.
pub fn session_of(pk: &str) -> Option<SessionId> {
    pk.strip_prefix("SESSION#")?.parse().ok()
}

pub fn event(stamp: Stamp) -> String {
    format!("{EVENT_PREFIX}{stamp}")
}

pub fn step(seq: u32) -> String {
    format!("{STEP_PREFIX}{seq:08}")
}

/// The partition of a large payload's parts.
pub fn blob(id: &SessionId, sha256: &str) -> String {
    format!("BLOB#{id}#{sha256}")
}

/// The session of a partition of parts, if it is one.
pub fn session_of_blob(pk: &str) -> Option<SessionId> {
    pk.strip_prefix("BLOB#")?.split_once('#')?.0.parse().ok()
}

/// The partition of the receipts of people's steps. In an account only the poller's role may write it.
pub fn receipts(id: &SessionId) -> String {
    format!("{RECEIPT_PREFIX}{id}")
}

/// Prefix of every partition of receipts.
pub const RECEIPT_PREFIX: &str = "RECEIPT#";

/// The partition of a session's deliveries: who was told of it, and what became of that.
pub fn notices(id: &SessionId) -> String {
    format!("{NOTICE_PREFIX}{id}")
}

/// The session of a partition of deliveries, if it is one.
pub fn session_of_notices(pk: &str) -> Option<SessionId> {
    pk.strip_prefix(NOTICE_PREFIX)?.parse().ok()
}

/// Prefix of every partition of deliveries.
pub const NOTICE_PREFIX: &str = "NOTIFY#";

/// Partition and sort key of the place up to which a stack has told of what happened.
pub const OUTBOX: &str = "OUTBOX";

/// The sort key of one part of a large payload.
pub fn part(number: u32) -> String {
    format!("PART#{number:04}")
}

/// Partition of the item that records which session holds a deduplication key of its agent.
pub fn dedupe(agent: &str, key: &str) -> String {
    format!("DEDUPE#{agent}#{key}")
}

/// The sort key of the item in a [`dedupe`] partition.
pub const HOLDER: &str = "HOLDER";

/// Partition that names the sessions whose keys were destroyed; the sort key is the session.
pub const ERASED: &str = "ERASED";

/// Partition of an agent's admission slots.
pub fn admit(agent: &str) -> String {
    format!("ADMIT#{agent}")
}

/// Prefix of every slot's sort key.
pub const SLOT_PREFIX: &str = "SLOT#";

pub fn slot(number: u32) -> String {
    format!("{SLOT_PREFIX}{number:04}")
}

/// Partition of the records of halts, which concern agents and not one session.
pub const HALTS: &str = "HALT#";

/// Prefix of every halt record's sort key.
pub const HALT_PREFIX: &str = "HALT#";

pub fn halt(number: u32) -> String {
    format!("{HALT_PREFIX}{number:08}")
}

/// Prefix of every partition that the journal's own tool of the deployment agent writes.
pub const PROBE_PREFIX: &str = "PROBE#";

/// Whether a partition that is neither a session's nor of payloads has its place in a journal.
pub fn is_of_journal(pk: &str) -> bool {
    let prefixes = [RECEIPT_PREFIX, NOTICE_PREFIX, "DEDUPE#", "ADMIT#", PROBE_PREFIX];
    [HALTS, ERASED, OUTBOX].contains(&pk) || prefixes.iter().any(|prefix| pk.starts_with(prefix))
}

/// The last digits of the index partitions.
pub const SHARDS: &str = "0123456789abcdef";

/// The partition of the by-day index with a session's first and last event.
pub fn day(stamp: Stamp, id: &SessionId) -> String {
    day_shard(&stamp.date(), id.shard())
}

/// One of a day's sixteen partitions.
pub fn day_shard(date: &str, shard: char) -> String {
    format!("DAY#{date}#{shard}")
}
