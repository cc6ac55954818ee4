//! Listing sessions, newest first, over the by-day index.
//!
//! A [`Lister`] walks over the index; a [`Search`] reads the sessions that may fit a [`Filter`], and
//! no others: of an ended session the index has the verdict. What was read before stands on a
//! [`Shelf`]; a [`histogram`] counts in the index alone. One search looks at so many sessions and no more, and says where the next goes on.

mod histogram;
mod search;
mod shelf;
mod summary;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use futures_util::future::try_join_all;

use crate::clock::Stamp;
use crate::event::{Event, EventStatus};
use crate::id::SessionId;
use crate::key;
use crate::store::{Cursor, Error, Query, Store};

pub use histogram::{BUCKETS_MAX, Bucket, InvalidBuckets, buckets, histogram};
pub use search::{CANDIDATES_MAX, Filter, READ_MAX, RECORDS_MAX, SEARCHED_MAX, Search, summaries};
pub use shelf::Shelf;
pub use summary::{Summary, summary};

/// How many entries of the index are read first from each of a day's sixteen partitions. A short list
/// needs no more; every further page is twice as long.
const PAGE_ITEMS_FIRST: usize = 8;

/// How many entries of the index are read at once from each of a day's sixteen partitions, at most.
const PAGE_ITEMS_MAX: usize = 128;

/// Most days that are looked at for one list.
pub const DAYS_MAX: u32 = 3_660;

const DAY: Duration = Duration::from_secs(86_400);

/// A session as the by-day index shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The session.
    pub session: SessionId,
    /// Its first event.
    pub initiated: Event,
    /// Its verdict, if it has one that is not later than what was asked for.
    pub verdict: Option<Event>,
}

/// The sessions that began between `since` and `until`, both included, newest first, at most
/// `limit`.
///
/// # Errors
/// When the store cannot be read.
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

/// Walks over sessions, newest first, and reads no more of the index than it is asked for.
#[derive(Debug)]
pub struct Lister<'a, S> {
    store: &'a S,
    since: Stamp,
    until: Stamp,
    /// The day whose partitions are being read.
    day: Stamp,
    days_left: u32,
    shards: Vec<Shard>,
    /// Verdicts whose sessions have not come yet: they are later than their sessions.
    verdicts: BTreeMap<SessionId, Event>,
    /// The sessions that began at one instant, the largest id first, so that a place among them can be
    /// found again.
    together: VecDeque<Event>,
    /// The instant of the last of them, with their ids.
    listed: (Stamp, BTreeSet<SessionId>),
}

/// A session's place in the list: where it began, and of those that began together, which one it is.
///
/// As text it is what an API hands out as the place to go on after.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// When the session began.
    pub at: Stamp,
    /// The session.
    pub session: SessionId,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}", self.at, self.session)
    }
}

impl FromStr for Place {
    type Err = InvalidPlace;

    fn from_str(text: &str) -> Result<Self, InvalidPlace> {
        let (at, session) = text.split_once('~').ok_or(InvalidPlace)?;
        let at = Stamp::parse(at).map_err(|_| InvalidPlace)?;
        Ok(Self { at, session: session.parse().map_err(|_| InvalidPlace)? })
    }
}

/// A text is no place in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no place in a list of sessions: it is the `more` of the list before, as it was")]
pub struct InvalidPlace;

/// One partition of the index, read page by page from its newest entry.
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
    /// A walk over the sessions that began between `since` and `until`, both included.
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

    /// The next session, or `None` when there are no more.
    ///
    /// # Errors
    /// When the store cannot be read.
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

    /// Takes the sessions of the next instant at which any began.
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
            // Of several verdicts the earliest counts, and time runs backwards here.
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

    /// The time of the newest entry of the day.
    async fn peek(&mut self) -> Result<Option<Stamp>, Error> {
        let store = self.store;
        try_join_all(self.shards.iter_mut().map(|shard| shard.fill(store))).await?;
        Ok(self.shards.iter().filter_map(|shard| shard.read.front()).map(|event| event.stamp).max())
    }

    /// Takes the newest entry of the day, which was filled.
    fn pop(&mut self) -> Option<Event> {
        let newest = |shard: &&mut Shard| {
            shard.read.front().map(|event| (event.stamp, event.session.clone()))
        };
        self.shards.iter_mut().max_by_key(newest)?.read.pop_front()
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
            // An entry that is no event of ours was put there by somebody else.
            self.read.extend(page.items.iter().filter_map(|item| Event::from_item(item).ok()));
            self.rest = page.next.map_or(Rest::Nothing, Rest::After);
            let longer = self.query.limit.unwrap_or(PAGE_ITEMS_FIRST) * 2;
            self.query.limit = Some(longer.min(PAGE_ITEMS_MAX));
        }
        Ok(())
    }
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
