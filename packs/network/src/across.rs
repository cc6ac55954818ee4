//! Compares the answers of several tools and devices: what one expects or shows and another lacks.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::findings::{DEPTH_MAX, Fine, Read, missing};
use super::object::{number, snake};
use super::query::normal_interface;

/// Protocols that have a neighbor wherever the first protocol has one.
const FOLLOWS: &[(&str, &str)] = &[("isis", "ldp"), ("ospf", "ldp")];

/// What one answer expects and no other shows, with its subject.
pub(super) fn across(reads: &[Read]) -> Vec<(&'static str, String)> {
    let shown: Vec<(&str, &str)> = reads
        .iter()
        .flat_map(|read| &read.named)
        .map(|(subject, name)| (*subject, name.as_str()))
        .collect();
    let expected: Vec<_> = reads.iter().flat_map(|read| read.expected.clone()).collect();
    let mut lost: Vec<(&'static str, String)> = missing(&expected, &shown, &[])
        .into_iter()
        .map(|(subject, name)| (subject, format!("{subject}: {name} is expected and missing")))
        .collect();
    for (first, second) in FOLLOWS {
        let of = |subject: &str| -> Vec<&str> {
            shown.iter().filter(|(known, _)| *known == subject).map(|(_, name)| *name).collect()
        };
        let (neighbors, sessions) = (of(first), of(second));
        let names = |all: &[&str], name: &str| all.iter().any(|n| n.eq_ignore_ascii_case(name));
        // Both must name their neighbors alike.
        if neighbors.iter().any(|name| names(&sessions, name)) {
            let alone = reads.iter().flat_map(|read| &read.fine).filter(|fine| {
                fine.subjects.contains(first)
                    && fine.attribute == "state"
                    && !names(&sessions, &fine.name)
            });
            lost.extend(alone.map(|fine| {
                let name = &fine.name;
                (*second, format!("{second}: no session with {name}, a neighbor of {first}"))
            }));
        }
    }
    lost
}

/// The VRFs that import what no other device exports. Those that do import it are in order.
pub(super) fn targets(reads: &mut [Read]) -> Vec<String> {
    let (mut lost, mut met) = (Vec::new(), Vec::new());
    let list = |all: &BTreeSet<String>| all.iter().cloned().collect::<Vec<_>>().join(", ");
    for (at, read) in reads.iter().enumerate() {
        for own in &read.targets {
            let others = reads.iter().filter(|other| other.device != read.device);
            for (device, far) in
                others.flat_map(|other| other.targets.iter().map(|of| (&other.device, of)))
            {
                let (imports, exports) = (list(&own.imports), list(&far.exports));
                if far.vrf != own.vrf {
                    continue;
                } else if own.imports.is_disjoint(&far.exports) {
                    let (vrf, here) = (&own.vrf, &read.device);
                    lost.push(format!(
                        "VRF {vrf}: {here} imports {imports}, {device} exports {exports}"
                    ));
                } else {
                    met.push((at, own.vrf.clone()));
                }
            }
        }
    }
    for (at, vrf) in met {
        let read = &mut reads[at];
        read.tokens.push(vec![vrf.clone()]);
        let object = read.tokens.len() - 1;
        read.fine.push(Fine {
            subjects: vec!["vpn"],
            attribute: "targets",
            number: None,
            name: vrf,
            object,
        });
    }
    lost
}

/// A neighbor with less than this part of another one's prefixes may have lost most of them.
const PREFIX_PART: f64 = 10.0;

/// Fewer prefixes than this say nothing about the neighbor that sends fewer.
const PREFIXES_MIN: f64 = 20.0;

/// Neighbors of one device of which one sends far fewer prefixes than another. A customer's does; a partner's must
/// not: no rule knows which it is.
pub(super) fn uneven(reads: &[Read]) -> Option<String> {
    reads.iter().find_map(|read| {
        let mut most: BTreeMap<&str, f64> = BTreeMap::new();
        let counted = read.fine.iter().filter(|fine| {
            fine.attribute == "prefixes" && fine.subjects.contains(&"bgp") && !fine.name.is_empty()
        });
        for (name, number) in counted.filter_map(|fine| Some((fine.name.as_str(), fine.number?))) {
            let known = most.entry(name).or_insert(number);
            *known = known.max(number);
        }
        let (many, top) = most.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
        let (few, least) = most.iter().min_by(|a, b| a.1.total_cmp(b.1))?;
        (*top >= PREFIXES_MIN && least * PREFIX_PART < *top).then(|| {
            format!("{few} sends {least} prefixes and {many} {top}; no rule knows whether they are partners")
        })
    })
}

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
const NAME: &[&str] = &["name", "interface", "interface_name", "port", "port_name"];

/// An interface of a device.
type End = (String, String);

/// The links between asked devices whose ends have different MTUs.
pub(super) fn mtus<'a>(answers: impl Iterator<Item = (String, &'a Value)>) -> Vec<String> {
    let (mut mtu, mut links) = (BTreeMap::new(), BTreeSet::new());
    for (device, answer) in answers {
        ends(&short(&device), answer, 0, &mut mtu, &mut links);
    }
    let mut lost = BTreeSet::new();
    for (one, other) in links {
        let (Some((here, a)), Some((there, b))) = (mtu.get(&one), mtu.get(&other)) else {
            continue;
        };
        let (first, second) = ((&one.0, here, *a), (&other.0, there, *b));
        let (first, second) = if one.0 <= other.0 { (first, second) } else { (second, first) };
        if first.2 != second.2 {
            let text =
                |(device, name, mtu): (&String, &String, f64)| format!("{device} {name} {mtu}");
            let (first, second) = (text(first), text(second));
            lost.insert(format!("the MTUs of a link differ: {first}, {second}"));
        }
    }
    lost.into_iter().collect()
}

fn short(device: &str) -> String {
    device.split('.').next().unwrap_or_default().to_lowercase()
}

/// Collects the MTUs of interfaces, with their names as shown, and the links.
fn ends(
    device: &str,
    value: &Value,
    depth: usize,
    mtu: &mut BTreeMap<End, (String, f64)>,
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
            let size = members.iter().find(|(name, _)| snake(name) == "mtu");
            if let (Some(name), Some(size)) = (own(NAME), size.and_then(|(_, size)| number(size))) {
                mtu.insert(end(device, name), (name.to_owned(), size));
            }
            if let (Some(here), Some(far), Some(port)) =
                (own(LOCAL), own(FAR_DEVICE), own(FAR_PORT))
            {
                links.insert((end(device, here), end(far, port)));
            }
            members.values().collect()
        }
        _ => return,
    };
    inner.into_iter().for_each(|value| ends(device, value, depth + 1, mtu, links));
}

fn text_of<'a>(members: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names
        .iter()
        .find_map(|wanted| members.iter().find(|(name, _)| snake(name) == *wanted)?.1.as_str())
}
