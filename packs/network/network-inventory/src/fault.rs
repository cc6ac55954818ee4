//! The faults of a network. A file activates them by name, and the routers' output shows them.

use std::net::Ipv4Addr;

use serde::Deserialize;

use super::campus::Rule;
use super::derive::Circuit;
use super::description::{Link, Network, Site};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Fault {
    /// The link is down at both ends.
    InterfaceDown { device: String, interface: String },
    /// The link goes up and down. It is up at present.
    InterfaceFlapping { device: String, interface: String, transitions: u32 },
    /// Received frames are damaged.
    InterfaceErrors { device: String, interface: String, crc_errors: u64 },
    /// The MTUs of the two ends differ: hellos do not fit, so no adjacency forms.
    Mtu { device: String, interface: String, mtu: u32 },
    /// The BGP session with a neighbour, a device or a customer's address, is down.
    BgpSessionDown { device: String, neighbor: String, reason: String },
    /// Link and routing are up, the LDP session is down.
    LdpSessionDown { device: String, neighbor: String },
    /// The device has no label for a destination, and so no label path through it.
    MissingLabel { device: String, destination: String },
    /// The device advertises the segment identifier of another device.
    DuplicateSid { device: String, sid_of: String },
    /// A VRF imports route targets that no site exports.
    RouteTarget { device: String, vrf: String, import_route_targets: Vec<String> },
    /// A VRF limits its routes to this number.
    PrefixLimit { device: String, vrf: String, limit: u32 },
    /// A process uses the whole CPU.
    HighCpu { device: String, percent: u32, process: String },
    /// Memory is nearly exhausted.
    HighMemory { device: String, percent: u32 },
    /// An OSPF interface is in another area than the far end: no adjacency forms.
    OspfArea { device: String, interface: String, area: Ipv4Addr },
    /// A switch has another priority than designed, so that it may become the root.
    BridgePriority { device: String, priority: u32 },
    /// A spanning tree port is blocked because of what it receives.
    StpInconsistent { device: String, interface: String, inconsistency: String },
    /// One end of a trunk does not allow a VLAN.
    VlanNotAllowed { device: String, interface: String, vlan: u16 },
    /// One end of a trunk has another native VLAN.
    NativeVlan { device: String, interface: String, vlan: u16 },
    /// An access list has a rule that its design lacks.
    AccessRule { device: String, access_list: String, rule: Rule },
    /// A name server answers with an error, or not at all (`TIMEOUT`).
    NameServer { address: Ipv4Addr, rcode: String },
}

impl Fault {
    /// Checks that every name it uses exists in the network.
    pub(super) fn check(&self, network: &Network) -> Result<(), String> {
        match self {
            Self::InterfaceDown { device, interface }
            | Self::InterfaceFlapping { device, interface, .. }
            | Self::InterfaceErrors { device, interface, .. } => {
                has_interface(network, device, interface)
            }
            Self::OspfArea { device, interface, .. } => has_ospf(network, device, interface),
            Self::BridgePriority { device, .. } => {
                let is_bridge = network.campus.bridge(device).is_some();
                is_bridge.then_some(()).ok_or_else(|| format!("`{device}` is no bridge"))
            }
            Self::StpInconsistent { device, interface, .. }
            | Self::VlanNotAllowed { device, interface, .. }
            | Self::NativeVlan { device, interface, .. } => {
                let has = network.trunk_ends(device).any(|end| end.near.1 == *interface);
                has.then_some(()).ok_or_else(|| format!("`{device}` has no trunk `{interface}`"))
            }
            Self::AccessRule { device, access_list, .. } => {
                let mut lists = network.campus.access_lists.iter();
                let has = lists.any(|list| list.device == *device && list.name == *access_list);
                has.then_some(())
                    .ok_or_else(|| format!("`{device}` has no access list `{access_list}`"))
            }
            Self::NameServer { address, .. } => {
                let has = network.campus.name_servers.contains(address);
                has.then_some(()).ok_or_else(|| format!("unknown name server `{address}`"))
            }
            Self::Mtu { device, interface, mtu } => {
                has_interface(network, device, interface)?;
                let is_mtu = (64..=65_535).contains(mtu);
                is_mtu.then_some(()).ok_or_else(|| format!("`mtu` must be 64 to 65535, not {mtu}"))
            }
            Self::BgpSessionDown { device, neighbor, .. } => {
                has_device(network, device)?;
                let is_customer = |site: &Site| site.ce_address.to_string() == *neighbor;
                if network.sites(device).any(|(_, site)| is_customer(site)) {
                    return Ok(());
                }
                has_device(network, neighbor)
            }
            Self::LdpSessionDown { device, neighbor: other } => {
                let are = |link: &Link| link.connects(device, other);
                let linked = network.links.iter().any(are);
                linked
                    .then_some(())
                    .ok_or_else(|| format!("no link connects `{device}` and `{other}`"))
            }
            Self::MissingLabel { device, destination: other }
            | Self::DuplicateSid { device, sid_of: other } => {
                has_device(network, device)?;
                has_device(network, other)
            }
            Self::RouteTarget { device, vrf, .. } | Self::PrefixLimit { device, vrf, .. } => {
                let mut sites = network.sites(device);
                let has = sites.any(|(known, _)| known.name == *vrf);
                has.then_some(()).ok_or_else(|| format!("`{device}` has no VRF `{vrf}`"))
            }
            Self::HighCpu { device, percent, .. } | Self::HighMemory { device, percent } => {
                has_device(network, device)?;
                let is_share = (1..=100).contains(percent);
                is_share
                    .then_some(())
                    .ok_or_else(|| format!("`percent` must be 1 to 100, not {percent}"))
            }
        }
    }
}

fn has_device(network: &Network, name: &str) -> Result<(), String> {
    network.device(name).map(|_| ()).ok_or_else(|| format!("unknown device `{name}`"))
}

fn has_ospf(network: &Network, device: &str, interface: &str) -> Result<(), String> {
    has_interface(network, device, interface)?;
    let is_ospf = |c: &Circuit<'_>| c.near.1 == interface && c.link.ospf_area.is_some();
    let has = network.circuits(device).any(|circuit| is_ospf(&circuit));
    has.then_some(()).ok_or_else(|| format!("`{interface}` of `{device}` has no OSPF"))
}

fn has_interface(network: &Network, device: &str, interface: &str) -> Result<(), String> {
    has_device(network, device)?;
    let has = network.has_interface(device, interface);
    has.then_some(()).ok_or_else(|| format!("`{device}` has no interface `{interface}`"))
}

impl Link {
    /// Whether it joins these two devices.
    pub(super) fn connects(&self, one: &str, other: &str) -> bool {
        let (a, b) = (self.a.0.as_str(), self.b.0.as_str());
        (a == one && b == other) || (a == other && b == one)
    }
}
