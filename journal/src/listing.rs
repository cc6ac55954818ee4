//! Lists sessions, newest first, using the by-day index.
//!
//! A [`Lister`] walks the index. A [`Search`] reads the sessions that may match a [`Filter`]; for ended sessions the
//! index already has the verdict. Summaries are cached in a [`SummaryCache`]. A [`histogram()`] counts in the index
//! alone. A search examines a limited number of sessions and returns a cursor for the next one.

mod cache;
mod histogram;
mod search;
mod summary;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use futures_util::future::try_join_all;

use crate::clock::Stamp;
use crate::event::{Event, EventStatus};
use crate::id::SessionId;
use crate::item::Item;
use crate::key::{self, attribute};
use crate::store::{Cursor, Error, Query, Store};

pub use cache::SummaryCache;
pub use histogram::{BUCKETS_MAX, Bucket, InvalidBuckets, buckets, histogram};
pub use search::{Filter, READ_MAX, RECORDS_MAX, SEARCHED_MAX, Search};
pub use summary::Summary;

/// Entries of the first page read from each of a day's sixteen partitions. A short list needs no more; each further
/// page is twice as long.
const PAGE_ITEMS_FIRST: usize = 8;

/// Most entries of a page read from each of a day's sixteen partitions.
const PAGE_ITEMS_MAX: usize = 128;

/// Most sessions examined to resolve an id prefix.
pub const CANDIDATES_MAX: usize = 10_000;

/// Most days examined for one list.
pub const DAYS_MAX: u32 = 3_660;

const DAY: Duration = Duration::from_secs(86_400);

/// A session as the by-day index shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    pub session: SessionId,
    pub initiated: Event,
    /// Its verdict, unless it is later than the requested time.
    pub verdict: Option<Event>,
}

/// The sessions that started between `since` and `until`, both inclusive, newest first, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list<S: Store>(
    store: &S,
    since: Stamp,
    until: Stamp,
    limit: usize,
) -> Result<Vec<Listed>, Error> {
    let mut lister = Lister::new(store, since, until);
    let mut listed = Vec::new();
    while listed.len() < limit
        && let Some(session) = lister.next().await?
    {
        listed.push(session);
    }
    Ok(listed)
}

/// Walks over sessions, newest first, and reads the index on demand.
#[derive(Debug)]
pub struct Lister<'a, S> {
    store: &'a S,
    since: Stamp,
    until: Stamp,
    /// The day being read.
    day: Stamp,
    days_left: u32,
    shards: Vec<Shard>,
    /// Verdicts of sessions that follow in the list: a verdict is later than its session's start.
    verdicts: BTreeMap<SessionId, Event>,
    /// Sessions that started at the same instant, the largest id first, so that a cursor can point between them.
    together: VecDeque<Event>,
    /// That instant, and the ids already listed.
    listed: (Stamp, BTreeSet<SessionId>),
}

/// A cursor in the list: a session's start time and id.
///
/// An API returns its text as the cursor of the next page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListCursor {
    pub at: Stamp,
    pub session: SessionId,
}

impl fmt::Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}", self.at, self.session)
    }
}

impl FromStr for ListCursor {
    type Err = InvalidListCursor;

