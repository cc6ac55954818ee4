//! `show interfaces`: status and counters.

use serde_json::{Value, json};

use crate::derive::{FAULT_AGE_S, FLAP_AGE_S, UPTIME_S};
use crate::description::{Device, Network};
use crate::refusal::Refusal;

/// Speeds of core interfaces, trunks and customer interfaces, in Gbit/s.
const CORE_GBPS: u32 = 100;
const TRUNK_GBPS: u32 = 10;
const CUSTOMER_GBPS: u32 = 1;

/// All interfaces of a device, or the requested one.
pub(crate) fn interfaces(
    network: &Network,
    device: &Device,
    asked: Option<&str>,
) -> Result<Value, Refusal> {
    let mut all = vec![loopback(device)];
    for circuit in network.circuits(&device.name) {
        let subnet = circuit.link.subnet;
        let address = if circuit.near == &circuit.link.a { subnet.first } else { subnet.second };
        let description = format!("to {} {}", circuit.far.0, circuit.far.1);
        let mut shown =
            physical(network, &circuit.near.0, &circuit.near.1, &description, CORE_GBPS);
        shown["ipv4_address"] = json!(format!("{address}/31"));
        all.push(shown);
    }
    for end in network.trunk_ends(&device.name) {
        let description = format!("trunk to {} {}", end.far.0, end.far.1);
        all.push(physical(network, &end.near.0, &end.near.1, &description, TRUNK_GBPS));
    }
    for (vrf, site) in network.sites(&device.name) {
        let description = format!("customer {}, {}", vrf.name, site.ce_address);
        let name = &site.interface;
        let mut shown = physical(network, &device.name, name, &description, CUSTOMER_GBPS);
        shown["vrf"] = json!(vrf.name);
        all.push(shown);
    }
    if let Some(asked) = asked {
        let is_asked = |shown: &Value| {
            shown["name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case(asked))
        };
        let present: Vec<String> =
            all.iter().filter_map(|shown| shown["name"].as_str().map(str::to_owned)).collect();
        all.retain(is_asked);
        if all.is_empty() {
            let (device, asked) = (device.name.clone(), asked.to_owned());
            return Err(Refusal::Interface { device, asked, present });
        }
    }
    Ok(json!({"device_name": device.name, "interfaces": all}))
}

fn loopback(device: &Device) -> Value {
    json!({
        "name": "Loopback0",
        "description": "router id",
        "admin_status": "UP",
        "oper_status": "UP",
        "ipv4_address": format!("{}/32", device.loopback),
        "mtu": 1_500,
        "last_change_seconds": UPTIME_S,
    })
}

fn physical(network: &Network, device: &str, name: &str, description: &str, gbps: u32) -> Value {
    let is_up = network.is_up(device, name);
    let changed = if network.is_flapping(device, name) {
        FLAP_AGE_S
    } else if is_up {
        UPTIME_S
    } else {
        FAULT_AGE_S
    };
    let crc_errors = network.crc_errors(device, name);
    json!({
        "name": name,
        "description": description,
        "admin_status": "UP",
        "oper_status": if is_up { "UP" } else { "DOWN" },
        "mtu": network.mtu(device, name),
        "speed_gbps": gbps,
        "last_change_seconds": changed,
        "counters": {
            "input_errors": crc_errors,
            "crc_errors": crc_errors,
            "output_errors": 0,
            "output_drops": 0,
            "carrier_transitions": network.transitions(device, name),
        },
    })
}
