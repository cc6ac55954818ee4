//! Reads a tool's result by rules over its JSON, for any tool: what is wrong, what is in order, and
//! which parts no rule knows.
//!
//! A bad state is found wherever it is. What is in order counts only under a name that a rule knows.
//! Everything else is reported as unknown, so that nobody takes silence for health.

use serde_json::{Map, Value};

use super::fields::{Field, field, is_identifier};
use super::interpret::name_words;
use super::lexicon;
use super::logs;
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

/// Maximum depth and number of objects read of one answer.
const DEPTH_MAX: usize = 24;
const OBJECTS_MAX: usize = 20_000;

/// Maximum findings, facts in order, and unknown parts per answer.
const FINDINGS_MAX: usize = 20;
const FINE_MAX: usize = 5_000;
const UNKNOWN_MAX: usize = 8;

/// Longest finding, in characters, since findings quote the server's text.
const TEXT_CHARS_MAX: usize = 240;

/// Members that name an object, the most specific first.
const NAMES: &[&str] = &[
    "neighbor_name",
    "neighbor",
    "peer",
    "originator",
    "destination",
    "name",
    "interface",
    "port",
    "route_target",
    "prefix",
    "neighbor_address",
    "neighbor_id",
    "peer_address",
    "group",
    "vlan_id",
    "vlan",
    "id",
    "device",
];

/// Members that give a reason.
const REASONS: &[&str] = &[
    "last_error",
    "reason",
    "error",
    "busiest_process",
    "conflicts_with",
    "down_reason",
    "last_reset_reason",
    "reload_reason",
    "last_reload_reason",
];

/// Display names of members.
const AREAS: &[(&str, &str)] = &[
    ("bgp_neighbors", "BGP neighbor"),
    ("bgp", "BGP neighbor"),
    ("isis", "IS-IS adjacency"),
    ("ospf", "OSPF adjacency"),
    ("ldp", "LDP session"),
    ("prefix_sids", "prefix SID"),
    ("forwarding", "label path"),
    ("import_route_targets", "import route target"),
    ("vrfs", "VRF"),
    ("interfaces", "interface"),
    ("route_limit", "routes"),
    ("cpu", "CPU"),
    ("memory", "memory"),
    ("vlans", "VLAN"),
    ("spanning_tree", "spanning tree"),
    ("access_lists", "access list"),
    ("dns", "DNS"),
];

/// Members of one side and of the other that must agree.
const SIDES: &[(&str, &str)] = &[
    ("local_", "remote_"),
    ("local_", "neighbor_"),
    ("local_", "peer_"),
    ("local_", "far_end_"),
    ("expected_", "actual_"),
    ("configured_", "actual_"),
];

const MUST_AGREE: &[&str] = &[
    "mtu",
    "area",
    "area_id",
    "native_vlan",
    "duplex",
    "speed",
    "hello_interval",
    "dead_interval",
    "hello",
    "dead",
    "network_type",
    "level",
    "authentication",
    "auth_type",
    "encapsulation",
    "vlan",
    "vlans",
    "mode",
    "state",
    "root",
    "root_bridge",
    "as",
    "count",
    "members",
    "address",
    "value",
    "version",
    "timers",
];

/// Numbers of which the first should not be below the second.
const QUORUMS: &[(&str, &str)] = &[
    ("up", "total"),
    ("up", "configured"),
    ("up", "expected"),
    ("active", "configured"),
    ("active", "expected"),
    ("active", "total"),
    ("established", "configured"),
    ("established", "total"),
    ("actual", "expected"),
    ("active_members", "configured_members"),
    ("active_members", "total_members"),
    ("active_links", "min_links"),
    ("active_members", "expected_members"),
    ("peers_established", "peers_configured"),
];

/// Something in order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fine {
    pub subjects: Vec<&'static str>,
    pub attribute: &'static str,
    pub number: Option<f64>,
    /// The object's name.
    pub name: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wrong {
    pub subjects: Vec<&'static str>,
    pub text: String,
}

#[derive(Debug, Default)]
pub(super) struct Read {
    pub wrong: Vec<Wrong>,
    pub fine: Vec<Fine>,
    /// Parts that no rule knows, quoted.
    pub unknown: Vec<String>,
    /// Subjects that the device does not have, according to the answer.
    pub absent: Vec<&'static str>,
    /// All words of the answer, for the names that a question mentions.
    pub words: String,
}

