//! A cache of summaries, so that listing again reads only new records.
//!
//! The cache is not a source of truth: a summary is a fold of the records read so far. Steps never
//! change, so for an unfinished session only steps after the last counted one are read; its events,
//! which are few, are read again. A session with a verdict is not read again once the verdict has
//! settled. If the index shows a verdict at another time than the cached one (a second writer's,
//! written late with an earlier timestamp), the session is read again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Summary;
use super::histogram::{BUCKETS_MAX, Bucket, COUNTED_FOR, LATE};
use crate::clock::Stamp;
use crate::id::SessionId;
use crate::payload::Payload;
use crate::store::{Error, Store};
use crate::tally::Tally;

/// Most bytes of all summaries, as counted by [`weight`]. Beyond it the least recently used ones
/// are evicted.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Size of a summary without its texts and payloads, in bytes.
const SUMMARY_BYTES: usize = 768;

/// How long announcements may arrive after a verdict. Until then a missing one does not change the
/// summary, because the steps say the same.
const SETTLED_AFTER: Duration = Duration::from_secs(60);

/// Most buckets whose counts are cached; beyond it the cache of counts is cleared.
const COUNTED_MAX: usize = 10 * BUCKETS_MAX;

/// A bounded cache of summaries by session.
#[derive(Debug, Default)]
pub struct SummaryCache {
    kept: Mutex<Kept>,
    /// Counts by start and end of the bucket, with the time of counting.
    counted: Mutex<BTreeMap<(Stamp, Stamp), (Stamp, Bucket)>>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Each with the turn in which it was last used.
    summaries: HashMap<SessionId, (u64, Arc<Summary>)>,
    by_turn: BTreeMap<u64, SessionId>,
    turn: u64,
    bytes: usize,
}

impl SummaryCache {
    /// A session's summary, if the journal has any record of it, and the number of records read.
    /// `verdict` is the time of its verdict in the index, if that was read.
    ///
    /// # Errors
    /// The store or a record cannot be read.
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
            && (verdict.is_none() || known.reported.ended_at == verdict)
        {
            return Ok((Some(Arc::clone(known)), 0));
        }
        let tally = known.map(|known| known.tally.clone()).unwrap_or_default();
        let (summary, read) = Summary::read(store, session, tally).await?;
        let summary = summary.map(Arc::new);
        if let Some(summary) = summary.as_ref().filter(|summary| !summary.is_encrypted) {
            self.kept().put(Arc::clone(summary));
        }
        Ok((summary, read))
    }

    /// The cached count of an interval in which no new records are expected.
    pub(super) fn counted(&self, from: Stamp, to: Stamp, now: Stamp) -> Option<Bucket> {
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, bucket) = counted.get(&(from, to))?;
        let is_settled = at.since(to) > LATE && now.since(*at) < COUNTED_FOR;
        is_settled.then(|| bucket.clone())
    }

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

/// Whether no later record can change the summary.
fn is_settled(summary: &Summary, now: Stamp) -> bool {
    summary.reported.ended_at.is_some_and(|at| now.since(at) > SETTLED_AFTER)
}

/// Approximate size of a summary in bytes.
fn weight(summary: &Summary) -> usize {
    let payload = |payload: &Payload| match payload {
        Payload::Text(text) => text.len(),
        Payload::Zstd { bytes, .. } => bytes.len(),
        Payload::Parts { .. } | Payload::Encrypted => 0,
    };
    let Tally { opening, fallback, ask, end, .. } = &summary.tally;
    let payloads = opening.iter().chain(fallback).chain(ask.as_ref().map(|ask| &ask.payload));
    let payloads = payloads.chain(end.as_ref().map(|end| &end.payload));
    SUMMARY_BYTES + payloads.map(payload).sum::<usize>()
}