    fn from_str(text: &str) -> Result<Self, InvalidListCursor> {
        let (at, session) = text.split_once('~').ok_or(InvalidListCursor)?;
        let at = Stamp::parse(at).map_err(|_| InvalidListCursor)?;
        Ok(Self { at, session: session.parse().map_err(|_| InvalidListCursor)? })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid cursor; pass the `more` value of the previous page unchanged")]
pub struct InvalidListCursor;

/// A partition of the index, read page by page from its newest entry.
#[derive(Debug)]
struct Shard {
    query: Query,
    read: VecDeque<Event>,
    rest: Rest,
}

#[derive(Debug)]
enum Rest {
    Unread,
    After(Cursor),
    Nothing,
}

impl<'a, S: Store> Lister<'a, S> {
    /// The sessions that started between `since` and `until`, both inclusive.
    pub fn new(store: &'a S, since: Stamp, until: Stamp) -> Self {
        Self {
            store,
            since,
            until,
            day: until,
            days_left: DAYS_MAX,
            shards: shards_of(until, since, until),
            verdicts: BTreeMap::new(),
            together: VecDeque::new(),
            listed: (until.next(), BTreeSet::new()),
        }
    }

    /// The next session, if any.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn next(&mut self) -> Result<Option<Listed>, Error> {
        if self.together.is_empty() {
            self.gather().await?;
        }
        Ok(self.together.pop_front().map(|initiated| {
            let session = initiated.session.clone();
            let verdict = self.verdicts.remove(&session);
            Listed { session, initiated, verdict }
        }))
    }

    /// Reads the sessions of the next instant with any.
    async fn gather(&mut self) -> Result<(), Error> {
        while self.until >= self.since {
            let Some(at) = self.peek().await? else {
                if !self.together.is_empty() {
                    break;
                }
                if self.day.date() <= self.since.date() || self.days_left == 0 {
                    return Ok(());
                }
                self.days_left -= 1;
                self.day = self.day.before(DAY);
                self.shards = shards_of(self.day, self.since, self.until);
                continue;
            };
            if self.together.front().is_some_and(|first| first.stamp != at) {
                break;
            }
            let Some(event) = self.pop() else { break };
            self.take(event);
        }
        self.together.make_contiguous().sort_by(|a, b| b.session.cmp(&a.session));
        Ok(())
    }

    fn take(&mut self, event: Event) {
        if event.status.is_verdict() {
            // The earliest of several verdicts counts, and entries come newest first.
            self.verdicts.insert(event.session.clone(), event);
        } else if event.status == EventStatus::SessionInitiated {
            if self.listed.0 != event.stamp {
                self.listed = (event.stamp, BTreeSet::new());
            }
            if self.listed.1.insert(event.session.clone()) {
                self.together.push_back(event);
            }
        }
    }

    /// Time of the day's newest unread entry.
    async fn peek(&mut self) -> Result<Option<Stamp>, Error> {
        let store = self.store;
        let empty = self.shards.iter_mut().filter(|shard| shard.read.is_empty());
        try_join_all(empty.map(|shard| shard.fill(store))).await?;
        Ok(self.shards.iter().filter_map(|shard| shard.read.front()).map(|event| event.stamp).max())
    }

    /// Takes the day's newest unread entry, which `peek` has read.
    fn pop(&mut self) -> Option<Event> {
        let newest = |shard: &Shard| shard.read.front().map(|event| event.stamp);
        self.shards.iter_mut().max_by_key(|shard| newest(shard))?.read.pop_front()
    }
}

impl Shard {
    async fn fill<S: Store>(&mut self, store: &S) -> Result<(), Error> {
        while self.read.is_empty() {
            self.query.after = match &self.rest {
                Rest::Unread => None,
                Rest::After(cursor) => Some(cursor.clone()),
                Rest::Nothing => return Ok(()),
            };
            let page = store.query(self.query.clone()).await?;
            for item in &page.items {
                match Event::from_item(item) {
                    Ok(event) => self.read.push_back(event),
                    // A damaged session is listed: it must not disappear. Another entry is not an event of ours.
                    Err(_) if is_first(store, item).await? => self.read.extend(unread(item)),
                    Err(_) => {}
                }
            }
            self.rest = page.next.map_or(Rest::Nothing, Rest::After);
            let longer = self.query.limit.unwrap_or(PAGE_ITEMS_FIRST) * 2;
            self.query.limit = Some(longer.min(PAGE_ITEMS_MAX));
        }
        Ok(())
    }
}

/// What the key of a session's unreadable first event says.
fn unread(item: &Item) -> Option<Event> {
    let initiated = Item::new(item.pk.as_str(), item.sk.as_str())
        .with(attribute::STATUS, EventStatus::SessionInitiated.as_str());
    Event::from_item(&initiated).ok()
}

/// Whether an unreadable entry is the first event of its session, the one that lists it.
async fn is_first<S: Store>(store: &S, item: &Item) -> Result<bool, Error> {
    let query = Query::prefix(&item.pk, key::EVENT_PREFIX).limited(1);
    let page = store.query(query).await?;
    Ok(page.items.first().is_some_and(|first| first.sk == item.sk))
}

fn shards_of(day: Stamp, since: Stamp, until: Stamp) -> Vec<Shard> {
    let shard = |shard| {
        let mut query =
            Query::day(key::day_shard(&day.date(), shard)).reversed().limited(PAGE_ITEMS_FIRST);
        (query.from, query.to) = (Some(since.to_string()), Some(until.to_string()));
        Shard { query, read: VecDeque::new(), rest: Rest::Unread }
    };
    key::SHARDS.chars().map(shard).collect()
}
