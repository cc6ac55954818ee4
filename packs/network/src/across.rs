//! Compares the answers of several tools and devices: what one expects or shows and another lacks.

use std::collections::BTreeSet;

use super::findings::{Fine, Read, Sends, missing};

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
    fn a_neighbor_that_sends_two_devices_different_numbers_is_not_cleared() {
        let reads = [
            read("pe1", &[("10.0.0.9", "65000", 900.0)]),
            read("pe2", &[("10.0.0.9", "65000", 8.0)]),
        ];
        assert!(matches!(uneven(&reads), Some(Uneven::Open(_))));
    }
}
