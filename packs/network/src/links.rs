//! Compares the ends of links between the asked devices: MTU, VLANs, and the settings of OSPF.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::compare::{is_alike, vlans};
use super::facts::{Fine, Read};
use super::findings::DEPTH_MAX;
use super::object::snake;
use super::query::normal_interface;

/// Names of the ends of a link, as discovery protocols and inventories have them.
const LOCAL: &[&str] = &["local_interface", "local_port", "local_intf", "interface", "port"];
const FAR_DEVICE: &[&str] = &[
    "remote_device",
    "remote_host",
    "remote_system_name",
    "neighbor_device",
    "neighbor",
    "neighbor_name",
    "system_name",
    "hostname",
];
const FAR_PORT: &[&str] = &[
    "remote_interface",
    "remote_port",
    "neighbor_interface",
    "neighbor_port",
    "port_id",
    "remote_intf",
];
const FAR_MTU: &[&str] =
    &["neighbor_mtu", "remote_mtu", "peer_mtu", "maximum_frame_size", "max_frame_size"];
const NAME: &[&str] = &["name", "interface", "interface_name", "port", "port_name"];

/// Members that both ends of a link must have alike, how people call them, and their subject.
const AGREE: &[(&str, &str, &str, &str)] = &[
    ("mtu", "MTUs", "interface", "mtu"),
    ("native_vlan", "native VLANs", "vlan", "vlans"),
    ("allowed_vlans", "allowed VLANs", "vlan", "vlans"),
    ("area", "areas", "ospf", "area"),
    ("hello_interval", "hello intervals", "ospf", "timers"),
    ("dead_interval", "dead intervals", "ospf", "timers"),
];

/// An interface of a device, both as they are compared.
type End = (String, String);

/// What interfaces show, by the name of the member: the interface's name, and the value.
type Shown = BTreeMap<(&'static str, End), (String, Value)>;

/// What the ends of links between asked devices have unlike, with its subject. What they have alike is in order.
pub(super) fn links(reads: &mut [Read]) -> Vec<(&'static str, String)> {
    let (mut shown, mut links) = (Shown::new(), BTreeSet::new());
    for read in reads.iter() {
        ends(&short(&read.device), &read.content, 0, &mut shown, &mut links);
    }
    let mut lost = BTreeSet::new();
    let mut alike = Vec::new();
    for (one, other) in links {
        for (member, label, subject, attribute) in AGREE {
            let of = |end: &End| shown.get(&(*member, end.clone()));
            let (Some((here, a)), Some((there, b))) = (of(&one), of(&other)) else { continue };
            if is_alike(member, a, b) {
                let ends = [(one.clone(), here.clone()), (other.clone(), there.clone())];
                alike.extend(ends.map(|(end, name)| (end, name, *subject, *attribute, a.clone())));
                continue;
            }
            let mut ends = [(&one.0, here, a), (&other.0, there, b)];
            ends.sort_by_key(|(device, _, _)| (*device).clone());
            let text = ends.map(|(device, name, value)| {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                format!("{device} {name} {value}")
            });
            lost.insert((*subject, format!("the {label} of a link differ: {}", text.join(", "))));
        }
    }
    for (end, name, subject, attribute, value) in alike {
        let Some(read) = reads.iter_mut().find(|read| short(&read.device) == end.0) else {
            continue;
        };
        let mut tokens: Vec<String> =
            vlans(&value).into_iter().flatten().map(|vlan| vlan.to_string()).collect();
        tokens.push(name.to_lowercase());
        read.tokens.push(tokens);
        let object = read.tokens.len() - 1;
        read.fine.push(Fine { subjects: vec![subject], attribute, number: None, name, object });
    }
    lost.into_iter().collect()
}

/// Whether a name is one of this member: `trunk_allowed_vlans` is `allowed_vlans`.
pub(super) fn is_member(name: &str, member: &str) -> bool {
    let is_allowed = || name.contains("allow") && name.contains("vlan") || name == "trunk_vlans";
    let is_of_far = ["remote", "neighbor", "peer", "active"].iter().any(|word| name.contains(word));
    name == member || member == "allowed_vlans" && is_allowed() && !is_of_far
}

fn short(device: &str) -> String {
    device.split('.').next().unwrap_or_default().to_lowercase()
}

/// Collects what interfaces show, and the links.
fn ends(
    device: &str,
    value: &Value,
    depth: usize,
    shown: &mut Shown,
    links: &mut BTreeSet<(End, End)>,
) {
    if depth > DEPTH_MAX {
        return;
    }
    let inner: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => {
            let own = |names: &[&str]| text_of(members, names);
            let end = |of: &str, name: &str| (short(of), normal_interface(name));
            if let Some(name) = own(NAME) {
                for (member, ..) in AGREE {
                    let of = members.iter().find(|(name, _)| is_member(&snake(name), member));
                    if let Some((_, value)) = of.filter(|(_, value)| !value.is_null()) {
                        let known = (name.to_owned(), value.clone());
                        shown.insert((*member, end(device, name)), known);
                    }
                }
            }
            if let (Some(here), Some(far), Some(port)) =
                (own(LOCAL), own(FAR_DEVICE), own(FAR_PORT))
            {
                links.insert((end(device, here), end(far, port)));
                // What a neighbor announces of its own end; beside the near one it is compared already.
                let has_near = members.keys().any(|name| snake(name) == "local_mtu");
                let told = members.iter().find(|(name, _)| FAR_MTU.contains(&snake(name).as_str()));
                if let Some((_, value)) = told.filter(|(_, value)| !value.is_null() && !has_near) {
                    let known = (port.to_owned(), value.clone());
                    shown.entry(("mtu", end(far, port))).or_insert(known);
                }
            }
            members.values().collect()
        }
        _ => return,
    };
    inner.into_iter().for_each(|value| ends(device, value, depth + 1, shown, links));
}

fn text_of<'a>(members: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names
        .iter()
        .find_map(|wanted| members.iter().find(|(name, _)| snake(name) == *wanted)?.1.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(device: &str, content: Value) -> Read {
        Read { device: device.to_owned(), content, ..Read::default() }
    }

    #[test]
    fn both_ends_of_a_trunk_are_compared() {
        let trunk = |port: &str, native: &str, allowed: &str| json!({"trunks": [{"port": port, "native_vlan": native}, {"port": port, "allowed_vlans": allowed}]});
        let lldp = json!({"neighbors": [
            {"local_interface": "Gi1/0/1", "neighbor": "sw2.example.net", "neighbor_interface": "Et7"}]});
        let of = |native: &str, allowed: &str| {
            let mut reads = [
                read("sw1", trunk("GigabitEthernet1/0/1", "1", "10-12,20")),
                read("sw1", lldp.clone()),
                read("sw2", trunk("Ethernet7", native, allowed)),
            ];
            let lost = links(&mut reads);
            let fine: Vec<usize> = reads.iter().map(|read| read.fine.len()).collect();
            (lost, fine)
        };
        assert_eq!(of("1", "10,11,12,20"), (vec![], vec![2, 0, 2]));
        let (lost, _) = of("99", "10,20");
        let said = "the allowed VLANs of a link differ: sw1 GigabitEthernet1/0/1 10-12,20, sw2 Ethernet7 10,20";
        assert_eq!(lost[0], ("vlan", said.to_owned()));
        assert_eq!(lost.len(), 2);
    }
}
