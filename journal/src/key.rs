//! Where each record stands: partition and sort keys, and the names of the attributes.

use crate::clock::Stamp;
use crate::id::SessionId;

/// The attribute that is the table's partition key.
pub const PARTITION: &str = "PK";

/// The attribute that is the table's sort key.
pub const SORT: &str = "SK";

/// The by-day index: `Day` is its partition key, `Timestamp` its sort key, all attributes are in it.
pub const INDEX_BY_DAY: &str = "ByDay";

/// The sparse index of open leases: `OpenLease` is its partition key, `BeatAt` its sort key, all
/// attributes are in it.
pub const INDEX_OPEN_LEASES: &str = "OpenLeases";

/// The liveness item's sort key.
pub const LEASE: &str = "LEASE";

/// The sort key of the item that holds the parked workflow's callback token.
pub const WAIT: &str = "WAIT";

/// What every event's sort key begins with.
pub const EVENT_PREFIX: &str = "EVENT#";

/// What every step's sort key begins with.
pub const STEP_PREFIX: &str = "STEP#";

/// Attributes, spelled as in the table.
pub mod attribute {
    /// The schema's version, a number.
    pub const VERSION: &str = "V";
    /// When the item expires, in seconds since 1970; the table's TTL attribute.
    pub const EXPIRES_AT: &str = "ExpiresAt";
    /// A record's time.
    pub const TIMESTAMP: &str = "Timestamp";
    /// An event's name.
    pub const STATUS: &str = "Status";
    /// The by-day index's partition.
    pub const DAY: &str = "Day";
    /// The execution that started the session.
    pub const EXECUTION_ARN: &str = "ExecutionArn";
}

/// The partition of a session's records.
pub fn session(id: &SessionId) -> String {
    format!("SESSION#{id}")
}

/// The session that a partition belongs to, if it is a session's.
pub fn session_of(pk: &str) -> Option<SessionId> {
    pk.strip_prefix("SESSION#")?.parse().ok()
}

/// An event's sort key.
pub fn event(stamp: Stamp) -> String {
    format!("{EVENT_PREFIX}{stamp}")
}

/// A step's sort key.
pub fn step(seq: u32) -> String {
    format!("{STEP_PREFIX}{seq:08}")
}

/// The partition of a large payload's parts.
pub fn blob(id: &SessionId, sha256: &str) -> String {
    format!("BLOB#{id}#{sha256}")
}

/// The sort key of one part of a large payload.
pub fn part(number: u32) -> String {
    format!("PART#{number:04}")
}

/// The partition of the item that says which session holds a key of its agent.
pub fn dedupe(agent: &str, key: &str) -> String {
    format!("DEDUPE#{agent}#{key}")
}

/// The sort key of the item in a [`dedupe`] partition.
pub const HOLDER: &str = "HOLDER";

/// The partition of an agent's slots.
pub fn admit(agent: &str) -> String {
    format!("ADMIT#{agent}")
}

/// What every slot's sort key begins with.
pub const SLOT_PREFIX: &str = "SLOT#";

/// A slot's sort key.
pub fn slot(number: u32) -> String {
    format!("{SLOT_PREFIX}{number:04}")
}

/// The digits that the partitions of an index end with.
pub const SHARDS: &str = "0123456789abcdef";

/// The partition of the by-day index in which a session's first and last event stand.
pub fn day(stamp: Stamp, id: &SessionId) -> String {
    day_shard(&stamp.date(), id.shard())
}

/// One of the sixteen partitions of a day.
pub fn day_shard(date: &str, shard: char) -> String {
    format!("DAY#{date}#{shard}")
}
