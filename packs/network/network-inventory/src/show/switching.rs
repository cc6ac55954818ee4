//! `show` output of a campus switch: spanning tree, VLANs, trunks, access lists, name servers.

use serde_json::{Value, json};

use crate::campus::{Bridge, Port, TrunkEnd};
use crate::description::{Device, Network};

/// VLANs, trunks and the spanning tree of a device.
pub(crate) fn switching(network: &Network, device: &Device) -> Value {
    let Some(bridge) = network.campus.bridge(&device.name) else {
        let none = json!({"configured": false});
        return json!({"device_name": device.name, "spanning_tree": none, "vlans": [], "trunks": []});
    };
    let vlans = network.campus.vlans.iter();
    let vlan = |vlan: &crate::campus::Vlan| json!({"vlan_id": vlan.id, "name": vlan.name, "status": "active"});
    json!({
        "device_name": device.name,
        "spanning_tree": spanning_tree(network, bridge),
        "vlans": vlans.map(vlan).collect::<Vec<_>>(),
        "trunks": network.trunk_ends(&device.name).map(|end| trunk(network, end)).collect::<Vec<_>>(),
    })
}

fn spanning_tree(network: &Network, bridge: &Bridge) -> Value {
    let identifier = |(priority, mac): (u32, &str)| format!("{priority} {mac}");
    let port = |end: TrunkEnd<'_>| {
        let is_up = network.is_up(&end.near.0, &end.near.1);
        let (role, state) = match network.port(end) {
            _ if !is_up => ("Desg", "DOWN"),
            Port::Root => ("Root", "FWD"),
            Port::Designated => ("Desg", "FWD"),
            Port::Alternate => ("Altn", "BLK"),
            Port::Inconsistent => ("Desg", "BKN*"),
        };
        let mut shown = json!({
            "port": end.near.1, "role": role, "state": state, "cost": end.trunk.cost, "type": "P2p",
        });
        if let Some(why) = network.inconsistency(end) {
            shown["reason"] = json!(why);
        }
        shown
    };
    json!({
        "mode": "rstp",
        "bridge_id": identifier(network.id_of(bridge)),
        "root_bridge": network.root(false).map(|(_, id)| identifier(id)),
        "expected_root_bridge": network.root(true).map(|(_, id)| identifier(id)),
        "root_cost": network.root_cost(&bridge.device),
        "ports": network.trunk_ends(&bridge.device).map(port).collect::<Vec<_>>(),
    })
}

/// A trunk, with what the neighbor announces over CDP and LLDP.
fn trunk(network: &Network, end: TrunkEnd<'_>) -> Value {
    let list = |vlans: Vec<u16>| vlans.iter().map(u16::to_string).collect::<Vec<_>>().join(",");
    let is_up = network.is_up(&end.near.0, &end.near.1);
    json!({
        "interface": end.near.1,
        "status": if is_up { "trunking" } else { "not-trunking" },
        "encapsulation": "802.1q",
        "neighbor": end.far.0,
        "native_vlan": network.native_vlan(end.near, end.trunk),
        "neighbor_native_vlan": network.native_vlan(end.far, end.trunk),
        "allowed_vlans": list(network.allowed_vlans(end.near, end.trunk)),
        "neighbor_allowed_vlans": list(network.allowed_vlans(end.far, end.trunk)),
    })
}

/// `show access-lists`.
pub(crate) fn access_lists(network: &Network, device: &Device) -> Value {
    let lists = network.campus.access_lists.iter().filter(|list| list.device == device.name);
    let shown = lists.map(|list| {
        let rule = |rule: crate::campus::Rule| {
            json!({
                "sequence": rule.sequence, "action": rule.action, "protocol": rule.protocol,
                "source": rule.source, "destination": rule.destination, "matches": rule.matches,
            })
        };
        let rules = network.rules(list).into_iter().map(rule);
        json!({
            "name": list.name, "interface": list.interface, "direction": "in",
            "rules": rules.collect::<Vec<_>>(),
        })
    });
    json!({"device_name": device.name, "access_lists": shown.collect::<Vec<_>>()})
}

/// `show hosts` with a test of each name.
pub(crate) fn name_resolution(network: &Network, device: &Device) -> Value {
    let campus = &network.campus;
    if campus.name_servers.is_empty() {
        return json!({"device_name": device.name, "dns": {"configured": false}});
    }
    let server = |address: &std::net::Ipv4Addr| {
        let rcode = network.rcode(*address);
        json!({
            "address": address,
            "name": address.to_string(),
            "status": if rcode == Some("TIMEOUT") { "timed out" } else { "reachable" },
        })
    };
    // A resolver asks the first server; it asks the next one only if that one is silent.
    let first =
        campus.name_servers.iter().find(|address| network.rcode(**address) != Some("TIMEOUT"));
    let rcode = first.map_or("TIMEOUT", |address| network.rcode(*address).unwrap_or("NOERROR"));
    let lookups = campus.lookups.iter().map(|lookup| {
        let answers = if rcode == "NOERROR" { vec![lookup.address] } else { Vec::new() };
        json!({"query": lookup.name, "rcode": rcode, "answers": answers})
    });
    json!({
        "device_name": device.name,
        "dns": {
            "name_servers": campus.name_servers.iter().map(server).collect::<Vec<_>>(),
            "lookups": lookups.collect::<Vec<_>>(),
        },
    })
}
