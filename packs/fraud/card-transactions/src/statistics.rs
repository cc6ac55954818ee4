//! Medians, distances and ramps in integers.

use super::row::Point;

/// The earth's mean radius in kilometres.
///
/// Source: IUGG, mean radius.
const EARTH_KM: f64 = 6_371.0;

/// The median; the lower middle one for an even count.
pub fn median(mut numbers: Vec<i64>) -> Option<i64> {
    let middle = numbers.len().checked_sub(1)? / 2;
    Some(*numbers.select_nth_unstable(middle).1)
}

/// Great-circle distance of two points, in kilometres.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "half the way around the earth at most"
)]
pub fn kilometres(from: Point, to: Point) -> u32 {
    let radians = |millionths: i32| (f64::from(millionths) / 1e6).to_radians();
    let (from_latitude, to_latitude) = (radians(from.latitude), radians(to.latitude));
    let north = ((to_latitude - from_latitude) / 2.0).sin();
    let east = ((radians(to.longitude) - radians(from.longitude)) / 2.0).sin();
    let half = north * north + from_latitude.cos() * to_latitude.cos() * east * east;
    (2.0 * EARTH_KM * half.sqrt().min(1.0).asin()).round() as u32
}

/// Interpolates linearly from `low` at `from` to `high` at `to`, and is constant outside.
pub fn ramp(value: i64, (from, to): (i64, i64), (low, high): (i64, i64)) -> i64 {
    let inside = value.clamp(from, to) - from;
    low + (high - low) * inside / (to - from).max(1)
}

/// A share in thousandths; 0 of nothing.
pub fn permille(part: usize, whole: usize) -> u32 {
    (part * 1_000).checked_div(whole).map_or(0, |share| u32::try_from(share).unwrap_or(u32::MAX))
}

/// The largest number of these sorted times within any period of this many milliseconds.
pub fn most_within(times: impl Iterator<Item = i64>, span_ms: i64) -> i64 {
    let times: Vec<i64> = times.collect();
    let (mut first, mut most) = (0, 0);
    for (last, at_ms) in times.iter().enumerate() {
        while at_ms - times[first] > span_ms {
            first += 1;
        }
        most = most.max(last - first + 1);
    }
    i64::try_from(most).unwrap_or(i64::MAX)
}

/// Thousandths as a factor, with one decimal if needed.
pub fn times(permille: i64) -> String {
    if permille < 10_000 {
        format!("{}.{}", permille / 1_000, permille % 1_000 / 100)
    } else {
        (permille / 1_000).to_string()
    }
}

/// A hash that is equal in every run and on every machine: FNV-1a.
///
/// Source: draft-eastlake-fnv, 64 bits.
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_atlas() {
        let berlin = Point { latitude: 52_520_000, longitude: 13_405_000 };
        let paris = Point { latitude: 48_856_600, longitude: 2_352_200 };
        let auckland = Point { latitude: -36_848_500, longitude: 174_763_300 };
        assert_eq!(kilometres(berlin, paris), 877);
        assert_eq!(kilometres(berlin, berlin), 0);
        assert!((17_600..17_800).contains(&kilometres(berlin, auckland)));
    }

    #[test]
    fn a_middle_and_a_ramp() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![9, 1, 5]), Some(5));
        assert_eq!(median(vec![4, 1, 3, 2]), Some(2));
        assert_eq!(ramp(5, (0, 10), (0, 1_000)), 500);
        assert_eq!(ramp(99, (0, 10), (0, 1_000)), 1_000);
        assert_eq!(ramp(-1, (0, 10), (250, 1_000)), 250);
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }
}
