//! `show` output of IS-IS and BGP: adjacencies, sessions and prefix counts.

use serde_json::{Value, json};

use crate::arguments::Protocol;
use crate::derive::{Adjacency, BgpState, Circuit, FAULT_AGE_S, FLAP_AGE_S, Peer, UPTIME_S};
use crate::description::{Device, Network, Role};

pub(crate) fn routing(network: &Network, device: &Device, protocol: Protocol) -> Value {
    let mut shown = json!({"device_name": device.name});
    let is_asked = |of: Protocol| protocol == Protocol::All || protocol == of;
    if is_asked(Protocol::Isis) {
        shown["isis"] = isis(network, device);
    }
    if is_asked(Protocol::Ospf) {
        shown["ospf"] = ospf(network, device);
    }
    if is_asked(Protocol::Bgp) {
        shown["bgp"] = bgp(network, device);
    }
    shown
}

/// `show ip ospf neighbor` and `show ip ospf interface`. A neighbor in another area is not in the list.
fn ospf(network: &Network, device: &Device) -> Value {
    let circuits: Vec<Circuit<'_>> =
        network.circuits(&device.name).filter(|circuit| circuit.link.ospf_area.is_some()).collect();
    if circuits.is_empty() {
        return json!({"configured": false});
    }
    let neighbors = circuits.iter().filter_map(|circuit| {
        let state = match network.adjacency(*circuit) {
            Adjacency::Up => "FULL",
            // Database descriptions do not fit the smaller MTU.
            Adjacency::Init => "EXSTART",
            Adjacency::Absent | Adjacency::Down => return None,
        };
        let far = network.device(&circuit.far.0)?;
        Some(json!({
            "neighbor_id": far.loopback,
            "neighbor_name": far.name,
            "interface": circuit.near.1,
            "area": network.area(circuit.near, circuit.link),
            "state": format!("{state}/-"),
            "dead_time": "00:00:35",
        }))
    });
    let interfaces = circuits.iter().map(|circuit| {
        let is_up = network.is_up(&circuit.near.0, &circuit.near.1);
        json!({
            "name": circuit.near.1,
            "area": network.area(circuit.near, circuit.link),
            "network_type": "point-to-point",
            "state": if is_up { "P2P" } else { "DOWN" },
            "hello_interval": 10,
            "dead_interval": 40,
            "cost": circuit.link.metric,
            "neighbor_count": u8::from(matches!(network.adjacency(*circuit), Adjacency::Up | Adjacency::Init)),
        })
    });
    json!({
        "process": "1",
        "router_id": device.loopback,
        "neighbors": neighbors.collect::<Vec<_>>(),
        "interfaces": interfaces.collect::<Vec<_>>(),
    })
}

fn isis(network: &Network, device: &Device) -> Value {
    if device.role == Role::Switch {
        return json!({"configured": false});
    }
    let neighbors = network.core_circuits(&device.name).map(|circuit| {
        let state = network.adjacency(circuit);
        let is_flapping = network.is_flapping(&circuit.near.0, &circuit.near.1);
        let (state, since) = match state {
            Adjacency::Up if is_flapping => ("UP", FLAP_AGE_S),
            Adjacency::Up => ("UP", UPTIME_S),
            Adjacency::Init => ("INIT", FAULT_AGE_S),
            Adjacency::Absent | Adjacency::Down => ("DOWN", FAULT_AGE_S),
        };
        json!({
            "neighbor": circuit.far.0,
            "interface": circuit.near.1,
            "level": 2,
            "adjacency_state": state,
            "last_change_seconds": since,
            "metric": circuit.link.metric,
        })
    });
    json!({
        "instance": "core",
        "neighbors": neighbors.collect::<Vec<_>>(),
        "routes": network.paths(&device.name).len(),
    })
}

fn bgp(network: &Network, device: &Device) -> Value {
    if device.role == Role::Switch {
        return json!({"configured": false});
    }
    if device.role == Role::P {
        return json!({"configured": false, "note": "a P router carries labels and speaks no BGP"});
    }
    let neighbors = network.sessions(device).into_iter().map(|(peer, session)| {
        let mut shown = match &peer {
            Peer::Internal(other) => json!({
                "neighbor_address": other.loopback,
                "neighbor_name": other.name,
                "remote_as": network.as_number,
                "address_families": [family(network, other, &session)],
            }),
            Peer::Customer(vrf, site) => json!({
                "neighbor_address": site.ce_address,
                "neighbor_name": format!("customer {}", vrf.name),
                "vrf": vrf.name,
                "remote_as": site.ce_as,
                "address_families": [{
                    "name": "ipv4_unicast",
                    "prefixes_received":
                        if session == BgpState::Established { site.prefixes.len() } else { 0 },
                }],
            }),
        };
        let (state, since, error) = match session {
            BgpState::Established => ("ESTABLISHED", UPTIME_S, None),
            BgpState::Idle(reason) => ("IDLE", FAULT_AGE_S, Some(reason)),
            BgpState::Active => {
                ("ACTIVE", FAULT_AGE_S, Some("no route to the neighbor".to_owned()))
            }
        };
        shown["session_state"] = json!(state);
        shown["last_change_seconds"] = json!(since);
        if let Some(error) = error {
            shown["last_error"] = json!(error);
        }
        shown
    });
    json!({
        "local_as": network.as_number,
        "router_id": device.loopback,
        "neighbors": neighbors.collect::<Vec<_>>(),
    })
}

/// VPN prefixes received from a neighbour: an edge sends its own, a reflector those of all edges.
fn family(network: &Network, other: &Device, session: &BgpState) -> Value {
    let sites = network.vrfs.iter().flat_map(|vrf| &vrf.sites);
    let advertised = sites.filter(|site| other.role == Role::Rr || site.device == other.name);
    let received: usize = match session {
        BgpState::Established => advertised.map(|site| site.prefixes.len()).sum(),
        BgpState::Idle(_) | BgpState::Active => 0,
    };
    json!({"name": "vpnv4_unicast", "prefixes_received": received})
}
