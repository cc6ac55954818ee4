//! Listing sessions, newest first, over the by-day index.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::clock::Stamp;
use crate::error_message::ErrorMessage;
use crate::event::{Event, EventStatus};
use crate::id::SessionId;
use crate::item::Item;
use crate::key;
use crate::read;
use crate::status::{self, Status};
use crate::step::{Step, StepBody};
use crate::store::{Cursor, Error, Query, Store};

/// How many entries of the index are read at once from each of a day's sixteen partitions.
const PAGE_ITEMS: usize = 64;

/// Most sessions that are looked at for one list of those that fit a filter.
pub const CANDIDATES_MAX: usize = 10_000;

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
    listed: BTreeSet<SessionId>,
}

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
            listed: BTreeSet::new(),
        }
    }

    /// The next session, or `None` when there are no more.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn next(&mut self) -> Result<Option<Listed>, Error> {
        while self.until >= self.since {
            let Some(event) = self.newest().await? else {
                if self.day.date() <= self.since.date() || self.days_left == 0 {
                    return Ok(None);
                }
                self.days_left -= 1;
                self.day = self.day.before(DAY);
                self.shards = shards_of(self.day, self.since, self.until);
                continue;
            };
            let session = event.session.clone();
            if event.status.is_verdict() {
                // Of several verdicts the earliest counts, and time runs backwards here.
                self.verdicts.insert(session, event);
            } else if event.status == EventStatus::SessionInitiated
                && self.listed.insert(session.clone())
            {
                let verdict = self.verdicts.remove(&session);
                return Ok(Some(Listed { session, initiated: event, verdict }));
            }
        }
        Ok(None)
    }

    /// Takes the newest entry of the day.
    async fn newest(&mut self) -> Result<Option<Event>, Error> {
        for shard in &mut self.shards {
            shard.fill(self.store).await?;
        }
        let newest = self.shards.iter_mut().max_by_key(|shard| {
            shard.read.front().map(|event| (event.stamp, event.session.clone()))
        });
        Ok(newest.and_then(|shard| shard.read.pop_front()))
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
        }
        Ok(())
    }
}

fn shards_of(day: Stamp, since: Stamp, until: Stamp) -> Vec<Shard> {
    let shard = |shard| {
        let mut query =
            Query::day(key::day_shard(&day.date(), shard)).reversed().limited(PAGE_ITEMS);
        (query.from, query.to) = (Some(since.to_string()), Some(until.to_string()));
        Shard { query, read: VecDeque::new(), rest: Rest::Unread }
    };
    key::SHARDS.chars().map(shard).collect()
}

/// What a list shows of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The session.
    pub session: SessionId,
    /// Where it stands.
    pub status: Status,
    /// Its agent, from the first claim; `None` before it, and for sessions that never had one.
    pub agent: Option<String>,
    /// When it began; `None` if that is not in the journal.
    pub initiated_at: Option<Stamp>,
    /// When its verdict was given.
    pub ended_at: Option<Stamp>,
    /// What went wrong.
    pub error: Option<ErrorMessage>,
    /// The error's category.
    pub error_category: Option<String>,
    /// How many steps it has.
    pub steps: u32,
    /// The execution that it began with.
    pub execution_arn: Option<String>,
}

/// Which sessions to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Those that began at this time or later.
    pub since: Stamp,
    /// Those that began at this time or earlier.
    pub until: Stamp,
    /// Those that stand so.
    pub status: Option<Status>,
    /// Those of this agent.
    pub agent: Option<String>,
    /// At most so many.
    pub limit: usize,
}

/// The sessions that a filter admits, newest first. Looks at no more than [`CANDIDATES_MAX`].
///
/// # Errors
/// When the store cannot be read.
pub async fn summaries<S: Store>(store: &S, filter: &Filter) -> Result<Vec<Summary>, Error> {
    let mut lister = Lister::new(store, filter.since, filter.until);
    let mut summaries = Vec::new();
    for _ in 0..CANDIDATES_MAX {
        if summaries.len() >= filter.limit {
            break;
        }
        let Some(listed) = lister.next().await? else { break };
        if let Some(summary) = summary(store, &listed.session).await?
            && filter.status.is_none_or(|status| status == summary.status)
            && (filter.agent.is_none() || filter.agent == summary.agent)
        {
            summaries.push(summary);
        }
    }
    Ok(summaries)
}

/// What a list shows of one session; `None` if the journal holds nothing of it.
///
/// # Errors
/// When the store cannot be read.
pub async fn summary<S: Store>(store: &S, session: &SessionId) -> Result<Option<Summary>, Error> {
    let events = read::events(store, session).await?;
    let first = first_step(store, session).await?;
    if events.is_empty() && first.is_none() {
        return Ok(None);
    }
    let agent = match first.as_ref().map(|step| &step.body) {
        Some(StepBody::Claim { agent, .. }) => Some(agent.clone()),
        _ => None,
    };
    let newest = read::newest_step(store, session).await?;
    let initiated = events.iter().find(|event| event.status == EventStatus::SessionInitiated);
    let verdict = events.iter().find(|event| event.status.is_verdict());
    let mut summary = Summary {
        session: session.clone(),
        status: status::status(&events),
        agent,
        initiated_at: initiated.map(|event| event.stamp),
        ended_at: verdict.map(|event| event.stamp),
        error: verdict.and_then(|event| event.error.clone()),
        error_category: None,
        steps: newest.as_ref().map_or(0, |step| step.seq),
        execution_arn: initiated.and_then(|event| event.execution_arn.clone()),
    };
    if let Some(StepBody::End { error, category, .. }) = newest.map(|step| step.body) {
        summary.error = error.or(summary.error);
        summary.error_category = category;
    }
    Ok(Some(summary))
}

async fn first_step<S: Store>(store: &S, session: &SessionId) -> Result<Option<Step>, Error> {
    let query = Query::prefix(key::session(session), key::STEP_PREFIX).limited(1);
    let page = store.query(query).await?;
    let item: Option<&Item> = page.items.first();
    Ok(item.map(Step::from_item).transpose()?)
}
