//! What a member of an answer means, by its name and its value.

/// Members that identify, describe or configure, and say nothing about health.
const NEUTRAL: &str = "name|description|device|device_name|hostname|host|node|router|switch|id|role|model|vendor|platform|os|os_version|version|software|serial|serial_number|type|kind|index|interface|interface_name|local_interface|neighbor|neighbor_name|neighbor_id|neighbor_address|neighbor_interface|neighbor_ip|peer|peer_address|peer_name|peer_id|remote_interface|remote_device|port|port_id|address|addresses|ip|ip_address|ipv4_address|ipv6_address|prefix|mask|subnet|gateway|next_hop|next_hop_name|outgoing_interface|router_id|local_as|remote_as|as|asn|as_number|area|level|instance|process|process_id|metric|cost|priority|weight|distance|speed|speed_gbps|speed_mbps|bandwidth|bandwidth_kbps|duplex|mac|mac_address|vlan|vlan_id|vlans|vrf|vrf_name|protocol|address_family|family|afi|safi|label|sid_index|srgb|start|end|route_distinguisher|rd|route_target|group|group_id|virtual_ip|vip|timestamp|time|taken_at|last_change|last_change_seconds|last_updated|updated_at|age|age_seconds|minutes|seconds|total_mib|used_mib|free_mib|total_mb|used_mb|free_mb|busiest_process|originator|destination|source|sequence|seq|action|direction|protocol_version|mode|admin_status|admin_state|admin|configured|note|title|management_address|location|site|hold_time|hold_time_seconds|keepalive|hello_interval|dead_interval|dead_time|uptime_of_session|message_count|messages_sent|messages_received|input_packets|output_packets|packets_in|packets_out|in_packets|out_packets|input_rate_bps|output_rate_bps|in_octets|out_octets|bytes_in|bytes_out|limit|used|count|total|reason|last_error|conflicts_with|down_reason|mnemonic|facility|root_id|bridge_id|root_bridge|root_priority|native_vlan|allowed_vlans|lag|members|server|servers|query|answer|ttl|reference|member|slot|unit|local_mtu|neighbor_mtu|peer_mtu|remote_mtu|mtu|encapsulation|key|policy|remote|local|lane|wavelength|part_number|capability|capabilities|system_name|chassis_id|chassis|tags|comment|contact|hits|matches|export_route_targets|routes|sid|session_type|state_changed|since|established_since|sequence_number|port_role|port_type|link_type|v|pri|in_q|inq|out_q|outq|tbl_ver|msg_rcvd|msg_sent|as_path|inactivity|preempt|code|is_root|local_allowed_vlans|reach|poll|offset|delay|jitter|dispersion|remark|acl|lag_id|mst|forward_delay|hello|dead|max_age|aging_time|primary|secondary|local_mtu|designated_bridge|designated_port|table|snpa|hold|changed|msg_received|if_index|if_descr|under_maintenance|system_id_extension|revision|region|region_name|mst_region|config_digest|mapped_vlans|vlans_mapped|root_path_cost|root_port|internal_cost|external_cost|path_cost|designated_cost|remaining_hops|hops|bpdu_sent|bpdu_received|bpdus_sent|bpdus_received|interface_role|where|port_number|boundary_type|is_edge_port|edge_port|auto_negotiate_active|auto_negotigate_active|auto_negotiate|l3_mtu_configured|loopback_mode|forwarding_model|hardware|burned_in_address|physical_address|update_interval|counter_refresh_time|last_status_change_timestamp|interface_mode|lanes|media|media_type|peer_group|local_asn|remote_asn|table_version|peer_uptime_established_epoch|id_type|connections_established|in_msg_queue|out_msg_queue|prefix_in_best|prefix_in_best_ecmp|prefix_advertised|dynamic_peers|total_networks|total_paths|memory_used|vrf_name_out|af_name|af_id|nbr_address|link_type|designated_router|backup_designated_router|dr_address|bdr_address|options|sys_id|system_id|circuit_id|circuit_type|nlpid|usage|snpa_address|ipv4_interface_addr|router_id_v4|priority_vector|hold_timer|keepalive_time|group_id|virtual_mac|mac_addr|virtual_router_id|advertisement_interval|master_interval|master_down_interval|skew_time|flags|rtt_ms|question|rdata|class|canonical_name|opcode|query_time_ms|latency_ms|section|active_vlans|forwarding_vlans|module|passive|master_address|master_addr|process|instance";

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

