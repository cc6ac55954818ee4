//! The campus part of a network: switches with VLANs and a spanning tree, access lists, name servers.
//!
//! The spanning tree is computed as bridges do: the lowest bridge identifier is the root, each bridge has a root port
//! on its cheapest path, and the worse end of every other link blocks.

use std::net::Ipv4Addr;

use serde::Deserialize;

use super::description::{End, Network};
use super::fault::Fault;

/// Limits. The spanning tree is computed for each call.
const TRUNKS_MAX: usize = 200;
const RULES_MAX: usize = 200;
const NAMES_MAX: usize = 100;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Campus {
    pub vlans: Vec<Vlan>,
    pub bridges: Vec<Bridge>,
    pub trunks: Vec<Trunk>,
    pub access_lists: Vec<AccessList>,
    pub name_servers: Vec<Ipv4Addr>,
    pub lookups: Vec<Lookup>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vlan {
    pub id: u16,
    pub name: String,
}

/// A switch in the spanning tree.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bridge {
    pub device: String,
    pub priority: u32,
    pub mac: String,
}

/// A link between two switches.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Trunk {
    pub a: End,
    pub b: End,
    pub vlans: Vec<u16>,
    pub native_vlan: u16,
    /// Cost of the path over it, for the spanning tree.
    pub cost: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccessList {
    pub device: String,
    pub name: String,
    pub interface: String,
    pub rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub sequence: u32,
    pub action: String,
    pub protocol: String,
    pub source: String,
    pub destination: String,
    /// Packets that it matched so far.
    pub matches: u64,
}

/// A name that the devices look up, with its address.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lookup {
    pub name: String,
    pub address: Ipv4Addr,
}

/// Role and state of a port in the spanning tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Port {
    Root,
    Designated,
    Alternate,
    /// Blocked because of what it receives, such as `root-inconsistent`.
    Inconsistent,
}

/// A trunk as one of its switches sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrunkEnd<'a> {
    pub trunk: &'a Trunk,
    pub near: &'a End,
    pub far: &'a End,
}

/// Priority and address of a bridge; the lowest is the root.
type BridgeId<'a> = (u32, &'a str);

impl Campus {
    pub(super) fn check(&self, network: &Network) -> Result<(), String> {
        let rules = self.access_lists.iter().map(|list| list.rules.len()).sum::<usize>();
        for (what, count, most) in [
            ("trunks", self.trunks.len(), TRUNKS_MAX),
            ("rules", rules, RULES_MAX),
            ("vlans", self.vlans.len(), TRUNKS_MAX),
            ("name_servers", self.name_servers.len(), NAMES_MAX),
            ("lookups", self.lookups.len(), NAMES_MAX),
            ("bridges", self.bridges.len(), TRUNKS_MAX),
        ] {
            if count > most {
                return Err(format!("`{what}` holds {count}, the limit is {most}"));
            }
        }
        let bridges = self.bridges.iter().map(|bridge| &bridge.device);
        for device in bridges.chain(self.access_lists.iter().map(|list| &list.device)) {
            if network.device(device).is_none() {
                return Err(format!("unknown device `{device}`"));
            }
        }
        for end in self.trunks.iter().flat_map(|trunk| [&trunk.a, &trunk.b]) {
            if self.bridge(&end.0).is_none() {
                return Err(format!("`{}` has a trunk and is no bridge", end.0));
            }
        }
        Ok(())
    }

    pub(super) fn bridge(&self, device: &str) -> Option<&Bridge> {
        self.bridges.iter().find(|bridge| bridge.device == device)
    }
}

impl Network {
    pub(super) fn trunk_ends<'a>(&'a self, device: &'a str) -> impl Iterator<Item = TrunkEnd<'a>> {
        self.campus.trunks.iter().filter_map(move |trunk| {
            if trunk.a.0 == device {
                Some(TrunkEnd { trunk, near: &trunk.a, far: &trunk.b })
            } else if trunk.b.0 == device {
                Some(TrunkEnd { trunk, near: &trunk.b, far: &trunk.a })
            } else {
                None
            }
        })
    }

