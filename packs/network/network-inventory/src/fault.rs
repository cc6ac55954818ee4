//! The faults of a network. A file activates a fault by name; the routers' output follows from it.

use serde::Deserialize;

use super::description::{Link, Network, Site};

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Fault {
    /// The line is dead: both of its ends are down.
    InterfaceDown { device: String, interface: String },
    /// The line comes and goes. It is up at the moment.
    InterfaceFlapping { device: String, interface: String, transitions: u32 },
    /// What arrives there is damaged on the way.
    InterfaceErrors { device: String, interface: String, crc_errors: u64 },
    /// Another MTU than at the other end: hellos do not fit, no adjacency forms.
    Mtu { device: String, interface: String, mtu: u32 },
    /// The session with a neighbour, another device or a customer's address, is down.
    BgpSessionDown { device: String, neighbor: String, reason: String },
    /// The line and the routing are up, the label session is not.
    LdpSessionDown { device: String, neighbor: String },
    /// The device has no label for the way to a destination, and so no label path through it.
    MissingLabel { device: String, destination: String },
    /// The device advertises the segment identifier of another one.
    DuplicateSid { device: String, sid_of: String },
    /// A VRF imports other route targets than its sites export.
    RouteTarget { device: String, vrf: String, import_route_targets: Vec<String> },
    /// A VRF takes no more routes than this.
    PrefixLimit { device: String, vrf: String, limit: u32 },
    /// A process takes the processor.
    HighCpu { device: String, percent: u32, process: String },
    /// Memory runs out.
    HighMemory { device: String, percent: u32 },
}

impl Fault {
    /// Whether all that it names is in the network.
    pub(super) fn check(&self, network: &Network) -> Result<(), String> {
        match self {
            Self::InterfaceDown { device, interface }
            | Self::InterfaceFlapping { device, interface, .. }
            | Self::InterfaceErrors { device, interface, .. } => {
                has_interface(network, device, interface)
            }
            Self::Mtu { device, interface, mtu } => {
                has_interface(network, device, interface)?;
                let is_mtu = (64..=65_535).contains(mtu);
                is_mtu.then_some(()).ok_or_else(|| format!("`mtu` is from 64 to 65535, not {mtu}"))
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
                    .ok_or_else(|| format!("no link joins `{device}` and `{other}`"))
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
                    .ok_or_else(|| format!("`percent` is 1 to 100, not {percent}"))
            }
        }
    }
}

fn has_device(network: &Network, name: &str) -> Result<(), String> {
    network.device(name).map(|_| ()).ok_or_else(|| format!("there is no device `{name}`"))
}

fn has_interface(network: &Network, device: &str, interface: &str) -> Result<(), String> {
    has_device(network, device)?;
    let has = network.has_interface(device, interface);
    has.then_some(()).ok_or_else(|| format!("`{device}` has no interface `{interface}`"))
}

impl Link {
    /// Whether it joins these two.
    pub(super) fn connects(&self, one: &str, other: &str) -> bool {
        let (a, b) = (self.a.0.as_str(), self.b.0.as_str());
        (a == one && b == other) || (a == other && b == one)
    }
}