/// Last words of names that identify, time or count, and say nothing about health.
const DESCRIBING: &[&str] = &[
    "type",
    "id",
    "name",
    "address",
    "addr",
    "ip",
    "mac",
    "version",
    "bytes",
    "octets",
    "packets",
    "pkts",
    "messages",
    "msgs",
    "bps",
    "pps",
    "desc",
    "description",
    "priority",
    "cost",
    "metric",
    "preference",
    "time",
    "timestamp",
    "timer",
    "interval",
    "as",
    "asn",
    "index",
    "capability",
    "queue",
    "sent",
    "msgrecvd",
    "msgsent",
    "neighborid",
    "neighborversion",
    "neighboras",
    "rcvd",
    "neigh",
];

/// Words before `count` and `total` in names of numbers that say nothing about health.
const COUNTED: &[&str] = &[
    "group",
    "event",
    "peer",
    "route",
    "entry",
    "session",
    "interface",
    "port",
    "vlan",
    "member",
    "message",
    "network",
    "path",
];

/// Words of a name that lists, counts or quotes what is bad.
const PROBLEMS: &[&str] = &[
    "down",
    "failed",
    "missing",
    "unreachable",
    "inconsistent",
    "mismatch",
    "mismatched",
    "duplicate",
    "conflict",
    "lost",
    "absent",
    "degraded",
    "stale",
    "expired",
    "errdisabled",
    "fault",
    "alarm",
    "problem",
    "error",
    "unsynchronized",
    "suspended",
    "isolated",
    "refused",
    "flapping",
];

/// Words that make a name one of a past event or of a setting.
const PAST: &[&str] = &[
    "last",
    "time",
    "since",
    "reason",
    "timer",
    "interval",
    "policy",
    "limit",
    "code",
    "threshold",
    "message",
    "text",
    "ago",
    "recovery",
    "detection",
];

/// Words of a state's name that say whose state it is. A state under another name proves nothing.
const OF_ITSELF: &[&str] = &[
    "session",
    "adjacency",
    "adj",
    "neighbor",
    "neighbour",
    "nbr",
    "peer",
    "connection",
    "conn",
    "protocol",
    "proto",
    "link",
    "line",
    "port",
    "current",
    "fsm",
    "interface",
    "intf",
    "if",
    "clock",
    "member",
    "group",
    "is",
    "phy",
    "physical",
    "overall",
    "sensor",
    "fan",
    "psu",
    "module",
    "local",
    "pfx",
    "rcd",
    "pfxrcd",
];

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
    "active",
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
    /// Distance from the reference clock.
    Stratum,
    /// A threshold, or whether it is crossed.
    Alarm,
    /// Why the device restarted.
    RestartReason,
    /// What is bad: a list, a number, or a flag.
    Problems,
    GoodIfTrue,
    Unknown,
}

fn ends(words: &[&str], list: &[&str]) -> bool {
    words.iter().any(|word| list.contains(word) || list.contains(&word.trim_end_matches('s')))
}

/// The meaning of a name in snake case.
pub(super) fn field(name: &str) -> Field {
    let words: Vec<&str> = name.split('_').collect();
    let has = |all: &[&str]| ends(&words, all);
    let of_side = ["local_", "remote_", "neighbor_", "peer_", "far_end_"];
    let bare = of_side.iter().find_map(|side| name.strip_prefix(side)).unwrap_or(name);
    // A number of neighbors is judged.
    let bare = if ["count", "total"].contains(&bare) { name } else { bare };
    let is_neutral = |name: &str| NEUTRAL.split('|').any(|known| known == name);
    if is_neutral(name) || is_neutral(bare) || words.contains(&"admin") {
        Field::Neutral
    } else if is_of_prefixes(name) {
        Field::Prefixes
    } else if has(&["reload", "restart", "reboot", "reset"]) && has(&["reason", "cause"]) {
        Field::RestartReason
    } else if words.contains(&"alarms") || has(&["alarm"]) && has(&["count", "active", "total"]) {
        Field::Problems
    } else if has(&["threshold", "alarm", "warning", "warn"]) && !has(STATES) && words.len() > 1 {
        Field::Alarm
    } else if has(&["min", "max", "minimum", "maximum"]) && !has(STATES) && words.len() > 1
        || has(&["expected", "previous", "baseline", "before", "intended"])
    {
        Field::Neutral
    } else {
        measured(name, &words).unwrap_or_else(|| told(name, &words))
    }
}

