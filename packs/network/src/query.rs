//! Reads the query: device, intent, interface and VRF.

use std::collections::BTreeMap;

use graph::definition::InputError;
use serde_json::Value;

use super::plan::{GENERAL, Plan};
use super::{interpret, lexicon};

pub const INPUT_SCHEMA: &str = r#"{
  "type": "object",
  "required": ["query"],
  "additionalProperties": false,
  "examples": [{"query": "Check BGP neighbors on pe1"}, {"query": "Is p3's interface to p4 healthy?"}],
  "properties": {
    "query": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "A question about one device, such as: Check BGP neighbors on pe1"},
    "inventory": {"type": "string", "minLength": 1, "description": "File of a simulated network, for the bundled server"}
  }
}"#;

const QUERY_CHARS_MAX: usize = 2_000;

/// Interface name prefixes, in lower case.
const INTERFACE_KINDS: &[&str] = &[
    "hundredgige",
    "hundredgigabitethernet",
    "hu",
    "fortygige",
    "fo",
    "tengige",
    "tengigabitethernet",
    "te",
    "gigabitethernet",
    "gi",
    "ge",
    "xe",
    "et",
    "eth",
    "ethernet",
    "fastethernet",
    "fa",
    "bundle-ether",
    "be",
    "port-channel",
    "po",
    "loopback",
    "lo",
    "mgmteth",
    "tunnel-te",
    "serial",
    "ae",
];

/// Words that look like a device name but are not.
const NOT_DEVICES: &[&str] = &[
    "l3vpn",
    "l2vpn",
    "vpnv4",
    "vpnv6",
    "ipv4",
    "ipv6",
    "is-is",
    "bgp4",
    "route-target",
    "sr-mpls",
];

/// Words that precede a device name.
const BEFORE_DEVICES: &[&str] = &[
    "on",
    "of",
    "at",
    "for",
    "from",
    "is",
    "router",
    "device",
    "node",
    "pe",
    "p",
    "rr",
    "reflector",
];

/// The session's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Input {
    pub query: String,
    /// A network file for the bundled server.
    pub has_inventory: bool,
}

impl Input {
    /// Parses the trigger's input.
    pub(super) fn parse(input: &Value) -> Result<Self, InputError> {
        let members = input.as_object().ok_or_else(|| InputError::new("input", "a JSON object"))?;
        let known = ["query", "inventory"];
        if let Some(name) = members.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(InputError::new(name, "only `query` and `inventory`"));
        }
        let query = members.get("query").and_then(Value::as_str).map(str::trim);
        let fits = |query: &&str| (1..=QUERY_CHARS_MAX).contains(&query.chars().count());
        let query = query.filter(fits).ok_or_else(|| {
            InputError::new("query", format!("a question of 1 to {QUERY_CHARS_MAX} characters"))
        })?;
        let inventory = members.get("inventory");
        let is_path = |path: &Value| path.as_str().is_some_and(|path| !path.is_empty());
        if inventory.is_some_and(|path| !is_path(path)) {
            return Err(InputError::new("inventory", "the path of a file"));
        }
        Ok(Self { query: query.to_owned(), has_inventory: inventory.is_some() })
    }
}

/// The words of a query, without punctuation.
fn words(query: &str) -> impl Iterator<Item = &str> {
    let is_around = |c: char| !(c.is_alphanumeric() || c == '/');
    let bare = move |word: &'_ str| -> usize {
        word.trim_end_matches("'s").trim_end_matches("’s").len()
    };
    let words = query.split_whitespace().map(move |word| word.trim_matches(is_around));
    words.map(move |word| &word[..bare(word)]).filter(|word| !word.is_empty())
}

/// Words before a device that the question is not about, but another one's neighbor.
const BEFORE_PEERS: &[&str] =
    &["to", "toward", "towards", "with", "via", "through", "reach", "reaches", "reaching", "by"];

/// Words that join devices into one list.
const JOINS: &[&str] = &["and", "or", "both"];

/// The devices that the query is about, of those that it names: "pe1's link to p1" is about pe1.
pub(super) fn about<'a>(query: &str, known: &'a [String]) -> Vec<&'a str> {
    let (mut own, mut peers): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut before = "";
    let mut was_peer = None;
    for word in words(query) {
        if let Some(device) = known.iter().find(|device| is_device(device, word)) {
            let joins = before.is_empty() || JOINS.contains(&before);
            let is_peer = match was_peer {
                Some(was) if joins => was,
                _ => BEFORE_PEERS.contains(&before) || before == "from" && !own.is_empty(),
            };
            was_peer = Some(is_peer);
            let list = if is_peer { &mut peers } else { &mut own };
            if !list.contains(&device.as_str()) {
                list.push(device);
            }
            before = "";
        } else {
            before = word;
        }
    }
    if own.is_empty() { peers } else { own }
}

