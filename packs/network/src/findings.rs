//! Detects problems in a tool's result: rules over its JSON, for any tool.
//!
//! Routers and their tools use similar names: a state, a status, an error counter, a utilization, a
//! limit, a log entry with a severity. The rules match such names and their neighbours.

use serde_json::{Map, Value};

/// Minimum CRC errors that count as a problem. A handful since the last restart is normal.
const ERRORS_MIN: f64 = 100.0;

/// Minimum transitions that count as flapping.
const TRANSITIONS_MIN: f64 = 10.0;

/// Minimum utilization that counts as exhausted, in percent.
const UTILIZATION_PERCENT_MIN: f64 = 90.0;

/// Highest severity number that counts as a warning or worse.
///
/// Source: RFC 5424, section 6.2.1.
const SEVERITY_MAX: f64 = 4.0;

/// Maximum depth and number of objects read of one answer.
const DEPTH_MAX: usize = 24;
const OBJECTS_MAX: usize = 20_000;

/// Maximum findings per answer.
const FINDINGS_MAX: usize = 20;

/// Longest finding, in characters, since findings quote the server's text.
const TEXT_CHARS_MAX: usize = 240;

/// States that indicate a problem. `active` does so for BGP only.
const BAD_STATES: &[&str] = &[
    "down",
    "idle",
    "connect",
    "opensent",
    "openconfirm",
    "init",
    "exstart",
    "exchange",
    "loading",
    "attempt",
    "nonexistent",
    "non_existent",
    "lower_layer_down",
    "not_present",
    "err_disabled",
    "error",
    "failed",
    "failure",
    "conflict",
    "flapping",
    "unreachable",
    "degraded",
    "missing",
    "dead",
    "retrying",
    "severe",
    "critical",
];

/// Words that make a log entry relevant at any severity.
const BAD_WORDS: &[&str] =
    &[" down", "flap", "mismatch", "exceeded", "expired", "conflict", "failed", "unreachable"];

/// Members that these rules can judge.
const RECOGNISED: &[&str] = &[
    "neighbors",
    "interfaces",
    "sessions",
    "vrfs",
    "entries",
    "forwarding",
    "adjacencies",
    "logs",
];

/// Members that name an object, the most specific first.
const NAMES: &[&str] = &[
    "neighbor_name",
    "neighbor",
    "peer",
    "originator",
    "destination",
    "name",
    "interface",
    "route_target",
    "prefix",
    "neighbor_address",
    "peer_address",
    "id",
];

/// Members that give a reason.
const REASONS: &[&str] =
    &["last_error", "reason", "error", "busiest_process", "conflicts_with", "down_reason"];

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
];

#[derive(Debug, Default)]
pub(super) struct Read {
    pub findings: Vec<String>,
    /// Whether the answer has anything that the rules can judge.
    pub is_recognised: bool,
}

pub(super) fn read(content: &Value) -> Read {
    let parsed = content.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let mut reader = Reader { read: Read::default(), objects: 0 };
    reader.value(parsed.as_ref().unwrap_or(content), &Location::default());
    reader.read
}

/// A position in an answer.
#[derive(Clone, Debug, Default)]
struct Location {
    /// The path of members.
    path: Vec<String>,
    vrf: Option<String>,
}

impl Location {
    /// The display name of the objects here.
    fn area(&self) -> &str {
        let known = |member: &String| AREAS.iter().find(|(name, _)| name == member);
        match self.path.iter().rev().find_map(known) {
            Some((_, words)) => words,
            None => self.path.last().map_or("device", String::as_str),
        }
    }

    fn is_below(&self, member: &str) -> bool {
        self.path.iter().any(|passed| passed.contains(member))
    }

    /// Display name of an object here, with its VRF.
    fn words(&self, object: &Object<'_>) -> String {
        let area = self.area();
        let name = object.name();
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
        let usual = |name: &String| name.to_lowercase().replace(['-', ' '], "_");
        Self(members.iter().map(|(name, value)| (usual(name), value)).collect())
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.as_f64()
    }

