//! The time axis of a timeline: draws each line's duration at its right.
//!
//! A wait for a person can be a thousand times longer than the work around it. The axis compresses each
//! wait to at most a quarter of the working time, so that the work stays legible.

use std::time::Duration;

use journal::clock::Stamp;
use views::waterfall::{Wait, Waterfall};

use super::ink::Ink;
use super::{Look, brief};

/// Narrowest output with an axis, in columns.
const WIDTH_MIN: usize = 72;

/// Minimum and maximum width of an axis, in columns.
const COLUMNS: (usize, usize) = (12, 30);

/// Shortest gap that is shown, if it also exceeds a twentieth of the session.
const QUIET: Duration = Duration::from_secs(1);

/// Maps a session's time to columns.
#[derive(Clone, Debug)]
pub struct Axis {
    began: Stamp,
    span_ms: u64,
    /// The waits, with their drawn length in milliseconds.
    waits: Vec<(Wait, u64)>,
    columns: usize,
}

impl Axis {
    /// The axis of a waterfall; `None` if there is no room or nothing to draw.
    pub fn of(look: Look, waterfall: &Waterfall) -> Option<Self> {
        let began = waterfall.began.filter(|_| look.width >= WIDTH_MIN && waterfall.span_ms > 0)?;
        let waited: u64 = waterfall.waits.iter().map(length).sum();
        let longest = (waterfall.span_ms.saturating_sub(waited) / 4).max(1);
        let waits = waterfall.waits.iter().map(|wait| (wait.clone(), length(wait).min(longest)));
        Some(Self {
            began,
            span_ms: waterfall.span_ms,
            waits: waits.collect(),
            columns: (look.width / 6).clamp(COLUMNS.0, COLUMNS.1),
        })
    }

    /// Width in columns, including the blank before it.
    pub fn columns(&self) -> usize {
        self.columns + 1
    }

    /// The scale above the axis.
    pub fn heading(&self, look: Look) -> String {
        let length = brief::duration(Duration::from_millis(self.span_ms));
        let room = self.columns.saturating_sub(2);
        // `117 h 45 min` does not fit a narrow axis: its smaller units are left out, and what is longer still is cut.
        let shorter: String = length.split_inclusive(' ').take(2).collect();
        let length = if length.chars().count() > room { shorter.trim_end() } else { &length };
        let length: String = length.chars().take(room).collect();
        let blanks = room - length.chars().count();
        look.ink(Ink::Faint, &format!("├{}{length}┤", "─".repeat(blanks)))
    }

    /// Draws a line's time span, from the start of its work to its record.
    pub fn draw(&self, look: Look, ink: Ink, from: Stamp, to: Stamp) -> String {
        let at = |stamp: Stamp| self.column(self.ms(stamp));
        let (from, to) = (at(from.min(to)), at(to));
        let waits: Vec<_> = self
            .waits
            .iter()
            .map(|(wait, _)| (self.column(wait.from_ms), self.column(wait.to_ms)))
            .collect();
        let mut drawn = String::new();
        for column in 0..self.columns {
            let waits = waits.iter().any(|(from, to)| (*from..*to).contains(&column));
            match (column < from || column > to, waits) {
                (false, _) if from == to => drawn.push_str(&look.ink(ink, "▎")),
                (false, _) => drawn.push_str(&look.ink(ink, "█")),
                (true, true) => drawn.push_str(&look.ink(Ink::Faint, "░")),
                (true, false) => drawn.push(' '),
            }
        }
        drawn
    }

    /// Describes the wait that a step started.
    pub fn wait(&self, seq: u32) -> Option<String> {
        let (wait, _) = self.waits.iter().find(|(wait, _)| wait.seq == seq)?;
        let long = brief::duration(Duration::from_millis(length(wait)));
        let whom = if wait.of == "time" { "for a timer" } else { "for an answer" };
        Some(match wait.is_over {
            true => format!("waited {long} {whom}"),
            false => format!("has been waiting {long} {whom}"),
        })
    }

    /// Describes an idle gap between two records, if it is long.
    pub fn gap(&self, before: Stamp, next: Stamp) -> Option<String> {
        let quiet = next.since(before);
        let is_long = quiet > QUIET && quiet > Duration::from_millis(self.span_ms / 20);
        let (from, to) = (self.ms(before), self.ms(next));
        let waits = self.waits.iter().any(|(wait, _)| wait.from_ms < to && from < wait.to_ms);
        (is_long && !waits).then(|| format!("idle for {}", brief::duration(quiet)))
    }

