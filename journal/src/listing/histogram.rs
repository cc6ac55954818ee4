//! Counts of started and ended sessions over time.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::try_join_all;

use super::{DAY, SummaryCache};
use crate::clock::Stamp;
use crate::event::EventStatus;
use crate::key;
use crate::status::Status;
use crate::store::{Error, Query, Store};

/// Most buckets of a histogram.
pub const BUCKETS_MAX: usize = 400;

/// How long after a bucket's end records may still be added to it. A verdict's timestamp directly
/// follows the newest record that it seals, and the watchdog may write it later.
pub(super) const LATE: Duration = Duration::from_secs(3_600);

/// How long the count of a bucket is cached when no more records are expected.
pub(super) const COUNTED_FOR: Duration = Duration::from_secs(600);

/// Counts of one time interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Start, inclusive.
    pub from: Stamp,
    /// End, exclusive.
    pub to: Stamp,
    /// Sessions started in it.
    pub began: u64,
    /// Sessions ended in it, by status, whenever they started.
    pub ended: BTreeMap<Status, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid number of buckets {0}: expected 1 to {BUCKETS_MAX}, each at least one minute")]
pub struct InvalidBuckets(u128);

/// Buckets of this length, aligned to 1970, that cover `since` to `until`.
///
/// # Errors
/// There are none, or too many.
pub fn buckets(
    since: Stamp,
    until: Stamp,
    length: Duration,
) -> Result<Vec<(Stamp, Stamp)>, InvalidBuckets> {
    let nanos = i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
    let count = until.since(since).as_nanos() / length.as_nanos().max(1) + 1;
    if length < Duration::from_secs(60) || until < since || count > BUCKETS_MAX as u128 {
        return Err(InvalidBuckets(count));
    }
    let first = since.nanos().div_euclid(nanos) * nanos;
    let begins = std::iter::successors(Some(Stamp::from_nanos(first)), |at| Some(at.after(length)));
    let begins = begins.take(BUCKETS_MAX + 1);
    Ok(begins.take_while(|from| *from <= until).map(|from| (from, from.after(length))).collect())
}

/// Counts sessions in these buckets, using the index alone.
///
/// # Errors
/// The store cannot be read.
pub async fn histogram<S: Store>(
    store: &S,
    cache: &SummaryCache,
    stretches: &[(Stamp, Stamp)],
    now: Stamp,
) -> Result<Vec<Bucket>, Error> {
    let mut histogram = Vec::new();
    for (from, to) in stretches {
        let bucket = match cache.counted(*from, *to, now) {
            Some(bucket) => bucket,
            None => {
                let bucket = count(store, *from, *to).await?;
                cache.count(bucket.clone(), now);
                bucket
            }
        };
        histogram.push(bucket);
    }
    Ok(histogram)
}

async fn count<S: Store>(store: &S, from: Stamp, to: Stamp) -> Result<Bucket, Error> {
    let last = Stamp::from_nanos(to.nanos() - 1);
    let days = std::iter::successors(Some(from), |day| Some(day.after(DAY)));
    let mut dates: Vec<_> =
        days.take_while(|day| *day <= last).chain([last]).map(Stamp::date).collect();
    dates.dedup();
    let mut bucket = Bucket { from, to, began: 0, ended: BTreeMap::new() };
    for date in dates {
        let counts = try_join_all(key::SHARDS.chars().map(|shard| {
            let mut query = Query::day(key::day_shard(&date, shard));
            (query.from, query.to) = (Some(from.to_string()), Some(last.to_string()));
            store.count_by_status(query)
        }));
        for (name, count) in counts.await?.into_iter().flatten() {
            match EventStatus::parse(&name) {
                Some(EventStatus::SessionInitiated) => bucket.began += count,
                other => {
                    if let Some(status) = other.and_then(Status::of_verdict) {
                        *bucket.ended.entry(status).or_default() += count;
                    }
                }
            }
        }
    }
    Ok(bucket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_buckets_align_to_1970_and_are_limited() {
        let at = |text| Stamp::parse(text).unwrap();
        let (since, until) = (at("2026-11-20T22:30:00Z"), at("2026-11-21T01:00:00Z"));
        let hours = buckets(since, until, Duration::from_secs(3_600)).unwrap();
        let begins: Vec<_> =
            hours.iter().map(|(from, _)| from.to_string()[11..16].to_owned()).collect();
        assert_eq!(begins, ["22:00", "23:00", "00:00", "01:00"]);
        for (since, until, seconds) in
            [(since, until, 1), (until, since, 3_600), (Stamp::default(), until, 3_600)]
        {
            assert!(buckets(since, until, Duration::from_secs(seconds)).is_err());
        }
    }
}
