//! The store of items: one trait with two implementations.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use futures_util::future::join;

use crate::cipher::{KeyChange, KeyRefused, KeyState};
use crate::id::SessionId;
use crate::item::{Item, Value};
use crate::key::attribute;

/// A durable store of items: an acknowledged write survives a crash.
///
/// All reads are strongly consistent, except those of an index.
pub trait Store: Clone + Send + Sync + 'static {
    /// Writes a whole item if the condition holds for the stored one.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the item may have been written: send it again and compare.
    /// [`Error::Unavailable`] if it was certainly not written.
    fn put(
        &self,
        item: Item,
        condition: Condition,
    ) -> impl Future<Output = Result<Written, Error>> + Send;

    /// Sets attributes of an item if the condition holds. Creates an absent item if the condition
    /// allows that.
    ///
    /// # Errors
    /// As [`Self::put`].
    fn update(
        &self,
        key: Key,
        set: BTreeMap<String, Value>,
        condition: Condition,
    ) -> impl Future<Output = Result<Written, Error>> + Send;

    /// Reads an item.
    ///
    /// # Errors
    /// The store cannot be read.
    fn get(&self, key: Key) -> impl Future<Output = Result<Option<Item>, Error>> + Send;

    /// Reads one page of a partition in order of sort key.
    ///
    /// # Errors
    /// The store cannot be read.
    fn query(&self, query: Query) -> impl Future<Output = Result<Page, Error>> + Send;

    /// Counts the items of a query by their `Status`. The default implementation reads all of them.
    ///
    /// # Errors
    /// The store cannot be read.
    fn count_by_status(
        &self,
        query: Query,
    ) -> impl Future<Output = Result<BTreeMap<String, u64>, Error>> + Send {
        count_pages(self, query)
    }

    /// Returns when something may have been written, at the latest after `timeout`.
    fn changed(&self, timeout: Duration) -> impl Future<Output = ()> + Send;

    /// Appends the leaves that the log of sessions lacks for this session's records. Idempotent.
    ///
    /// Step Functions writes SESSION_INITIATED itself, past this trait: the first component that touches the session
    /// calls this. The default implementation does nothing, for stores that log every record with its write.
    ///
    /// # Errors
    /// As [`Self::put`]. A verdict's [`Self::put`] appends a missing start leaf too, so a caller may carry on.
    fn log_session(&self, _session: &SessionId) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// Whether people's steps have receipts: where agents and people write with different permissions.
    fn has_receipts(&self) -> bool {
        false
    }

    /// The key of a session's contents. The default implementation knows none, for stores that encrypt nothing.
    ///
    /// # Errors
    /// The store of keys cannot be read.
    fn session_key(
        &self,
        _session: &SessionId,
    ) -> impl Future<Output = Result<KeyState, Error>> + Send {
        std::future::ready(Ok(KeyState::None))
    }

    /// Changes a session's key. Destroying it is durable on return, and so is its record in the store of keys.
    ///
    /// # Errors
    /// [`Error::Refused`] with a [`KeyRefused`] if the key does not admit it.
    fn change_key(
        &self,
        _session: &SessionId,
        _change: KeyChange,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Err(KeyRefused::Unsupported.into()))
    }

    /// Notes that the journal shows the destruction of this session's key.
    ///
    /// # Errors
    /// The store of keys cannot be written.
    fn key_change_journaled(
        &self,
        _session: &SessionId,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// What stands for a deduplication key in the key of an item, so that nobody can check a guess of it. The default
    /// implementation returns it unchanged.
    ///
    /// # Errors
    /// The store of keys cannot be read.
    fn guarded(&self, text: &str) -> impl Future<Output = Result<String, Error>> + Send {
        std::future::ready(Ok(text.to_owned()))
    }
}

/// A store that writes several items at once.
pub trait Transact: Store {
    /// Writes all of these items if the condition of each holds, and else none of them. There are at most
    /// [`TRANSACTION_ITEMS_MAX`](crate::limits::TRANSACTION_ITEMS_MAX) of them, with different keys.
    ///
    /// # Errors
    /// As [`Store::put`].
    fn put_all(
        &self,
        items: Vec<(Item, Condition)>,
    ) -> impl Future<Output = Result<AllWritten, Error>> + Send;
}