    fn name(&self) -> String {
        let texts = NAMES.iter().filter_map(|name| self.get(name)?.as_str());
        texts.map(str::to_owned).next().unwrap_or_default()
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

    /// Whether the object is administratively down.
    fn is_switched_off(&self) -> bool {
        let admin = ["admin_status", "admin_state"].into_iter().find_map(|name| self.get(name));
        admin.and_then(Value::as_str).is_some_and(|state| {
            ["down", "disabled", "shutdown"].contains(&state.to_lowercase().as_str())
        })
    }
}

struct Reader {
    read: Read,
    objects: usize,
}

impl Reader {
    fn value(&mut self, value: &Value, location: &Location) {
        match value {
            Value::Array(items) if location.path.len() < DEPTH_MAX => {
                items.iter().for_each(|item| self.value(item, location));
            }
            Value::Object(members) if location.path.len() < DEPTH_MAX => {
                self.objects += 1;
                if self.objects <= OBJECTS_MAX {
                    self.object(members, location);
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, members: &Map<String, Value>, location: &Location) {
        let object = Object::of(members);
        self.read.is_recognised |= object
            .0
            .iter()
            .any(|(name, value)| RECOGNISED.contains(&name.as_str()) && value.is_array());
        // A disabled feature is no problem.
        self.read.is_recognised |= object.get("configured") == Some(&Value::Bool(false));
        for finding in judge(&object, location, &mut self.read.is_recognised) {
            let finding: String =
                finding.chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect();
            let is_new = !self.read.findings.contains(&finding);
            if is_new && self.read.findings.len() < FINDINGS_MAX {
                self.read.findings.push(finding);
            }
        }
        let is_vrf = location.path.last().is_some_and(|member| member == "vrfs");
        let vrf = if is_vrf { Some(object.name()) } else { location.vrf.clone() };
        for (name, value) in &object.0 {
            let mut inner = Location { path: location.path.clone(), vrf: vrf.clone() };
            inner.path.push(name.clone());
            // Members such as counters belong to their parent object.
            match value {
                Value::Object(members) if name == "counters" => {
                    let mut joined = members.clone();
                    joined.entry("name").or_insert_with(|| object.name().into());
                    inner.path.pop();
                    self.object(&joined, &inner);
                }
                _ => self.value(value, &inner),
            }
        }
    }
}

/// The problems of one object.
fn judge(object: &Object<'_>, location: &Location, is_recognised: &mut bool) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(message) = object.get("message").and_then(Value::as_str)
        && (object.get("severity").is_some() || object.get("timestamp").is_some())
    {
        *is_recognised = true;
        return log_entry(object, message).into_iter().collect();
    }
    for (name, value) in &object.0 {
        let finding = if let Some(state) = value.as_str() {
            state_of(name, state, object, location, is_recognised)
        } else {
            value.as_f64().and_then(|number| figure(name, number, object, location, is_recognised))
        };
        found.extend(finding);
    }
    if let (Some(used), Some(limit)) = (object.number("used"), object.number("limit")) {
        *is_recognised = true;
        if limit > 0.0 && used >= limit {
            found.push(format!("{} limit of {limit} reached", location.words(object)));
        }
    }
    found
}

fn log_entry(object: &Object<'_>, message: &str) -> Option<String> {
    let is_severe = object.number("severity").is_some_and(|severity| severity <= SEVERITY_MAX);
    let small = message.to_lowercase();
    let is_bad = is_severe || BAD_WORDS.iter().any(|word| small.contains(word));
    let mnemonic = object.get("mnemonic").and_then(Value::as_str).unwrap_or("message");
    is_bad.then(|| format!("logged: {mnemonic}: {message}"))
}

fn state_of(
    name: &str,
    state: &str,
    object: &Object<'_>,
    location: &Location,
    is_recognised: &mut bool,
) -> Option<String> {
    if name == "outgoing_label" {
        *is_recognised = true;
        let is_missing =
            ["unlabelled", "unlabeled", "no label"].contains(&state.to_lowercase().as_str());
        return is_missing.then(|| format!("{} has no label", location.words(object)));
    }
    let is_state = name.ends_with("state") || name.ends_with("status");
    if !is_state || name.starts_with("admin") {
        return None;
    }
    *is_recognised = true;
    let usual = state.to_lowercase().replace(['-', ' '], "_");
    let is_bgp = location.is_below("bgp");
    let is_bad = BAD_STATES.contains(&usual.as_str()) || (is_bgp && usual == "active");
    (is_bad && !object.is_switched_off())
        .then(|| format!("{} is {state}{}", location.words(object), object.reason()))
}

fn figure(
    name: &str,
    number: f64,
    object: &Object<'_>,
    location: &Location,
    is_recognised: &mut bool,
) -> Option<String> {
    let (is_known, is_bad, words) = match name {
        // CRC errors also count as input errors; report them once.
        "crc_errors" | "fcs_errors" => {
            (true, number >= ERRORS_MIN, format!("has {number} CRC errors"))
        }
        "input_errors" | "in_errors" => {
            let is_said = object.number("crc_errors").is_some_and(|crc| crc >= ERRORS_MIN);
            (true, number >= ERRORS_MIN && !is_said, format!("has {number} input errors"))
        }
        "carrier_transitions" | "flaps" | "flap_count" => {
            (true, number >= TRANSITIONS_MIN, format!("flaps: {number} transitions"))
        }
        "utilization_percent" | "utilization" | "used_percent" => {
            (true, number >= UTILIZATION_PERCENT_MIN, format!("is {number}% used"))
        }
        "matching_routes" => (true, number == 0.0, "matches no route".to_owned()),
        _ => (false, false, String::new()),
    };
    *is_recognised |= is_known;
    is_bad.then(|| format!("{} {words}{}", location.words(object), object.reason()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(content: Value, expected: &[&str]) {
        let read = read(&content);
        assert_eq!(read.findings, expected, "{content}");
        assert!(read.is_recognised, "{content}");
    }

    #[test]
    fn states_are_judged_where_they_stand() {
        check(
            json!({"bgp": {"neighbors": [
                {"neighbor_name": "rr1", "session_state": "ESTABLISHED"},
                {"neighbor_name": "rr2", "session_state": "Active"},
                {"neighbor_address": "10.0.0.9", "session-state": "IDLE", "last_error": "hold timer expired"},
            ]}}),
            &["BGP neighbor rr2 is Active", "BGP neighbor 10.0.0.9 is IDLE (hold timer expired)"],
        );
        check(
            json!({"interfaces": [
                {"name": "a", "admin_status": "DOWN", "oper_status": "DOWN"},
                {"name": "b", "admin_status": "UP", "oper-status": "DOWN", "state": "active"},
            ]}),
            &["interface b is DOWN"],
        );
    }

    #[test]
    fn counters_limits_and_utilization_are_judged_by_value() {
        check(
            json!({"interfaces": [
                {"name": "a", "counters": {"crc_errors": 500, "input_errors": 500, "carrier_transitions": 1}},
                {"name": "b", "counters": {"crc_errors": 3, "carrier_transitions": 40}},
            ]}),
            &["interface a has 500 CRC errors", "interface b flaps: 40 transitions"],
        );
        check(
            json!({"cpu": {"utilization_percent": 98, "busiest_process": "bgp"}, "memory": {"utilization_percent": 40}}),
            &["CPU is 98% used (bgp)"],
        );
        check(
            json!({"vrfs": [{"name": "RED", "import_route_targets": [{"route_target": "1:2", "matching_routes": 0}],
                "route_limit": {"limit": 2, "used": 2}}]}),
            &[
                "VRF RED: import route target 1:2 matches no route",
                "VRF RED: routes limit of 2 reached",
            ],
        );
    }

    #[test]
    fn log_entries_are_judged_by_severity_and_words() {
        check(
            json!({"entries": [
                {"severity": 6, "mnemonic": "A", "message": "all is well"},
                {"severity": 3, "mnemonic": "B", "message": "odd"},
                {"severity": 5, "mnemonic": "C", "message": "neighbor 1 Down"},
            ]}),
            &["logged: B: odd", "logged: C: neighbor 1 Down"],
        );
    }

    #[test]
    fn an_unknown_answer_is_not_recognised() {
        for content in [json!("all is well"), json!({"answer": 42}), json!([]), json!(null)] {
            let read = read(&content);
            assert!(!read.is_recognised && read.findings.is_empty(), "{content}");
        }
    }

    #[test]
    fn an_answer_of_any_depth_and_length_ends() {
        let mut deep = json!({"state": "down"});
        for _ in 0..60 {
            deep = json!({"in": deep});
        }
        assert!(read(&deep).findings.is_empty());
        let wide: Vec<Value> =
            (0..5_000).map(|n| json!({"name": n.to_string(), "state": "down"})).collect();
        assert_eq!(read(&json!(wide)).findings.len(), FINDINGS_MAX);
        let long = json!({"state": "down", "name": "x".repeat(10_000)});
        assert_eq!(read(&long).findings[0].chars().count(), TEXT_CHARS_MAX);
    }
}
