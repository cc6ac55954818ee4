//! Judges one sentence by the facts in order: its subjects, what it asks about them, the names in it.

use super::asks::{self, Ask};
use super::facts::{Fine, Read};
use super::judge::Verdict;

/// Subjects that are in order only if a state says so. A counter or an uptime in order proves nothing.
const WITH_STATE: &[&str] = &[
    "bgp",
    "ospf",
    "isis",
    "eigrp",
    "rip",
    "ldp",
    "bfd",
    "stp",
    "fhrp",
    "lag",
    "interface",
    "ntp",
    "dns",
    "tunnel",
    "ipsec",
    "overlay",
    "ha",
    "environment",
    "vlan",
    "acl",
];

/// Each name of a sentence must be in order by itself.
pub(super) fn by_name(
    ask: &Ask,
    names: &[String],
    shown: &[(&Fine, &[String])],
    reads: &[&Read],
) -> (Verdict, Option<String>) {
    let mut whole = (Verdict::Fine, None);
    for name in names {
        let is_about = |(_, tokens): &&(&Fine, &[String])| asks::has(tokens, name);
        let of_name: Vec<(&Fine, &[String])> = shown.iter().filter(is_about).copied().collect();
        if of_name.is_empty() {
            let reason = format!("the answers show no state of `{name}`");
            return (Verdict::NotJudged, Some(reason));
        }
        match judged(ask, &of_name, reads) {
            (Verdict::Fine, _) => {}
            other => whole = other,
        }
    }
    whole
}

/// What the facts in order say about what a sentence asks.
pub(super) fn judged(
    ask: &Ask,
    shown: &[(&Fine, &[String])],
    reads: &[&Read],
) -> (Verdict, Option<String>) {
    let not_judged = |reason: String| (Verdict::NotJudged, Some(reason));
    if ask.is_general {
        let has_state = shown.iter().any(|(fine, _)| fine.attribute == "state");
        return match (shown.is_empty(), has_state) {
            (false, true) => (Verdict::Fine, None),
            _ => not_judged("the answers show no state".to_owned()),
        };
    }
    if ask.subjects.is_empty() && ask.attributes.is_empty() {
        return not_judged("no rule knows what it asks".to_owned());
    }
    let asks_state = ask.attributes.is_empty() || ask.attributes.contains(&"state");
    let is_gone = |subject: &&'static str| {
        let is_shown = shown.iter().any(|(fine, _)| fine.subjects.contains(subject));
        reads.iter().any(|read| read.absent.contains(subject)) && !is_shown
    };
    if ask.is_optional && !ask.head.is_empty() && ask.head.iter().all(is_gone) {
        return (Verdict::NotNeeded, None);
    }
    for subject in &ask.subjects {
        let needs_state = asks_state && WITH_STATE.contains(subject);
        let of_subject = || shown.iter().filter(|(fine, _)| fine.subjects.contains(subject));
        let is_shown = of_subject().any(|(fine, _)| !needs_state || fine.attribute == "state");
        let is_absent = reads.iter().any(|read| read.absent.contains(subject));
        if is_absent && ask.is_optional && !is_shown {
            continue;
        }
        if is_absent {
            return not_judged(format!("the device has no {subject}"));
        }
        if !is_shown {
            return not_judged(format!("the answers show nothing about {subject}"));
        }
    }
    let concerns = |fine: &Fine| {
        ask.subjects.is_empty() || fine.subjects.iter().any(|s| ask.subjects.contains(s))
    };
    for attribute in ask.attributes.iter().filter(|name| **name != "redundancy") {
        if !shown.iter().any(|(fine, _)| fine.attribute == *attribute && concerns(fine)) {
            return not_judged(format!("the answers show no {attribute}"));
        }
    }
    (Verdict::Fine, None)
}

/// Why there are fewer parts in order than the sentence says.
pub(super) fn too_few(
    sentence: &str,
    subjects: &[&str],
    attributes: &[&str],
    counted: &[&&Fine],
    all: &[&Fine],
) -> Option<String> {
    let should = asks::count(sentence, attributes.contains(&"redundancy"))?;
    if all.iter().any(|fine| fine.attribute == "redundancy") || subjects.is_empty() {
        return None;
    }
    let mut names: Vec<&str> = counted.iter().map(|fine| fine.name.as_str()).collect();
    names.retain(|name| !name.to_lowercase().starts_with("lo"));
    names.sort_unstable();
    names.dedup();
    let has = names.len();
    (has < should && has > 0).then(|| format!("there are {has}, not {should}: no redundancy"))
}
