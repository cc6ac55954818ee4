//! Objects of an answer, where they are, and how people call them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::facts::Targets;
use super::findings::DEPTH_MAX;
use super::vocabulary::{Standing, standing};

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
    "interface_name",
    "port_name",
    "local_interface",
    "bgp_neigh",
    "neighborid",
    "remote",
    "remote_id",
    "query",
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
    "where",
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
    ("name_servers", "name server"),
    ("lookups", "lookup"),
    ("trunks", "trunk"),
];

/// Maximum words of one member's text that a question can name.
const TOKENS_MAX: usize = 64;

/// The value of `ifAdminStatus` and `ifOperStatus` for down.
///
/// Source: RFC 2863.
const SNMP_DOWN: f64 = 2.0;

/// A position in an answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Location {
    /// The path of members.
    pub path: Vec<String>,
    pub vrf: Option<String>,
    /// The name of the object around it.
    pub owner: String,
    /// Whether the object around it is in a bad state.
    pub is_down: bool,
    /// Whether the state of the object around it cannot be read.
    pub is_doubtful: bool,
}

impl Location {
    /// The display name of the objects here.
    pub(super) fn area(&self) -> &str {
        let known = |member: &String| AREAS.iter().find(|(name, _)| name == member);
        match self.path.iter().rev().find_map(known) {
            Some((_, words)) => words,
            None => match self.path.last().map_or("device", String::as_str) {
                "neighbors" => "neighbor",
                other => other,
            },
        }
    }

    /// The name of an object here: its own, or that of the object around it.
    pub(super) fn name(&self, object: &Object<'_>) -> String {
        let own = object.name();
        if own.is_empty() { self.owner.clone() } else { own }
    }

    /// Display name of an object here, with its VRF.
    pub(super) fn words(&self, object: &Object<'_>) -> String {
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
pub(super) struct Object<'a>(pub(super) Vec<(String, &'a Value)>);

