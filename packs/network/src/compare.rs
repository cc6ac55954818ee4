//! Rules about members that must agree: two sides of a link, what is expected and what is there.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::findings::Reader;
use super::interpret::name_words;
use super::lexicon;
use super::object::{Location, Object, number};

/// Prefixes of the members of one side and of the other.
const SIDES: &[(&str, &str)] = &[
    ("local_", "remote_"),
    ("local_", "neighbor_"),
    ("local_", "peer_"),
    ("local_", "far_end_"),
    ("", "remote_"),
    ("", "neighbor_"),
    ("", "peer_"),
];

/// Objects of one side and of the other.
const SIDE_OBJECTS: &[(&str, &str)] = &[
    ("local", "remote"),
    ("local", "peer"),
    ("local", "neighbor"),
    ("near", "far"),
    ("near_end", "far_end"),
    ("a_end", "z_end"),
    ("a_end", "b_end"),
    ("side_a", "side_b"),
    ("a", "b"),
    ("a", "z"),
];

/// Members of which the two sides must have the same.
const MUST_AGREE: &[&str] = &[
    "mtu",
    "area",
    "area_id",
    "native_vlan",
    "allowed_vlans",
    "vlans",
    "vlan",
    "duplex",
    "speed",
    "hello_interval",
    "dead_interval",
    "hello",
    "dead",
    "hello_timer",
    "dead_timer",
    "network_type",
    "level",
    "authentication",
    "auth_type",
    "encapsulation",
    "root",
    "root_bridge",
    "timers",
];

/// Words of what should be, of what is, and of what was.
const INTENT: &[&str] = &["expected", "configured", "intended", "desired", "designed", "planned"];
const ACTUAL: &[&str] =
    &["actual", "current", "operational", "observed", "oper", "active", "discovered"];
const BEFORE: &[&str] = &["previous", "former"];

/// Words of numbers of which more than expected is no fault.
const COUNTS: &[&str] = &[
    "neighbor",
    "peer",
    "session",
    "member",
    "adjacency",
    "link",
    "interface",
    "port",
    "server",
    "route",
    "prefix",
    "path",
    "count",
    "total",
    "group",
];

/// Parts of names of numbers of which the first should not be below the second.
const HAS: &[&str] =
    &["established", "capable", "bundled", "active", "operational", "actual", "up"];
const SHOULD: &[&str] = &["configured", "expected", "total", "min"];

/// Counts of which a part is in use by design.
const PARTIAL: &[&str] = &["route", "path", "prefix", "memory", "byte", "entr", "user", "space"];

/// Whether a name says what should be.
pub(super) fn is_intent(name: &str) -> bool {
    name.split('_').any(|word| INTENT.contains(&word))
}

/// What a comparison shows: the attribute that a question can ask about.
fn attribute(stem: &str) -> &'static str {
    let of = lexicon::attributes(&name_words(stem));
    let known = ["mtu", "root", "vlans", "area", "timers", "duplex", "speed", "authentication"];
    let found = of.into_iter().find(|name| known.contains(name));
    match found {
        Some(name) => name,
        None if stem.contains("vlan") => "vlans",
        None if stem.contains("state") || stem.contains("status") => "state",
        None => "settings",
    }
}

impl Reader {
    pub(super) fn compare(
        &mut self,
        object: &Object<'_>,
        location: &Location,
        subjects: &[&'static str],
    ) {
        self.sides(object, location, subjects);
        self.intents(object, location, subjects);
        self.quorums(object, location, subjects);
        for (near, far) in SIDE_OBJECTS {
            let side = |name: &str| object.get(name)?.as_object();
            let (Some(one), Some(other)) = (side(near), side(far)) else { continue };
            let mut joined = Map::new();
            for (prefix, members) in [("local_", one), ("remote_", other)] {
                let named =
                    |(name, value): (&String, &Value)| (format!("{prefix}{name}"), value.clone());
                joined.extend(members.iter().map(named));
            }
            let owner = Location { owner: location.name(object), ..location.clone() };
            self.sides(&Object::of(&joined), &owner, subjects);
        }
    }

    fn sides(&mut self, object: &Object<'_>, location: &Location, subjects: &[&'static str]) {
        for (near, far) in SIDES {
            for what in MUST_AGREE {
                let one = object.get(&format!("{near}{what}"));
                let other = object.get(&format!("{far}{what}"));
                if let (Some(one), Some(other)) = (one, other) {
                    let names = (near.trim_end_matches('_'), far.trim_end_matches('_'));
                    let names = (if names.0.is_empty() { "local" } else { names.0 }, names.1);
                    self.same(what, names, (one, other), object, location, subjects);
                }
            }
        }
        self.targets(object, location, subjects);
    }