/// An item's key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub pk: String,
    pub sk: String,
}

impl Key {
    pub fn new(pk: impl Into<String>, sk: impl Into<String>) -> Self {
        Self { pk: pk.into(), sk: sk.into() }
    }
}

/// A condition on the stored item for a write to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The item does not exist.
    Absent,
    /// The item exists and its attribute has this value.
    Equals(String, Value),
    /// The item exists and its attribute has the same type and at most this value.
    AtMost(String, Value),
    /// All of these.
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

impl Condition {
    pub fn equals(name: &str, value: impl Into<Value>) -> Self {
        Self::Equals(name.to_owned(), value.into())
    }

    pub fn at_most(name: &str, value: impl Into<Value>) -> Self {
        Self::AtMost(name.to_owned(), value.into())
    }

    /// Evaluates the condition.
    pub fn holds(&self, existing: Option<&Item>) -> bool {
        match self {
            Self::Absent => existing.is_none(),
            Self::Equals(name, value) => {
                existing.and_then(|item| item.get(name)).is_some_and(|found| found == *value)
            }
            Self::AtMost(name, value) => existing
                .and_then(|item| item.get(name))
                .is_some_and(|found| is_at_most(&found, value)),
            Self::All(conditions) => conditions.iter().all(|condition| condition.holds(existing)),
            Self::Any(conditions) => conditions.iter().any(|condition| condition.holds(existing)),
        }
    }
}

fn is_at_most(found: &Value, bound: &Value) -> bool {
    match (found, bound) {
        (Value::S(found), Value::S(bound)) => found <= bound,
        (Value::N(found), Value::N(bound)) => found <= bound,
        (Value::B(found), Value::B(bound)) => found <= bound,
        _ => false,
    }
}

/// The result of a conditional write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    Done,
    /// The condition did not hold; the stored item, which is durable.
    Refused(Option<Item>),
}

/// The result of a conditional write of several items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllWritten {
    Done,
    /// A condition did not hold, and nothing was written.
    Refused {
        /// The first item whose condition did not hold.
        at: usize,
        /// The stored item, which is durable.
        found: Option<Item>,
    },
    /// Another writer was writing one of the items, and nothing was written. Which of the two came first is not known:
    /// read again.
    Contended,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    pub partition: Partition,
    pub from: Option<String>,
    pub to: Option<String>,
    pub reverse: bool,
    /// Page size; a store may return fewer items and a cursor.
    pub limit: Option<usize>,
    /// The end of the previous page.
    pub after: Option<Cursor>,
}

/// An ordered part of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Partition {
    /// The items with this partition key, by sort key.
    Table(String),
    /// A partition of the by-day index (`DAY#date#digit`), by time.
    Day(String),
    /// A partition of the index of open leases (`LEASE#digit`), by time of the last heartbeat.
    Open(String),
}

/// The end of a page; opaque outside the store that returned it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub key: Key,
    /// Time of the last item, in an index.
    pub at: Option<String>,
}

/// A page of items, with a cursor if there may be more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub items: Vec<Item>,
    /// Start of the next page, if there may be one.
    pub next: Option<Cursor>,
}

impl Query {
    /// All items of a partition, in ascending order.
    pub fn all(pk: impl Into<String>) -> Self {
        Self::of(Partition::Table(pk.into()))
    }

    pub fn prefix(pk: impl Into<String>, prefix: &str) -> Self {
        let mut to = prefix.to_owned();
        to.push('\u{10ffff}');
        Self::between(pk, prefix, &to)
    }

    /// The items of a partition with sort keys from `from` to `to`, both inclusive.
    pub fn between(pk: impl Into<String>, from: &str, to: &str) -> Self {
        Self { from: Some(from.to_owned()), to: Some(to.to_owned()), ..Self::all(pk) }
    }

    /// A partition of the by-day index.
    pub fn day(day: impl Into<String>) -> Self {
        Self::of(Partition::Day(day.into()))
    }

    /// A partition of the index of open leases.
    pub fn open(shard: impl Into<String>) -> Self {
        Self::of(Partition::Open(shard.into()))
    }

