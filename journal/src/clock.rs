//! Timestamps, the hybrid logical clock, and the only place that reads the system clock.

use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An instant in nanoseconds since 1970. Written as RFC 3339 in UTC with exactly nine fractional
/// digits, so that text order is time order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stamp(i64);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid time `{text}`; expected RFC 3339")]
pub struct InvalidStamp {
    text: String,
}

impl Stamp {
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    pub const fn from_millis(millis: i64) -> Self {
        Self(millis * 1_000_000)
    }

    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// Milliseconds since 1970, rounded down.
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Seconds since 1970, rounded down.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000_000)
    }

    /// Parses RFC 3339 with any number of fractional digits and any offset.
    ///
    /// # Errors
    /// Another format, or a year outside 1678 to 2261.
    pub fn parse(text: &str) -> Result<Self, InvalidStamp> {
        DateTime::parse_from_rfc3339(text)
            .ok()
            .and_then(|time| time.timestamp_nanos_opt())
            .map(Self)
            .ok_or_else(|| InvalidStamp { text: text.chars().take(60).collect() })
    }

    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_nanos()).unwrap_or(i64::MAX)))
    }

    pub fn before(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(by.as_nanos()).unwrap_or(i64::MAX)))
    }

    /// Time from `earlier` until this instant; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The date in UTC, `2026-11-21`.
    pub fn date(self) -> String {
        self.utc().format("%Y-%m-%d").to_string()
    }

    fn utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_nanos(self.0)
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.utc().to_rfc3339_opts(SecondsFormat::Nanos, true))
    }
}

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Stamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// A hybrid logical clock. Its timestamps are always later than any the session has seen, so that
/// causes sort before effects whatever the machines' clocks show.
#[derive(Debug)]
pub struct Hlc {
    clock: Clock,
    newest: Mutex<Stamp>,
}

impl Hlc {
    pub fn new(clock: Clock, seen: Stamp) -> Self {
        Self { clock, newest: Mutex::new(seen) }
    }

    /// A timestamp for now: the wall clock, or one nanosecond after the newest timestamp seen.
    pub fn tick(&self) -> Stamp {
        let mut newest = self.lock();
        *newest = self.clock.now().max(newest.next());
        *newest
    }

    /// Records a timestamp that a message carried.
    pub fn observe(&self, stamp: Stamp) {
        let mut newest = self.lock();
        *newest = stamp.max(*newest);
    }

    /// The newest timestamp issued or seen.
    pub fn newest(&self) -> Stamp {
        *self.lock()
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Stamp> {
        self.newest.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The time source: the system clock, a scaled clock, or a fixed one.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    Fixed(Stamp),
    #[cfg(feature = "clock")]
    System,
    #[cfg(feature = "clock")]
    Scaled {
        origin: Stamp,
        started: tokio::time::Instant,
        scale: u32,
        ahead_ns: i64,
    },
}

impl Clock {
    /// A clock that always shows `stamp`; its sleeps return at once.
    pub fn fixed(stamp: Stamp) -> Self {
        Self(Source::Fixed(stamp))
    }

    pub fn now(&self) -> Stamp {
        match &self.0 {
            Source::Fixed(stamp) => *stamp,
            #[cfg(feature = "clock")]
            Source::System => system_now(),
            #[cfg(feature = "clock")]
            Source::Scaled { origin, started, scale, ahead_ns } => {
                let elapsed = started.elapsed() * *scale;
                Stamp(origin.after(elapsed).0.saturating_add(*ahead_ns))
            }
        }
    }
}

#[cfg(feature = "clock")]
impl Clock {
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that shows `origin` now and runs `scale` times as fast as tokio's.
    ///
    /// Under tokio's paused time it is a simulated clock.
    pub fn scaled(origin: Stamp, scale: u32) -> Self {
        let started = tokio::time::Instant::now();
        Self(Source::Scaled { origin, started, scale: scale.max(1), ahead_ns: 0 })
    }

    /// The same clock on a machine whose time is `ahead_ns` nanoseconds ahead.
    #[must_use]
    pub fn ahead_by(&self, ahead_ns: i64) -> Self {
        match &self.0 {
            Source::Scaled { origin, started, scale, .. } => {
                let (origin, started, scale) = (*origin, *started, *scale);
                Self(Source::Scaled { origin, started, scale, ahead_ns })
            }
            Source::Fixed(stamp) => Self::fixed(Stamp(stamp.0.saturating_add(ahead_ns))),
            Source::System => self.clone(),
        }
    }

    /// Converts a duration of this clock to the machine's own time.
    pub fn real(&self, duration: Duration) -> Duration {
        match &self.0 {
            Source::Fixed(_) => Duration::ZERO,
            Source::System => duration,
            Source::Scaled { scale, .. } => duration / *scale,
        }
    }

    pub async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(self.real(duration)).await;
    }

    /// The future's output, or `None` if this clock advances by `duration` first.
    pub async fn timeout<F: Future>(&self, duration: Duration, future: F) -> Option<F::Output> {
        if let Source::Fixed(_) = self.0 {
            // A fixed clock never reaches a timeout.
            return Some(future.await);
        }
        tokio::time::timeout(self.real(duration), future).await.ok()
    }
}

#[cfg(feature = "clock")]
#[expect(clippy::disallowed_methods, reason = "the one place where the system's clock is read")]
fn system_now() -> Stamp {
    let elapsed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Stamp::default().after(elapsed.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_prints_nine_digits_and_parses_any_number() {
        for (text, written) in [
            ("2026-11-21T10:30:00Z", "2026-11-21T10:30:00.000000000Z"),
            ("2024-11-04T10:30:00.123Z", "2024-11-04T10:30:00.123000000Z"),
            ("2024-11-04T10:30:00.123456+00:00", "2024-11-04T10:30:00.123456000Z"),
            ("2024-11-04T12:30:00.000000001+02:00", "2024-11-04T10:30:00.000000001Z"),
        ] {
            assert_eq!(Stamp::parse(text).unwrap().to_string(), written);
        }
        assert!(Stamp::parse("yesterday").is_err());
    }

    #[test]
    fn causes_sort_before_effects_although_the_clock_lags() {
        let seen = Stamp::from_millis(2_000);
        let hlc = Hlc::new(Clock::fixed(Stamp::from_millis(1_000)), Stamp::default());
        assert_eq!(hlc.tick(), Stamp::from_millis(1_000));
        hlc.observe(seen);
        assert_eq!(hlc.tick(), seen.next());
        assert_eq!(hlc.tick(), seen.next().next());
        hlc.observe(Stamp::from_millis(5));
        assert!(hlc.tick() > seen);
    }
}
