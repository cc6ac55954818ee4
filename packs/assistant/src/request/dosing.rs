//! The rules of a regimen: doses, tablets, intervals, clock times, counts, infusions, durations.

use super::grammar::{Item, Match, ask, said, set};
use super::lexicon::{COUNTED, FREQUENCIES, TABLETS};
use super::quantity::{Dimension, Quantity, unit};
use super::reader::Reader;
use super::token::Kind;
use super::{number, path};

/// From this many hours on, "over" can also mean the simulated time.
const OVER_HOURS: f64 = 12.0;

/// Words before a body weight.
pub(super) const WEIGHTS: &[&str] =
    &["weighing", "weighs", "weight of", "weight is", "weight", "body weight of", "body weight"];

/// Words before a concentration of which the time above it is wanted.
pub(super) const ABOVE: &[&str] = &[
    "how long is the time above",
    "how long above",
    "time above",
    "time over",
    "hours above",
    "time is above",
    "time spent above",
];

/// Periods after a number of doses: in `x 2 daily` the number may be of each period, or of all.
const PER_PERIOD: &[&str] = &[
    "daily",
    "weekly",
    "nightly",
    "hourly",
    "fortnightly",
    "monthly",
    "a day",
    "a week",
    "a night",
    "an hour",
    "per day",
    "per week",
    "per night",
    "per hour",
    "each day",
    "each week",
    "each night",
    "each morning",
    "each evening",
    "every day",
    "every week",
    "every night",
    "every morning",
    "every evening",
    "every hour",
    "every month",
    "in 24 hours",
    "/ day",
    "/ d",
    "/ week",
    "/ wk",
];

const SO_MANY_OF: &str = "so many doses in each of these periods, or so many in all? Say for example \
                          `twice a day`, or `2 doses, every 24 h`.";