/// Whether a word names a device, with or without its domain.
fn is_device(device: &str, word: &str) -> bool {
    let short = device.split('.').next().unwrap_or(device);
    device.eq_ignore_ascii_case(word)
        || !short.bytes().all(|b| b.is_ascii_digit()) && short.eq_ignore_ascii_case(word)
}

/// An interface's name in lower case, its kind cut to two letters, so that abbreviations agree.
pub(super) fn normal_interface(name: &str) -> String {
    let small = name.to_lowercase().replace(' ', "");
    let digit = small.find(|c: char| c.is_ascii_digit()).unwrap_or(small.len());
    let (kind, number) = small.split_at(digit);
    format!("{}{number}", kind.chars().take(2).collect::<String>())
}

/// The word of the query that most likely names a device.
pub(super) fn candidate(query: &str) -> Option<&str> {
    let all: Vec<&str> = words(query).collect();
    let vrf = vrf(query);
    let looks_like = |word: &str| {
        let small = word.to_lowercase();
        let has = |test: fn(char) -> bool| word.chars().any(test);
        has(char::is_alphabetic)
            && (has(|c| c.is_ascii_digit()) || word.contains(['-', '_', '.']))
            && !is_interface(word)
            && !NOT_DEVICES.contains(&small.as_str())
            && vrf.as_deref() != Some(word)
    };
    let after = all.windows(2).filter(|pair| {
        BEFORE_DEVICES.contains(&pair[0].to_lowercase().as_str()) && looks_like(pair[1])
    });
    let named = after.map(|pair| pair[1]).next();
    named.or_else(|| all.into_iter().find(|word| looks_like(word)))
}

pub(super) fn interface(query: &str) -> Option<String> {
    words(query).find(|word| is_interface(word)).map(str::to_owned)
}

/// The VRF in the query: the word after `VRF`, or after `VPN` or `customer` if it looks like a
/// name.
pub(super) fn vrf(query: &str) -> Option<String> {
    let all: Vec<&str> = words(query).collect();
    let is_name = |word: &str| {
        word.chars().next().is_some_and(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
            || word.contains(['_', '-'])
    };
    let is_plain = |word: &str| !["on", "of", "for", "at", "in", "is"].contains(&word);
    let named = all.windows(2).find_map(|pair| match pair[0].to_lowercase().as_str() {
        "vrf" if is_plain(&pair[1].to_lowercase()) => Some(pair[1]),
        "vpn" | "customer" if is_name(pair[1]) && !pair[1].eq_ignore_ascii_case("vrf") => {
            Some(pair[1])
        }
        _ => None,
    });
    named.map(str::to_owned)
}

pub(super) fn is_interface(word: &str) -> bool {
    let small = word.to_lowercase();
    let Some(digit) = small.find(|c: char| c.is_ascii_digit()) else { return false };
    let (kind, number) = small.split_at(digit);
    INTERFACE_KINDS.contains(&kind.trim_end_matches('-'))
        && number.chars().all(|c| c.is_ascii_digit() || "/.:-".contains(c))
}

/// The intent of a query, and whether the query names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Intent {
    pub name: String,
    pub is_recognised: bool,
}

/// The intent: a plan that the query names, else the best match of its words, and of the parts of joined words:
/// "BGP-neighbors", "P/PE". A device's name says nothing about the intent.
pub(super) fn intent(query: &str, plans: &BTreeMap<String, Plan>) -> Intent {
    let device = candidate(query);
    let parts =
        words(query).filter(|word| Some(*word) != device && !is_interface(word)).flat_map(|word| {
            let parts = word.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
            let is_joined = parts.clone().nth(1).is_some();
            parts.filter(move |_| is_joined).map(spelt)
        });
    let whole = words(query).map(spelt);
    intent_of(&whole.chain(parts).collect::<Vec<_>>(), query, plans)
}

/// The intent by whole words: that of sessions of version 4.
pub(super) fn intent_by_whole_words(query: &str, plans: &BTreeMap<String, Plan>) -> Intent {
    intent_of(&words(query).map(str::to_lowercase).collect::<Vec<_>>(), query, plans)
}

