//! Finds sessions that match a filter, within limits.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::try_join_all;

use super::{Copies, ListCursor, Listed, Lister, Summary, SummaryCache};
use crate::clock::Stamp;
use crate::event::Event;
use crate::status::{Status, status};
use crate::store::{Error, Store};

/// Most sessions that one search examines. It then returns a cursor.
pub const SEARCHED_MAX: usize = 500;

/// Most sessions that one search reads because the index does not show whether they match. It then
/// returns a cursor.
pub const READ_MAX: usize = 200;

/// Most records that one search reads. It still finishes the session being read.
pub const RECORDS_MAX: usize = 20_000;

/// How many sessions are read concurrently.
const AT_ONCE: usize = 8;

/// Which sessions to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Started at this time or later.
    pub since: Stamp,
    /// Started at this time or earlier.
    pub until: Stamp,
    /// After this cursor.
    pub after: Option<ListCursor>,
    /// With one of these statuses; any if empty.
    pub statuses: Vec<Status>,
    pub agent: Option<String>,
}

impl Filter {
    fn admits(&self, summary: &Summary) -> bool {
        (self.statuses.is_empty() || self.statuses.contains(&summary.reported.status))
            && (self.agent.is_none() || self.agent.as_deref() == summary.agent())
    }

    /// Whether the index alone shows that a session does not match. `has_verdicts` tells whether
    /// the index was read from the present on, so that a session without a verdict has none.
    fn refuses(&self, verdict: Option<&Event>, has_verdicts: bool) -> bool {
        if self.statuses.is_empty() {
            return false;
        }
        match verdict {
            Some(verdict) => !self.statuses.contains(&status([verdict])),
            None => has_verdicts && self.statuses.iter().all(|status| status.is_terminal()),
        }
    }
}

/// Walks the matching sessions, newest first, within the limits of one search.
#[derive(Debug)]
pub struct Search<'a, S> {
    store: &'a S,
    cache: &'a SummaryCache,
    filter: &'a Filter,
    now: Stamp,
    lister: Lister<'a, S>,
    /// Examined entries that have not been returned.
    seen: VecDeque<Seen>,
    copies: Copies,
    searched: usize,
    read: usize,
    records: usize,
    place: Option<ListCursor>,
    is_over: bool,
}

/// An examined entry of the index.
#[derive(Debug)]
struct Seen {
    place: ListCursor,
    /// A copy of a session's first entry counts as no session.
    is_copy: bool,
    /// The session's summary if it matches.
    found: Option<Arc<Summary>>,
}

impl<'a, S: Store> Search<'a, S> {
    pub fn new(store: &'a S, cache: &'a SummaryCache, filter: &'a Filter, now: Stamp) -> Self {
        let until = filter.after.as_ref().map_or(filter.until, |after| after.at.min(filter.until));
        let lister = Lister::new(store, filter.since, until);
        Self {
            store,
            cache,
            filter,
            now,
            lister,
            seen: VecDeque::new(),
            copies: Copies::default(),
            searched: 0,
            read: 0,
            records: 0,
            place: None,
            is_over: false,
        }
    }

    /// The next matching session; `None` at the end or when a limit is reached.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn next(&mut self) -> Result<Option<Arc<Summary>>, Error> {
        loop {
            while let Some(Seen { place, is_copy, found }) = self.seen.pop_front() {
                self.place = Some(place);
                self.searched += usize::from(!is_copy);
                if found.is_some() {
                    return Ok(found);
                }
            }
            let is_spent = self.searched >= SEARCHED_MAX
                || self.read >= READ_MAX
                || self.records >= RECORDS_MAX
                || self.copies.are_too_many();
            if is_spent || self.is_over {
                return Ok(None);
            }
            self.look().await?;
        }
    }

    /// Number of sessions examined, matching or not.
    pub fn searched(&self) -> usize {
        self.searched
    }

    /// The cursor for the next search; `None` if nothing is left.
    pub fn more(&self) -> Option<ListCursor> {
        self.place.clone().filter(|_| !self.is_over || !self.seen.is_empty())
    }

    /// Examines the next few sessions.
    async fn look(&mut self) -> Result<(), Error> {
        let mut entries = Vec::new();
        let mut unknown = 0;
        while unknown < AT_ONCE && !self.copies.are_too_many() {
            let Some(listed) = self.lister.next().await? else {
                self.is_over = true;
                break;
            };
            let place = ListCursor { at: listed.at, session: listed.session.clone() };
            if self.filter.after.as_ref().is_none_or(|after| place < *after) {
                let is_known = self.copies.knows(&listed);
                unknown += usize::from(!is_known);
                entries.push((place, listed, is_known));
            }
        }
        let reads = entries.iter().map(async |(_, listed, is_known)| match is_known {
            true => Ok((None, 0)),
            false => self.summary(listed).await,
        });
        let read = try_join_all(reads).await?;
        for ((place, listed, is_known), (summary, records)) in entries.into_iter().zip(read) {
            self.read += usize::from(records > 0);
            self.records += records;
            let is_copy = is_known || self.is_copy(&listed, summary.as_deref()).await?;
            let found = summary.filter(|summary| !is_copy && self.filter.admits(summary));
            self.seen.push_back(Seen { place, is_copy, found });
        }
        Ok(())
    }

    /// Whether the session has an earlier initiation than this entry.
    async fn is_copy(&mut self, listed: &Listed, summary: Option<&Summary>) -> Result<bool, Error> {
        let Some(summary) = summary else { return Ok(self.copies.pass_over(&listed.session)) };
        if !summary.reported.is_damaged {
            return Ok(self.copies.learn(listed, summary.reported.first_sk.as_deref()));
        }
        let first = super::first_key(self.store, &listed.session).await?;
        Ok(self.copies.learn(listed, first.as_deref()))
    }

    /// The summary of a session that may match, and the number of records read for it.
    async fn summary(&self, listed: &Listed) -> Result<(Option<Arc<Summary>>, usize), Error> {
        let verdict = listed.verdict.as_ref();
        let has_verdicts = self.filter.after.is_none() && self.filter.until >= self.now;
        if self.filter.refuses(verdict, has_verdicts) {
            return Ok((None, 0));
        }
        let at = verdict.map(|verdict| verdict.stamp);
        match self.cache.summary(self.store, &listed.session, at, self.now).await {
            Err(error @ Error::Corrupt(_)) => {
                Ok((Some(Arc::new(Summary::unreadable(listed, &error))), 1))
            }
            read => read,
        }
    }
}