impl Reader<'_> {
    /// `q8h`, `every 8 hours`, `8 hourly`, `3 times a day`, `bid`.
    pub(super) fn frequency(&self, at: usize) -> Match {
        let interval = |hours, length| set(path::INTERVAL, hours, Dimension::Time, length);
        if let Some(found) = self.every(at) {
            return found;
        }
        for (phrase, hours) in FREQUENCIES {
            if let Some(length) = self.phrase(at, phrase) {
                return interval(*hours, length);
            }
        }
        if self.symbol(at) == Some('/')
            && at > 0
            && let Some((quantity, length)) = self.quantity_of(at + 1, Dimension::Time)
        {
            return interval(quantity.canonical(), 1 + length);
        }
        if self.word(at) == "in"
            && let Some((value, used)) = self.number(at + 1)
            && ["divided", "equal"].contains(&self.word(at + 1 + used))
        {
            return interval(24.0 / value.max(1.0), 1 + used);
        }
        let (value, used) = self.number(at)?;
        let hyphen = self.hyphen(at + used);
        if self.word(at + used + hyphen) == "hourly" {
            return interval(value, used + hyphen + 1);
        }
        let counted = COUNTED.contains(&self.word(at + used));
        let x = usize::from(counted || self.word(at + used) == "x");
        let x = x.max(usize::from(self.symbol(at + used) == Some('\u{d7}')));
        let day =
            ["a day", "per day", "each day", "every day", "daily", "in 24 hours", "/ day", "/ d"];
        let day = if x == 1 { self.one_of(at + used + x, &day)? } else { return None };
        match value.fract() == 0.0 && (1.0..=24.0).contains(&value) {
            true => interval(24.0 / value, used + x + day),
            false => ask("how often a day", used + x + day),
        }
    }

    /// `q8h`, `q 12`, `every 8 h`, `every eight hours`.
    pub(super) fn every(&self, at: usize) -> Option<Match> {
        let word = self.word(at);
        if !["q", "every", "each"].contains(&word) {
            return None;
        }
        let (value, used) = self.number(at + 1)?;
        let hyphen = self.hyphen(at + 1 + used);
        let length = 1 + used + hyphen;
        let short = match self.word(at + length) {
            "w" if word == "q" => Some(168.0),
            unit_word => unit(unit_word)
                .filter(|unit| unit.dimension == Dimension::Time)
                .map(|unit| unit.times / unit.over),
        };
        Some(match short {
            Some(hours) => set(path::INTERVAL, value * hours, Dimension::Time, length + 1),
            None if word == "q" && hyphen == 0 => {
                set(path::INTERVAL, value, Dimension::Time, length)
            }
            None => return None,
        })
    }

    /// `at 8 and 20`, `at 8:00, 14:00 and 20:00`: even times are an interval.
    pub(super) fn clock(&self, at: usize) -> Match {
        let named = self.one_of(at, &["at"]);
        let mut used = named.unwrap_or(0);
        // Without "at", only 8 am or 08:00 is a time.
        if named.is_none() && self.clock_time(at).is_none_or(|(_, length)| length < 2) {
            return None;
        }
        let mut times = Vec::new();
        while let Some((hour, length)) = self.clock_time(at + used) {
            times.push(hour);
            used += length;
            let and = usize::from(self.symbol(at + used) == Some(','));
            let and = and + usize::from(["and"].contains(&self.word(at + used + and)));
            if and == 0 || self.clock_time(at + used + and).is_none() {
                break;
            }
            used += and;
        }
        let (first, count) = (*times.first()?, times.len());
        let is_clock = count > 1 || used > 2;
        if !is_clock {
            return None;
        }
        let next = times.iter().skip(1).chain([&first]);
        let gaps: Vec<f64> =
            times.iter().zip(next).map(|(a, b)| (b - a).rem_euclid(24.0)).collect();
        match gaps.as_slice() {
            [gap, rest @ ..]
                if count > 1
                    && *gap > 0.0
                    && rest.iter().all(|other| other == gap)
                    && (gap * f64::from(u32::try_from(count).unwrap_or(0)) - 24.0).abs() < 1e-9 =>
            {
                set(path::INTERVAL, *gap, Dimension::Time, used)
            }
            [_] => ask("a clock time. State the interval, such as every 24 h.", used),
            _ => ask("uneven times. The models have equal intervals: which one, in hours", used),
        }
    }

    /// An hour of the day: `8`, `08:00`, `8 am`, `20 h`. A number with another unit is none.
    pub(super) fn clock_time(&self, at: usize) -> Option<(f64, usize)> {
        let Kind::Number(hour) = self.tokens.get(at)?.kind else { return None };
        let mut used = 1;
        let mut time = hour;
        if self.symbol(at + 1) == Some(':')
            && let Some(Kind::Number(minutes)) =
                self.tokens.get(at + 2).map(|token| token.kind.clone())
        {
            time += minutes / 60.0;
            used += 2;
        }
        match self.word(at + used) {
            "am" => {
                used += 1;
                time = if hour >= 12.0 { time - 12.0 } else { time };
            }
            "pm" => {
                used += 1;
                time = if hour < 12.0 { time + 12.0 } else { time };
            }
            "" => {}
            other if unit(other).is_some() || other == "x" => return None,
            _ => {}
        }
        if self.symbol(at + used) == Some('%') || self.symbol(at + used) == Some('/') {
            return None;
        }
        (0.0..24.0).contains(&time).then_some((time, used))
    }

    /// A dose, or why it is none.
    pub(super) fn dose(&self, quantity: Quantity, at: usize, end: usize) -> Match {
        let length = end - at;
        match quantity.dimension() {
            Some(
                Dimension::Mass
                | Dimension::MassPerWeight
                | Dimension::MassPerDay
                | Dimension::MassPerWeightAndDay,
            ) => said(Item::Dose(quantity, None), length),
            Some(Dimension::Volume) => {
                ask("a volume. State the dose in mg, or the strength.", length)
            }
            Some(Dimension::Other) => {
                ask("the models need the dose as a mass, such as mg.", length)
            }
            _ => ask("this unit fits no dose.", length),
        }
    }

    /// `two 250 mg tablets`, `2 tablets of 250 mg`, `a 250 mg tablet`.
    pub(super) fn tablets(&self, at: usize) -> Match {
        let is_tablet = |at: usize| TABLETS.contains(&self.word(at));
        let is_many = |at: usize| is_tablet(at) && self.word(at).ends_with('s');
        let dose = |count: f64, of: Quantity, length| {
            let value = Quantity { value: count * of.value, ..of };
            let shown = format!("{} × {} mg", number(count), number(of.canonical()));
            said(Item::Dose(value, Some(shown)), length)
        };
        if let Some((of, used)) = self.quantity_of(at, Dimension::Mass)
            && is_tablet(at + used + self.hyphen(at + used))
        {
            let length = used + self.hyphen(at + used) + 1;
            return match is_many(at + length - 1) {
                true => ask("how many tablets", length),
                false => said(Item::Dose(of, None), length),
            };
        }
        let (count, used) = self.number(at).or_else(|| {
            let one = ["a", "an"].contains(&self.word(at)).then_some((1.0, 1));
            one.filter(|(_, used)| is_tablet(at + used))
        })?;
        let x =
            usize::from(self.word(at + used) == "x" || self.symbol(at + used) == Some('\u{d7}'));
        if let Some((of, more)) = self.quantity_of(at + used + x, Dimension::Mass) {
            let end = at + used + x + more;
            let end = end + self.hyphen(end);
            if is_tablet(end) {
                return dose(count, of, end + 1 - at);
            }
            if x == 1 {
                return ask("that many doses, or so many tablets for one dose", end - at);
            }
            return None;
        }
        if !is_tablet(at + used) {
            return None;
        }
        let of_at = at + used + 1;
        let of_at = of_at + usize::from(self.word(of_at) == "of");
        let open = usize::from(self.symbol(of_at) == Some('('));
        match self.quantity_of(of_at + open, Dimension::Mass) {
            Some((of, more)) => dose(count, of, of_at + open + more - at),
            None => ask("what strength has a tablet, in mg", used + 1),
        }
    }

    /// `x 6`, `6 doses`, `single dose`, `once`; `x 5 days` is a duration.
    pub(super) fn count(&self, at: usize) -> Match {
        let doses = |value: f64, length| set(path::DOSES, value, Dimension::Count, length);
        let repeats = ["every", "each", "q"].contains(&self.word(at + 1));
        if self.word(at) == "once" && repeats {
            return said(Item::Filler, 1);
        }
        for phrase in [
            "single dose",
            "one dose",
            "single doses",
            "one time only",
            "one time",
            "single",
            "once",
            "one-off",
        ] {
            if let Some(length) = self.phrase(at, phrase) {
                return doses(1.0, length);
            }
        }
        let is_times = self.word(at) == "x" || self.is_symbol(at, &['\u{d7}', '*']);
        if is_times && at > 0 {
            if let Some((hours, length)) = self.time(at + 1) {
                return set(path::DURATION, hours, Dimension::Time, 1 + length);
            }
            let (quantity, length) = self.quantity(at + 1)?;
            let counted = usize::from(COUNTED.contains(&self.word(at + 1 + length)));
            if let Some(period) = self.one_of(at + 1 + length + counted, PER_PERIOD) {
                return ask(SO_MANY_OF, 1 + length + counted + period);
            }
            let before = (1..=4.min(at)).map(|back| self.word(at - back));
            let is_rate =
                before.into_iter().any(|word| ["times", "twice", "thrice"].contains(&word));
            if quantity.unit.is_none() && counted == 0 && is_rate {
                return ask("so many doses, or so many days", 1 + length);
            }
            return match quantity.unit {
                None => doses(quantity.value, 1 + length + counted),
                Some(_) => ask("so many doses of which amount", 1 + length),
            };
        }
        let (value, used) = self.number(at)?;
        let is_x = self.word(at + used) == "x" || self.symbol(at + used) == Some('\u{d7}');
        if is_x && let Some(period) = self.one_of(at + used + 1, PER_PERIOD) {
            return ask(SO_MANY_OF, used + 1 + period);
        }
        if is_x && self.number(at + used + 1).is_none() {
            return doses(value, used + 1);
        }
        let route = self.route(at + used).map_or(0, |(_, length)| length);
        let word = self.word(at + used + route);
        if !COUNTED.contains(&word) {
            return None;
        }
        if let Some(period) = self.one_of(at + used + route + 1, PER_PERIOD) {
            return ask(SO_MANY_OF, used + route + 1 + period);
        }
        let next = self.word(at + used + route + 1);
        let a_week = ["a", "per", "each", "weekly", "monthly", "yearly", "in", "within"];
        let is_rate = a_week.contains(&next) || (word == "times" && next == "every");
        if is_rate || self.symbol(at + used + route + 1) == Some('/') {
            return ask("how often, as an interval in hours or days", used + route + 2);
        }
        // The route has its own rule.
        doses(value, used + usize::from(route == 0))
    }

    /// `over 90 minutes`, `as a 1-h infusion`, `infused for 2 h`.
    pub(super) fn infusion(&self, at: usize) -> Match {
        const OVER: &[&str] = &[
            "infusion over",
            "infused over",
            "infuse over",
            "given over",
            "infusion of",
            "infused in",
            "infusion for",
            "infused for",
            "infusion lasting",
            "over the course of",
            "over",
        ];
        if let Some(used) = self.one_of(at, OVER) {
            let used = used + self.skip(at + used, &["the"]);
            if let Some((Err(words), length)) = self.range(at + used) {
                return ask(words, used + length);
            }
            let (hours, length) = self.time(at + used)?;
            let is_infusion = self.word(at).starts_with("infus") || self.word(at) == "given";
            let after = self.route(at + used + length).map_or(0, |(_, length)| length);
            return match hours {
                hours if hours < OVER_HOURS || is_infusion => {
                    set(path::INFUSION, hours, Dimension::Time, used + length)
                }
                hours if hours > 24.0 => set(path::DURATION, hours, Dimension::Time, used + length),
                _ => ask(
                    "each infusion takes this long, or the simulation does? Say `infused over` or \
                     `simulate for`.",
                    used + length + after,
                ),
            };
        }
        let (hours, used) = self.time(at)?;
        let hyphen = self.hyphen(at + used);
        let words =
            ["iv infusions", "iv infusion", "intravenous infusion", "infusions", "infusion"];
        let length = self.one_of(at + used + hyphen, &words)?;
        set(path::INFUSION, hours, Dimension::Time, used + hyphen + length)
    }

    /// `for 3 days`, `a 5-day course`, `until day 3`.
    pub(super) fn duration(&self, at: usize) -> Match {
        let duration = |hours, length| set(path::DURATION, hours, Dimension::Time, length);
        if let Some(used) =
            self.one_of(at, &["until day", "through day", "until the end of day", "to day"])
            && let Some((day, length)) = self.number(at + used)
        {
            let words = format!(
                "the simulated time is then {} h or {} h?",
                number((day - 1.0) * 24.0),
                number(day * 24.0)
            );
            return ask(words, used + length);
        }
        let lead = [
            "for a total of",
            "for the next",
            "for up to",
            "for",
            "lasting",
            "during",
            "simulate",
            "until",
        ];
        if let Some(used) = self.one_of(at, &lead) {
            if let Some((Err(words), length)) = self.range(at + used) {
                return ask(words, used + length);
            }
            if let Some((hours, length)) = self.time(at + used) {
                let hyphen = self.hyphen(at + used + length);
                return match self.word(at + used + length + hyphen) {
                    // "simulate a 5-day course": the rest of the phrase has its own rule.
                    "infusion" | "infusions" => None,
                    _ if self.phrase(at, "for up to").is_some() => {
                        ask("exactly how long", used + length)
                    }
                    _ => duration(hours, used + length),
                };
            }
            return None;
        }
        let (hours, used) = self.time(at)?;
        let hyphen = self.hyphen(at + used);
        let of =
            ["course", "of therapy", "of treatment", "of dosing", "regimen", "simulation", "long"];
        let length = self.one_of(at + used + hyphen, &of)?;
        duration(hours, used + hyphen + length)
    }
}