/// A word in lower case; a kind of BGP or VPN is BGP or VPN.
fn spelt(word: &str) -> String {
    let word = word.to_lowercase();
    match word.as_str() {
        "ebgp" | "ibgp" | "mbgp" | "peering" | "peerings" => "bgp".to_owned(),
        "l2vpn" | "vpnv4" | "vpnv6" | "vpls" | "evpn" => "vpn".to_owned(),
        "rsvp" | "srv6" | "labelled" | "labeled" => "mpls".to_owned(),
        _ => word,
    }
}

fn intent_of(words: &[String], query: &str, plans: &BTreeMap<String, Plan>) -> Intent {
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    let named = plans.keys().find(|intent| words.contains(intent) || is_named_by(intent, words));
    let is_review = has(&["review", "audit", "inspect"]);
    let by_words = if is_review && has(&["rr", "reflector"]) {
        Some("review_rr_device")
    } else if is_review && has(&["pe", "edge"]) {
        Some("review_pe_device")
    } else if is_review && has(&["p", "core"]) {
        Some("review_p_device")
    } else if has(&["vpn", "vrf", "vrfs", "vpns", "l3vpn", "customer", "route-target"]) {
        Some("troubleshoot_vpn_vrf")
    } else if has(&[
        "mpls", "ldp", "label", "labels", "lsp", "lsps", "sid", "sids", "segment", "sr",
    ]) {
        Some("check_mpls_state")
    } else if let Some(intent) = by_subject(words) {
        Some(intent)
    } else if has(&["bgp", "neighbor", "neighbors", "neighbour", "neighbours", "peer", "peers"]) {
        Some("check_bgp_neighbors")
    } else if has(&[
        "interface",
        "interfaces",
        "link",
        "links",
        "port",
        "ports",
        "flap",
        "flapping",
    ]) || interface(query).is_some()
    {
        Some("check_interface_status")
    } else if has(&["health", "healthy", "general", "overall"]) {
        Some(GENERAL)
    } else {
        None
    };
    let chosen = named.map(String::as_str).or(by_words).filter(|name| plans.contains_key(*name));
    Intent { name: chosen.unwrap_or(GENERAL).to_owned(), is_recognised: chosen.is_some() }
}

/// The intent of a query about a protocol whose plan is about it alone.
fn by_subject(words: &[String]) -> Option<&'static str> {
    const BY_SUBJECT: [(&str, &str); 5] = [
        ("ospf", "check_ospf_neighbors"),
        ("stp", "check_spanning_tree"),
        ("vlan", "check_vlans"),
        ("acl", "check_access_lists"),
        ("dns", "check_name_resolution"),
    ];
    let subjects = lexicon::subjects(&interpret::words(&words.join(" ")));
    // A question about several subjects is its own plan.
    let [only] = subjects.iter().filter(|name| **name != "interface").collect::<Vec<_>>()[..]
    else {
        return None;
    };
    BY_SUBJECT.iter().find(|(subject, _)| subject == only).map(|(_, intent)| *intent)
}

/// Whether the query contains all significant words of a custom plan's name.
fn is_named_by(intent: &str, words: &[String]) -> bool {
    if super::plan::shipped().contains_key(intent) {
        return false;
    }
    let generic = ["check", "review", "troubleshoot", "state", "status", "device", "the"];
    let mut significant = intent.split('_').filter(|word| !generic.contains(word)).peekable();
    significant.peek().is_some() && significant.all(|word| words.iter().any(|said| said == word))
}

#[cfg(test)]
mod tests {
    use super::super::plan::shipped;
    use super::*;

    #[test]
    fn sessions_of_version_4_keep_their_intents() {
        for (query, now, then) in [
            ("Are the BGP-neighbors of pe1 up?", "check_bgp_neighbors", GENERAL),
            ("Check BGP neighbors on pe1", "check_bgp_neighbors", "check_bgp_neighbors"),
        ] {
            assert_eq!(intent(query, shipped()).name, now, "{query}");
            assert_eq!(intent_by_whole_words(query, shipped()).name, then, "{query}");
        }
    }