    /// The route targets that one side imports, and those that the other exports.
    fn targets(&mut self, object: &Object<'_>, location: &Location, subjects: &[&'static str]) {
        let side = |name: &str| {
            let is_far =
                ["remote", "peer", "neighbor", "far"].iter().any(|word| name.contains(word));
            let is_near = ["local", "near", "own"].iter().any(|word| name.contains(word));
            (is_far || is_near).then_some(is_far)
        };
        let of = |way: &str| {
            let all =
                object.0.iter().filter(|(name, _)| name.contains(way) && !name.contains("policy"));
            all.filter_map(|(name, value)| Some((side(name)?, elements(value)?)))
                .collect::<Vec<_>>()
        };
        for (importer, imported) in of("import") {
            for (_, exported) in
                of("export").into_iter().filter(|(exporter, _)| *exporter != importer)
            {
                if imported.is_disjoint(&exported) {
                    let (imported, exported) = (joined(&imported), joined(&exported));
                    let text = format!("imports {imported}, the other side exports {exported}");
                    self.wrong(subjects, format!("{} {text}", location.words(object)));
                } else {
                    self.fine(subjects, "targets", None, &location.name(object));
                }
            }
        }
    }

    /// What is expected or was before, and what is there.
    fn intents(&mut self, object: &Object<'_>, location: &Location, subjects: &[&'static str]) {
        let is_of = |word: &str, list: &[&str]| list.contains(&word);
        for (name, should) in &object.0 {
            let words: Vec<&str> = name.split('_').collect();
            let intent = words.iter().find(|word| is_of(word, INTENT) || is_of(word, BEFORE));
            let Some(intent) = intent.filter(|_| words.len() > 1 && !should.is_null()) else {
                continue;
            };
            let stem: Vec<&str> = words.iter().copied().filter(|word| word != intent).collect();
            let is_counterpart = |other: &str| {
                let other: Vec<&str> =
                    other.split('_').filter(|word| !is_of(word, ACTUAL)).collect();
                other == stem
            };
            let other = object.0.iter().find(|(other, _)| other != name && is_counterpart(other));
            let stem = stem.join("_");
            match (should, other) {
                (Value::Array(names), other) if !is_of(intent, BEFORE) => {
                    let is_of_objects = other.is_none_or(|(_, other)| {
                        other.as_array().is_some_and(|items| items.iter().all(Value::is_object))
                            || other.is_object()
                    });
                    if is_of_objects {
                        self.expect(&stem, names, subjects);
                    } else if let Some((_, other)) = other {
                        self.same(
                            &stem,
                            (intent, "actual"),
                            (should, other),
                            object,
                            location,
                            subjects,
                        );
                    }
                }
                (_, Some((_, Value::Array(items)))) if number(should).is_some() => {
                    self.count(
                        items.len(),
                        number(should).unwrap_or_default(),
                        object,
                        location,
                        subjects,
                    );
                }
                (_, Some((_, has))) if !is_of(intent, BEFORE) || number(should).is_none() => {
                    self.same(&stem, (intent, "actual"), (should, has), object, location, subjects);
                }
                _ => {}
            }
        }
    }

    /// Remembers the names that a list of expected objects has.
    fn expect(&mut self, stem: &str, names: &[Value], subjects: &[&'static str]) {
        let mut about = lexicon::subjects(&name_words(stem));
        about.retain(|subject| *subject != "interface" || subjects.contains(subject));
        if about.is_empty() {
            about.clone_from(&self.own);
        }
        for item in names {
            let name = match item {
                Value::String(name) => name.clone(),
                Value::Object(members) => Object::of(members).name(),
                _ => continue,
            };
            self.read.expected.extend(about.iter().map(|subject| (*subject, name.clone())));
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a list that fits into memory")]
    fn count(
        &mut self,
        has: usize,
        should: f64,
        object: &Object<'_>,
        location: &Location,
        subjects: &[&'static str],
    ) {
        if (has as f64) < should {
            let text = format!("has only {has} of {should}: redundancy is lost");
            self.wrong(subjects, format!("{} {text}", location.words(object)));
        } else {
            self.fine(subjects, "redundancy", Some(should), &location.name(object));
        }
    }

    fn same(
        &mut self,
        what: &str,
        (near, far): (&str, &str),
        (one, other): (&Value, &Value),
        object: &Object<'_>,
        location: &Location,
        subjects: &[&'static str],
    ) {
        let is_open = |value: &Value| value.is_null() || value == "auto" || value == "";
        if is_open(one) || is_open(other) || one.is_object() || other.is_object() {
            return;
        }
        if let (Some(should), Some(has), "actual") = (number(one), number(other), far) {
            let counts = name_words(what);
            let is_count = counts.iter().any(|word| COUNTS.contains(&word.as_str()));
            if what.contains("prefix") || is_count && has >= should {
                return;
            }
        }
        if is_alike(what, one, other) {
            self.fine(subjects, attribute(what), None, &location.name(object));
        } else {
            let label = what.to_uppercase().replace('_', " ");
            let text = format!("{label} mismatch: {near} {one}, {far} {other}");
            self.wrong(subjects, format!("{} {text}", location.words(object)));
        }
    }

    /// Numbers such as `established_peers` and `configured_peers`.
    fn quorums(&mut self, object: &Object<'_>, location: &Location, subjects: &[&'static str]) {
        let rest = |name: &str, part: &str| {
            let at = if name.starts_with(part) { 0 } else { name.len().checked_sub(part.len())? };
            let is_part = name.get(at..at + part.len()) == Some(part);
            is_part.then(|| name.replacen(part, "", 1).replace('_', ""))
        };
        let of = |parts: &[&str]| -> Vec<(String, f64)> {
            let all = object.0.iter().filter_map(|(name, value)| Some((name, number(value)?)));
            let rests = all.filter_map(|(name, value)| {
                Some((parts.iter().find_map(|part| rest(name, part))?, value))
            });
            rests.filter(|(rest, _)| !PARTIAL.iter().any(|part| rest.contains(part))).collect()
        };
        let should = of(SHOULD);
        for (what, has) in of(HAS) {
            let Some((_, should)) = should.iter().find(|(known, _)| *known == what) else {
                continue;
            };
            if has < *should {
                let text = format!("has only {has} of {should}: redundancy is lost");
                self.wrong(subjects, format!("{} {text}", location.words(object)));
            } else {
                self.fine(subjects, "redundancy", Some(has), &location.name(object));
            }
        }
    }
}

pub(super) fn is_alike(what: &str, one: &Value, other: &Value) -> bool {
    let vlans = |value: &Value| if what.contains("vlan") { vlans(value) } else { None };
    if let (Some(one), Some(other)) = (vlans(one), vlans(other)) {
        return one == other;
    }
    match (elements(one), elements(other)) {
        (Some(one), Some(other)) => one == other,
        _ => text(one) == text(other),
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned()).to_lowercase()
}

/// The texts of a list.
fn elements(value: &Value) -> Option<BTreeSet<String>> {
    Some(value.as_array()?.iter().map(text).collect())
}

fn joined(all: &BTreeSet<String>) -> String {
    all.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// VLANs such as `10-12,20`.
pub(super) fn vlans(value: &Value) -> Option<BTreeSet<u16>> {
    let mut all = BTreeSet::new();
    let parts = match value {
        Value::Array(items) => items.iter().map(text).collect(),
        _ => vec![text(value)],
    };
    for part in parts.iter().flat_map(|part| part.split(',')) {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        all.extend(first.parse::<u16>().ok()?..=last.parse::<u16>().ok()?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn vlans_are_compared_as_sets() {
        assert!(is_alike("allowed_vlans", &json!("10-12,20"), &json!("20,10,11,12")));
        assert!(is_alike("allowed_vlans", &json!([10, 20]), &json!("10,20")));
        assert!(!is_alike("allowed_vlans", &json!("10,20"), &json!("10,20,30")));
        assert!(!is_alike("allowed_vlans", &json!("10,20"), &json!("all")));
    }
}
