//! Compares what several devices, or several neighbors of one device, show of the same thing: prefixes, virtual
//! addresses, VLANs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::compare::vlans;
use super::facts::{Read, Sends};
use super::findings::DEPTH_MAX;
use super::interpret::words;
use super::links::is_member;
use super::object::Object;

/// A neighbor with less than this part of another one's prefixes may have lost most of them.
const PREFIX_PART: f64 = 10.0;

/// Fewer prefixes than this say nothing about the neighbor that sends fewer.
const PREFIXES_MIN: f64 = 20.0;

/// Words of the name or the description of a route reflector.
const REFLECTORS: &[&str] = &["rr", "reflector"];

fn is_reflector(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    words.any(|word| REFLECTORS.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit())))
}

/// What a neighbor that sends far fewer prefixes than its partner shows.
#[derive(Debug, PartialEq)]
pub(super) enum Uneven {
    /// Both are reflectors, which have the same routes.
    Lost(String),
    /// No rule knows whether they are partners.
    Open(String),
}

/// A neighbor that sends far fewer prefixes than its partner: another neighbor of the device in the same AS, or itself
/// at another device. Neighbors in different ASes are no partners: a customer sends a few, a transit everything.
pub(super) fn uneven(reads: &[Read]) -> Option<Uneven> {
    let mut found = Vec::new();
    for read in reads {
        for (at, many) in read.sends.iter().enumerate() {
            let of_other = reads.iter().filter(|other| other.device != read.device);
            let at_others =
                of_other.flat_map(|other| &other.sends).filter(|few| few.name == many.name);
            let beside = read.sends.iter().enumerate().filter(|(other, few)| {
                *other != at && few.name != many.name && few.remote_as == many.remote_as
            });
            // The clients of a reflector each have routes of their own.
            let beside = beside.filter(|_| !is_reflector(&read.device)).map(|(_, few)| few);
            found.extend(beside.chain(at_others).filter_map(|few| is_far(few, many)));
        }
    }
    let is_lost = |uneven: &Uneven| matches!(uneven, Uneven::Lost(_));
    let lost = found.iter().position(is_lost).unwrap_or_default();
    (!found.is_empty()).then(|| found.swap_remove(lost))
}

fn is_far(few: &Sends, many: &Sends) -> Option<Uneven> {
    if many.number < PREFIXES_MIN || few.number * PREFIX_PART >= many.number {
        return None;
    }
    let text =
        format!("{} sends {} prefixes and {} {}", few.name, few.number, many.name, many.number);
    Some(if is_reflector(&few.described) && is_reflector(&many.described) {
        Uneven::Lost(format!("{text}: the reflectors should have the same routes"))
    } else {
        Uneven::Open(format!("{text}; no rule knows whether they are partners"))
    })
}

/// Two routers that are both active for one virtual address.
pub(super) fn both_active(reads: &[Read]) -> Vec<String> {
    let mut active: BTreeSet<(String, &str)> = BTreeSet::new();
    for read in reads {
        let mut found = Vec::new();
        objects(&read.content, 0, &mut |object| found.extend(active_address(object)));
        active.extend(found.into_iter().map(|address| (address, read.device.as_str())));
    }
    let all: Vec<_> = active.into_iter().collect();
    let doubled = all.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    doubled
        .map(|pair| format!("{} and {} are both active for {}", pair[0].1, pair[1].1, pair[0].0))
        .collect()
}

/// The virtual address for which a device is active.
fn active_address(object: &Object<'_>) -> Option<String> {
    let of = |names: &[&str]| names.iter().find_map(|name| object.get(name)?.as_str());
    let state = of(&["state", "vr_state", "hsrp_state", "vrrp_state", "group_state"])?;
    let names = [
        "virtual_ip",
        "vip",
        "virtual_ip_address",
        "virtual_address",
        "group_address",
        "virtual_ipv4",
    ];
    let is_active = ["active", "master"].contains(&state.to_lowercase().as_str());
    of(&names).filter(|_| is_active).map(str::to_owned)
}

