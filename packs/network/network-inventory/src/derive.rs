//! Derives the state of a network from its description and faults: links, adjacencies, sessions,
//! paths and routes.
//!
//! An interface that is down has no adjacency and no LDP session at either end; an unreachable
//! device has no sessions; a route needs a session.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::description::{Device, End, Link, Network, Role, Site, Vrf};
use super::fault::Fault;

/// Default interface MTU, in bytes.
const MTU: u32 = 9_192;

/// Uptime of everything without a fault, in seconds: 41 days.
pub(super) const UPTIME_S: u64 = 41 * 86_400;

/// Age of a fault, in seconds.
pub(super) const FAULT_AGE_S: u64 = 660;

/// Time since a flapping link last came up, in seconds.
pub(super) const FLAP_AGE_S: u64 = 95;

/// First label of the segment routing global block.
pub(super) const SRGB_START: u32 = 16_000;

/// First label that a device allocates for LDP.
const LDP_LABEL_FIRST: u32 = 24_000;

/// A link as one of its devices sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Circuit<'a> {
    pub link: &'a Link,
    pub near: &'a End,
    pub far: &'a End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Adjacency {
    Up,
    /// Hellos arrive in one direction only.
    Init,
    /// No hello is accepted.
    Absent,
    Down,
}

/// A BGP neighbour.
#[derive(Debug, Clone)]
pub(super) enum Peer<'a> {
    Internal(&'a Device),
    Customer(&'a Vrf, &'a Site),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BgpState {
    Established,
    /// Closed, with the reason.
    Idle(String),
    /// The neighbour is unreachable.
    Active,
}

#[derive(Debug, Clone)]
pub(super) struct VpnRoute<'a> {
    pub prefix: &'a str,
    /// The device that the customer's site is attached to.
    pub from: &'a Device,
    pub label: u32,
}

/// The shortest path to another device.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShortestPath<'a> {
    pub first: Circuit<'a>,
    pub metric: u32,
}

impl Network {
    pub(super) fn circuits<'a>(&'a self, device: &'a str) -> impl Iterator<Item = Circuit<'a>> {
        self.links.iter().filter_map(move |link| {
            if link.a.0 == device {
                Some(Circuit { link, near: &link.a, far: &link.b })
            } else if link.b.0 == device {
                Some(Circuit { link, near: &link.b, far: &link.a })
            } else {
                None
            }
        })
    }

