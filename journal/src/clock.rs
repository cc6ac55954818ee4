//! Timestamps, the hybrid logical clock, and the only place that reads the system clock.

use std::fmt;
use std::sync::Mutex;
#[cfg(feature = "clock")]
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicI64, Ordering},
};
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
///
/// It starts at the wall clock and then runs evenly: a step of the wall clock changes no duration
/// between its times. A timestamp from the future moves it forward, and from there it runs on. That
/// lasts as long as this clock, which serves one session, so no other session gets ahead.
#[derive(Debug)]
pub struct Hlc {
    /// Even.
    clock: Clock,
    seen: Mutex<Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    newest: Stamp,
    /// How far the session's time is ahead of the clock.
    ahead: Duration,
}

impl Seen {
    fn observe(&mut self, stamp: Stamp, clock: &Clock) {
        if stamp > self.newest {
            self.newest = stamp;
            self.ahead = self.ahead.max(stamp.since(clock.now()));
        }
    }
}

impl Hlc {
    pub fn new(clock: Clock, seen: Stamp) -> Self {
        let clock = clock.even();
        let ahead = seen.since(clock.now());
        Self { clock, seen: Mutex::new(Seen { newest: seen, ahead }) }
    }

    /// A timestamp for now: [`Self::now`], or one nanosecond after the newest timestamp seen.
    pub fn tick(&self) -> Stamp {
        let mut seen = self.lock();
        let now = self.clock.now().after(seen.ahead);
        seen.newest = now.max(seen.newest.next());
        seen.newest
    }

    /// The session's time, which the durations of its work are measured with.
    pub fn now(&self) -> Stamp {
        self.clock.now().after(self.lock().ahead)
    }

    /// Records a timestamp that a message carried.
    pub fn observe(&self, stamp: Stamp) {
        self.lock().observe(stamp, &self.clock);
    }

    /// The newest timestamp issued or seen.
    pub fn newest(&self) -> Stamp {
        self.lock().newest
    }

    /// The even clock below.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The time source: the system clock, a scaled clock, a fixed one, or an even one above them.
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
        /// Shared by all clones: they show one machine's clock.
        stepped_ns: Arc<AtomicI64>,
    },
    #[cfg(feature = "clock")]
    Even {
        origin: Stamp,
        started: tokio::time::Instant,
        wall: Box<Source>,
    },
}

impl Clock {
    /// A clock that always shows `stamp`; its sleeps return at once.
    pub fn fixed(stamp: Stamp) -> Self {
        Self(Source::Fixed(stamp))
    }

    pub fn now(&self) -> Stamp {
        self.0.now()
    }

    /// What the machine's clock shows; for an even clock another time than [`Self::now`] after a
    /// step.
    pub fn wall(&self) -> Stamp {
        match &self.0 {
            #[cfg(feature = "clock")]
            Source::Even { wall, .. } => wall.now(),
            source => source.now(),
        }
    }

    /// What the clock would show if nobody had set it since this process began.
    pub fn unstepped(&self) -> Stamp {
        match &self.0 {
            #[cfg(feature = "clock")]
            Source::System => {
                let (origin, started) = *PROCESS.get_or_init(process_now);
                origin.after(started.elapsed())
            }
            #[cfg(feature = "clock")]
            Source::Scaled { stepped_ns, .. } => {
                Stamp(self.now().0.saturating_sub(stepped_ns.load(Ordering::Acquire)))
            }
            source => source.now(),
        }
    }

    /// A clock that shows the same time now and then runs by the monotonic clock: it never steps, and
    /// does not count the time that the machine sleeps.
    #[must_use]
    pub fn even(&self) -> Self {
        match &self.0 {
            #[cfg(feature = "clock")]
            Source::System | Source::Scaled { .. } => Self(Source::Even {
                origin: self.now(),
                started: tokio::time::Instant::now(),
                wall: Box::new(self.0.clone()),
            }),
            _ => self.clone(),
        }
    }
}

impl Source {
    fn now(&self) -> Stamp {
        match self {
            Self::Fixed(stamp) => *stamp,
            #[cfg(feature = "clock")]
            Self::System => system_now(),
            #[cfg(feature = "clock")]
            Self::Scaled { origin, started, scale, ahead_ns, stepped_ns } => {
                let apart = ahead_ns.saturating_add(stepped_ns.load(Ordering::Acquire));
                Stamp(origin.after(started.elapsed() * *scale).0.saturating_add(apart))
            }
            #[cfg(feature = "clock")]
            Self::Even { origin, started, wall } => origin.after(started.elapsed() * wall.scale()),
        }
    }

