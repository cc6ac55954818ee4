//! Rules about a single number: errors, utilization, durations, optical power, prefixes.

use serde_json::Value;

use super::durations;
use super::facts::Sends;
use super::fields::Field;
use super::findings::{OF_NEIGHBORS, Reader};
use super::object::{Location, Object, number as number_of};

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

/// A session that has been up for less has come back recently, in seconds.
const SESSION_UPTIME_S_MIN: f64 = 900.0;

/// A larger number is a point in time, not a duration.
const EPOCH_S_MIN: f64 = 1e9;

/// The stratum of a clock that is not synchronized.
///
/// Source: RFC 5905, section 7.3.
const STRATUM_UNSYNCHRONIZED: f64 = 16.0;

/// Counters of which each one counts.
const EACH_COUNTS: &[&str] = &["violation", "failure"];

/// Received optical power without a threshold below which there is no light, in dBm.
const NO_LIGHT_DBM: f64 = -30.0;

/// Share of the expected or earlier prefixes below which there are far fewer.
const PREFIX_SHARE_MIN: f64 = 0.5;

impl Reader {
    pub(super) fn uptime(
        &mut self,
        text: &str,
        words: &str,
        object: &Object<'_>,
        subjects: &[&'static str],
    ) {
        match durations::seconds(text) {
            Some(seconds) => self.up_for(seconds, text, words, object, subjects),
            None if text.eq_ignore_ascii_case("never") => {}
            None => self.unknown(format!("{words}: uptime is \"{text}\"")),
        }
    }

    /// How long the device, or a session, has been up.
    fn up_for(
        &mut self,
        seconds: f64,
        text: &str,
        words: &str,
        object: &Object<'_>,
        subjects: &[&'static str],
    ) {
        let is_session =
            self.own.iter().any(|subject| !["system", "cpu", "memory", "ha"].contains(subject));
        if !(0.0..EPOCH_S_MIN).contains(&seconds) {
            return;
        }
        if is_session && seconds < SESSION_UPTIME_S_MIN {
            self.wrong(subjects, format!("{words} came up only {text} ago{}", object.reason()));
        } else if !is_session && seconds < UPTIME_S_MIN {
            self.wrong(&["system"], format!("{words} restarted {text} ago{}", object.reason()));
        } else if is_session {
            self.fine(subjects, "uptime", Some(seconds), &object.name());
        } else {
            self.fine(&["system"], "uptime", Some(seconds), &object.name());
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
        let is_percent =
            object.get(name).and_then(Value::as_str).is_some_and(|text| text.contains('%'));
        let own = location.name(object);
        let is_doubtful = location.is_doubtful || object.is_doubtful(subjects);
        let named = |what: &str| format!("{words} {what}{}", object.reason());
        let (attribute, problem) = match kind {
            Field::Neutral | Field::Alarm => return,
            Field::Uptime => {
                let text = format!("{} minutes", (number / 60.0).round());
                return self.up_for(number, &text, &words, object, subjects);
            }
            Field::Stratum if (1.0..STRATUM_UNSYNCHRONIZED).contains(&number) => ("stratum", None),
            Field::Stratum => {
                ("stratum", Some(named(&format!("has stratum {number}: it is not synchronized"))))
            }
            Field::Errors => ("errors", errors(name, number, object).map(|what| named(&what))),
            Field::ErrorRate => {
                ("errors", (number > 0.0).then(|| named(&format!("has {name} {number}"))))
            }
            // Flaps of a session that has been stable for a day are history.
            Field::Transitions if is_stable(object) => ("flaps", None),
            Field::Transitions => (
                "flaps",
                (number >= TRANSITIONS_MIN).then(|| named(&format!("flaps: {number} transitions"))),
            ),
            // A share of one, or a percentage: a name without a unit does not say which.
            Field::Utilization
                if number > 0.0 && number <= 1.0 && !name.contains("percent") && !is_percent =>
            {
                return self.unknown(format!("{words}: {name} is {number}, without a unit"));
            }
            Field::Utilization => (
                "utilization",
                (number >= UTILIZATION_PERCENT_MIN).then(|| named(&format!("is {number}% used"))),
            ),
            Field::Prefixes if location.is_down => return,
            // NAPALM has -1 for a number that the device does not tell.
            Field::Prefixes if number < 0.0 => {
                return self.unknown(format!("{words}: {name} is {number}"));
            }
            Field::Prefixes if number == 0.0 && is_doubtful => {
                return self.unknown(format!("{words}: {name} is 0, and its state is not known"));
            }
            Field::Prefixes => {
                self.sends(name, number, object, location);
                if name.contains("state") {
                    self.fine(subjects, "state", None, &own);
                }
                let peer = peer(object, location);
                ("prefixes", prefixes(number, object).map(|what| format!("{peer} {what}")))
            }
            Field::Power => return self.power(name, number, object, &words, subjects),
            _ if name == "matching_routes" => {
                ("targets", (number == 0.0).then(|| named("matches no route")))
            }
            _ if subjects.contains(&"dns") && name.contains("answer") => {
                ("state", (number == 0.0).then(|| named("has no answer")))
            }
            Field::Problems => return,
            _ if number > EPOCH_S_MIN && is_of_time(name) => return,
            _ if number == 0.0 && (name.contains("qlen") || name.contains("queue")) => return,
            _ if is_of_neighbors(name) => {
                let is_alone = number == 0.0 && !is_passive(object, subjects);
                ("neighbors", is_alone.then(|| named("has no neighbor")))
            }
            _ => return self.bounded(name, number, object, &words, subjects),
        };
        match problem {
            Some(_) if object.is_switched_off() => {}
            Some(text) => self.wrong(subjects, text),
            None => self.fine(subjects, attribute, Some(number), &own),
        }
    }

    /// Remembers how many prefixes a BGP neighbor sends.
    fn sends(&mut self, name: &str, number: f64, object: &Object<'_>, location: &Location) {
        let text = |names: &[&str]| {
            let value = names.iter().find_map(|name| object.get(name));
            value.map_or_else(String::new, |value| {
                value.as_str().map_or_else(|| value.to_string(), str::to_owned)
            })
        };
        if !self.own.contains(&"bgp") || name.contains("accept") {
            return;
        }
        let own = location.name(object);
        let described =
            [own.as_str(), &text(&["description", "desc", "neighbor_name", "peer_name", "group"])];
        self.read.sends.push(Sends {
            described: described.join(" ").to_lowercase(),
            remote_as: text(&[
                "remote_as",
                "neighbor_as",
                "peer_as",
                "neigh_as",
                "neighboras",
                "remote_asn",
                "asn",
                "as",
            ]),
            local_as: text(&["local_as", "local_asn"]),
            name: own,
            number,
        });
    }

    /// A number that no rule knows, by the thresholds beside it.
    fn bounded(
        &mut self,
        name: &str,
        number: f64,
        object: &Object<'_>,
        words: &str,
        subjects: &[&'static str],
    ) {
        let bound = |sides: &[&str]| {
            let is_bound = |other: &&(String, &Value)| {
                other.0 != name
                    && other.0.starts_with(name)
                    && sides.iter().any(|side| other.0.contains(side))
            };
            object.0.iter().filter(is_bound).find_map(|(_, value)| number_of(value))
        };
        let (low, high) =
            (bound(&["low", "min"]), bound(&["high", "max", "critical", "threshold", "upper"]));
        if low.is_some_and(|low| number <= low) || high.is_some_and(|high| number >= high) {
            self.wrong(subjects, format!("{words}: {name} is {number}, beyond its threshold"));
        } else if low.is_none() && high.is_none() {
            self.unknown(format!("{words}: {name} is {number}"));
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
        // The module's own alarms judge its power.
        if ["low_alarm", "high_alarm"].iter().all(|alarm| is_off(object, side, alarm)) {
            return self.fine(subjects, "power", Some(number), &object.name());
        }
        // A threshold without a side is one of this power only if it is the only one.
        let plain = |which: &str| {
            let names = [
                which.to_owned(),
                format!("{which}_threshold"),
                format!("power_{which}"),
                format!("{which}_dbm"),
            ];
            names.iter().find_map(|name| object.number(name))
        };
        let bound = |which: &str| object.like(&[side, which]).or_else(|| plain(which));
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

/// Whether an alarm of a side is shown and off.
fn is_off(object: &Object<'_>, side: &str, alarm: &str) -> bool {
    let mut of_side =
        object.0.iter().filter(|(name, _)| name.contains(side) && name.ends_with(alarm));
    of_side.any(|(_, value)| {
        *value == false || value.as_str().is_some_and(|text| text.eq_ignore_ascii_case("off"))
    })
}

/// Whether an interface has no neighbors by design, or is none of a protocol with neighbors.
fn is_passive(object: &Object<'_>, subjects: &[&'static str]) -> bool {
    object.get("passive").is_some_and(|passive| passive == true)
        || object.get("state").is_some_and(|state| state == "passive")
        || !OF_NEIGHBORS.iter().any(|subject| subjects.contains(subject))
}

/// Whether a session has been up for longer than the flaps that it counts.
fn is_stable(object: &Object<'_>) -> bool {
    let names = ["up_down", "uptime", "up_time", "session_uptime"];
    let seconds = names.iter().find_map(|name| {
        let value = object.get(name)?;
        number_of(value).or_else(|| durations::seconds(value.as_str()?))
    });
    seconds.is_some_and(|seconds| (UPTIME_S_MIN..EPOCH_S_MIN).contains(&seconds))
}

fn is_of_time(name: &str) -> bool {
    let words = ["last", "since", "time", "established", "change", "changed"];
    name.split('_').any(|word| words.contains(&word))
}

/// Whether a number is that of an interface's neighbors.
fn is_of_neighbors(name: &str) -> bool {
    let has = |all: &[&str]| all.iter().any(|word| name.contains(word));
    has(&["neighbor", "neighbour", "adjacen"]) && has(&["count", "num", "total", "full"])
}

/// The problem of a number of errors. With a number of packets, their share decides.
fn errors(name: &str, number: f64, object: &Object<'_>) -> Option<String> {
    let label = match name {
        "crc_errors" | "fcs_errors" => "CRC errors".to_owned(),
        _ => name.replace('_', " "),
    };
    let is_each = EACH_COUNTS.iter().any(|word| name.contains(word));
    if is_each && number > 0.0 {
        return Some(format!("has {number} {label}"));
    }
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