    /// The circuits with IS-IS and labels.
    pub(super) fn core_circuits<'a>(
        &'a self,
        device: &'a str,
    ) -> impl Iterator<Item = Circuit<'a>> {
        self.circuits(device).filter(|circuit| circuit.link.ospf_area.is_none())
    }

    /// The OSPF area of an interface.
    pub(super) fn area(&self, at: &End, link: &Link) -> Option<Ipv4Addr> {
        let set = self.faults.iter().find_map(|fault| match fault {
            Fault::OspfArea { device, interface, area }
                if *device == at.0 && *interface == at.1 =>
            {
                Some(*area)
            }
            _ => None,
        });
        link.ospf_area.map(|area| set.unwrap_or(area))
    }

    /// The other end of an interface's link or trunk.
    fn far_end<'a>(&'a self, device: &'a str, interface: &str) -> Option<&'a End> {
        let link = self.circuits(device).find(|circuit| circuit.near.1 == interface);
        let trunk = || self.trunk_ends(device).find(|end| end.near.1 == interface);
        link.map(|circuit| circuit.far).or_else(|| trunk().map(|end| end.far))
    }

    /// Whether an interface is up: neither it nor the far end of its link is down.
    pub(super) fn is_up(&self, device: &str, interface: &str) -> bool {
        let far = self.far_end(device, interface);
        let is_dead = |at: &str, name: &str| {
            self.faults.iter().any(|fault| {
                matches!(fault, Fault::InterfaceDown { device, interface }
                    if device == at && interface == name)
            })
        };
        !is_dead(device, interface) && far.is_none_or(|far| !is_dead(&far.0, &far.1))
    }

    /// How often the interface has gone up or down.
    pub(super) fn transitions(&self, device: &str, interface: &str) -> u32 {
        let far = self.far_end(device, interface);
        let flapping = self.faults.iter().find_map(|fault| match fault {
            Fault::InterfaceFlapping { device: at, interface: name, transitions } => {
                let is_here = at == device && name == interface;
                let is_there = far.is_some_and(|far| far.0 == *at && far.1 == *name);
                (is_here || is_there).then_some(*transitions)
            }
            _ => None,
        });
        let fallen = u32::from(!self.is_up(device, interface));
        flapping.unwrap_or(1) + fallen
    }

    pub(super) fn is_flapping(&self, device: &str, interface: &str) -> bool {
        self.transitions(device, interface) > 2
    }

    /// The MTU of an interface, in bytes.
    pub(super) fn mtu(&self, at: &str, name: &str) -> u32 {
        let set = self.faults.iter().find_map(|fault| match fault {
            Fault::Mtu { device, interface, mtu } if device == at && interface == name => {
                Some(*mtu)
            }
            _ => None,
        });
        set.unwrap_or(MTU)
    }

    pub(super) fn crc_errors(&self, at: &str, name: &str) -> u64 {
        let set = self.faults.iter().find_map(|fault| match fault {
            Fault::InterfaceErrors { device, interface, crc_errors }
                if device == at && interface == name =>
            {
                Some(*crc_errors)
            }
            _ => None,
        });
        set.unwrap_or(0)
    }

    pub(super) fn adjacency(&self, circuit: Circuit<'_>) -> Adjacency {
        let (near, far) = (circuit.near, circuit.far);
        if !self.is_up(&near.0, &near.1) {
            Adjacency::Down
        } else if self.area(near, circuit.link) != self.area(far, circuit.link) {
            Adjacency::Absent
        } else if self.mtu(&near.0, &near.1) != self.mtu(&far.0, &far.1) {
            Adjacency::Init
        } else {
            Adjacency::Up
        }
    }

    pub(super) fn is_ldp_up(&self, circuit: Circuit<'_>) -> bool {
        let is_broken = self.faults.iter().any(|fault| {
            matches!(fault, Fault::LdpSessionDown { device, neighbor }
                if circuit.link.connects(device, neighbor))
        });
        self.is_up(&circuit.near.0, &circuit.near.1) && !is_broken
    }

    /// The shortest paths from a device to all devices that it reaches, by name. Among equals, the
    /// path over the first link in the file wins.
    pub(super) fn paths<'a>(&'a self, from: &'a str) -> BTreeMap<&'a str, ShortestPath<'a>> {
        let mut settled: BTreeMap<&str, ShortestPath<'a>> = BTreeMap::new();
        let mut open: BTreeMap<&str, ShortestPath<'a>> = BTreeMap::new();
        let mut here: (&str, Option<ShortestPath<'a>>) = (from, None);
        loop {
            for circuit in self.circuits(here.0) {
                let to = circuit.far.0.as_str();
                let is_known = to == from || settled.contains_key(to);
                if is_known || self.adjacency(circuit) != Adjacency::Up {
                    continue;
                }
                let metric = here.1.map_or(0, |path| path.metric) + circuit.link.metric;
                let first = here.1.map_or(circuit, |path| path.first);
                if open.get(to).is_none_or(|path| metric < path.metric) {
                    open.insert(to, ShortestPath { first, metric });
                }
            }
            let nearest =
                open.iter().min_by_key(|(_, path)| path.metric).map(|(to, path)| (*to, *path));
            let Some((to, path)) = nearest else { return settled };
            open.remove(to);
            settled.insert(to, path);
            here = (to, Some(path));
        }
    }

    /// The LDP label that a device allocates for a destination.
    pub(super) fn ldp_label(&self, device: &str, destination: &str) -> u32 {
        let index = |name: &str| self.devices.iter().position(|device| device.name == name);
        let (at, to) = (index(device).unwrap_or(0), index(destination).unwrap_or(0));
        LDP_LABEL_FIRST + u32::try_from((at * 7 + to) % 1_000).unwrap_or(0)
    }

    /// Whether a device has a label for a destination.
    pub(super) fn has_label(&self, at: &str, to: &str, path: ShortestPath<'_>) -> bool {
        let is_missing = self.faults.iter().any(|fault| {
            matches!(fault, Fault::MissingLabel { device, destination }
                if device == at && destination == to)
        });
        !is_missing && self.is_ldp_up(path.first)
    }

    /// The prefix SID index that a device advertises.
    pub(super) fn sid(&self, of: &Device) -> u32 {
        let taken = self.faults.iter().find_map(|fault| match fault {
            Fault::DuplicateSid { device, sid_of } if *device == of.name => self.device(sid_of),
            _ => None,
        });
        taken.unwrap_or(of).sid
    }

    /// A device's BGP sessions, with devices and customers.
    pub(super) fn sessions<'a>(&'a self, device: &'a Device) -> Vec<(Peer<'a>, BgpState)> {
        let paths = self.paths(&device.name);
        let internal = self.devices.iter().filter(|other| are_peers(device, other)).map(|other| {
            let closed =
                self.closed(device, &other.name).or_else(|| self.closed(other, &device.name));
            let session = match closed {
                Some(reason) => BgpState::Idle(reason),
                None if paths.contains_key(other.name.as_str()) => BgpState::Established,
                None => BgpState::Active,
            };
            (Peer::Internal(other), session)
        });
        let customers = self
            .sites(&device.name)
            .map(|(vrf, site)| (Peer::Customer(vrf, site), self.customer_session(device, site)));
        internal.chain(customers).collect()
    }

    /// State of the session with a customer's router.
    pub(super) fn customer_session(&self, device: &Device, site: &Site) -> BgpState {
        match self.closed(device, &site.ce_address.to_string()) {
            Some(reason) => BgpState::Idle(reason),
            None if self.is_up(&device.name, &site.interface) => BgpState::Established,
            None => BgpState::Idle("interface down".to_owned()),
        }
    }

    fn closed(&self, at: &Device, with: &str) -> Option<String> {
        self.faults.iter().find_map(|fault| match fault {
            Fault::BgpSessionDown { device, neighbor, reason }
                if *device == at.name && neighbor == with =>
            {
                Some(reason.clone())
            }
            _ => None,
        })
    }

    /// The route targets that a VRF imports at a site.
    pub(super) fn imports<'a>(&'a self, vrf: &'a Vrf, site: &'a Site) -> &'a [String] {
        let set = self.faults.iter().find_map(|fault| match fault {
            Fault::RouteTarget { device, vrf: name, import_route_targets }
                if *device == site.device && *name == vrf.name =>
            {
                Some(import_route_targets)
            }
            _ => None,
        });
        set.unwrap_or(&site.import_route_targets)
    }

    /// Limit of a VRF's routes at a site, if there is one.
    pub(super) fn prefix_limit(&self, vrf: &Vrf, site: &Site) -> Option<u32> {
        self.faults.iter().find_map(|fault| match fault {
            Fault::PrefixLimit { device, vrf: name, limit }
                if *device == site.device && *name == vrf.name =>
            {
                Some(*limit)
            }
            _ => None,
        })
    }

    /// The routes with this route target that a device receives from other edges. Both need a
    /// session with a common reflector.
    pub(super) fn vpn_routes<'a>(&'a self, device: &'a Device, target: &str) -> Vec<VpnRoute<'a>> {
        let reflects = |edge: &'a Device| {
            let sessions = self.sessions(edge);
            let up = sessions.into_iter().filter(|(_, session)| *session == BgpState::Established);
            up.filter_map(|(peer, _)| match peer {
                Peer::Internal(other) if other.role == Role::Rr => Some(other.name.clone()),
                _ => None,
            })
            .collect::<Vec<_>>()
        };
        let mine = reflects(device);
        let mut routes = Vec::new();
        for site in self.vrfs.iter().flat_map(|vrf| &vrf.sites) {
            let Some(from) = self.device(&site.device).filter(|from| from.name != device.name)
            else {
                continue;
            };
            let carries = site.export_route_targets.iter().any(|exported| exported == target);
            let is_received = carries
                && self.customer_session(from, site) == BgpState::Established
                && reflects(from).iter().any(|reflector| mine.contains(reflector));
            if is_received {
                let label = LDP_LABEL_FIRST + 500 + from.sid;
                let route = |prefix: &'a String| VpnRoute { prefix, from, label };
                routes.extend(site.prefixes.iter().map(route));
            }
        }
        routes
    }
}

/// Edges peer with reflectors, and reflectors with each other.
fn are_peers(one: &Device, other: &Device) -> bool {
    let is_edge = |device: &Device| device.role == Role::Pe;
    let reflects = |device: &Device| device.role == Role::Rr;
    one.name != other.name
        && ((is_edge(one) && reflects(other))
            || (reflects(one) && (is_edge(other) || reflects(other))))
}