    #[cfg(feature = "clock")]
    fn scale(&self) -> u32 {
        match self {
            Self::Fixed(_) | Self::System => 1,
            Self::Scaled { scale, .. } => *scale,
            Self::Even { wall, .. } => wall.scale(),
        }
    }
}

#[cfg(feature = "clock")]
impl Clock {
    pub fn system() -> Self {
        PROCESS.get_or_init(process_now);
        Self(Source::System)
    }

    /// A clock that shows `origin` now and runs `scale` times as fast as tokio's.
    ///
    /// Under tokio's paused time it is a simulated clock.
    pub fn scaled(origin: Stamp, scale: u32) -> Self {
        let started = tokio::time::Instant::now();
        let stepped_ns = Arc::default();
        Self(Source::Scaled { origin, started, scale: scale.max(1), ahead_ns: 0, stepped_ns })
    }

    /// Sets a scaled clock and its clones forward, or back, as a person sets a machine's clock. Even
    /// clocks above it go on.
    pub fn step(&self, by_ns: i64) {
        if let Source::Scaled { stepped_ns, .. } = &self.0 {
            stepped_ns.fetch_add(by_ns, Ordering::AcqRel);
        }
    }

    /// The same clock on a machine whose time is `ahead_ns` nanoseconds ahead.
    #[must_use]
    pub fn ahead_by(&self, ahead_ns: i64) -> Self {
        match &self.0 {
            Source::Scaled { origin, started, scale, stepped_ns, .. } => {
                let (origin, started, scale) = (*origin, *started, *scale);
                let stepped_ns = Arc::clone(stepped_ns);
                Self(Source::Scaled { origin, started, scale, ahead_ns, stepped_ns })
            }
            Source::Fixed(stamp) => Self::fixed(Stamp(stamp.0.saturating_add(ahead_ns))),
            Source::System | Source::Even { .. } => self.clone(),
        }
    }

    /// Converts a duration of this clock to the machine's own time.
    pub fn real(&self, duration: Duration) -> Duration {
        match &self.0 {
            Source::Fixed(_) => Duration::ZERO,
            source => duration / source.scale(),
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

/// Both clocks when this process first asked for the system's.
#[cfg(feature = "clock")]
static PROCESS: OnceLock<(Stamp, std::time::Instant)> = OnceLock::new();

#[cfg(feature = "clock")]
#[expect(clippy::disallowed_methods, reason = "the one module where clocks are read")]
fn process_now() -> (Stamp, std::time::Instant) {
    (system_now(), std::time::Instant::now())
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

    /// A second of a clock that runs so fast takes a few milliseconds.
    #[cfg(feature = "clock")]
    const FAST: u32 = 100;

    #[cfg(feature = "clock")]
    #[tokio::test]
    async fn a_step_of_the_wall_clock_changes_no_duration() {
        let (hour, second) = (3_600_000_000_000, Duration::from_secs(1));
        for by_ns in [-hour, 3 * hour] {
            let clock = Clock::scaled(Stamp::from_millis(1_795_257_000_000), FAST);
            let hlc = Hlc::new(clock.clone(), Stamp::default());
            let before = hlc.tick();
            clock.step(by_ns);
            clock.sleep(second).await;
            for ran in [hlc.now().since(before), hlc.tick().since(before)] {
                assert!(ran >= second && ran < 1_000 * second, "{ran:?}");
            }
            let apart = hlc.clock().wall().nanos() - hlc.clock().now().nanos();
            assert!((apart - by_ns).abs() < 1_000_000_000, "{apart}");
        }
    }

    #[cfg(feature = "clock")]
    #[tokio::test]
    async fn only_a_session_with_future_stamps_is_ahead() {
        let (half_a_day, second) = (Duration::from_secs(43_200), Duration::from_secs(1));
        let clock = Clock::scaled(Stamp::from_millis(1_795_257_000_000), FAST);
        let ahead = Hlc::new(clock.clone(), Stamp::default());
        ahead.observe(clock.now().after(half_a_day));
        let first = ahead.tick();
        clock.sleep(second).await;
        let ran = ahead.tick().since(first);
        assert!(ran >= second / 2 && ran < 1_000 * second, "{ran:?}");
        let new = Hlc::new(clock.clone(), Stamp::default()).tick();
        assert!(new <= clock.now(), "{new}");
    }
}