    fn ms(&self, stamp: Stamp) -> u64 {
        u64::try_from(stamp.since(self.began).as_millis()).unwrap_or(u64::MAX)
    }

    /// The column of a time.
    fn column(&self, ms: u64) -> usize {
        let all = u128::from(self.drawn(self.span_ms).max(1));
        let column = u128::from(self.drawn(ms)) * self.columns as u128 / all;
        usize::try_from(column).unwrap_or(usize::MAX).min(self.columns - 1)
    }

    /// A time's drawn offset from the start, in milliseconds.
    fn drawn(&self, ms: u64) -> u64 {
        let left_out = self.waits.iter().map(|(wait, drawn)| {
            let passed = ms.clamp(wait.from_ms, wait.to_ms) - wait.from_ms;
            let shown = u128::from(passed) * u128::from(*drawn) / u128::from(length(wait).max(1));
            passed - u64::try_from(shown).unwrap_or(passed).min(passed)
        });
        ms.saturating_sub(left_out.sum())
    }
}

fn length(wait: &Wait) -> u64 {
    wait.to_ms.saturating_sub(wait.from_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Look = Look { width: 96, colour: false };

    fn axis(span_ms: u64, waits: &[(u64, u64)]) -> Axis {
        let waits = waits.iter().map(|(from_ms, to_ms)| Wait {
            of: "answer",
            seq: 7,
            from_ms: *from_ms,
            to_ms: *to_ms,
            is_over: true,
        });
        let waterfall = Waterfall {
            began: Some(Stamp::default()),
            span_ms,
            lanes: Vec::new(),
            rows: Vec::new(),
            waits: waits.collect(),
        };
        Axis::of(LOOK, &waterfall).unwrap()
    }

    fn drawn(axis: &Axis, from: i64, to: i64) -> String {
        axis.draw(LOOK, Ink::Plain, Stamp::from_millis(from), Stamp::from_millis(to))
    }

    #[test]
    fn a_line_is_drawn_at_the_time_of_its_work() {
        let axis = axis(1_600, &[]);
        assert_eq!(axis.heading(LOOK), "├───────1.600 s┤");
        assert_eq!(drawn(&axis, 0, 0), "▎               ");
        assert_eq!(drawn(&axis, 400, 799), "    ████        ");
        assert_eq!(drawn(&axis, 800, 1_600), "        ████████");
        assert_eq!(drawn(&axis, 9_000, 1_600), "               ▎");
    }

    #[test]
    fn a_long_scale_fits_its_axis() {
        for hours in [1, 99, 117, 4_321, 87_600, 9_999_999_999] {
            let axis = axis(hours * 3_600_000 + 45 * 60_000, &[]);
            let heading = axis.heading(LOOK);
            assert_eq!(heading.chars().count(), axis.columns, "{heading}");
            let narrow = Axis { columns: 13, ..axis };
            assert_eq!(narrow.heading(LOOK).chars().count(), 13, "{}", narrow.heading(LOOK));
        }
    }

    #[test]
    fn a_wait_of_days_keeps_the_seconds_around_it_legible() {
        let days = 3 * 86_400_000;
        let axis = axis(4_000 + days, &[(2_000, 2_000 + days)]);
        let later = i64::try_from(days).unwrap() + 2_000;
        assert_eq!(drawn(&axis, 0, 1_900), "███████░░       ");
        assert_eq!(drawn(&axis, later, later + 2_000), "      ░░░███████");
        assert_eq!(axis.wait(7).unwrap(), "waited 72 h 00 min for an answer");
        assert_eq!(axis.gap(Stamp::from_millis(2_000), Stamp::from_millis(later)), None);
    }

    #[test]
    fn a_long_gap_is_shown() {
        let axis = axis(10_000, &[]);
        let gap = |from, to| axis.gap(Stamp::from_millis(from), Stamp::from_millis(to));
        assert_eq!(gap(0, 900), None);
        assert_eq!(gap(1_000, 5_000).unwrap(), "idle for 4.000 s");
    }
}
