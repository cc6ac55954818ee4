//! Times as Step Functions stores and formats them: UTC milliseconds, without a fraction if it is
//! zero.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const NANOS_PER_MILLI: i64 = 1_000_000;
const MILLIS_PER_SECOND: i64 = 1_000;

/// A point in time, in whole milliseconds.
///
/// Step Functions stores milliseconds. Deadlines are computed from recorded times, and a finer time
/// would not survive the history's JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    millis: i64,
}

impl Timestamp {
    /// The time `nanos` nanoseconds after 1970-01-01T00:00:00Z, rounded down to its millisecond.
    pub const fn from_nanos(nanos: i64) -> Timestamp {
        Timestamp { millis: nanos.div_euclid(NANOS_PER_MILLI) }
    }

    /// The time `millis` milliseconds after 1970-01-01T00:00:00Z.
    pub const fn from_millis(millis: i64) -> Timestamp {
        Timestamp { millis }
    }

    /// Parses an RFC 3339 time with offset.
    pub fn parse(text: &str) -> Option<Timestamp> {
        // chrono also accepts a space or a lower case `t`; the language's specification requires
        // capital letters.
        if text.as_bytes().get(10) != Some(&b'T') || text.contains('z') {
            return None;
        }
        DateTime::parse_from_rfc3339(text)
            .ok()
            .map(|time| Timestamp { millis: time.timestamp_millis() })
    }

    /// Nanoseconds since 1970-01-01T00:00:00Z; times beyond the year 2262 saturate.
    pub const fn as_nanos(self) -> i64 {
        self.millis.saturating_mul(NANOS_PER_MILLI)
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub const fn as_millis(self) -> i64 {
        self.millis
    }

    /// Saturating.
    pub fn plus_seconds(self, seconds: u64) -> Timestamp {
        let millis = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(MILLIS_PER_SECOND);
        self.plus_millis(millis)
    }

    /// Saturating.
    pub fn plus_millis(self, millis: i64) -> Timestamp {
        Timestamp { millis: self.millis.saturating_add(millis) }
    }

    /// RFC 3339 with exactly three fractional digits, as JSONata's `$now()` spells it.
    pub(crate) fn with_millis(self) -> String {
        self.spell(SecondsFormat::Millis)
    }

    fn spell(self, format: SecondsFormat) -> String {
        match DateTime::<Utc>::from_timestamp_millis(self.millis) {
            Some(time) => time.to_rfc3339_opts(format, true),
            // Only saturated deadlines lie beyond chrono's years; they are never displayed.
            None => format!("{}ms", self.millis),
        }
    }
}

impl std::fmt::Display for Timestamp {
    /// RFC 3339, UTC, `Z`, with three fractional digits, or none if they are zero.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let whole = self.millis.rem_euclid(MILLIS_PER_SECOND) == 0;
        formatter.write_str(&self.spell(if whole {
            SecondsFormat::Secs
        } else {
            SecondsFormat::Millis
        }))
    }
}

/// Epoch seconds with a fraction, as the AWS JSON protocol spells times.
impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.millis as f64 / MILLIS_PER_SECOND as f64)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        // Rounding undoes the division exactly: a double holds today's epoch milliseconds with ten
        // bits to spare.
        Ok(Timestamp { millis: (seconds * MILLIS_PER_SECOND as f64).round() as i64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_fraction_is_omitted() {
        let check = |millis, expected: &str| {
            assert_eq!(Timestamp::from_millis(millis).to_string(), expected)
        };
        check(1_795_257_000_123, "2026-11-21T10:30:00.123Z");
        check(1_795_257_000_120, "2026-11-21T10:30:00.120Z");
        check(1_795_257_000_000, "2026-11-21T10:30:00Z");
    }

    #[test]
    fn milliseconds_survive_the_json_round_trip() {
        for millis in [0, 1, 999, 1_795_257_000_123, 4_102_444_799_999] {
            let time = Timestamp::from_millis(millis);
            let text = serde_json::to_string(&time).unwrap();
            assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), time, "{text}");
        }
    }

    #[test]
    fn only_the_extended_format_with_offset_parses() {
        let millis = |text| Timestamp::parse(text).map(Timestamp::as_millis);
        assert_eq!(millis("2026-11-21T10:30:00Z"), Some(1_795_257_000_000));
        assert_eq!(millis("2026-11-21T11:30:00.5+01:00"), Some(1_795_257_000_500));
        for wrong in [
            "2016-12-05 21:29:29Z",
            "2016-12-05T21:29:29",
            "05-12-2016T21:29:29Z",
            "2016-13-05T21:29:29Z",
            "",
        ] {
            assert_eq!(millis(wrong), None, "{wrong}");
        }
    }
}