/// Prefixes that a neighbor sends.
fn is_of_prefixes(name: &str) -> bool {
    let has = |all: &[&str]| all.iter().any(|part| name.contains(part));
    has(&["prefix", "pfx", "route"])
        && has(&["receiv", "rcv", "rcd", "recv", "accept", "learn"])
        && !has(&["limit", "max", "threshold", "expected", "previous", "baseline", "before"])
}

/// The meaning of the name of a quantity.
fn measured(name: &str, words: &[&str]) -> Option<Field> {
    let has = |all: &[&str]| ends(words, all);
    let is_past = has(&["last", "message", "text", "reason", "time", "since", "code", "recovery"]);
    let is_uptime = name.replace('_', "").contains("uptime")
        || ["up_down", "up_down_time", "updown"].contains(&name);
    if has(&["utilization", "utilisation", "usage"])
        || has(&["percent"]) && has(&["used", "cpu", "memory"])
    {
        Some(Field::Utilization)
    } else if is_uptime {
        Some(Field::Uptime)
    } else if has(&["dbm"])
        || has(&["rx", "tx", "receive", "transmit", "input", "output"]) && has(&["power"])
    {
        Some(Field::Power)
    } else if has(ERRORS) && (has(&["rate", "percent", "ratio"]) || name.contains("per_")) {
        Some(Field::ErrorRate)
    } else if has(ERRORS) && !has(STATES) && !is_past {
        Some(Field::Errors)
    } else if has(TRANSITIONS) && !is_past
        || has(&["link", "carrier"]) && has(&["down"]) && has(&["count"])
    {
        Some(Field::Transitions)
    } else if name == "stratum" {
        Some(Field::Stratum)
    } else {
        None
    }
}

/// The meaning of the name of a state or a flag.
fn told(name: &str, words: &[&str]) -> Field {
    let has = |all: &[&str]| ends(words, all);
    let last = words.last().copied().unwrap_or_default();
    let is_negated = has(&["no", "not", "non"]);
    if has(STATES) || ["line_protocol", "protocol_status", "link", "proto"].contains(&name) {
        Field::State
    } else if has(PROBLEMS) && !has(PAST) && !is_negated {
        Field::Problems
    } else if GOOD_IF_TRUE.contains(&last) && !is_negated {
        Field::GoodIfTrue
    } else if BAD_IF_TRUE.contains(&last) && !is_negated {
        Field::Problems
    } else if DESCRIBING.contains(&last)
        || has(&["name", "sent", "advertised", "capable"])
        || ["count", "total"].contains(&last) && ends(&words[..words.len() - 1], COUNTED)
    {
        Field::Neutral
    } else {
        Field::Unknown
    }
}

/// Whether a state with this name is that of the object itself, so that a good one proves something.
pub(super) fn is_own_state(name: &str) -> bool {
    let is_known = |word: &str| {
        OF_ITSELF.contains(&word)
            || STATES.contains(&word)
            || GOOD_IF_TRUE.contains(&word)
            || !super::lexicon::subjects(&[word.to_owned()]).is_empty()
    };
    name.split('_').all(is_known)
}

/// Whether a text is an identifier: an address, a prefix, a time, a route target, or an interface.
pub(super) fn is_identifier(text: &str) -> bool {
    let has_digit = text.chars().any(|c| c.is_ascii_digit());
    let is_address = text.chars().all(|c| c.is_ascii_hexdigit() || ".:/-TZ+".contains(c))
        && text.contains(['.', ':', '/', '-']);
    has_digit && (is_address || super::query::is_interface(text))
}

/// Whether a member with this name shows the state of its object.
pub(super) fn shows_state(name: &str) -> bool {
    matches!(field(name), Field::State | Field::GoodIfTrue) || name.contains("state")
}
