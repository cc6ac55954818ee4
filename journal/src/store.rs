//! The store: where items are, behind one trait with two implementations.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use futures_util::future::join;

use crate::item::{Item, Value};
use crate::key::attribute;

/// Keeps items and answers for their durability: when a write is acknowledged it survives a crash.
///
/// Every read is strongly consistent, those of an index excepted.
pub trait Store: Clone + Send + Sync + 'static {
    /// Writes a whole item if the condition holds for what is there.
    ///
    /// # Errors
    /// [`Error::Unknown`] when the item may have been written all the same: send it again and
    /// compare. [`Error::Unavailable`] when it was certainly not written.
    fn put(
        &self,
        item: Item,
        condition: Condition,
    ) -> impl Future<Output = Result<Written, Error>> + Send;

    /// Sets attributes of an item if the condition holds for it; creates it if it is absent and the
    /// condition allows that.
    ///
    /// # Errors
    /// As [`Self::put`].
    fn update(
        &self,
        key: Key,
        set: BTreeMap<String, Value>,
        condition: Condition,
    ) -> impl Future<Output = Result<Written, Error>> + Send;

    /// The item under a key.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn get(&self, key: Key) -> impl Future<Output = Result<Option<Item>, Error>> + Send;

    /// One page of a partition in order of sort key.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn query(&self, query: Query) -> impl Future<Output = Result<Page, Error>> + Send;

    /// How many items a query finds, by the text of their `Status`. A store that can count where the
    /// items are does; any other reads all of them.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn count_by_status(
        &self,
        query: Query,
    ) -> impl Future<Output = Result<BTreeMap<String, u64>, Error>> + Send {
        count_pages(self, query)
    }

    /// Returns when something may have been written, at the latest after `patience`.
    fn changed(&self, patience: Duration) -> impl Future<Output = ()> + Send;
}

/// An item's place.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The partition key.
    pub pk: String,
    /// The sort key.
    pub sk: String,
}

impl Key {
    /// The place with these keys.
    pub fn new(pk: impl Into<String>, sk: impl Into<String>) -> Self {
        Self { pk: pk.into(), sk: sk.into() }
    }
}

/// What must hold for the item that is there (or is absent) for a write to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// There is no item.
    Absent,
    /// There is an item whose attribute has this value.
    Equals(String, Value),
    /// There is an item whose attribute is of the same type and at most this value.
    AtMost(String, Value),
    /// All of these.
    All(Vec<Condition>),
    /// At least one of these.
    Any(Vec<Condition>),
}

impl Condition {
    /// There is an item whose attribute has this value.
    pub fn equals(name: &str, value: impl Into<Value>) -> Self {
        Self::Equals(name.to_owned(), value.into())
    }

    /// There is an item whose attribute is at most this value.
    pub fn at_most(name: &str, value: impl Into<Value>) -> Self {
        Self::AtMost(name.to_owned(), value.into())
    }

    /// Whether the condition holds for what is there.
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

/// What became of a conditional write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// The item is durable.
    Done,
    /// The condition did not hold; this is what was there, and is durable.
    Refused(Option<Item>),
}

/// Which items to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The partition.
    pub partition: Partition,
    /// The smallest sort key.
    pub from: Option<String>,
    /// The largest sort key.
    pub to: Option<String>,
    /// Largest first.
    pub reverse: bool,
    /// At most so many items on a page; a store may return fewer and a cursor.
    pub limit: Option<usize>,
    /// Where the page before ended.
    pub after: Option<Cursor>,
}

/// A part of the table that has an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Partition {
    /// The items with this partition key, by sort key.
    Table(String),
    /// One partition of the by-day index (`DAY#date#digit`), by time.
    Day(String),
    /// One partition of the index of open leases (`LEASE#digit`), by the time of the last beat.
    Open(String),
}

/// Where a page ended: opaque outside the store that gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The last item's place.
    pub key: Key,
    /// The last item's time, in an index.
    pub at: Option<String>,
}

/// Items in order, and where to go on if there are more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The items.
    pub items: Vec<Item>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Cursor>,
}

impl Query {
    /// All items of a partition, smallest key first.
    pub fn all(pk: impl Into<String>) -> Self {
        Self::of(Partition::Table(pk.into()))
    }

    /// The items of a partition whose sort key begins with a prefix.
    pub fn prefix(pk: impl Into<String>, prefix: &str) -> Self {
        let mut to = prefix.to_owned();
        to.push('\u{10ffff}');
        Self::between(pk, prefix, &to)
    }

    /// The items of a partition with sort keys from `from` to `to`, both included.
    pub fn between(pk: impl Into<String>, from: &str, to: &str) -> Self {
        Self { from: Some(from.to_owned()), to: Some(to.to_owned()), ..Self::all(pk) }
    }

    /// One partition of the by-day index.
    pub fn day(day: impl Into<String>) -> Self {
        Self::of(Partition::Day(day.into()))
    }

    /// One partition of the index of open leases.
    pub fn open(shard: impl Into<String>) -> Self {
        Self::of(Partition::Open(shard.into()))
    }

    fn of(partition: Partition) -> Self {
        Self { partition, from: None, to: None, reverse: false, limit: None, after: None }
    }

    /// The same, largest key first.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        self.reverse = true;
        self
    }

    /// The same, at most so many items.
    #[must_use]
    pub fn limited(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }
}

/// Why the store did not answer. The variants are what a caller does next.
#[derive(Debug)]
pub enum Error {
    /// Nothing was written, and trying again may help: throttled, locked, out of reach.
    Unavailable(Cause),
    /// The write may have happened: send it again and compare with what is there.
    Unknown(Cause),
    /// This request can never succeed: too large, not permitted, no such table.
    Refused(Cause),
    /// What is stored cannot be read.
    Corrupt(Cause),
}

/// The cause of an [`Error`].
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Try again after this time.
    After(Duration),
    /// Trying again cannot help.
    Never,
}

impl Error {
    /// Whether the same request may succeed later.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Unavailable(_) | Self::Unknown(_) => Retry::After(Duration::from_millis(50)),
            Self::Refused(_) | Self::Corrupt(_) => Retry::Never,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable(_) => "the journal is out of reach",
            Self::Unknown(_) => "the journal did not say whether the record was written",
            Self::Refused(_) => "the journal refused the request",
            Self::Corrupt(_) => "the journal holds something unreadable",
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

/// Counts the items of a query by their `Status`, page by page.
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
/// When the store cannot be read.
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

/// Hands over the items of all pages of a query, page by page, each while the next one is read.
///
/// # Errors
/// When the store cannot be read, or the first that `take` fails with.
pub async fn take_all<S: Store>(
    store: &S,
    mut query: Query,
    mut take: impl FnMut(Vec<Item>) -> Result<(), Error> + Send,
) -> Result<(), Error> {
    let mut page = store.query(query.clone()).await?;
    while let Some(next) = page.next {
        query.after = Some(next);
        // In this order: the store has been asked when the items are taken.
        let (read, taken) = join(store.query(query.clone()), async { take(page.items) }).await;
        taken?;
        page = read?;
    }
    take(page.items)
}
