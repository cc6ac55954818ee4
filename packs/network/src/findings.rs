//! Reads a tool's result by rules over its JSON, for any tool: what is wrong, what is in order, and
//! which parts no rule knows.
//!
//! A bad state is found wherever it is. What is in order counts only under a name that a rule knows.
//! Everything else is reported as unknown, so that nobody takes silence for health.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::durations::date;
use super::facts::{Fine, Read, Wrong};
use super::fields::{is_identifier, shows_state};
use super::interpret::{device_of, name_words};
use super::object::{Location, Object, number, plain, snake};
use super::{lexicon, printed, tables, vocabulary};

/// Maximum depth and number of objects read of one answer.
pub(super) const DEPTH_MAX: usize = 24;
const OBJECTS_MAX: usize = 20_000;

/// Maximum findings, facts in order, and unknown parts per answer.
const FINDINGS_MAX: usize = 20;
const FINE_MAX: usize = 5_000;
const UNKNOWN_MAX: usize = 8;

/// Maximum names whose subjects are kept; those of more are found again.
const KNOWN_MAX: usize = 1_000;

/// Longest finding, in characters, since findings quote the server's text.
const TEXT_CHARS_MAX: usize = 240;

/// Subjects whose state is that of a neighbor or a part, which has a name.
const OF_PARTS: &[&str] = &[
    "bgp",
    "ospf",
    "isis",
    "eigrp",
    "rip",
    "ldp",
    "bfd",
    "interface",
    "lag",
    "fhrp",
    "tunnel",
    "ipsec",
    "overlay",
    "lldp",
    "vlan",
];

/// Protocols of which an interface's state proves nothing.
pub(super) const OF_NEIGHBORS: &[&str] =
    &["bgp", "ospf", "isis", "eigrp", "rip", "ldp", "bfd", "multicast"];

/// Names of lists whose emptiness says that there is none.
const COLLECTIONS: &[&str] = &[
    "neighbor",
    "neighbour",
    "peer",
    "session",
    "adjacency",
    "entry",
    "interface",
    "port",
    "member",
    "group",
    "item",
    "vrf",
    "vlan",
    "server",
    "sensor",
    "link",
    "trunk",
    "list",
    "instance",
    "route",
    "rule",
];

/// Names of the time at which an answer was taken, and of its age in seconds.
const TAKEN: &[&str] = &[
    "collected_at",
    "taken_at",
    "retrieved_at",
    "fetched_at",
    "cached_at",
    "captured_at",
    "polled_at",
    "last_polled",
    "as_of",
    "generated_at",
    "snapshot_time",
    "timestamp",
    "last_updated",
    "updated_at",
];
const AGES: &[&str] = &["age_seconds", "cache_age_seconds", "cache_age_s", "age_s", "cache_age"];

/// An older answer says nothing about now, in seconds.
const AGE_S_MAX: f64 = 86_400.0;

/// Reads the answer of a tool about a device.
pub(super) fn read(tool: &str, arguments: &Value, content: &Value) -> Read {
    let parsed = content.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let content = parsed.as_ref().unwrap_or(content);
    let mut said = name_words(tool);
    said.extend(arguments.get("protocol").and_then(Value::as_str).into_iter().flat_map(name_words));
    let tool = vocabulary::answered(lexicon::subjects(&said), content);
    let mut reader = Reader {
        read: Read { tokens: vec![Vec::new()], ..Read::default() },
        objects: 0,
        own: tool.clone(),
        tool,
        known: BTreeMap::new(),
        device: device_of(arguments).unwrap_or_default().to_lowercase(),
        is_of_another: false,
    };
    let content = plain(content, 0);
    match &content {
        Value::String(text) => reader.text(text),
        _ => reader.value(&content, &Location::default()),
    }
    let shown: Vec<(&str, &str)> =
        reader.read.named.iter().map(|(subject, name)| (*subject, name.as_str())).collect();
    for (subject, name) in missing(&reader.read.expected, &shown, &reader.read.absent) {
        reader.wrong(&[subject], format!("{subject}: {name} is expected and missing"));
    }
    reader.about(arguments, &content);
    if !content.is_string() {
        reader.read.content = content;
    }
    reader.read.device = reader.device;
    // What another device shows says nothing about this one.
    if reader.is_of_another {
        let unknown = reader.read.unknown;
        return Read {
            unknown,
            device: reader.read.device,
            tokens: vec![Vec::new()],
            ..Read::default()
        };
    }
    reader.read
}