/// The devices on whose trunks a VLAN of the question is missing, although another device allows it.
pub(super) fn missing_vlans(question: &str, reads: &[Read]) -> Vec<String> {
    let said = words(question);
    let numbers = said.windows(2).filter(|pair| pair[0] == "vlan");
    let asked: Vec<u16> = numbers.filter_map(|pair| pair[1].parse().ok()).collect();
    let mut allowed: BTreeMap<&str, BTreeSet<u16>> = BTreeMap::new();
    for read in reads {
        let mut found = Vec::new();
        let mut collect = |object: &Object<'_>| {
            let lists = object.0.iter().filter(|(name, _)| is_member(name, "allowed_vlans"));
            found.extend(lists.filter_map(|(_, value)| vlans(value)));
        };
        objects(&read.content, 0, &mut collect);
        if !found.is_empty() {
            allowed.entry(&read.device).or_default().extend(found.into_iter().flatten());
        }
    }
    let mut lost = Vec::new();
    for vlan in asked {
        let (with, without): (Vec<_>, Vec<_>) =
            allowed.iter().partition(|(_, vlans)| vlans.contains(&vlan));
        if let Some((other, _)) = with.first() {
            lost.extend(without.iter().map(|(device, _)| {
                format!("VLAN {vlan} is allowed on a trunk of {other} and on none of {device}")
            }));
        }
    }
    lost
}

/// Shows each object of an answer.
fn objects(value: &Value, depth: usize, show: &mut impl FnMut(&Object<'_>)) {
    if depth > DEPTH_MAX {
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| objects(item, depth + 1, show)),
        Value::Object(members) => {
            show(&Object::of(members));
            members.values().for_each(|value| objects(value, depth + 1, show));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(device: &str, sends: &[(&str, &str, f64)]) -> Read {
        let of = |(described, remote_as, number): &(&str, &str, f64)| Sends {
            name: (*described).to_owned(),
            remote_as: (*remote_as).to_owned(),
            local_as: "65000".to_owned(),
            number: *number,
            described: (*described).to_owned(),
        };
        Read { device: device.to_owned(), sends: sends.iter().map(of).collect(), ..Read::default() }
    }

    #[test]
    fn only_partners_are_compared() {
        let of = |sends: &[(&str, &str, f64)]| uneven(&[read("pe1", sends)]);
        // A customer beside a transit.
        assert_eq!(of(&[("10.0.0.2", "65001", 3.0), ("10.0.0.3", "65002", 940_000.0)]), None);
        assert!(matches!(
            of(&[("rr-1", "65000", 900.0), ("rr-2", "65000", 12.0)]),
            Some(Uneven::Lost(_))
        ));
        assert!(matches!(
            of(&[("10.0.0.2", "65000", 900.0), ("10.0.0.3", "65000", 12.0)]),
            Some(Uneven::Open(_))
        ));
        assert_eq!(of(&[("rr-1", "65000", 900.0), ("rr-2", "65000", 880.0)]), None);
        // The clients of a reflector.
        assert_eq!(uneven(&[read("rr1", &[("pe1", "65000", 900.0), ("pe2", "65000", 2.0)])]), None);
    }

    #[test]
    fn two_devices_are_not_both_active() {
        let of = |device: &str, state: &str| Read {
            device: device.to_owned(),
            content: serde_json::json!({"groups": [
                {"group": 7, "state": state, "virtual_ip": "10.7.0.1"}]}),
            ..Read::default()
        };
        assert_eq!(both_active(&[of("r1", "Active"), of("r2", "Standby")]), Vec::<String>::new());
        assert_eq!(
            both_active(&[of("r1", "Active"), of("r2", "Active")]),
            ["r1 and r2 are both active for 10.7.0.1"]
        );
    }

    #[test]
    fn a_vlan_of_the_question_is_allowed_at_both_devices() {
        let of = |device: &str, allowed: &str| Read {
            device: device.to_owned(),
            content: serde_json::json!([{"port": "Po1", "allowed_vlans": allowed}]),
            ..Read::default()
        };
        let lost =
            |other: &str| missing_vlans("Is VLAN 30 allowed?", &[of("a", "10-40"), of("b", other)]);
        assert_eq!(lost("30,31"), Vec::<String>::new());
        assert_eq!(lost("31-40"), ["VLAN 30 is allowed on a trunk of a and on none of b"]);
    }

    #[test]
    fn a_neighbor_that_sends_two_devices_different_numbers_is_not_cleared() {
        let reads = [
            read("pe1", &[("10.0.0.9", "65000", 900.0)]),
            read("pe2", &[("10.0.0.9", "65000", 8.0)]),
        ];
        assert!(matches!(uneven(&reads), Some(Uneven::Open(_))));
    }
}
