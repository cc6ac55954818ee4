//! Lists sessions, newest first, using the by-day index.
//!
//! A [`Lister`] walks the index. It returns every SESSION_INITIATED; all but a session's first are [`Copies`]. A [`Search`] reads the sessions that may match a [`Filter`]; for ended sessions the
//! index already has the verdict. Summaries are cached in a [`SummaryCache`]. A [`histogram()`] counts in the index
//! alone. A search examines a limited number of sessions and returns a cursor for the next one.

mod cache;
mod copies;
mod histogram;
mod search;
mod summary;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use futures_util::future::try_join_all;

use crate::clock::Stamp;
use crate::event::{Event, EventStatus};
use crate::id::SessionId;
use crate::item::Item;
use crate::key::{self, attribute};
use crate::store::{Cursor, Error, Query, Store, query_all};

pub use cache::SummaryCache;
pub use copies::{COPIES_MAX, Copies};
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

const DAY_NANOS: i64 = 86_400 * 1_000_000_000;

/// A session as the by-day index shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    pub session: SessionId,
    /// Its position in the index. The key of a damaged or forged record may name another time.
    pub at: Stamp,
    pub initiated: Event,
    /// Its verdict, unless it is later than the requested time.
    pub verdict: Option<Event>,
}

/// The sessions that started between `since` and `until`, both inclusive, newest first, at most `limit`. Of a session
/// with several initiations in this time, the earliest counts.
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
    let (mut listed, mut places, mut copies) = (Vec::new(), BTreeMap::new(), 0);
    while places.len() < limit
        && copies < COPIES_MAX
        && let Some(session) = lister.next().await?
    {
        if let Some(later) = places.insert(session.session.clone(), listed.len()) {
            copies += 1;
            listed[later] = None;
        }
        listed.push(Some(session));
    }
    Ok(listed.into_iter().flatten().collect())
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
    /// Sessions at the same position, the largest id first, so that a cursor can point between them.
    together: VecDeque<Entry>,
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

/// An entry of the index.
#[derive(Debug)]
struct Entry {
    /// Its position, which never increases from one entry to the next.
    at: Stamp,
    event: Event,
}

/// A partition of the index, read page by page from its newest entry.
#[derive(Debug)]
struct Shard {
    query: Query,
    read: VecDeque<Entry>,
    rest: Rest,
    /// The first and the last instant of its day.
    day: (Stamp, Stamp),
    /// The latest requested position.
    until: Stamp,
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
        Ok(self.together.pop_front().map(|Entry { at, event }| {
            let session = event.session.clone();
            // It stays for the entries of the session that follow, if this one is a copy.
            let verdict = self.verdicts.get(&session).cloned();
            Listed { session, at, initiated: event, verdict }
        }))
    }

    /// Reads the sessions of the next position with any.
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
            if self.together.front().is_some_and(|first| first.at != at) {
                break;
            }
            let Some(entry) = self.pop() else { break };
            self.take(entry);
        }
        // The first of a session's entries comes first: a cursor cannot point between them.
        let order = |a: &Entry, b: &Entry| {
            let keys = |entry: &Entry| (entry.event.stamp, entry.event.sk.clone());
            b.event.session.cmp(&a.event.session).then_with(|| keys(a).cmp(&keys(b)))
        };
        self.together.make_contiguous().sort_by(order);
        Ok(())
    }

    fn take(&mut self, entry: Entry) {
        let event = &entry.event;
        if event.status.is_verdict() {
            // The earliest of several verdicts counts.
            let known = self.verdicts.get(&event.session);
            if known.is_none_or(|known| event.stamp <= known.stamp) {
                self.verdicts.insert(event.session.clone(), entry.event);
            }
        } else if event.status == EventStatus::SessionInitiated {
            self.together.push_back(entry);
        }
    }

    /// Position of the day's newest unread entry.
    async fn peek(&mut self) -> Result<Option<Stamp>, Error> {
        let store = self.store;
        let empty = self.shards.iter_mut().filter(|shard| shard.read.is_empty());
        try_join_all(empty.map(|shard| shard.fill(store))).await?;
        Ok(self.shards.iter().filter_map(|shard| shard.read.front()).map(|entry| entry.at).max())
    }

    /// Takes the day's newest unread entry, which `peek` has read.
    fn pop(&mut self) -> Option<Entry> {
        let newest = |shard: &Shard| shard.read.front().map(|entry| entry.at);
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
                let event = match Event::from_item(item) {
                    Ok(event) => Some(event),
                    // A damaged session is listed: it must not disappear. Another entry is not an event of ours.
                    Err(_) if is_first(store, item).await? => unread(item),
                    Err(_) => None,
                };
                let at =
                    position(item.text_opt(attribute::TIMESTAMP).unwrap_or_default(), self.day);
                // Texts that state no time may be read though they are later.
                self.read
                    .extend(event.filter(|_| at <= self.until).map(|event| Entry { at, event }));
            }
            self.rest = page.next.map_or(Rest::Nothing, Rest::After);
            let longer = self.query.limit.unwrap_or(PAGE_ITEMS_FIRST) * 2;
            self.query.limit = Some(longer.min(PAGE_ITEMS_MAX));
        }
        Ok(())
    }
}