    #[test]
    fn a_query_is_understood() {
        for (query, expected) in [
            ("Check BGP neighbors on xrd-1", "check_bgp_neighbors xrd-1"),
            ("What interfaces are up on pe1?", "check_interface_status pe1"),
            ("Review P device core-rtr-2", "review_p_device core-rtr-2"),
            ("review PE router pe3", "review_pe_device pe3"),
            ("Review route reflector rr1.", "review_rr_device rr1"),
            ("Troubleshoot VRF ACME on pe1", "troubleshoot_vpn_vrf pe1 vrf=ACME"),
            (
                "customer ACME cannot reach pe3's sites from pe1",
                "troubleshoot_vpn_vrf pe1 vrf=ACME",
            ),
            ("Check BGP in vrf blue on pe1", "troubleshoot_vpn_vrf pe1 vrf=blue"),
            ("is the vpn on pe1 up?", "troubleshoot_vpn_vrf pe1"),
            ("Is segment routing all right on pe4?", "check_mpls_state pe4"),
            ("Why does Hu0/0/0/1 on pe2 flap", "check_interface_status pe2 if=Hu0/0/0/1"),
            (
                "GigabitEthernet0/1/0/0.100 of pe1",
                "check_interface_status pe1 if=GigabitEthernet0/1/0/0.100",
            ),
            ("Bundle-Ether10 on ro-01 is odd", "check_interface_status ro-01 if=Bundle-Ether10"),
            ("how is pe1", "general_device_health_check? pe1"),
            ("Is pe1 healthy", "general_device_health_check pe1"),
            ("review pe1", "general_device_health_check? pe1"),
            ("run review_p_device for p9", "review_p_device p9"),
            ("Check OSPF neighbors on core1", "check_ospf_neighbors core1"),
            ("Check spanning tree on acc1", "check_spanning_tree acc1"),
            ("Are the trunks of sw1 fine?", "check_vlans sw1"),
            ("Check the access-lists on fw1", "check_access_lists fw1"),
            ("Does DNS work on r1?", "check_name_resolution r1"),
            ("Check OSPF and BGP on r1", "check_bgp_neighbors r1"),
            ("Are the BGP-neighbors of pe1 up?", "check_bgp_neighbors pe1"),
            ("Check the eBGP sessions on pe1", "check_bgp_neighbors pe1"),
            ("Is the iBGP/OSPF session of pe1 up?", "check_bgp_neighbors pe1"),
            ("Are MPLS/LDP labels fine on pe1?", "check_mpls_state pe1"),
            ("Check the interfaces of bgp-rr-1", "check_interface_status bgp-rr-1"),
            ("review core-rtr-2", "general_device_health_check? core-rtr-2"),
            ("EVPN on pe1 lost a site", "troubleshoot_vpn_vrf pe1"),
            ("hello", "general_device_health_check? -"),
            ("Is IS-IS fine?", "general_device_health_check? -"),
        ] {
            let intent = intent(query, shipped());
            let doubt = if intent.is_recognised { "" } else { "?" };
            let mut said = format!("{}{doubt} {}", intent.name, candidate(query).unwrap_or("-"));
            if let Some(vrf) = vrf(query) {
                said.push_str(&format!(" vrf={vrf}"));
            }
            if let Some(interface) = interface(query) {
                said.push_str(&format!(" if={interface}"));
            }
            assert_eq!(said, expected, "{query}");
        }
    }

    #[test]
    fn a_query_is_about_its_devices_not_their_neighbors() {
        let known =
            ["rr1", "pe1", "core", "ber-pe1", "ber-core1", "sw1.example.net"].map(str::to_owned);
        for (query, expected) in [
            ("Is PE1 peering with rr1, or pe1 with (core)?", vec!["pe1"]),
            ("ber-pe1's link to ber-core1 flaps", vec!["ber-pe1"]),
            ("Compare the MTU of pe1 and core", vec!["pe1", "core"]),
            ("Does pe1 get prefixes from rr1?", vec!["pe1"]),
            ("cannot reach core's sites from pe1", vec!["pe1"]),
            ("Is sw1 healthy?", vec!["sw1.example.net"]),
            ("the session to rr1", vec!["rr1"]),
            ("pe11 and rr", vec![]),
        ] {
            assert_eq!(about(query, &known), expected, "{query}");
        }
    }

    #[test]
    fn a_custom_plan_is_chosen_by_the_words_of_its_name() {
        let mut plans = shipped().clone();
        let plan = Plan {
            intent: "check_optics".to_owned(),
            description: "d".to_owned(),
            steps: vec!["s".to_owned()],
        };
        plans.insert(plan.intent.clone(), plan);
        assert_eq!(intent("check the optics on pe1", &plans).name, "check_optics");
        assert_eq!(intent("check the interfaces on pe1", &plans).name, "check_interface_status");
    }
}