/// Reads the answer of a tool about a device.
pub(super) fn read(tool: &str, arguments: &Value, content: &Value) -> Read {
    let parsed = content.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let content = parsed.as_ref().unwrap_or(content);
    let mut said = name_words(tool);
    said.extend(arguments.get("protocol").and_then(Value::as_str).into_iter().flat_map(name_words));
    let mut reader = Reader { read: Read::default(), objects: 0, tool: lexicon::subjects(&said) };
    match content {
        Value::String(text) => reader.text(text),
        _ => reader.value(content, &Location::default()),
    }
    reader.read.words = content.to_string().to_lowercase();
    reader.about(arguments, content);
    reader.read
}

/// A position in an answer.
#[derive(Clone, Debug, Default)]
struct Location {
    /// The path of members.
    path: Vec<String>,
    vrf: Option<String>,
    /// The name of the object around it.
    owner: String,
    /// Whether the object around it is in a bad state.
    is_down: bool,
}

impl Location {
    /// The display name of the objects here.
    fn area(&self) -> &str {
        let known = |member: &String| AREAS.iter().find(|(name, _)| name == member);
        match self.path.iter().rev().find_map(known) {
            Some((_, words)) => words,
            None => match self.path.last().map_or("device", String::as_str) {
                "neighbors" => "neighbor",
                other => other,
            },
        }
    }

    /// Display name of an object here, with its VRF.
    fn words(&self, object: &Object<'_>) -> String {
        let area = self.area();
        let own = object.name();
        let is_vrf = self.vrf.as_ref() == Some(&self.owner);
        let name = if own.is_empty() && !is_vrf { self.owner.clone() } else { own };
        let named = if name.is_empty() { area.to_owned() } else { format!("{area} {name}") };
        match &self.vrf {
            Some(vrf) if !named.contains(vrf.as_str()) => format!("VRF {vrf}: {named}"),
            _ => named,
        }
    }
}

/// An object's members under normalised names.
struct Object<'a>(Vec<(String, &'a Value)>);