impl<'a> Object<'a> {
    pub(super) fn of(members: &'a Map<String, Value>) -> Self {
        Self(members.iter().map(|(name, value)| (snake(name), value)).collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    pub(super) fn number(&self, name: &str) -> Option<f64> {
        number(self.get(name)?)
    }

    /// The route targets that it imports and exports, if it is a VRF.
    pub(super) fn targets(&self, vrf: &str) -> Option<Targets> {
        let of = |way: &str| -> BTreeSet<String> {
            let is_this = |name: &str| {
                let words: Vec<&str> = name.split('_').collect();
                words.iter().any(|word| word.trim_end_matches('s') == way)
                    && (words.len() == 1
                        || words
                            .iter()
                            .any(|word| ["target", "targets", "rt", "rts"].contains(word)))
            };
            let own = self.0.iter().filter(|(name, _)| is_this(name)).map(|(_, value)| *value);
            // `"route_targets": {"import": [..], "export": [..]}`.
            let inner = ["route_targets", "route_target", "rt"];
            let inner = inner.iter().find_map(|name| self.get(name)?.as_object());
            let below =
                inner.into_iter().flatten().filter(|(name, _)| snake(name).starts_with(way));
            own.chain(below.map(|(_, value)| value)).flat_map(target_list).collect()
        };
        let (imports, exports) = (of("import"), of("export"));
        let is_vrf = !imports.is_empty() && !exports.is_empty();
        is_vrf.then(|| Targets { vrf: vrf.to_lowercase(), imports, exports })
    }

    /// All members that name the object.
    pub(super) fn identities(&self) -> Vec<String> {
        let text = |name: &&str| Some(self.get(name)?.as_str()?.to_owned());
        NAMES.iter().filter(|name| **name != "device").filter_map(text).collect()
    }

    /// The members' texts and numbers, and their words, in lower case.
    pub(super) fn tokens(&self) -> Vec<String> {
        let mut tokens = Vec::new();
        for (_, value) in &self.0 {
            let text = match value {
                Value::String(text) => text.to_lowercase(),
                Value::Number(number) => number.to_string(),
                _ => continue,
            };
            let words = text.split([' ', ',', ';', '(', ')']).filter(|word| !word.is_empty());
            tokens.extend(words.take(TOKENS_MAX).map(str::to_owned));
        }
        tokens
    }

    /// The first number whose name has all these words.
    pub(super) fn like(&self, words: &[&str]) -> Option<f64> {
        let mut all = self.0.iter();
        all.find(|(name, _)| words.iter().all(|w| name.contains(w))).and_then(|(_, v)| number(v))
    }

    pub(super) fn name(&self) -> String {
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        NAMES.iter().find_map(|name| text(self.get(name)?)).unwrap_or_default()
    }

    pub(super) fn reason(&self) -> String {
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

    /// What beside a good state contradicts it.
    pub(super) fn contradicts(&self) -> Option<String> {
        if self.is_switched_off() {
            return Some("it is switched off".to_owned());
        }
        let reason = ["reason", "down_reason"].iter().find_map(|name| self.get(name)?.as_str())?;
        (standing(reason, &[]) == Standing::Bad).then(|| format!("its reason is {reason}"))
    }

    /// Whether its state is a word that no rule knows.
    pub(super) fn is_doubtful(&self, subjects: &[&str]) -> bool {
        let states = self.0.iter().filter(|(name, _)| {
            name == "state"
                || name.ends_with("_state") && !name.starts_with("admin")
                || name == "status"
        });
        let mut texts = states.filter_map(|(_, value)| value.as_str());
        texts.any(|text| {
            number(&Value::from(text)).is_none() && standing(text, subjects) == Standing::Unknown
        })
    }

    /// Whether an operator switched the object off.
    pub(super) fn is_switched_off(&self) -> bool {
        let admin = ["admin_status", "admin_state", "admin", "if_admin_status"]
            .iter()
            .find_map(|name| self.get(name));
        let is_off = |state: &str| matches!(standing(state, &[]), Standing::Off | Standing::Bad);
        let shown = ["status", "state", "oper_status", "oper_state", "link_status", "port_status"];
        let mut shown = shown.iter().filter_map(|name| self.get(name)?.as_str());
        admin.is_some_and(|admin| {
            admin == false || number(admin) == Some(SNMP_DOWN) || admin.as_str().is_some_and(is_off)
        }) || ["enabled", "is_enabled"]
            .iter()
            .any(|name| self.get(name) == Some(&Value::Bool(false)))
            || shown.any(|state| standing(state, &[]) == Standing::Off)
            || self
                .get("reason")
                .and_then(Value::as_str)
                .is_some_and(|reason| standing(reason, &[]) == Standing::Off)
    }
}

/// The route targets in a list or a text, without the word before them.
fn target_list(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(target_list).collect(),
        Value::Object(members) => {
            let target = ["route_target", "target"].iter().find_map(|name| members.get(*name));
            target.into_iter().flat_map(target_list).collect()
        }
        Value::String(text) => {
            let parts = text.split([' ', ',', '[', ']']).filter(|part| part.contains(':'));
            let bare = |part: &str| {
                part.trim_start_matches("target:").trim_start_matches("RT:").to_owned()
            };
            parts.map(bare).collect()
        }
        _ => Vec::new(),
    }
}

/// A name in snake case.
pub(super) fn snake(name: &str) -> String {
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

pub(super) fn number(value: &Value) -> Option<f64> {
    let text = || {
        let text = value.as_str()?.trim().trim_end_matches(['%', ' ']);
        let text = text.strip_suffix("dBm").unwrap_or(text).trim();
        let text = if is_grouped(text) { text.replace(',', "") } else { text.to_owned() };
        text.parse::<f64>().ok().filter(|number| number.is_finite())
    };
    value.as_f64().or_else(text)
}

/// Whether commas separate thousands, as in `1,200`; `10,20` is a list.
fn is_grouped(text: &str) -> bool {
    let mut groups = text.trim_start_matches('-').split(',');
    let first = groups.next().unwrap_or_default();
    (1..=3).contains(&first.len())
        && groups.all(|group| group.split('.').next().is_some_and(|group| group.len() == 3))
}

/// A value without the wrapping of Junos, `[{"data": value}]`.
pub(super) fn plain(value: &Value, depth: usize) -> Value {
    if depth > DEPTH_MAX {
        return value.clone();
    }
    let inner = |items: &[Value]| match items {
        [Value::Object(members)] if members.len() <= 2 => members
            .get("data")
            .filter(|_| members.keys().all(|name| name == "data" || name == "attributes"))
            .cloned(),
        _ => None,
    };
    match value {
        Value::Array(items) => inner(items).unwrap_or_else(|| {
            Value::Array(items.iter().map(|item| plain(item, depth + 1)).collect())
        }),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| (name.clone(), plain(value, depth + 1));
            Value::Object(members.iter().map(member).collect())
        }
        leaf => leaf.clone(),
    }
}
