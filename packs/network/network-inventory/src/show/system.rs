//! `show` output of the devices, a device's system state, and its LLDP neighbours.

use serde_json::{Value, json};

use crate::derive::UPTIME_S;
use crate::description::{Device, Network};
use crate::fault::Fault;

/// CPU and memory utilization of a healthy device, in percent, and its busiest process.
const CPU_PERCENT: u32 = 11;
const CPU_PROCESS: &str = "isis";
const MEMORY_PERCENT: u32 = 43;

const MEMORY_MIB: u32 = 32_768;

pub(crate) fn devices(network: &Network) -> Value {
    let device = |device: &Device| {
        json!({
            "name": device.name,
            "role": device.role.as_str(),
            "management_address": device.loopback,
            "model": device.model,
            "os_version": device.os,
        })
    };
    json!({
        "taken_at": network.taken_at,
        "devices": network.devices.iter().map(device).collect::<Vec<_>>(),
    })
}

/// Version, uptime, CPU and memory of a device.
pub(crate) fn system(network: &Network, device: &Device) -> Value {
    let busy = network.faults.iter().find_map(|fault| match fault {
        Fault::HighCpu { device: at, percent, process } if *at == device.name => {
            Some((*percent, process.as_str()))
        }
        _ => None,
    });
    let (cpu, process) = busy.unwrap_or((CPU_PERCENT, CPU_PROCESS));
    let full = network.faults.iter().find_map(|fault| match fault {
        Fault::HighMemory { device: at, percent } if *at == device.name => Some(*percent),
        _ => None,
    });
    let memory = full.unwrap_or(MEMORY_PERCENT);
    json!({
        "device_name": device.name,
        "role": device.role.as_str(),
        "model": device.model,
        "os_version": device.os,
        "uptime_seconds": UPTIME_S,
        "cpu": {"utilization_percent": cpu, "busiest_process": process},
        "memory": {
            "total_mib": MEMORY_MIB,
            "used_mib": MEMORY_MIB / 100 * memory,
            "utilization_percent": memory,
        },
    })
}

/// LLDP neighbours of a device.
pub(crate) fn topology(network: &Network, device: &Device) -> Value {
    let links = network.circuits(&device.name).map(|circuit| (circuit.near, circuit.far));
    let trunks = network.trunk_ends(&device.name).map(|end| (end.near, end.far));
    let heard = links.chain(trunks).filter(|(near, _)| network.is_up(&near.0, &near.1));
    let neighbor = heard.map(|(near, far)| {
        json!({
            "local_interface": near.1,
            "neighbor": far.0,
            "neighbor_interface": far.1,
            "protocol": "LLDP",
            // The maximum frame size that both ends announce.
            "local_mtu": network.mtu(&near.0, &near.1),
            "neighbor_mtu": network.mtu(&far.0, &far.1),
        })
    });
    json!({"device_name": device.name, "neighbors": neighbor.collect::<Vec<_>>()})
}