impl<'a> Object<'a> {
    fn of(members: &'a Map<String, Value>) -> Self {
        Self(members.iter().map(|(name, value)| (snake(name), value)).collect())
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    fn number(&self, name: &str) -> Option<f64> {
        number(self.get(name)?)
    }

    /// The first number whose name has all these words.
    fn like(&self, words: &[&str]) -> Option<f64> {
        let mut all = self.0.iter();
        all.find(|(name, _)| words.iter().all(|w| name.contains(w))).and_then(|(_, v)| number(v))
    }

    fn name(&self) -> String {
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        NAMES.iter().find_map(|name| text(self.get(name)?)).unwrap_or_default()
    }

    fn reason(&self) -> String {
        let reason = REASONS.iter().find_map(|name| self.get(name));
        match reason {
            Some(Value::String(reason)) if !reason.is_empty() => format!(" ({reason})"),
            Some(Value::Array(all)) => {
                let all: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
                format!(" ({})", all.join(", "))
            }
            _ => String::new(),
        }
    }

    /// Whether an operator switched the object off.
    fn is_switched_off(&self) -> bool {
        let admin = ["admin_status", "admin_state", "admin"].iter().find_map(|name| self.get(name));
        let is_off = |state: &str| matches!(standing(state, &[]), Standing::Off | Standing::Bad);
        admin.is_some_and(|admin| admin == false || admin.as_str().is_some_and(is_off))
            || self.get("enabled").is_some_and(|enabled| enabled == false)
    }
}

/// A name in snake case.
fn snake(name: &str) -> String {
    let mut said = String::new();
    let mut was_small = false;
    for c in name.chars() {
        if c.is_uppercase() && was_small {
            said.push('_');
        }
        was_small = c.is_lowercase();
        said.extend(if c.is_alphanumeric() { c } else { '_' }.to_lowercase());
    }
    said
}

fn number(value: &Value) -> Option<f64> {
    let text = || {
        let text = value.as_str()?.trim().trim_end_matches(['%', ' ']);
        let text = text.strip_suffix("dBm").unwrap_or(text).trim().replace(',', "");
        text.parse::<f64>().ok().filter(|number| number.is_finite())
    };
    value.as_f64().or_else(text)
}

struct Reader {
    read: Read,
    objects: usize,
    /// The subjects that the tool's name and arguments say.
    tool: Vec<&'static str>,
}

impl Reader {
    fn wrong(&mut self, subjects: &[&'static str], text: String) {
        let text: String = text.chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect();
        let is_new = self.read.wrong.iter().all(|known| known.text != text);
        if is_new && self.read.wrong.len() < FINDINGS_MAX {
            self.read.wrong.push(Wrong { subjects: subjects.to_vec(), text });
        }
    }

    fn fine(
        &mut self,
        subjects: &[&'static str],
        attribute: &'static str,
        number: Option<f64>,
        name: &str,
    ) {
        if self.read.fine.len() < FINE_MAX {
            let name = name.to_owned();
            self.read.fine.push(Fine { subjects: subjects.to_vec(), attribute, number, name });
        }
    }

    fn unknown(&mut self, what: String) {
        let what: String = what.chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect();
        if !self.read.unknown.contains(&what) && self.read.unknown.len() < UNKNOWN_MAX {
            self.read.unknown.push(what);
        }
    }

    /// Checks that the answer is about the device of the call.
    fn about(&mut self, arguments: &Value, content: &Value) {
        let names = ["device_name", "device", "hostname", "host", "router", "switch", "node"];
        let of = |value: &Value| {
            names.iter().find_map(|name| value.get(*name)?.as_str().map(str::to_lowercase))
        };
        let (Some(asked), Some(told)) = (of(arguments), of(content)) else { return };
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        if asked != told && short(&asked) != short(&told) {
            self.unknown(format!("the answer is about {told}, not {asked}"));
        }
    }

    /// An answer in prose, or what a device printed: only what is bad in it is judged.
    fn text(&mut self, text: &str) {
        let subjects = self.tool.clone();
        for line in text.lines() {
            if logs::is_bad(line) {
                self.wrong(&subjects, format!("shown: {}", line.trim()));
            }
        }
        let first = text.lines().next().unwrap_or_default();
        self.unknown(format!("an answer in prose: \"{first}\""));
    }

    fn subjects(&self, object: &Object<'_>, location: &Location) -> Vec<&'static str> {
        let of = |text: &str| lexicon::subjects(&name_words(text));
        let kind = ["protocol", "type", "kind"].iter().find_map(|name| object.get(name)?.as_str());
        let mut found: Vec<&'static str> = location.path.iter().flat_map(|name| of(name)).collect();
        found.extend(kind.filter(|kind| kind.len() < 24).into_iter().flat_map(of));
        if found.is_empty() {
            found.extend(&self.tool);
        }
        found.dedup();
        found
    }

    fn value(&mut self, value: &Value, location: &Location) {
        if location.path.len() >= DEPTH_MAX {
            return self.unknown("an answer that is nested too deeply".to_owned());
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.value(item, location)),
            Value::Object(members) => {
                self.objects += 1;
                if self.objects <= OBJECTS_MAX {
                    self.object(members, location);
                } else {
                    self.unknown("an answer with too many objects".to_owned());
                }
            }
            Value::Null => {}
            leaf => {
                let name = location.path.last().map_or("answer", String::as_str);
                let object = Object(Vec::new());
                let subjects = self.subjects(&object, location);
                self.leaf(name, leaf, &object, location, &subjects);
            }
        }
    }

    fn object(&mut self, members: &Map<String, Value>, location: &Location) {
        let object = Object::of(members);
        let subjects = self.subjects(&object, location);
        if let Some(message) =
            ["message", "msg", "text"].iter().find_map(|m| object.get(m)?.as_str())
            && ["severity", "timestamp", "time", "level"].iter().any(|m| object.get(m).is_some())
        {
            return self.log_entry(&object, message);
        }
        if object.get("configured") == Some(&Value::Bool(false)) {
            self.read.absent.extend(subjects);
            return;
        }
        if subjects.contains(&"lldp")
            && location.path.last().is_some_and(|name| name.starts_with("neighbor"))
        {
            self.fine(&subjects, "state", None, &object.name());
        }
        self.pairs(&object, location, &subjects);
        let before = self.read.wrong.len();
        let leaves = object.0.iter().filter(|(_, value)| !value.is_array() && !value.is_object());
        for (name, value) in leaves {
            self.leaf(name, value, &object, location, &subjects);
        }
        let own = object.name();
        let is_vrf = location.path.last().is_some_and(|member| member == "vrfs");
        let inner = Location {
            path: location.path.clone(),
            vrf: if is_vrf { Some(own.clone()) } else { location.vrf.clone() },
            is_down: self.read.wrong.len() > before || object.is_switched_off(),
            owner: if own.is_empty() { location.owner.clone() } else { own },
        };
        for (name, value) in object.0.iter().filter(|(_, v)| v.is_array() || v.is_object()) {
            let mut inner = inner.clone();
            // Members such as counters belong to their parent object.
            match value {
                Value::Object(members) if name == "counters" => {
                    let mut joined = members.clone();
                    joined.entry("name").or_insert_with(|| object.name().into());
                    self.object(&joined, &inner);
                    continue;
                }
                Value::Array(items) => self.list(name, items, &object, location, &subjects),
                _ => {}
            }
            inner.path.push(name.clone());
            self.value(value, &inner);
        }
    }

    /// A list that is empty, or of which each element is a problem.
    fn list(
        &mut self,
        name: &str,
        items: &[Value],
        object: &Object<'_>,
        at: &Location,
        subjects: &[&'static str],
    ) {
        let mut about = lexicon::subjects(&name_words(name));
        if about.is_empty() {
            about.extend(subjects);
        }
        let is_of_problems = [
            "alarm",
            "fault",
            "error",
            "mismatch",
            "conflict",
            "inconsistent",
            "problem",
            "err_disabled",
        ]
        .iter()
        .any(|word| name.contains(word))
            && name != "conflicts_with";
        match (items, is_of_problems) {
            ([], true) => self.fine(&about, "state", None, &object.name()),
            ([], false) if name == "entries" => self.fine(&["log"], "state", None, ""),
            ([], false) => self.read.absent.extend(about),
            (items, true) => {
                let texts: Vec<String> = items
                    .iter()
                    .take(3)
                    .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                    .collect();
                self.wrong(&about, format!("{}: {name}: {}", at.words(object), texts.join("; ")));
            }
            _ => {}
        }
    }

    fn log_entry(&mut self, object: &Object<'_>, message: &str) {
        let severity = object.get("severity").or_else(|| object.get("level"));
        let mnemonic = object.get("mnemonic").and_then(Value::as_str).unwrap_or("message");
        if logs::is_severe(severity) || logs::is_bad(message) {
            self.wrong(&["log"], format!("logged: {mnemonic}: {message}"));
        } else {
            self.fine(&["log"], "state", None, "");
        }
    }

    /// Members that belong together.
    fn pairs(&mut self, object: &Object<'_>, location: &Location, subjects: &[&'static str]) {
        for (near, far) in SIDES {
            for what in MUST_AGREE {
                let is_as = *what == "as" && *near == "local_";
                let is_identity = ["address", "value", "version", "count", "members", "state"]
                    .contains(what)
                    && *near == "local_";
                let one = object.get(&format!("{near}{what}"));
                let other = object.get(&format!("{far}{what}"));
                let (Some(one), Some(other)) = (one, other) else { continue };
                if is_as || is_identity || one.is_null() || other.is_null() {
                    continue;
                }
                let attribute = if *what == "mtu" { "mtu" } else { "state" };
                if one.to_string().to_lowercase() == other.to_string().to_lowercase() {
                    self.fine(subjects, attribute, None, &object.name());
                } else {
                    let (near, far) = (near.trim_end_matches('_'), far.trim_end_matches('_'));
                    let text = format!(
                        "{} mismatch: {near} {one}, {far} {other}",
                        what.to_uppercase().replace('_', " ")
                    );
                    self.wrong(subjects, format!("{} {text}", location.words(object)));
                }
            }
        }
        for (has, should) in QUORUMS {
            if let (Some(has), Some(should)) = (object.number(has), object.number(should)) {
                if has < should {
                    let text = format!("has only {has} of {should}: redundancy is lost");
                    self.wrong(subjects, format!("{} {text}", location.words(object)));
                } else {
                    self.fine(subjects, "redundancy", Some(has), &object.name());
                }
            }
        }
        if let (Some(used), Some(limit)) = (object.number("used"), object.number("limit")) {
            if limit > 0.0 && used >= limit {
                self.wrong(
                    subjects,
                    format!("{} limit of {limit} reached", location.words(object)),
                );
            } else {
                self.fine(subjects, "limit", Some(used), &object.name());
            }
        }
        self.access_rule(object, location, subjects);
    }

    /// A rule of an access list that drops packets.
    fn access_rule(&mut self, object: &Object<'_>, location: &Location, subjects: &[&'static str]) {
        let action =
            object.get("action").and_then(Value::as_str).unwrap_or_default().to_lowercase();
        if !["deny", "drop", "discard", "reject", "block"].contains(&action.as_str()) {
            return;
        }
        let number = object.number("sequence").or_else(|| object.number("seq")).unwrap_or_default();
        let hits = ["hits", "matches", "hit_count", "match_count", "packets"]
            .iter()
            .find_map(|name| object.number(name));
        let text = format!("{}: rule {number} denies", location.words(object));
        match hits {
            Some(hits) if hits > 0.0 => {
                self.wrong(subjects, format!("{text}, {hits} packets so far"))
            }
            _ => self.unknown(format!("{text}; whether that is intended is not known")),
        }
    }

    fn leaf(
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
            _ if name == "outgoing_label" && number(value).is_some() => {
                self.fine(subjects, "state", None, &object.name());
            }
            Value::String(text) if kind != Field::Neutral && number(value).is_none() => {
                self.word(name, text, kind, object, location, subjects);
            }
            Value::String(text) if kind == Field::Neutral => {
                self.label(name, text, object, location, subjects);
            }
            Value::Bool(is_true) => self.flag(name, *is_true, kind, object, location, subjects),
            _ => self.figure(
                name,
                number(value).unwrap_or_default(),
                kind,
                object,
                location,
                subjects,
            ),
        }
    }

