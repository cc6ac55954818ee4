//! What a member of an answer means, by its name and its value.

/// Members that identify, describe or configure, and say nothing about health.
const NEUTRAL: &str = "name|description|device|device_name|hostname|host|node|router|switch|id|role|model|vendor|platform|os|os_version|version|software|serial|serial_number|type|kind|index|interface|interface_name|local_interface|neighbor|neighbor_name|neighbor_id|neighbor_address|neighbor_interface|neighbor_ip|peer|peer_address|peer_name|peer_id|remote_interface|remote_device|port|port_id|address|addresses|ip|ip_address|ipv4_address|ipv6_address|prefix|mask|subnet|gateway|next_hop|next_hop_name|outgoing_interface|router_id|local_as|remote_as|as|asn|as_number|area|level|instance|process|process_id|metric|cost|priority|weight|distance|speed|speed_gbps|speed_mbps|bandwidth|bandwidth_kbps|duplex|mac|mac_address|vlan|vlan_id|vlans|vrf|vrf_name|protocol|address_family|family|afi|safi|label|sid_index|srgb|start|end|route_distinguisher|rd|route_target|group|group_id|virtual_ip|vip|timestamp|time|taken_at|last_change|last_change_seconds|last_updated|updated_at|age|age_seconds|minutes|seconds|total_mib|used_mib|free_mib|total_mb|used_mb|free_mb|busiest_process|originator|destination|source|sequence|seq|action|direction|protocol_version|mode|admin_status|admin_state|admin|configured|note|title|management_address|location|site|hold_time|hold_time_seconds|keepalive|hello_interval|dead_interval|dead_time|uptime_of_session|message_count|messages_sent|messages_received|input_packets|output_packets|packets_in|packets_out|in_packets|out_packets|input_rate_bps|output_rate_bps|in_octets|out_octets|bytes_in|bytes_out|refused_routes|limit|used|count|total|reason|last_error|conflicts_with|down_reason|mnemonic|facility|root_id|bridge_id|root_bridge|root_priority|native_vlan|allowed_vlans|lag|members|server|servers|query|answer|ttl|stratum|reference|member|slot|unit|local_mtu|neighbor_mtu|peer_mtu|remote_mtu|mtu|encapsulation|key|policy|remote|local|lane|wavelength|part_number|capability|capabilities|system_name|chassis_id|chassis|tags|comment|contact|hits|matches|export_route_targets|routes|sid|session_type|state_changed|since|established_since|sequence_number|port_role|port_type|link_type";

/// Words that make a name the name of a state.
const STATES: &[&str] = &[
    "state",
    "status",
    "oper",
    "rcode",
    "health",
    "condition",
    "result",
    "consistency",
    "synchronization",
    "sync",
    "reachability",
    "presence",
    "alarm_state",
];

const ERRORS: &[&str] = &[
    "error",
    "crc",
    "fcs",
    "drop",
    "discard",
    "runt",
    "giant",
    "collision",
    "symbol",
    "violation",
    "failure",
    "loss",
    "malformed",
    "retransmit",
    "reject",
    "overrun",
    "underrun",
    "abort",
];

const TRANSITIONS: &[&str] = &["flap", "transition", "reset"];

/// Words of a boolean that is good when true, and bad when false.
const GOOD_IF_TRUE: &[&str] = &[
    "up",
    "ok",
    "healthy",
    "reachable",
    "synced",
    "synchronized",
    "established",
    "operational",
    "valid",
    "present",
    "resolved",
    "alive",
    "converged",
    "redundant",
    "consistent",
    "match",
    "is_up",
    "success",
    "forwarding",
];

/// Words of a boolean that is bad when true, and good when false.
const BAD_IF_TRUE: &[&str] = &[
    "down",
    "error",
    "failed",
    "mismatch",
    "alarm",
    "blocked",
    "loop",
    "flapping",
    "stale",
    "conflict",
    "exceeded",
    "inconsistent",
    "disabled",
    "degraded",
    "expired",
    "fault",
    "failure",
    "overloaded",
];

/// The meaning of a member's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Neutral,
    State,
    Errors,
    /// Errors in relation to time or packets.
    ErrorRate,
    Transitions,
    Utilization,
    Uptime,
    Prefixes,
    Power,
    GoodIfTrue,
    BadIfTrue,
    Unknown,
}

fn ends(words: &[&str], list: &[&str]) -> bool {
    words.iter().any(|word| list.contains(word) || list.contains(&word.trim_end_matches('s')))
}

/// The meaning of a name in snake case.
pub(super) fn field(name: &str) -> Field {
    let words: Vec<&str> = name.split('_').collect();
    let has = |all: &[&str]| ends(&words, all);
    let last = words.last().copied().unwrap_or_default();
    if NEUTRAL.split('|').any(|known| known == name) || words[0] == "admin" {
        Field::Neutral
    } else if has(&["prefix", "prefixe", "pfx", "routes", "route"])
        && has(&["received", "rcvd", "rcd", "accepted", "learned"])
    {
        Field::Prefixes
    } else if has(&["threshold", "alarm", "warning", "warn", "min", "max", "minimum", "maximum"])
        && !has(STATES)
        && words.len() > 1
        || has(&["expected", "previous", "baseline", "before"])
    {
        Field::Neutral
    } else if has(&["utilization", "utilisation", "usage"]) || name == "used_percent" {
        Field::Utilization
    } else if has(&["uptime"]) {
        Field::Uptime
    } else if has(&["dbm"])
        || has(&["rx", "tx", "receive", "transmit", "input", "output"]) && has(&["power"])
    {
        Field::Power
    } else if has(ERRORS) && (has(&["rate", "percent", "ratio"]) || name.contains("per_")) {
        Field::ErrorRate
    } else if has(ERRORS) && !has(STATES) && !has(&["last", "message", "text"]) {
        Field::Errors
    } else if has(TRANSITIONS) {
        Field::Transitions
    } else if has(STATES) || ["line_protocol", "protocol_status", "link"].contains(&name) {
        Field::State
    } else if GOOD_IF_TRUE.contains(&last) {
        Field::GoodIfTrue
    } else if BAD_IF_TRUE.contains(&last) {
        Field::BadIfTrue
    } else {
        Field::Unknown
    }
}

/// Whether a text is an identifier: an address, a prefix, a time, a route target, or an interface.
pub(super) fn is_identifier(text: &str) -> bool {
    let has_digit = text.chars().any(|c| c.is_ascii_digit());
    let is_address = text.chars().all(|c| c.is_ascii_hexdigit() || ".:/-TZ+".contains(c))
        && text.contains(['.', ':', '/', '-']);
    has_digit && (is_address || super::query::is_interface(text))
}
