//! `show logging`: routine entries and those of faults.

use chrono::{Duration, SecondsFormat};
use serde_json::{Value, json};

use crate::arguments::{Keywords, Minutes};
use crate::campus::TrunkEnd;
use crate::derive::{BgpState, FAULT_AGE_S, FLAP_AGE_S, Peer};
use crate::description::{Device, Network};
use crate::fault::Fault;

/// Most log entries of one flapping link.
const FLAPS_LOGGED_MAX: u32 = 8;

/// Seconds between two transitions of a flapping link.
const FLAP_EVERY_S: u64 = 47;

struct Entry {
    age_s: u64,
    /// Syslog severity: 0 is the worst, 7 the least.
    ///
    /// Source: RFC 5424, section 6.2.1.
    severity: u8,
    mnemonic: &'static str,
    message: String,
}

fn entry(age_s: u64, severity: u8, mnemonic: &'static str, message: String) -> Entry {
    Entry { age_s, severity, mnemonic, message }
}

/// The entries of the last minutes that contain one of the keywords, oldest first.
pub(crate) fn logs(
    network: &Network,
    device: &Device,
    keywords: Option<&Keywords>,
    minutes: Minutes,
) -> Value {
    let mut entries = all(network, device);
    entries.retain(|entry| {
        let text = format!("{} {}", entry.mnemonic, entry.message).to_lowercase();
        let has = |keywords: &Keywords| keywords.0.iter().any(|word| text.contains(word.as_str()));
        entry.age_s <= u64::from(minutes.0) * 60 && keywords.is_none_or(has)
    });
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.age_s));
    let shown = entries.iter().map(|entry| {
        let age = Duration::seconds(i64::try_from(entry.age_s).unwrap_or(i64::MAX));
        let at = network.taken_at.checked_sub_signed(age).unwrap_or(network.taken_at);
        json!({
            "timestamp": at.to_rfc3339_opts(SecondsFormat::Secs, true),
            "severity": entry.severity,
            "mnemonic": entry.mnemonic,
            "message": entry.message,
        })
    });
    json!({
        "device_name": device.name,
        "minutes": minutes.0,
        "entries": shown.collect::<Vec<_>>(),
    })
}

fn all(network: &Network, device: &Device) -> Vec<Entry> {
    let mut entries = vec![
        entry(3_300, 6, "SECURITY-SSHD-6-INFO_SUCCESS", "user netops logged in".to_owned()),
        entry(1_500, 6, "MGBL-CONFIG-6-DB_COMMIT", "configuration committed by netops".to_owned()),
        entry(240, 6, "INFRA-NTP-6-SYNC", "clock synchronised, stratum 2".to_owned()),
    ];
    for circuit in network.circuits(&device.name) {
        let (interface, neighbor) = (&circuit.near.1, &circuit.far.0);
        if !network.is_up(&circuit.near.0, interface) {
            entries.extend(fallen(interface, neighbor));
        } else if network.is_flapping(&circuit.near.0, interface) {
            entries.extend(flaps(network.transitions(&circuit.near.0, interface), interface));
        }
        let (near, far) =
            (network.mtu(&circuit.near.0, interface), network.mtu(&circuit.far.0, &circuit.far.1));
        let areas =
            (network.area(circuit.near, circuit.link), network.area(circuit.far, circuit.link));
        if let (Some(near), Some(far)) = areas
            && near != far
        {
            let message = format!(
                "Received invalid packet: mismatched area ID, from {neighbor}, {interface} is in {near}, not {far}"
            );
            entries.push(entry(FAULT_AGE_S, 4, "OSPF-4-ERRRCV", message));
        }
        if near != far && circuit.link.ospf_area.is_some() {
            let message = format!("{interface}: MTU mismatch, local {near}, {neighbor} {far}");
            entries.push(entry(FAULT_AGE_S, 4, "OSPF-4-MTU", message));
        } else if near != far {
            let message = format!("{interface}: MTU mismatch, local {near}, {neighbor} {far}");
            entries.push(entry(FAULT_AGE_S, 4, "ROUTING-ISIS-4-MTU", message));
        }
        let has_labels = circuit.link.ospf_area.is_none();
        if has_labels && network.is_up(&circuit.near.0, interface) && !network.is_ldp_up(circuit) {
            let message = format!("session with {neighbor} down: discovery hellos not received");
            entries.push(entry(FAULT_AGE_S, 5, "ROUTING-LDP-5-NBR_CHANGE", message));
        }
    }
    entries.extend(closed_sessions(network, device));
    for end in network.trunk_ends(&device.name) {
        entries.extend(of_trunk(network, end));
    }
    entries.extend(network.faults.iter().filter_map(|fault| of_fault(network, device, fault)));
    entries
}

