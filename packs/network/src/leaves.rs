//! Rules about a single member: a state, a flag, a number.

use serde_json::Value;

use super::fields::{Field, field, is_identifier};
use super::findings::Reader;
use super::object::{Location, Object, number as number_of};
use super::vocabulary::{Standing, standing};

/// Minimum errors that count as a problem, without a number of packets. A handful since the last
/// restart is normal.
const ERRORS_MIN: f64 = 100.0;

/// Minimum share of packets with errors that counts as a problem.
const ERROR_SHARE_MIN: f64 = 1e-6;

/// Minimum transitions that count as flapping.
const TRANSITIONS_MIN: f64 = 10.0;

/// Minimum utilization that counts as exhausted, in percent.
pub(super) const UTILIZATION_PERCENT_MIN: f64 = 90.0;

/// A device with a shorter uptime has restarted recently, in seconds.
const UPTIME_S_MIN: f64 = 86_400.0;

/// Received optical power without a threshold below which there is no light, in dBm.
const NO_LIGHT_DBM: f64 = -30.0;

/// Share of the expected or earlier prefixes below which there are far fewer.
const PREFIX_SHARE_MIN: f64 = 0.5;

impl Reader {
    pub(super) fn leaf(
        &mut self,
        name: &str,
        value: &Value,
        object: &Object<'_>,
        location: &Location,
        subjects: &[&'static str],
    ) {
        let kind = field(name);
        if value.is_null() || value.as_str() == Some("") {
            if kind == Field::State {
                self.unknown(format!("{name} without a value"));
            }
            return;
        }
        match value {
            _ if name == "outgoing_label" && number_of(value).is_some() => {
                self.fine(subjects, "state", None, &object.name());
            }
            Value::String(text) if kind != Field::Neutral && number_of(value).is_none() => {
                self.word(name, text, kind, object, location, subjects);
            }
            Value::String(text) if kind == Field::Neutral => {
                self.label(name, text, object, location, subjects);
            }
            Value::Bool(is_true) => self.flag(name, *is_true, kind, object, location, subjects),
            _ => self.figure(
                name,
                number_of(value).unwrap_or_default(),
                kind,
                object,
                location,
                subjects,
            ),
        }
    }

    /// A member that should say nothing about health, and may do so.
    pub(super) fn label(
        &mut self,
        name: &str,
        text: &str,
        object: &Object<'_>,
        location: &Location,
        subjects: &[&'static str],
    ) {
        if [
            "reason",
            "last_error",
            "down_reason",
            "note",
            "description",
            "comment",
            "title",
            "busiest_process",
        ]
        .contains(&name)
            || name.starts_with("admin")
        {
            return;
        }
        let is_half = name == "duplex" && text.to_lowercase().contains("half");
        if is_half
            || name != "mode" && standing(text, subjects) == Standing::Bad && !is_identifier(text)
        {
            self.wrong(
                subjects,
                format!("{}: {name} is {text}{}", location.words(object), object.reason()),
            );
        }
    }

    pub(super) fn word(
        &mut self,
        name: &str,
        text: &str,
        kind: Field,
        object: &Object<'_>,
        location: &Location,
        subjects: &[&'static str],
    ) {
        let words = location.words(object);
        if name == "outgoing_label" {
            return match standing(text, subjects) {
                Standing::Bad => self.wrong(subjects, format!("{words} has no label")),
                _ => self.fine(subjects, "state", None, &object.name()),
            };
        }
        if kind == Field::Uptime {
            return self.uptime(text, &words, object);
        }
        if name == "error" && location.path.is_empty() {
            return self.unknown(format!("the tool answers with an error: \"{text}\""));
        }
        match standing(text, subjects) {
            Standing::Bad if object.is_switched_off() => {}
            Standing::Bad => {
                let what = if kind == Field::State { String::new() } else { format!("{name} ") };
                self.wrong(subjects, format!("{words} {what}is {text}{}", object.reason()));
            }
            Standing::Off if subjects.contains(&"interface") => {}
            Standing::Off => self.unknown(format!(
                "{words}: {name} is \"{text}\"; whether that is intended is not known"
            )),
            Standing::Good if kind == Field::State => {
                self.fine(subjects, "state", None, &object.name())
            }
            Standing::Role if kind == Field::State => {}
            _ if is_identifier(text) => {}
            _ => self.unknown(format!("{words}: {name} is \"{text}\"")),
        }
    }

    pub(super) fn flag(
        &mut self,
        name: &str,
        is_true: bool,
        kind: Field,
        object: &Object<'_>,
        location: &Location,
        subjects: &[&'static str],
    ) {
        let words = location.words(object);
        match (kind, is_true) {
            (Field::Neutral, _) => {}
            _ if name == "enabled" => {}
            (Field::GoodIfTrue, true) | (Field::BadIfTrue, false) => {
                self.fine(subjects, "state", None, &object.name());
            }
            (Field::GoodIfTrue, false) | (Field::BadIfTrue, true) if !object.is_switched_off() => {
                self.wrong(subjects, format!("{words}: {name} is {is_true}{}", object.reason()));
            }
            (Field::GoodIfTrue | Field::BadIfTrue, _) => {}
            _ => self.unknown(format!("{words}: {name} is {is_true}")),
        }
    }

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
            Field::Errors => ("errors", errors(name, number, object).map(|what| named(&what))),
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
            Field::Prefixes if location.is_down => return,
            Field::Prefixes => {
                let peer = peer(object, location);
                ("prefixes", prefixes(number, object).map(|what| format!("{peer} {what}")))
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

/// The problem of a number of errors. With a number of packets, their share decides.
fn errors(name: &str, number: f64, object: &Object<'_>) -> Option<String> {
    let label = match name {
        "crc_errors" | "fcs_errors" => "CRC errors".to_owned(),
        _ => name.replace('_', " "),
    };
    // CRC errors also count as input errors; report them once.
    let has_crc = object.number("crc_errors").is_some_and(|crc| crc >= ERRORS_MIN);
    if ["input_errors", "in_errors"].contains(&name) && has_crc {
        return None;
    }
    let packets = object.like(&["packets"]).filter(|packets| *packets > 0.0);
    let is_bad =
        packets.map_or(number >= ERRORS_MIN, |packets| number / packets >= ERROR_SHARE_MIN);
    let of = packets.map_or(String::new(), |packets| format!(" in {packets} packets"));
    is_bad.then(|| format!("has {number} {label}{of}"))
}

/// The problem of a number of received prefixes.
fn prefixes(number: f64, object: &Object<'_>) -> Option<String> {
    let words = ["expected", "previous", "baseline", "before"];
    let is_before = |name: &str| name.contains("prefix") && words.iter().any(|w| name.contains(w));
    let before = object.0.iter().find(|(name, _)| is_before(name));
    let before = before.and_then(|(_, value)| number_of(value));
    let is_far =
        |before: &f64| number < before * PREFIX_SHARE_MIN || number * PREFIX_SHARE_MIN > *before;
    match before.filter(is_far) {
        _ if number == 0.0 => Some("is established and sends no prefixes".to_owned()),
        Some(before) => Some(format!("sends {number} prefixes, {before} before")),
        None => None,
    }
}

/// The neighbor that an address family belongs to.
fn peer(object: &Object<'_>, location: &Location) -> String {
    let name = if location.owner.is_empty() { object.name() } else { location.owner.clone() };
    format!("{} {name}", location.area())
}
