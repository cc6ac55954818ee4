//! Rules about members that belong together: two sides, a number and its bound, lists of problems,
//! rules of access lists.

use serde_json::Value;

use super::findings::Reader;
use super::interpret::name_words;
use super::lexicon;
use super::object::{Location, Object};

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

impl Reader {
    /// A list that is empty, or of which each element is a problem.
    pub(super) fn list(
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

    /// Members that belong together.
    pub(super) fn pairs(
        &mut self,
        object: &Object<'_>,
        location: &Location,
        subjects: &[&'static str],
    ) {
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
    pub(super) fn access_rule(
        &mut self,
        object: &Object<'_>,
        location: &Location,
        subjects: &[&'static str],
    ) {
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
}
