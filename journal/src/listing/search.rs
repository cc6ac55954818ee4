//! Looking for the sessions that fit, within bounds.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::try_join_all;

use super::{Listed, Lister, Place, Shelf, Summary};
use crate::clock::Stamp;
use crate::event::Event;
use crate::status::{Status, status};
use crate::store::{Error, Store};

/// Most sessions that one search looks at. It ends there and says where the next one goes on.
pub const SEARCHED_MAX: usize = 1_000;

/// Most sessions that one search reads because their place in the index does not tell whether they
/// fit. It ends there as at [`SEARCHED_MAX`].
pub const READ_MAX: usize = 300;

/// Most records that one search reads. A search that comes to it in the middle of a session reads that
/// one to its end.
pub const RECORDS_MAX: usize = 20_000;

/// How many sessions are read at a time.
const AT_ONCE: usize = 8;

/// Most sessions that are looked at for one list of those that fit a filter.
pub const CANDIDATES_MAX: usize = 10_000;

/// Which sessions to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Those that began at this time or later.
    pub since: Stamp,
    /// Those that began at this time or earlier.
    pub until: Stamp,
    /// Those that stand behind this place in the list.
    pub after: Option<Place>,
    /// Those that stand in one of these ways; in any if it is empty.
    pub statuses: Vec<Status>,
    /// Those of this agent.
    pub agent: Option<String>,
}

impl Filter {
    fn admits(&self, summary: &Summary) -> bool {
        (self.statuses.is_empty() || self.statuses.contains(&summary.told.status))
            && (self.agent.is_none() || self.agent.as_deref() == summary.agent())
    }

    /// Whether the index alone shows that a session does not fit. `has_verdicts` says whether the index
    /// was looked at from the present on, so that a session without a verdict has none.
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

/// Walks over the sessions that a filter admits, newest first, within the bounds of one search.
#[derive(Debug)]
pub struct Search<'a, S> {
    store: &'a S,
    shelf: &'a Shelf,
    filter: &'a Filter,
    now: Stamp,
    lister: Lister<'a, S>,
    /// What was looked at and not yet handed out: those that fit have a summary.
    seen: VecDeque<(Place, Option<Arc<Summary>>)>,
    searched: usize,
    read: usize,
    records: usize,
    place: Option<Place>,
    is_over: bool,
}

impl<'a, S: Store> Search<'a, S> {
    /// A search at `now`.
    pub fn new(store: &'a S, shelf: &'a Shelf, filter: &'a Filter, now: Stamp) -> Self {
        let until = filter.after.as_ref().map_or(filter.until, |after| after.at.min(filter.until));
        let lister = Lister::new(store, filter.since, until);
        Self {
            store,
            shelf,
            filter,
            now,
            lister,
            seen: VecDeque::new(),
            searched: 0,
            read: 0,
            records: 0,
            place: None,
            is_over: false,
        }
    }

    /// The next session that fits; `None` when there are no more, or the search has come to a bound.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn next(&mut self) -> Result<Option<Arc<Summary>>, Error> {
        loop {
            while let Some((place, found)) = self.seen.pop_front() {
                self.place = Some(place);
                self.searched += 1;
                if found.is_some() {
                    return Ok(found);
                }
            }
            let is_spent = self.searched >= SEARCHED_MAX
                || self.read >= READ_MAX
                || self.records >= RECORDS_MAX;
            if is_spent || self.is_over {
                return Ok(None);
            }
            self.look().await?;
        }
    }

    /// How many sessions were looked at, those that do not fit included.
    pub fn searched(&self) -> usize {
        self.searched
    }

    /// Where another search goes on; `None` when nothing is left.
    pub fn more(&self) -> Option<Place> {
        self.place.clone().filter(|_| !self.is_over || !self.seen.is_empty())
    }

    /// Looks at the next few sessions.
    async fn look(&mut self) -> Result<(), Error> {
        let mut candidates = Vec::new();
        while candidates.len() < AT_ONCE {
            let Some(listed) = self.lister.next().await? else {
                self.is_over = true;
                break;
            };
            let place = Place { at: listed.initiated.stamp, session: listed.session.clone() };
            if self.filter.after.as_ref().is_none_or(|after| place < *after) {
                candidates.push((place, listed));
            }
        }
        let reads = candidates.iter().map(|(_, listed)| self.summary(listed));
        let read = try_join_all(reads).await?;
        for ((place, _), (summary, records)) in candidates.into_iter().zip(read) {
            self.read += usize::from(records > 0);
            self.records += records;
            let fits = summary.filter(|summary| self.filter.admits(summary));
            self.seen.push_back((place, fits));
        }
        Ok(())
    }

    /// What a list would show of a session that may fit, and how many records were read for it.
    async fn summary(&self, listed: &Listed) -> Result<(Option<Arc<Summary>>, usize), Error> {
        let verdict = listed.verdict.as_ref();
        let has_verdicts = self.filter.after.is_none() && self.filter.until >= self.now;
        if self.filter.refuses(verdict, has_verdicts) {
            return Ok((None, 0));
        }
        let at = verdict.map(|verdict| verdict.stamp);
        match self.shelf.summary(self.store, &listed.session, at, self.now).await {
            Err(error @ Error::Corrupt(_)) => {
                Ok((Some(Arc::new(Summary::unreadable(listed, &error))), 1))
            }
            read => read,
        }
    }
}

/// The sessions that a filter admits, newest first, at most `limit`. Looks at no more than
/// [`CANDIDATES_MAX`].
///
/// # Errors
/// When the store cannot be read.
pub async fn summaries<S: Store>(
    store: &S,
    filter: &Filter,
    limit: usize,
    now: Stamp,
) -> Result<Vec<Arc<Summary>>, Error> {
    let (shelf, mut filter) = (Shelf::default(), filter.clone());
    let (mut found, mut searched) = (Vec::new(), 0);
    loop {
        let mut search = Search::new(store, &shelf, &filter, now);
        while found.len() < limit
            && let Some(summary) = search.next().await?
        {
            found.push(summary);
        }
        searched += search.searched();
        let more = search.more();
        if found.len() >= limit || searched >= CANDIDATES_MAX || more.is_none() {
            return Ok(found);
        }
        filter.after = more;
    }
}
