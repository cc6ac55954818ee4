//! Summaries that were read before, so that a list that is asked for again reads only what is new.
//!
//! Nothing here is a source of truth: a summary is what the records added up to when they were read.
//! Steps are never changed, so that of a session without an end only those after the last one counted
//! are read; its events, which are few, are read again. A session with a verdict is left alone once the
//! verdict has settled. A verdict that the index shows at another time than the one counted (a second
//! writer's, which came late and was stamped earlier) has the session read again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Summary;
use super::histogram::{BUCKETS_MAX, Bucket, COUNTED_FOR, LATE};
use crate::clock::Stamp;
use crate::id::SessionId;
use crate::payload::Payload;
use crate::store::{Error, Store};

/// What summaries may take together, in bytes as counted by [`weight`]; beyond it those go that were
/// not asked for the longest.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What a summary takes without its texts and payloads, in bytes.
const SUMMARY_BYTES: usize = 768;

/// How long after a verdict a session's announcements may still come. Each that is missing then says
/// what its steps say, too.
const SETTLED_AFTER: Duration = Duration::from_secs(60);

/// Most stretches of time whose counts are kept; beyond it all are counted again.
const COUNTED_MAX: usize = 10 * BUCKETS_MAX;

/// Summaries by session, within bounds.
#[derive(Debug, Default)]
pub struct Shelf {
    kept: Mutex<Kept>,
    /// What was counted, with when, by begin and end.
    counted: Mutex<BTreeMap<(Stamp, Stamp), (Stamp, Bucket)>>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Each with when it was last asked for, in turns.
    summaries: HashMap<SessionId, (u64, Arc<Summary>)>,
    by_turn: BTreeMap<u64, SessionId>,
    turn: u64,
    bytes: usize,
}

impl Shelf {
    /// What a list shows of a session; `None` if the journal holds nothing of it. `verdict` is the time
    /// of its verdict as the index shows it, if that was seen. Says how many records were read.
    ///
    /// # Errors
    /// When the store cannot be read, or a record.
    pub(super) async fn summary<S: Store>(
        &self,
        store: &S,
        session: &SessionId,
        verdict: Option<Stamp>,
        now: Stamp,
    ) -> Result<(Option<Arc<Summary>>, usize), Error> {
        let known = self.kept().get(session);
        if let Some(known) = &known
            && is_settled(known, now)
            && (verdict.is_none() || known.told.ended_at == verdict)
        {
            return Ok((Some(Arc::clone(known)), 0));
        }
        let tally = known.map(|known| known.tally.clone()).unwrap_or_default();
        let (summary, read) = Summary::read(store, session, tally).await?;
        let summary = summary.map(Arc::new);
        if let Some(summary) = &summary {
            self.kept().put(Arc::clone(summary));
        }
        Ok((summary, read))
    }

    /// What was counted in a stretch of time, if nothing new is expected there.
    pub(super) fn counted(&self, from: Stamp, to: Stamp, now: Stamp) -> Option<Bucket> {
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, bucket) = counted.get(&(from, to))?;
        let is_settled = at.since(to) > LATE && now.since(*at) < COUNTED_FOR;
        is_settled.then(|| bucket.clone())
    }

    /// Keeps what was counted.
    pub(super) fn count(&self, bucket: Bucket, now: Stamp) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.len() >= COUNTED_MAX {
            counted.clear();
        }
        counted.insert((bucket.from, bucket.to), (now, bucket));
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn get(&mut self, session: &SessionId) -> Option<Arc<Summary>> {
        let (turn, summary) = self.summaries.get_mut(session)?;
        self.by_turn.remove(turn);
        self.turn += 1;
        *turn = self.turn;
        self.by_turn.insert(*turn, session.clone());
        Some(Arc::clone(summary))
    }

    fn put(&mut self, summary: Arc<Summary>) {
        self.remove(&summary.session.clone());
        self.bytes += weight(&summary);
        self.turn += 1;
        self.by_turn.insert(self.turn, summary.session.clone());
        self.summaries.insert(summary.session.clone(), (self.turn, summary));
        while self.bytes > KEPT_BYTES_MAX
            && let Some((_, oldest)) = self.by_turn.first_key_value()
        {
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, session: &SessionId) {
        if let Some((turn, summary)) = self.summaries.remove(session) {
            self.by_turn.remove(&turn);
            self.bytes -= weight(&summary);
        }
    }
}

/// Whether nothing that comes later can change what the summary says.
fn is_settled(summary: &Summary, now: Stamp) -> bool {
    summary.told.ended_at.is_some_and(|at| now.since(at) > SETTLED_AFTER)
}

/// About how many bytes a summary takes.
fn weight(summary: &Summary) -> usize {
    let payload = |payload: &Payload| match payload {
        Payload::Text(text) => text.len(),
        Payload::Zstd { bytes, .. } => bytes.len(),
        Payload::Parts { .. } => 0,
    };
    let ask = summary.tally.ask.as_ref().map_or(0, |ask| payload(&ask.payload));
    SUMMARY_BYTES + ask + summary.tally.end.as_ref().map_or(0, |end| payload(&end.payload))
}
