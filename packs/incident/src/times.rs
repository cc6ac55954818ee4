//! Times of logs, changes and reports, compared as text.

/// The part of a time that is alike in logs and in CloudTrail: `2026-11-25T08:30:00`.
pub(super) fn second(time: &str) -> &str {
    time.get(..19).unwrap_or(time)
}

/// Minutes since the year 0 of a time in UTC; `None` for any other format.
pub(super) fn minutes(time: &str) -> Option<i64> {
    let zone = time.get(19..)?.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    if !["Z", "+0000", "+00:00", ""].contains(&zone) {
        return None;
    }
    let number = |from: usize, to: usize| time.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute) = (number(11, 13)?, number(14, 16)?);
    // The civil calendar's days; a year begins in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day;
    Some((days * 24 + hour) * 60 + minute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_count_over_months_and_zones_are_refused() {
        let between = |a: &str, b: &str| Some(minutes(b)? - minutes(a)?);
        assert_eq!(between("2026-02-28T23:59:00Z", "2026-03-01T00:01:00.000Z"), Some(2));
        assert_eq!(between("2024-02-28T00:00:00Z", "2024-03-01T00:00:00Z"), Some(2 * 24 * 60));
        assert_eq!(between("2025-12-31T23:00:00Z", "2026-01-01T00:00:00.000+0000"), Some(60));
        assert_eq!(minutes("2026-01-01T00:00:00+02:00"), None);
        assert_eq!(minutes("yesterday"), None);
    }
}