/// Log entries of a trunk.
fn of_trunk(network: &Network, end: TrunkEnd<'_>) -> Vec<Entry> {
    let (interface, neighbor) = (&end.near.1, &end.far.0);
    let mut entries = Vec::new();
    if !network.is_up(&end.near.0, interface) {
        let line = format!("interface {interface} changed state to Down");
        entries.push(entry(FAULT_AGE_S, 3, "LINK-3-UPDOWN", line));
    }
    let (near, far) =
        (network.native_vlan(end.near, end.trunk), network.native_vlan(end.far, end.trunk));
    if near != far {
        let message = format!(
            "Native VLAN mismatch discovered on {interface} ({near}), with {neighbor} {} ({far})",
            end.far.1
        );
        entries.push(entry(FAULT_AGE_S, 4, "CDP-4-NATIVE_VLAN_MISMATCH", message));
    }
    if let Some(why) = network.inconsistency(end) {
        let message = format!("Blocking {interface}: {why}");
        entries.push(entry(FAULT_AGE_S, 2, "SPANTREE-2-INCONSISTENT", message));
    }
    entries
}

fn fallen(interface: &str, neighbor: &str) -> [Entry; 3] {
    let line = format!("interface {interface} changed state to Down");
    let adjacency = format!("adjacency to {neighbor} on {interface} down: interface state down");
    let session = format!("session with {neighbor} down: interface state down");
    [
        entry(FAULT_AGE_S, 3, "PKT_INFRA-LINK-3-UPDOWN", line),
        entry(FAULT_AGE_S, 4, "ROUTING-ISIS-4-ADJCHANGE", adjacency),
        entry(FAULT_AGE_S, 5, "ROUTING-LDP-5-NBR_CHANGE", session),
    ]
}

fn flaps(transitions: u32, interface: &str) -> Vec<Entry> {
    let logged = transitions.min(FLAPS_LOGGED_MAX);
    let change = |number: u32| {
        let state = if number.is_multiple_of(2) { "Up" } else { "Down" };
        let message = format!("interface {interface} changed state to {state}");
        let age = FLAP_AGE_S + u64::from(number) * FLAP_EVERY_S;
        entry(age, 3, "PKT_INFRA-LINK-3-UPDOWN", message)
    };
    (0..logged).map(change).collect()
}

fn closed_sessions(network: &Network, device: &Device) -> Vec<Entry> {
    let sessions = network.sessions(device).into_iter();
    let closed = sessions.filter_map(|(peer, session)| {
        let reason = match session {
            BgpState::Established => return None,
            BgpState::Idle(reason) => reason,
            BgpState::Active => "no route to the neighbor".to_owned(),
        };
        let address = match peer {
            Peer::Internal(other) => other.loopback,
            Peer::Customer(_, site) => site.ce_address,
        };
        let message = format!("neighbor {address} Down - {reason}");
        Some(entry(FAULT_AGE_S, 5, "ROUTING-BGP-5-ADJCHANGE", message))
    });
    closed.collect()
}

/// Log entries of faults that no session state shows.
fn of_fault(network: &Network, device: &Device, fault: &Fault) -> Option<Entry> {
    let is_here = |at: &str| at == device.name;
    match fault {
        Fault::InterfaceErrors { device: at, interface, crc_errors } if is_here(at) => {
            let message = format!("{interface}: {crc_errors} CRC errors, threshold exceeded");
            Some(entry(FAULT_AGE_S, 4, "PLATFORM-PHY-4-SYMBOL_ERRORS", message))
        }
        Fault::MissingLabel { device: at, destination } if is_here(at) => {
            let loopback = network.device(destination)?.loopback;
            let message = format!("no label for {loopback}/32: allocation failed");
            Some(entry(FAULT_AGE_S, 4, "ROUTING-LDP-4-LABEL_ALLOC", message))
        }
        Fault::DuplicateSid { device: at, sid_of } => {
            let message = format!("prefix SID of {sid_of} is also advertised by {at}: conflict");
            Some(entry(FAULT_AGE_S, 4, "ROUTING-ISIS-4-SID_CONFLICT", message))
        }
        Fault::PrefixLimit { device: at, vrf, limit } if is_here(at) => {
            let message =
                format!("VRF {vrf}: maximum of {limit} routes reached, further are refused");
            Some(entry(FAULT_AGE_S, 4, "ROUTING-BGP-4-MAXPFX", message))
        }
        Fault::HighCpu { device: at, percent, process } if is_here(at) => {
            let message = format!("CPU utilization {percent}%, process {process}");
            Some(entry(FAULT_AGE_S, 4, "HA-WD-4-CPU_HOG", message))
        }
        Fault::BridgePriority { .. } if network.campus.bridge(&device.name).is_some() => {
            let message = "the root bridge of the spanning tree changed".to_owned();
            Some(entry(FAULT_AGE_S, 5, "SPANTREE-5-ROOTCHANGE", message))
        }
        Fault::NameServer { address, rcode } => {
            let message = format!("name server {address}: {rcode}, lookups failed");
            Some(entry(FAULT_AGE_S, 4, "DNS-4-LOOKUP", message))
        }
        Fault::AccessRule { device: at, access_list, rule }
            if is_here(at) && rule.action == "deny" =>
        {
            let (source, destination) = (&rule.source, &rule.destination);
            let message =
                format!("list {access_list} denied {} {source} -> {destination}", rule.protocol);
            Some(entry(FAULT_AGE_S, 6, "SEC-6-IPACCESSLOGP", message))
        }
        Fault::HighMemory { device: at, percent } if is_here(at) => {
            let message = format!("memory utilization {percent}%, state severe");
            Some(entry(FAULT_AGE_S, 3, "HA-WD-3-MEMORY", message))
        }
        _ => None,
    }
}