/// The position of an entry with this text within a day: the last instant whose text is not after it. Any text has
/// one, so that an entry that states no time makes no cursor skip others.
fn position(text: &str, (begin, end): (Stamp, Stamp)) -> Stamp {
    if let Ok(at) = Stamp::parse(text)
        && at.to_string() == text
    {
        return at.max(begin).min(end);
    }
    let (mut low, mut high) = (begin.nanos(), end.nanos());
    while low < high {
        let middle = low + (high - low + 1) / 2;
        if Stamp::from_nanos(middle).to_string().as_str() <= text {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Stamp::from_nanos(low)
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

/// The sort key of a damaged session's first event: its first record, or else its earliest readable initiation.
async fn first_key<S: Store>(store: &S, session: &SessionId) -> Result<Option<String>, Error> {
    let items = query_all(store, Query::prefix(key::session(session), key::EVENT_PREFIX)).await?;
    let is_initiation =
        |event: Event| (event.status == EventStatus::SessionInitiated).then_some(event.sk);
    Ok(items.iter().enumerate().find_map(|(place, item)| match Event::from_item(item) {
        Ok(event) => is_initiation(event),
        Err(_) => (place == 0).then(|| item.sk.clone()),
    }))
}

fn shards_of(day: Stamp, since: Stamp, until: Stamp) -> Vec<Shard> {
    let begin = Stamp::from_nanos(day.nanos() - day.nanos().rem_euclid(DAY_NANOS));
    let end = Stamp::from_nanos(begin.nanos().saturating_add(DAY_NANOS - 1));
    let shard = |shard| {
        let mut query =
            Query::day(key::day_shard(&day.date(), shard)).reversed().limited(PAGE_ITEMS_FIRST);
        (query.from, query.to) = (Some(since.to_string()), Some(until.next().to_string()));
        Shard { query, read: VecDeque::new(), rest: Rest::Unread, day: (begin, end), until }
    };
    key::SHARDS.chars().map(shard).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_in_the_order_of_the_texts() {
        let day = |text: &str| Stamp::parse(text).unwrap();
        let day = (day("2026-11-21T00:00:00Z"), day("2026-11-21T23:59:59.999999999Z"));
        let mut texts = [
            "",
            "2026-11-20T12:00:00Z",
            "2026-11-21",
            "2026-11-21 03:00:00Z",
            "2026-11-21T01:00",
            "2026-11-21T01:00:00.000000000Z",
            "2026-11-21T01:00:00.5Z",
            "2026-11-21T01:00:00.500000000Z",
            "2026-11-21T01:00:00Z",
            "2026-11-21T09:00:00+09:00",
            "2026-11-21t00:00:00Z",
            "2026-11-22T01:00:00Z",
            "ä",
        ];
        texts.sort_unstable();
        let positions: Vec<_> = texts.iter().map(|text| position(text, day)).collect();
        assert!(positions.is_sorted(), "{positions:?}");
        assert_eq!((positions[0], *positions.last().unwrap()), day);
        let exact = "2026-11-21T01:00:00.500000000Z";
        assert_eq!(position(exact, day).to_string(), exact);
    }
}
