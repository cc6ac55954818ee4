//! Durations as devices print them: `2w3d`, `05:12:33`, `P2W3D`, `1 year, 3 weeks`.

/// Units by the beginning of their names, the longer beginnings first, in seconds.
const UNITS: &[(&str, f64)] = &[
    ("mo", 2_592_000.0),
    ("ms", 0.001),
    ("y", 31_536_000.0),
    ("w", 604_800.0),
    ("d", 86_400.0),
    ("h", 3_600.0),
    ("m", 60.0),
    ("s", 1.0),
];

/// Words beside the numbers.
const FILLING: &[&str] = &["and", "up", "ago", "for", "p", "t", "pt"];

/// A duration in seconds; `None` if a part of the text is something else.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let small = text.to_lowercase();
    let mut rest = small.trim();
    let mut total = None;
    while !rest.is_empty() {
        let digits =
            rest.find(|c: char| !(c.is_ascii_digit() || ":.".contains(c))).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let after = after.trim_start_matches([' ', ',', '-']);
        let letters = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (word, next) = after.split_at(letters);
        if number.is_empty() {
            if !FILLING.contains(&word) {
                return None;
            }
        } else if number.contains(':') {
            total = Some(total.unwrap_or(0.0) + clock(number)?);
            rest = after;
            continue;
        } else {
            let is_unit = |(name, _): &&(&str, f64)| {
                word.starts_with(*name) && (word.len() <= 2 || is_long(word))
            };
            let (_, unit) = UNITS.iter().find(is_unit)?;
            total = Some(total.unwrap_or(0.0) + number.parse::<f64>().ok()? * unit);
        }
        rest = next.trim_start_matches([' ', ',']);
    }
    total
}

/// A time such as `2026-01-02T03:04:05Z`, in seconds since 1970. An offset is not read: hours do not matter here.
pub(super) fn date(text: &str) -> Option<f64> {
    let (day, clock) = text.trim().split_once(['T', ' ']).unwrap_or((text.trim(), "00:00:00"));
    let parts: Option<Vec<i64>> = day.split('-').map(|part| part.parse().ok()).collect();
    let [year, month, day] = parts?[..] else { return None };
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days since 1970 in the Gregorian calendar, with years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days =
        365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469;
    let clock: String = clock.chars().take_while(|c| c.is_ascii_digit() || *c == ':').collect();
    let seconds = crate::durations::clock(&clock).unwrap_or(0.0);
    #[expect(clippy::cast_precision_loss, reason = "days of a few thousand years")]
    Some(days as f64 * 86_400.0 + seconds)
}

fn is_long(word: &str) -> bool {
    let names = [
        "year", "yr", "month", "mon", "week", "wk", "day", "hour", "hr", "minute", "min", "second",
        "sec",
    ];
    names.contains(&word.trim_end_matches('s'))
}

/// `hh:mm:ss`, or `mm:ss`: the shorter reading of an ambiguous one.
fn clock(text: &str) -> Option<f64> {
    text.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_read() {
        assert_eq!(date("1970-01-01T00:00:10Z"), Some(10.0));
        assert_eq!(date("2026-11-20T08:30:00Z"), Some(1_795_163_400.0));
        assert_eq!(date("2000-02-29"), Some(951_782_400.0));
        assert_eq!(date("yesterday"), None);
    }

    #[test]
    fn durations_are_read_as_devices_print_them() {
        for (text, expected) in [
            ("2w3d", Some(1_468_800.0)),
            ("1y12w", Some(38_793_600.0)),
            ("3d04h", Some(273_600.0)),
            ("05:12:33", Some(18_753.0)),
            ("00:01:09", Some(69.0)),
            ("3d 04:05:06", Some(273_906.0)),
            ("P2W3D", Some(1_468_800.0)),
            ("PT5M", Some(300.0)),
            ("0 days, 0 hours, 12 minutes", Some(720.0)),
            ("1 year, 3 weeks, 2 days, 1 hour, 5 minutes", Some(33_527_100.0)),
            ("up 41 days", Some(3_542_400.0)),
            ("12 min", Some(720.0)),
            ("disabled", None),
            ("never", None),
            ("2 moons", None),
            ("", None),
            ("5", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }
}
