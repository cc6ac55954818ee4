//! Compares the answers of several tools and devices: what one expects or shows and another lacks.

use std::collections::BTreeSet;

use super::facts::{Fine, Read};
use super::findings::missing;

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

/// The VRFs that import nothing that another device exports. Those that do import it are in order.
pub(super) fn targets(reads: &mut [Read]) -> Vec<String> {
    let (mut lost, mut met) = (Vec::new(), Vec::new());
    let list = |all: &BTreeSet<String>| all.iter().cloned().collect::<Vec<_>>().join(", ");
    for (at, read) in reads.iter().enumerate() {
        for own in &read.targets {
            let others = reads.iter().filter(|other| other.device != read.device);
            let far: Vec<_> = others
                .flat_map(|other| other.targets.iter().map(|of| (&other.device, of)))
                .filter(|(_, of)| of.vrf == own.vrf)
                .collect();
            if far.iter().any(|(_, of)| !own.imports.is_disjoint(&of.exports)) {
                met.push((at, own.vrf.clone()));
            } else if !far.is_empty() {
                let exported = far.iter();
                let exported: Vec<String> = exported
                    .map(|(device, of)| format!("{device} exports {}", list(&of.exports)))
                    .collect();
                let (vrf, here, imports) = (&own.vrf, &read.device, list(&own.imports));
                lost.push(format!("VRF {vrf}: {here} imports {imports}, {}", exported.join(", ")));
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