    /// A member that should say nothing about health, and may do so.
    fn label(
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

    fn word(
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

    fn flag(
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

    fn uptime(&mut self, text: &str, words: &str, object: &Object<'_>) {
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

    fn figure(
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
            Field::Errors => {
                let label = match name {
                    "crc_errors" | "fcs_errors" => "CRC errors".to_owned(),
                    _ => name.replace('_', " "),
                };
                // CRC errors also count as input errors; report them once.
                let crc = object.number("crc_errors").is_some_and(|crc| crc >= ERRORS_MIN);
                let is_said = ["input_errors", "in_errors"].contains(&name) && crc;
                let packets = object.like(&["packets"]).filter(|packets| *packets > 0.0);
                let share = packets.map(|packets| number / packets);
                let is_bad = match share {
                    Some(share) => share >= ERROR_SHARE_MIN,
                    None => number >= ERRORS_MIN,
                };
                let of = packets.map_or(String::new(), |packets| format!(" in {packets} packets"));
                (
                    "errors",
                    (is_bad && !is_said).then(|| named(&format!("has {number} {label}{of}"))),
                )
            }
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
                let before = object.0.iter().find(|(name, _)| {
                    name.contains("prefix")
                        && ["expected", "previous", "baseline", "before"]
                            .iter()
                            .any(|w| name.contains(w))
                });
                let before = before.and_then(|(_, value)| self::number(value));
                let problem = match before {
                    _ if number == 0.0 => Some(format!(
                        "{} is established and sends no prefixes",
                        self.peer(object, location)
                    )),
                    Some(before)
                        if number < before * PREFIX_SHARE_MIN
                            || number * PREFIX_SHARE_MIN > before =>
                    {
                        Some(format!(
                            "{} sends {number} prefixes, {before} before",
                            self.peer(object, location)
                        ))
                    }
                    _ => None,
                };
                ("prefixes", problem)
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

    /// The neighbor that an address family belongs to.
    fn peer(&self, object: &Object<'_>, location: &Location) -> String {
        let name = if location.owner.is_empty() { object.name() } else { location.owner.clone() };
        format!("{} {name}", location.area())
    }

    fn power(
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