    fn of(partition: Partition) -> Self {
        Self { partition, from: None, to: None, reverse: false, limit: None, after: None }
    }

    /// In descending order.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        self.reverse = true;
        self
    }

    #[must_use]
    pub fn limited(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }
}

/// A store operation failed; each variant calls for a different reaction.
#[derive(Debug)]
pub enum Error {
    /// Nothing was written and a retry may help: throttled, locked, unreachable.
    Unavailable(Cause),
    /// The write may have happened: send it again and compare.
    Unknown(Cause),
    /// The request can never succeed: too large, not permitted, no such table.
    Refused(Cause),
    /// A stored record cannot be read.
    Corrupt(Cause),
}

pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// How long a caller pauses before it sends a request again; most multiply it by the attempt.
///
/// The SQLite writer commits a group in a few milliseconds, so several pass in this time; SQLite has
/// waited for another process's lock, and the AWS client has backed off from a throttled table, before
/// either reports an error. All [`WRITE_ATTEMPTS_MAX`](crate::limits::WRITE_ATTEMPTS_MAX) attempts take
/// half a second, a fraction of the 3 s that a Lambda gives an announcement.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Nothing was written: send the same request again after this time.
    After(Duration),
    /// It may have been written: send the same request again after this time. If its condition is
    /// refused then, compare what is there with the request; they are equal if the first attempt landed.
    Unknown(Duration),
    /// Trying again cannot help.
    Never,
}

impl Error {
    /// What a caller does next.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Unavailable(_) => Retry::After(RETRY_PAUSE),
            Self::Unknown(_) => Retry::Unknown(RETRY_PAUSE),
            Self::Refused(_) | Self::Corrupt(_) => Retry::Never,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable(_) => "the journal is unavailable",
            Self::Unknown(_) => "it is unknown whether the journal wrote the record",
            Self::Refused(_) => "the journal rejected the request",
            Self::Corrupt(_) => "the journal contains an unreadable record",
        })
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unavailable(cause)
            | Self::Unknown(cause)
            | Self::Refused(cause)
            | Self::Corrupt(cause) => Some(cause.as_ref()),
        }
    }
}

impl From<crate::item::ItemError> for Error {
    fn from(error: crate::item::ItemError) -> Self {
        Self::Corrupt(error.into())
    }
}

impl From<crate::payload::DecodeError> for Error {
    fn from(error: crate::payload::DecodeError) -> Self {
        Self::Corrupt(error.into())
    }
}

impl From<tlog::tree::OutOfRange> for Error {
    fn from(error: tlog::tree::OutOfRange) -> Self {
        Self::Corrupt(error.into())
    }
}

/// Counts the items of a query by `Status`, page by page.
async fn count_pages<S: Store>(
    store: &S,
    mut query: Query,
) -> Result<BTreeMap<String, u64>, Error> {
    let mut counts = BTreeMap::new();
    loop {
        let page = store.query(query.clone()).await?;
        for status in page.items.iter().filter_map(|item| item.text_opt(attribute::STATUS)) {
            *counts.entry(status.to_owned()).or_default() += 1;
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(counts),
        }
    }
}

/// Reads all pages of a query.
///
/// # Errors
/// The store cannot be read.
pub async fn query_all<S: Store>(store: &S, mut query: Query) -> Result<Vec<Item>, Error> {
    let mut items = Vec::new();
    loop {
        let page = store.query(query.clone()).await?;
        items.extend(page.items);
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(items),
        }
    }
}

/// Passes the items of all pages to `take`, page by page, while the next page is being read.
///
/// # Errors
/// The store cannot be read, or the first error of `take`.
pub async fn take_all<S: Store>(
    store: &S,
    mut query: Query,
    mut take: impl FnMut(Vec<Item>) -> Result<(), Error> + Send,
) -> Result<(), Error> {
    let mut page = store.query(query.clone()).await?;
    while let Some(next) = page.next {
        query.after = Some(next);
        // In this order, so that the next query runs while the items are processed.
        let (read, taken) = join(store.query(query.clone()), async { take(page.items) }).await;
        taken?;
        page = read?;
    }
    take(page.items)
}
