//! Rules about a single member: a state, a flag; `figures` has those about numbers.

use serde_json::Value;

use super::fields::{Field, field, is_identifier, is_own_state};
use super::findings::Reader;
use super::interpret::name_words;
use super::object::{Location, Object, number as number_of};
use super::vocabulary::{Standing, standing};

/// Words of a tool's own status, which says nothing about the device.
const ENVELOPE: &[&str] =
    &["success", "successful", "ok", "completed", "complete", "done", "passed"];

/// Members around a tool's answer.
const AROUND: &[&str] =
    &["result", "response", "data", "output", "meta", "metadata", "reply", "body"];

/// Good words that any state has. Without a name they prove nothing.
const GENERIC: &[&str] = &[
    "up", "ok", "okay", "good", "active", "running", "normal", "online", "healthy", "alive", "true",
];

/// Words of a restart that somebody asked for, and of one that nobody did.
const REQUESTED: &[&str] = &[
    "reload",
    "command",
    "user",
    "admin",
    "requested",
    "upgrade",
    "install",
    "issu",
    "normal",
    "operator",
    "cli",
];
const UNPLANNED: &[&str] = &[
    "crash",
    "crashed",
    "panic",
    "exception",
    "watchdog",
    "fault",
    "fatal",
    "abort",
    "error",
    "failure",
    "unexpected",
    "segv",
    "parity",
    "loss",
    "kernel",
    "power",
    "critical",
    "thermal",
    "overheat",
    "oom",
];

/// The values of `ifOperStatus`, from 1.
///
/// Source: RFC 2863.
const OPER_STATUS: &[&str] =
    &["up", "down", "testing", "unknown", "dormant", "not present", "lower layer down"];

/// Texts that say that there is nothing to say.
const NOTHING: &[&str] = &["none", "n/a", "-", "--", "not set", "not applicable"];

