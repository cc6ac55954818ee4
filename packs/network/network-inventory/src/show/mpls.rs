//! `show mpls`: LDP sessions, segment identifiers and the label forwarding table.

use serde_json::{Value, json};

use crate::derive::{FAULT_AGE_S, FLAP_AGE_S, SRGB_START, UPTIME_S};
use crate::description::{Device, Network, Role};

/// Size of the segment routing global block, in labels.
const SRGB_SIZE: u32 = 8_000;

pub(crate) fn mpls(network: &Network, device: &Device) -> Value {
    if device.role == Role::Switch {
        let none = json!({"configured": false});
        return json!({
            "device_name": device.name,
            "mpls": none, "ldp": none, "segment_routing": none, "forwarding": [],
        });
    }
    json!({
        "device_name": device.name,
        "ldp": {"router_id": device.loopback, "sessions": sessions(network, device)},
        "segment_routing": segments(network, device),
        "forwarding": forwarding(network, device),
    })
}

fn sessions(network: &Network, device: &Device) -> Vec<Value> {
    let session = network.core_circuits(&device.name).map(|circuit| {
        let is_up = network.is_ldp_up(circuit);
        let is_flapping = network.is_flapping(&circuit.near.0, &circuit.near.1);
        let since = match (is_up, is_flapping) {
            (true, false) => UPTIME_S,
            (true, true) => FLAP_AGE_S,
            (false, _) => FAULT_AGE_S,
        };
        json!({
            "neighbor": circuit.far.0,
            "interface": circuit.near.1,
            "session_state": if is_up { "OPERATIONAL" } else { "NONEXISTENT" },
            "last_change_seconds": since,
        })
    });
    session.collect()
}

fn segments(network: &Network, device: &Device) -> Value {
    let paths = network.paths(&device.name);
    let is_known =
        |other: &&Device| other.name == device.name || paths.contains_key(other.name.as_str());
    let known: Vec<&Device> = network.devices.iter().filter(is_known).collect();
    let prefixes = known.iter().map(|other| {
        let index = network.sid(other);
        let same: Vec<&str> = known
            .iter()
            .filter(|another| another.name != other.name && network.sid(another) == index)
            .map(|another| another.name.as_str())
            .collect();
        let mut shown = json!({
            "prefix": format!("{}/32", other.loopback),
            "originator": other.name,
            "sid_index": index,
            "label": SRGB_START + index,
            "status": if same.is_empty() { "OK" } else { "CONFLICT" },
        });
        if !same.is_empty() {
            shown["conflicts_with"] = json!(same);
        }
        shown
    });
    json!({
        "srgb": {"start": SRGB_START, "end": SRGB_START + SRGB_SIZE - 1},
        "prefix_sids": prefixes.collect::<Vec<_>>(),
    })
}

fn forwarding(network: &Network, device: &Device) -> Vec<Value> {
    let paths = network.paths(&device.name);
    let entry = paths.into_iter().filter_map(|(to, path)| {
        let destination = network.device(to)?;
        let next = &path.first.far.0;
        let label = if !network.has_label(&device.name, to, path) {
            "Unlabelled".to_owned()
        } else if next == to {
            "Pop".to_owned()
        } else {
            network.ldp_label(next, to).to_string()
        };
        Some(json!({
            "prefix": format!("{}/32", destination.loopback),
            "destination": to,
            "outgoing_label": label,
            "outgoing_interface": path.first.near.1,
            "next_hop": next,
        }))
    });
    entry.collect()
}