    /// Identifier of a bridge, with the priority that a fault gave it.
    fn bridge_id<'a>(&self, bridge: &'a Bridge, is_designed: bool) -> BridgeId<'a> {
        let set = self.faults.iter().find_map(|fault| match fault {
            Fault::BridgePriority { device, priority } if *device == bridge.device => {
                Some(*priority)
            }
            _ => None,
        });
        (set.filter(|_| !is_designed).unwrap_or(bridge.priority), &bridge.mac)
    }

    /// The root of the spanning tree, or the one that its design has.
    pub(super) fn root(&self, is_designed: bool) -> Option<(&Bridge, BridgeId<'_>)> {
        let with_id =
            self.campus.bridges.iter().map(|bridge| (bridge, self.bridge_id(bridge, is_designed)));
        with_id.min_by_key(|(_, id)| *id)
    }

    pub(super) fn id_of<'a>(&self, bridge: &'a Bridge) -> BridgeId<'a> {
        self.bridge_id(bridge, false)
    }

    /// Cost of a switch's cheapest path to the root, over trunks that are up; `None` if there is none.
    pub(super) fn root_cost(&self, device: &str) -> Option<u32> {
        let (root, _) = self.root(false)?;
        let mut cost = vec![(root.device.as_str(), 0_u32)];
        // Each round settles at least one switch.
        for _ in &self.campus.bridges {
            for trunk in &self.campus.trunks {
                for (from, to) in [(&trunk.a, &trunk.b), (&trunk.b, &trunk.a)] {
                    let of = |name: &str| {
                        cost.iter().find(|(known, _)| *known == name).map(|(_, cost)| *cost)
                    };
                    let Some(new) = of(&from.0).map(|cost| cost.saturating_add(trunk.cost)) else {
                        continue;
                    };
                    if self.is_up(&from.0, &from.1) && of(&to.0).is_none_or(|old| new < old) {
                        cost.retain(|(known, _)| *known != to.0);
                        cost.push((&to.0, new));
                    }
                }
            }
        }
        cost.iter().find(|(known, _)| *known == device).map(|(_, cost)| *cost)
    }

    /// Role of a trunk's near end.
    pub(super) fn port(&self, end: TrunkEnd<'_>) -> Port {
        if self.inconsistency(end).is_some() {
            return Port::Inconsistent;
        }
        let rank = |device: &str| {
            let id = self.campus.bridge(device).map(|bridge| self.bridge_id(bridge, false));
            (self.root_cost(device).unwrap_or(u32::MAX), id)
        };
        let is_better = |end: &TrunkEnd<'_>| {
            let (cost, id) = rank(&end.far.0);
            (cost.saturating_add(end.trunk.cost), id, end.near.1.clone())
        };
        let ups = self.trunk_ends(&end.near.0).filter(|end| self.is_up(&end.near.0, &end.near.1));
        let best = ups.min_by_key(is_better).map(|end| end.near.clone());
        let is_root = self.root(false).is_some_and(|(root, _)| root.device == end.near.0);
        if !is_root && best.as_ref() == Some(end.near) {
            Port::Root
        } else if rank(&end.near.0) < rank(&end.far.0) {
            Port::Designated
        } else {
            Port::Alternate
        }
    }

    /// What a port receives that blocks it.
    pub(super) fn inconsistency(&self, end: TrunkEnd<'_>) -> Option<&str> {
        self.faults.iter().find_map(|fault| match fault {
            Fault::StpInconsistent { device, interface, inconsistency }
                if *device == end.near.0 && *interface == end.near.1 =>
            {
                Some(inconsistency.as_str())
            }
            _ => None,
        })
    }

    /// The VLANs that an end of a trunk allows.
    pub(super) fn allowed_vlans(&self, end: &End, trunk: &Trunk) -> Vec<u16> {
        let is_removed = |vlan: &u16| {
            self.faults.iter().any(|fault| {
                matches!(fault, Fault::VlanNotAllowed { device, interface, vlan: removed }
                    if *device == end.0 && *interface == end.1 && removed == vlan)
            })
        };
        trunk.vlans.iter().copied().filter(|vlan| !is_removed(vlan)).collect()
    }

    pub(super) fn native_vlan(&self, end: &End, trunk: &Trunk) -> u16 {
        let set = self.faults.iter().find_map(|fault| match fault {
            Fault::NativeVlan { device, interface, vlan }
                if *device == end.0 && *interface == end.1 =>
            {
                Some(*vlan)
            }
            _ => None,
        });
        set.unwrap_or(trunk.native_vlan)
    }

    /// The rules of an access list, in order, with those that a fault added.
    pub(super) fn rules(&self, list: &AccessList) -> Vec<Rule> {
        let added = self.faults.iter().filter_map(|fault| match fault {
            Fault::AccessRule { device, access_list, rule }
                if *device == list.device && *access_list == list.name =>
            {
                Some(rule.clone())
            }
            _ => None,
        });
        let mut rules: Vec<Rule> = list.rules.iter().cloned().chain(added).collect();
        rules.sort_by_key(|rule| rule.sequence);
        rules
    }

    /// What a name server answers instead of addresses.
    pub(super) fn rcode(&self, server: Ipv4Addr) -> Option<&str> {
        self.faults.iter().find_map(|fault| match fault {
            Fault::NameServer { address, rcode } if *address == server => Some(rcode.as_str()),
            _ => None,
        })
    }
}