/// Values of a flag that is on, and of one that is off.
const ON: &[&str] = &["on", "true", "yes", "active", "set", "raised", "1", "alarm"];
const OFF: &[&str] = &[
    "off", "false", "no", "none", "inactive", "clear", "cleared", "0", "normal", "ok", "-", "n/a",
];

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
            } else if kind == Field::Prefixes && !location.is_down {
                let words = location.words(object);
                self.unknown(format!("{words}: {name} without a value"));
            }
            return;
        }
        let is_around = location.path.iter().all(|name| AROUND.contains(&name.as_str()));
        if is_around && is_envelope(name, value) {
            return;
        }
        // The limit beside it is judged.
        let is_judged = name == "refused_routes" && object.number("limit").is_some();
        if matches!(kind, Field::Alarm | Field::Problems)
            && !is_judged
            && self.raised(name, value, kind, object, location, subjects)
        {
            return;
        }
        let status = oper_status(name, value);
        match value {
            _ if status.is_some() => {
                self.word(
                    name,
                    status.unwrap_or_default(),
                    Field::State,
                    object,
                    location,
                    subjects,
                );
            }
            _ if name == "outgoing_label" && number_of(value).is_some() => {
                self.fine(subjects, "state", None, &object.name());
            }
            Value::String(text)
                if !matches!(kind, Field::Neutral | Field::Alarm) && number_of(value).is_none() =>
            {
                self.word(name, text, kind, object, location, subjects);
            }
            Value::String(text) if matches!(kind, Field::Neutral | Field::Alarm) => {
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
            || is_name(name)
            || object.is_switched_off()
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
            return self.uptime(text, &words, object, subjects);
        }
        if kind == Field::RestartReason {
            return self.restarted(text, &words);
        }
        let is_router = ["active", "standby", "active_router", "standby_router", "standby_ip"];
        if subjects.contains(&"fhrp") && is_router.contains(&name) {
            return;
        }
        let kind = if kind == Field::Prefixes { Field::State } else { kind };
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
            Standing::Off => {
                self.read.off.push((subjects.to_vec(), format!("{words} is switched off: {text}")));
                self.unknown(format!(
                    "{words}: {name} is \"{text}\"; whether that is intended is not known"
                ));
            }
            Standing::Good if kind == Field::State => {
                self.up(name, text, object, location, subjects)
            }
            Standing::Role if kind == Field::State => {}
            Standing::Unknown if name == "link" => {}
            _ if kind == Field::Unknown && NOTHING.contains(&text.to_lowercase().as_str()) => {}
            _ if is_identifier(text) && kind != Field::Problems => {}
            // The data of a record is a name or an address.
            _ if subjects.contains(&"dns")
                && ["data", "value", "record", "target", "cname"].contains(&name) => {}
            _ => self.unknown(format!("{words}: {name} is \"{text}\"")),
        }
    }

    /// A good state. Only the object's own state proves something: a BGP neighbor's `bfd_state` is about BFD.
    fn up(
        &mut self,
        name: &str,
        state: &str,
        object: &Object<'_>,
        location: &Location,
        subjects: &[&'static str],
    ) {
        let is_generic = GENERIC.contains(&state.to_lowercase().as_str());
        if !is_own_state(name) || is_generic && location.name(object).is_empty() {
            return;
        }
        if let Some(why) = object.contradicts() {
            let words = location.words(object);
            return self.unknown(format!("{words}: {name} is {state}, and {why}"));
        }
        let of_name = self.of_name(name);
        let is_port = of_name == ["interface"];
        let has_ports = ["stp", "lag", "vlan", "optics", "poe", "port security", "fhrp"];
        let own = location.name(object);
        if of_name.is_empty()
            || is_port && self.own.iter().any(|subject| has_ports.contains(subject))
        {
            return self.fine(subjects, "state", None, &own);
        }
        let before = std::mem::replace(&mut self.own, of_name.clone());
        self.fine(&of_name, "state", None, &own);
        self.own = before;
    }

    /// A flag or a number of something bad; false if it is neither.
    fn raised(
        &mut self,
        name: &str,
        value: &Value,
        kind: Field,
        object: &Object<'_>,
        location: &Location,
        subjects: &[&'static str],
    ) -> bool {
        let small = value.as_str().map(str::to_lowercase);
        let is_in = |list: &[&str]| small.as_deref().is_some_and(|text| list.contains(&text));
        let count = number_of(value).filter(|_| kind == Field::Problems);
        let (is_bad, is_good) = match value {
            Value::Bool(is_true) => (*is_true, !*is_true),
            _ => match count {
                Some(count) => (count > 0.0, count <= 0.0),
                None => (is_in(ON), is_in(OFF)),
            },
        };
        if is_bad && !object.is_switched_off() {
            let text = format!(
                "{}: {name} is {}{}",
                location.words(object),
                shown(value),
                object.reason()
            );
            self.wrong(subjects, text);
        } else if is_good && kind == Field::Problems && value.is_boolean() {
            self.fine(subjects, "state", None, &location.name(object));
        } else if is_good && kind == Field::Alarm && name.contains("power") {
            self.fine(subjects, "alarms", None, &location.name(object));
        }
        is_bad || is_good
    }

    fn restarted(&mut self, text: &str, words: &str) {
        let said = name_words(text);
        let has = |list: &[&str]| said.iter().any(|word| list.contains(&word.as_str()));
        if has(&["on"]) && has(&["power"]) {
            self.unknown(format!("{words}: restarted after \"{text}\""));
        } else if has(UNPLANNED) {
            self.wrong(&["system"], format!("{words} restarted unplanned: {text}"));
        } else if has(REQUESTED) {
            self.fine(&["system"], "restart", None, "");
        } else {
            self.unknown(format!("{words}: restarted after \"{text}\""));
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
            _ if name == "enabled" || name == "is_enabled" => {}
            // A guard that is configured; below `inconsistent` it says that the guard blocks.
            _ if name.ends_with("guard") || name.ends_with("border") => {
                let path = location.path.last();
                if is_true && path.is_some_and(|name| name.contains("inconsistent")) {
                    self.wrong(subjects, format!("{words}: the port is inconsistent: {name}"));
                }
            }
            (Field::GoodIfTrue, true) => self.up(name, "true", object, location, subjects),
            (Field::GoodIfTrue, false) if !is_own_state(name) => {
                self.unknown(format!("{words}: {name} is false"));
            }
            (Field::GoodIfTrue, false) if !object.is_switched_off() => {
                self.wrong(subjects, format!("{words}: {name} is {is_true}{}", object.reason()));
            }
            (Field::GoodIfTrue, _) => {}
            _ => self.unknown(format!("{words}: {name} is {is_true}")),
        }
    }
}

/// Whether a member names or describes something: its text says nothing about health.
fn is_name(name: &str) -> bool {
    let last = name.rsplit('_').next().unwrap_or(name);
    let names =
        ["name", "id", "type", "desc", "neighbor", "device", "hostname", "system", "host", "model"];
    names.contains(&last)
}

/// Whether a member is the tool's own status.
fn is_envelope(name: &str, value: &Value) -> bool {
    let names = ["status", "success", "ok", "result", "code", "message"];
    let is_good = |text: &str| ENVELOPE.contains(&text.to_lowercase().as_str());
    names.contains(&name) && (value == true || value.as_str().is_some_and(is_good))
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A state as SNMP numbers it.
fn oper_status(name: &str, value: &Value) -> Option<&'static str> {
    let names = ["if_oper_status", "oper_status", "ifoperstatus"];
    let number = number_of(value).filter(|_| names.contains(&name))?;
    (1_u8..).zip(OPER_STATUS).find(|(at, _)| f64::from(*at) == number).map(|(_, state)| *state)
}