/// The expected objects that are not shown, of the subjects that are.
pub(super) fn missing(
    expected: &[(&'static str, String)],
    shown: &[(&str, &str)],
    absent: &[&str],
) -> Vec<(&'static str, String)> {
    let is_shown = |subject: &str| {
        absent.contains(&subject) || shown.iter().any(|(known, _)| *known == subject)
    };
    let has = |subject: &str, name: &str| {
        shown.iter().any(|(known, shown)| *known == subject && shown.eq_ignore_ascii_case(name))
    };
    let is_missing =
        |(subject, name): &&(&'static str, String)| is_shown(subject) && !has(subject, name);
    expected.iter().filter(is_missing).cloned().collect()
}

pub(super) struct Reader {
    pub read: Read,
    objects: usize,
    /// The subjects that the tool's name and arguments say.
    tool: Vec<&'static str>,
    /// The subjects that the current object's good state proves something about.
    pub own: Vec<&'static str>,
    /// The subjects of names that were read before.
    known: BTreeMap<String, Vec<&'static str>>,
    /// The device of the call.
    device: String,
    /// Whether the answer is about another device.
    is_of_another: bool,
}

impl Reader {
    pub(super) fn wrong(&mut self, subjects: &[&'static str], text: String) {
        let text: String = text.chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect();
        let is_new = self.read.wrong.iter().all(|known| known.text != text);
        if is_new && self.read.wrong.len() < FINDINGS_MAX {
            self.read.wrong.push(Wrong { subjects: subjects.to_vec(), text });
        }
    }

    /// Something in order, of the current object's own subjects. A state proves nothing without a name.
    pub(super) fn fine(
        &mut self,
        subjects: &[&'static str],
        attribute: &'static str,
        number: Option<f64>,
        name: &str,
    ) {
        let is_named = !name.is_empty() && name.to_lowercase() != self.device;
        let proves = |subject: &&&'static str| {
            (self.own.contains(*subject) || ["log", "system"].contains(*subject))
                && (is_named || attribute != "state" || !OF_PARTS.contains(*subject))
        };
        let subjects: Vec<&'static str> = subjects.iter().filter(proves).copied().collect();
        if !subjects.is_empty() && self.read.fine.len() < FINE_MAX {
            let (name, object) = (name.to_owned(), self.read.tokens.len() - 1);
            self.read.fine.push(Fine { subjects, attribute, number, name, object });
        }
    }

    pub(super) fn unknown(&mut self, what: String) {
        let what: String = what.chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect();
        if !self.read.unknown.contains(&what) && self.read.unknown.len() < UNKNOWN_MAX {
            self.read.unknown.push(what);
        }
    }

    /// Checks that the answer is about the device of the call.
    fn about(&mut self, arguments: &Value, content: &Value) {
        // A `router` may also be a routing instance, as SR OS has "Base".
        let names = ["device_name", "device", "hostname", "host", "node"];
        let told = names.iter().find_map(|name| content.get(*name)?.as_str());
        if let Some(told) = told.filter(|_| device_of(arguments).is_some()) {
            self.is_of(&told.to_lowercase());
        }
        self.read.taken_at =
            TAKEN.iter().find_map(|name| content.get(*name)?.as_str().map(str::to_owned));
        let age = AGES.iter().find_map(|name| number(content.get(*name)?));
        if let Some(age) = age.filter(|age| *age > AGE_S_MAX) {
            self.unknown(format!("the answer is {} hours old", (age / 3_600.0).floor()));
        }
    }

    /// Checks that this is the name of the device that was asked.
    fn is_of(&mut self, told: &str) {
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        let asked = &self.device;
        // A prompt may end with the name of the routing engine.
        let told_short = short(told);
        let bare = told_short.trim_end_matches("-re0").trim_end_matches("-re1");
        if !asked.is_empty() && asked != told && short(asked) != told_short && short(asked) != bare
        {
            let text = format!("the answer is about {told}, not {asked}");
            self.is_of_another = true;
            self.read.unknown.insert(0, text);
        }
    }

    /// What a device printed: tables are read; of other lines only what is bad is judged.
    fn text(&mut self, text: &str) {
        let subjects = self.tool.clone();
        if subjects == ["log"] {
            return text.lines().for_each(|line| match printed::prompt(line) {
                Some(host) => self.is_of(&host),
                None => self.log_line(line),
            });
        }
        let printed = printed::printed(text);
        for line in tables::bad(&printed.lines) {
            self.wrong(&subjects, format!("shown: {line}"));
        }
        self.read.content =
            printed.shown.iter().map(|(_, shown)| shown.clone()).collect::<Vec<_>>().into();
        for (subject, shown) in &printed.shown {
            let path = Some(*subject).filter(|subject| !subject.is_empty());
            let path = path.into_iter().map(str::to_owned).collect();
            self.value(shown, &Location { path, ..Location::default() });
        }
        for host in &printed.hosts {
            self.is_of(host);
        }
        printed.doubts.into_iter().for_each(|doubt| self.unknown(doubt));
        let first = printed.lines.first().map_or("", String::as_str);
        if !first.is_empty() || text.trim().is_empty() {
            self.unknown(format!("an answer in prose: \"{first}\""));
        }
    }

    /// The subjects that a member's name says.
    pub(super) fn of_name(&mut self, name: &str) -> Vec<&'static str> {
        if let Some(found) = self.known.get(name) {
            return found.clone();
        }
        let is_identity = name.ends_with("_id") || name.ends_with("_name");
        let found = if is_identity { Vec::new() } else { lexicon::subjects(&name_words(name)) };
        if self.known.len() < KNOWN_MAX {
            self.known.insert(name.to_owned(), found.clone());
        }
        found
    }

    /// The subjects of an object: those of its path, or the tool's.
    fn subjects(&mut self, object: &Object<'_>, location: &Location) -> Vec<&'static str> {
        let kind = ["protocol", "type", "kind"].iter().find_map(|name| object.get(name)?.as_str());
        let kind = kind.filter(|kind| kind.len() < 24);
        let names = location.path.iter().map(String::as_str).chain(kind);
        let mut found: Vec<&'static str> = names.flat_map(|name| self.of_name(name)).collect();
        // A VRF or an interface around an object does not say what the tool reads.
        if found.iter().all(|subject| ["vpn", "interface"].contains(subject)) {
            found.extend(&self.tool);
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Those of its subjects that a good state of the object proves something about: BFD below a BGP neighbor
    /// proves nothing about BGP, nor does an interface below OSPF prove anything about OSPF.
    fn proven(&mut self, subjects: &[&'static str], location: &Location) -> Vec<&'static str> {
        let is_special = |subject: &&'static str| !["vpn", "interface"].contains(subject);
        let path: Vec<Vec<&'static str>> =
            location.path.iter().map(|name| self.of_name(name)).collect();
        let is_interface = path.last().is_some_and(|of| of == &["interface"]);
        let inner: Vec<&'static str> = path
            .into_iter()
            .rev()
            .map(|of| of.into_iter().filter(is_special).collect::<Vec<_>>())
            .find(|found| !found.is_empty())
            .unwrap_or_else(|| subjects.iter().copied().filter(is_special).collect());
        let is_kept = |subject: &&'static str| {
            if is_interface && OF_NEIGHBORS.contains(subject) {
                return false;
            }
            !is_special(subject) || inner.contains(subject)
        };
        subjects.iter().copied().filter(is_kept).collect()
    }

    fn value(&mut self, value: &Value, location: &Location) {
        if location.path.len() >= DEPTH_MAX {
            return self.unknown("an answer that is nested too deeply".to_owned());
        }
        match value {
            Value::Array(items) => {
                self.alike(items.iter(), location);
                items.iter().for_each(|item| self.value(item, location));
            }
            Value::Object(members) => {
                self.objects += 1;
                if self.objects <= OBJECTS_MAX {
                    self.object(members, location);
                } else {
                    self.unknown("an answer with too many objects".to_owned());
                }
            }
            Value::Null => {}
            Value::String(line) if self.is_log(location) => self.log_line(line),
            leaf => {
                let name = location.path.last().map_or("answer", String::as_str);
                let object = Object(Vec::new());
                let subjects = self.subjects(&object, location);
                self.own = self.proven(&subjects, location);
                self.leaf(name, leaf, &object, location, &subjects);
            }
        }
    }

    /// Whether a list here has the lines of a log.
    fn is_log(&mut self, location: &Location) -> bool {
        let lists = ["log", "logs", "lines", "entries", "messages", "output", "syslog"];
        self.tool == ["log"]
            && location.path.last().is_none_or(|name| lists.contains(&name.as_str()))
    }

    fn object(&mut self, members: &Map<String, Value>, location: &Location) {
        let object = Object::of(members);
        let subjects = self.subjects(&object, location);
        let own = self.proven(&subjects, location);
        let times =
            object.0.iter().filter(|(name, _)| TAKEN.contains(&name.as_str()) || name == "time");
        let times = times.filter_map(|(_, value)| date(value.as_str()?));
        self.read.newest = times.chain(self.read.newest).reduce(f64::max);
        self.own.clone_from(&own);
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
        self.shown(&object, location);
        if subjects.contains(&"lldp")
            && location.path.last().is_some_and(|name| name.starts_with("neighbor"))
        {
            self.fine(&subjects, "state", None, &object.name());
        }
        let before = self.read.wrong.len();
        self.pairs(&object, location, &subjects);
        let leaves = object.0.iter().filter(|(_, value)| !value.is_array() && !value.is_object());
        for (name, value) in leaves {
            self.leaf(name, value, &object, location, &subjects);
        }
        let is_vrf = location.path.last().is_some_and(|member| member == "vrfs");
        let name = location.name(&object);
        let inner = Location {
            path: location.path.clone(),
            vrf: if is_vrf { Some(object.name()) } else { location.vrf.clone() },
            is_down: self.read.wrong.len() > before || object.is_switched_off(),
            is_doubtful: object.is_doubtful(&subjects),
            owner: name,
        };
        let by_name = members.iter().filter(|(name, _)| is_identifier(name));
        self.alike(by_name.map(|(_, value)| value), &inner);
        for ((raw, value), (name, _)) in members.iter().zip(&object.0) {
            self.own.clone_from(&own);
            self.member(raw, name, value, &object, &inner, location, &subjects);
        }
    }

    /// Of objects in one list, either all or none show a state.
    fn alike<'a>(&mut self, items: impl Iterator<Item = &'a Value>, location: &Location) {
        let of = |members: &Map<String, Value>| {
            let shows = |(name, value): (&String, &Value)| {
                shows_state(&snake(name))
                    || value
                        .as_object()
                        .is_some_and(|inner| inner.keys().any(|name| shows_state(&snake(name))))
            };
            members.iter().any(shows)
        };
        let (with, without): (Vec<_>, Vec<_>) =
            items.filter_map(Value::as_object).partition(|members| of(members));
        if let (false, Some(silent)) = (with.is_empty(), without.first()) {
            let what = location.words(&Object::of(silent));
            self.unknown(format!("{what} shows no state; others beside it do"));
        }
    }

    #[expect(clippy::too_many_arguments, reason = "where the member is, and whose it is")]
    fn member(
        &mut self,
        raw: &str,
        name: &str,
        value: &Value,
        object: &Object<'_>,
        inner: &Location,
        location: &Location,
        subjects: &[&'static str],
    ) {
        let mut inner = inner.clone();
        match value {
            // Members such as counters belong to their parent object.
            Value::Object(members) if name == "counters" => {
                let mut joined = members.clone();
                joined.entry("name").or_insert_with(|| location.name(object).into());
                return self.object(&joined, &inner);
            }
            // An object of objects by name.
            Value::Object(_) if is_identifier(raw) => {
                raw.clone_into(&mut inner.owner);
                return self.value(value, &inner);
            }
            Value::Object(members) if members.is_empty() => {
                self.list(name, &[], object, location, subjects);
            }
            Value::Array(items) => self.list(name, items, object, location, subjects),
            Value::Object(_) => {}
            _ => return,
        }
        inner.path.push(name.to_owned());
        self.value(value, &inner);
    }

    /// Keeps what an object shows of itself.
    fn shown(&mut self, object: &Object<'_>, location: &Location) {
        let mut tokens = object.tokens();
        tokens.push(location.owner.to_lowercase());
        tokens.extend(location.vrf.as_ref().map(|vrf| vrf.to_lowercase()));
        let is_expectation =
            location.path.last().is_some_and(|name| super::compare::is_intent(name));
        let name = location.name(object);
        self.read.targets.extend(object.targets(&name));
        if !name.is_empty() && !is_expectation {
            let names = [name].into_iter().chain(object.identities());
            let all =
                names.flat_map(|name| self.own.iter().map(move |subject| (*subject, name.clone())));
            self.read.named.extend(all);
        }
        self.read.tokens.push(tokens);
    }

    /// Whether the emptiness of a list with this name says that there is none.
    pub(super) fn is_collection(name: &str) -> bool {
        name_words(name).iter().any(|word| COLLECTIONS.contains(&word.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_of_any_depth_and_length_ends() {
        let read = |content: &Value| read("get_interfaces", &json!({}), content);
        let mut deep = json!({"state": "up"});
        for _ in 0..60 {
            deep = json!({"in": deep});
        }
        assert_eq!(read(&deep).unknown, ["an answer that is nested too deeply"]);
        let wide: Vec<Value> =
            (0..5_000).map(|n| json!({"name": n.to_string(), "state": "down"})).collect();
        assert_eq!(read(&json!(wide)).wrong.len(), FINDINGS_MAX);
        let long = json!({"state": "down", "name": "x".repeat(10_000)});
        assert_eq!(read(&long).wrong[0].text.chars().count(), TEXT_CHARS_MAX);
        let many: Vec<Value> = (0..=OBJECTS_MAX).map(|_| json!({"state": "up"})).collect();
        assert_eq!(read(&json!(many)).unknown, ["an answer with too many objects"]);
    }

    #[test]
    fn an_answer_about_another_device_is_said() {
        let read = read("get_ospf", &json!({"device_name": "r1"}), &json!({"hostname": "r2"}));
        assert_eq!(read.unknown, ["the answer is about r2, not r1"]);
        let read =
            super::read("get_ospf", &json!({"host": "r1"}), &json!({"host": "r1.example.net"}));
        assert!(read.unknown.is_empty());
    }

    /// Answers that are healthy but for one member.
    #[test]
    fn a_member_that_contradicts_a_good_state_is_not_judged() {
        let neighbor = |name: &str, value: Value| {
            let mut one = json!({"neighbor": "10.0.0.2", "remote_as": 65000, "state": "Established",
                "uptime": "2w3d", "prefixes_received": 900});
            one[name] = value;
            read("get_bgp_neighbors", &json!({}), &json!({ "neighbors": [one] }))
        };
        assert_eq!(neighbor("remote_as", json!(65000)).unknown, Vec::<String>::new());
        for (name, value) in [
            ("state", json!("Estab?")),
            ("prefixes_received", Value::Null),
            ("prefixes_received", json!(-1)),
            ("admin_status", json!("down")),
            ("output_queue", json!(9_000)),
            ("reason", json!("notconnect")),
        ] {
            let read = neighbor(name, value.clone());
            assert!(!read.unknown.is_empty(), "{name} {value}: {read:?}");
        }
    }
}
