//! Numbers: times, counters, shares, levels.

use super::Reader;
use super::members::{Location, Object};
use crate::fields::Field;

/// Minimum errors that count as a problem, without a number of packets. A handful since the last
/// restart is normal.
const ERRORS_MIN: f64 = 100.0;

/// Minimum share of packets with errors that counts as a problem.
const ERROR_SHARE_MIN: f64 = 1e-6;

/// Minimum transitions that count as flapping.
const TRANSITIONS_MIN: f64 = 10.0;

/// Minimum utilization that counts as exhausted, in percent.
pub(crate) const UTILIZATION_PERCENT_MIN: f64 = 90.0;

/// A device with a shorter uptime has restarted recently, in seconds.
const UPTIME_S_MIN: f64 = 86_400.0;

/// Received optical power without a threshold below which there is no light, in dBm.
const NO_LIGHT_DBM: f64 = -30.0;

/// Share of the expected or earlier prefixes below which there are far fewer.
const PREFIX_SHARE_MIN: f64 = 0.5;

impl Reader {
    pub(super) fn uptime(&mut self, text: &str, words: &str, object: &Object<'_>) {
        let small = text.to_lowercase();
        let is_long = ["year", "week", "day", "month"].iter().any(|unit| small.contains(unit))
            || small
                .split_whitespace()
                .next()
                .is_some_and(|t| t.contains('d') || t.contains('w') || t.contains('y'));
        let is_short = ["hour", "min", "sec", ":"].iter().any(|unit| small.contains(unit));
        match (is_long, is_short) {
            (true, _) => self.fine(&["system"], "uptime", None, &object.name()),
            (false, true) => {
                self.wrong(&["system"], format!("{words} restarted {text} ago{}", object.reason()))
            }
            (false, false) => self.unknown(format!("{words}: uptime is \"{text}\"")),
        }
    }

    pub(super) fn figure(
        &mut self,
        name: &str,
        number: f64,
        kind: Field,
        object: &Object<'_>,
        location: &Location,
        subjects: &[&'static str],
    ) {
        let words = location.words(object);
        let own = object.name();
        let named = |what: &str| format!("{words} {what}{}", object.reason());
        let (attribute, problem) = match kind {
            Field::Neutral => return,
            Field::Errors => ("errors", errors(name, number, object).map(|text| named(&text))),
            Field::ErrorRate => {
                ("errors", (number > 0.0).then(|| named(&format!("has {name} {number}"))))
            }
            Field::Transitions => (
                "flaps",
                (number >= TRANSITIONS_MIN).then(|| named(&format!("flaps: {number} transitions"))),
            ),
            Field::Utilization => (
                "utilization",
                (number >= UTILIZATION_PERCENT_MIN).then(|| named(&format!("is {number}% used"))),
            ),
            Field::Uptime => {
                let text = format!("restarted {} minutes ago", (number / 60.0).round());
                ("uptime", (number < UPTIME_S_MIN).then(|| named(&text)))
            }
            Field::Prefixes => {
                if location.is_down {
                    return;
                }
                ("prefixes", self.prefixes(number, object, location))
            }
            Field::Power => return self.power(name, number, object, &words, subjects),
            _ if name == "matching_routes" => {
                ("targets", (number == 0.0).then(|| named("matches no route")))
            }
            _ => return self.unknown(format!("{words}: {name} is {number}")),
        };
        match problem {
            Some(_) if object.is_switched_off() => {}
            Some(text) => self.wrong(subjects, text),
            None => {
                let mut subjects = subjects.to_vec();
                if attribute == "uptime" {
                    subjects.push("system");
                }
                self.fine(&subjects, attribute, Some(number), &own);
            }
        }
    }

    /// What is wrong with a number of prefixes that a neighbor sends.
    fn prefixes(&self, number: f64, object: &Object<'_>, location: &Location) -> Option<String> {
        let is_before = |name: &str| {
            let words = ["expected", "previous", "baseline", "before"];
            name.contains("prefix") && words.iter().any(|word| name.contains(word))
        };
        let before = object.0.iter().find(|(name, _)| is_before(name));
        let before = before.and_then(|(_, value)| super::members::number(value));
        let peer = || self.peer(object, location);
        match before {
            _ if number == 0.0 => Some(format!("{} is established and sends no prefixes", peer())),
            Some(before)
                if number < before * PREFIX_SHARE_MIN || number * PREFIX_SHARE_MIN > before =>
            {
                Some(format!("{} sends {number} prefixes, {before} before", peer()))
            }
            _ => None,
        }
    }

    /// The neighbor that an address family belongs to.
    pub(super) fn peer(&self, object: &Object<'_>, location: &Location) -> String {
        let name = if location.owner.is_empty() { object.name() } else { location.owner.clone() };
        format!("{} {name}", location.area())
    }

    pub(super) fn power(
        &mut self,
        name: &str,
        number: f64,
        object: &Object<'_>,
        words: &str,
        subjects: &[&'static str],
    ) {
        let side = if name.contains("tx") || name.contains("transmit") { "tx" } else { "rx" };
        let bound = |which: &str| object.like(&[side, which]).or_else(|| object.like(&[which]));
        let low = ["low_warn", "low_alarm", "low"].iter().find_map(|which| bound(which));
        let high = ["high_warn", "high_alarm", "high"].iter().find_map(|which| bound(which));
        let text = format!("{words}: {name} is {number} dBm");
        match (low, high) {
            (Some(low), _) if number <= low => self.wrong(subjects, format!("{text}, below {low}")),
            (_, Some(high)) if number >= high => {
                self.wrong(subjects, format!("{text}, above {high}"))
            }
            (Some(_), Some(_)) => self.fine(subjects, "power", Some(number), &object.name()),
            _ if number <= NO_LIGHT_DBM => self.wrong(subjects, format!("{text}: no light")),
            _ => self.unknown(format!("{text}, without its thresholds")),
        }
    }
}

/// Errors that are too many for the packets, or by themselves.
fn errors(name: &str, number: f64, object: &Object<'_>) -> Option<String> {
    let label = match name {
        "crc_errors" | "fcs_errors" => "CRC errors".to_owned(),
        _ => name.replace('_', " "),
    };
    // CRC errors also count as input errors; report them once.
    let crc = object.number("crc_errors").is_some_and(|crc| crc >= ERRORS_MIN);
    let is_said = ["input_errors", "in_errors"].contains(&name) && crc;
    let packets = object.like(&["packets"]).filter(|packets| *packets > 0.0);
    let is_bad = match packets {
        Some(packets) => number / packets >= ERROR_SHARE_MIN,
        None => number >= ERRORS_MIN,
    };
    let of = packets.map_or(String::new(), |packets| format!(" in {packets} packets"));
    (is_bad && !is_said).then(|| format!("has {number} {label}{of}"))
}
