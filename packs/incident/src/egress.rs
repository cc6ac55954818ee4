//! What security groups let out, held against the calls that failed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::diagnosis::EvidencePointer;
use super::field_path::FieldPath;
use super::findings::pointer;
use super::log_lines;
use super::tool::{GroupRules, Observations, Rule, Tool};

/// Most rules that are cited.
const RULES_CITED_MAX: usize = 3;

/// A call that failed: the line's text, and the peer that it names.
pub(super) type Call<'a> = (&'a str, Option<&'a str>);

/// What the security groups let out.
pub(super) struct Egress {
    /// How the failure fits the rules, as the end of a sentence.
    pub fits: String,
    pub evidence: Vec<EvidencePointer>,
}

/// What the rules say about failed calls, each the text and the peer. `None` if they say nothing.
pub(super) fn of(seen: &Observations, calls: &[Call<'_>]) -> Option<Egress> {
    let groups = seen.security_groups()?.security_groups;
    let place = |group: &str| FieldPath::key("security_groups").then(group).then("egress");
    let closed: Vec<&str> = groups
        .iter()
        .filter(|(_, rules)| rules.egress.is_empty())
        .map(|(group, _)| group.as_str())
        .collect();
    // The rules of all groups of an interface add up.
    if !closed.is_empty() && closed.len() == groups.len() {
        let cite = |group: &&str| {
            let meaning = "the group has no outbound rule, so it lets nothing out";
            pointer(Tool::SecurityGroupRules, &place(group), "[]", meaning)
        };
        return Some(Egress {
            fits: format!(
                "because its security groups ({}) have no outbound rule",
                closed.join(", ")
            ),
            evidence: closed.iter().map(cite).collect(),
        });
    }
    let open = groups.iter().find_map(|(group, rules)| {
        let is_open = |rule: &Rule| rule.protocol == "-1" && rule.peer == "0.0.0.0/0";
        Some((group, rules.egress.iter().position(is_open)?))
    });
    let Some((group, index)) = open else { return of_ports(&groups, calls) };
    Some(Egress {
        fits:
            "which fits removed routes of its subnets or their network ACLs: its security groups \
               let everything out"
                .to_owned(),
        evidence: vec![pointer(
            Tool::SecurityGroupRules,
            &place(group).at(index).then("peer"),
            "0.0.0.0/0",
            "this rule lets everything out, so the security groups do not block",
        )],
    })
}

/// What the rules say about one call.
enum Judged<'a> {
    /// The group and index of the rule that lets it out.
    LetOut(&'a str, usize, &'a Rule),
    /// No rule lets it out: the port, and the address where rules let the port out to others only.
    Closed(u16, Option<Ipv4Addr>),
    /// The port, the address or a rule's peer is not known.
    Unknown,
}

/// The rules of all groups, each with its group and index.
fn rules_of(groups: &BTreeMap<String, GroupRules>) -> impl Iterator<Item = (&str, usize, &Rule)> {
    groups.iter().flat_map(|(group, rules)| {
        rules.egress.iter().enumerate().map(move |(index, rule)| (group.as_str(), index, rule))
    })
}

fn judge<'a>(groups: &'a BTreeMap<String, GroupRules>, call: &Call<'_>) -> Judged<'a> {
    let Some(port) = port_of(call) else { return Judged::Unknown };
    let address = address_of(call);
    let of_port = || rules_of(groups).filter(move |(_, _, rule)| lets_out(rule, port));
    let reaches = |peer: &str| {
        peer == "0.0.0.0/0" || address.is_some_and(|address| is_in(peer, address) == Some(true))
    };
    if let Some((group, index, rule)) = of_port().find(|(_, _, rule)| reaches(&rule.peer)) {
        return Judged::LetOut(group, index, rule);
    }
    if of_port().next().is_none() {
        return Judged::Closed(port, None);
    }
    let is_elsewhere = |address| {
        of_port().all(|(_, _, rule)| rule.peer == "::/0" || is_in(&rule.peer, address).is_some())
    };
    match address.filter(|address| is_elsewhere(*address)) {
        Some(address) => Judged::Closed(port, Some(address)),
        None => Judged::Unknown,
    }
}

/// Whether a rule is for this port of TCP.
fn lets_out(rule: &Rule, port: u16) -> bool {
    let port = i64::from(port);
    let (from, to) = (rule.from_port.unwrap_or(0), rule.to_port.unwrap_or(65_535));
    rule.protocol == "-1"
        || (["tcp", "6"].contains(&rule.protocol.as_str()) && (from..=to).contains(&port))
}

/// What the groups' rules say about the ports and addresses that were called. `None` if they say nothing of one of them.
fn of_ports(groups: &BTreeMap<String, GroupRules>, calls: &[Call<'_>]) -> Option<Egress> {
    let judged: Vec<Judged<'_>> = calls.iter().map(|call| judge(groups, call)).collect();
    let place = |group: &str, index: usize| {
        FieldPath::key("security_groups").then(group).then("egress").at(index).then("peer")
    };
    let mut named: Vec<String> = judged
        .iter()
        .filter_map(|judged| match judged {
            Judged::Closed(port, Some(address)) => Some(format!("TCP {port} to {address}")),
            Judged::Closed(port, None) => Some(format!("TCP {port}")),
            Judged::LetOut(..) | Judged::Unknown => None,
        })
        .collect();
    named.dedup();
    if !named.is_empty() {
        let what = named.join(" and ");
        let cite = |(group, index, rule): (&str, usize, &Rule)| {
            let meaning = format!("this outbound rule does not let {what} out");
            pointer(Tool::SecurityGroupRules, &place(group, index), rule.peer.clone(), meaning)
        };
        return Some(Egress {
            fits: format!("because no outbound rule of its security groups lets {what} out"),
            evidence: rules_of(groups).take(RULES_CITED_MAX).map(cite).collect(),
        });
    }
    let open: Option<Vec<EvidencePointer>> = judged
        .iter()
        .map(|judged| {
            let Judged::LetOut(group, index, rule) = judged else { return None };
            let meaning = "this rule lets the call out";
            Some(pointer(
                Tool::SecurityGroupRules,
                &place(group, *index),
                rule.peer.clone(),
                meaning,
            ))
        })
        .collect();
    open.filter(|open| !open.is_empty()).map(|mut evidence| {
        evidence.dedup_by(|one, other| one.field == other.field);
        Egress {
            fits:
                "which fits removed routes of its subnets, their network ACLs, or a peer that does \
                   not answer: its security groups let this out"
                    .to_owned(),
            evidence,
        }
    })
}

/// The address of a peer that is named by one.
fn address_of((text, peer): &Call<'_>) -> Option<Ipv4Addr> {
    let host = |peer: &str| peer.split(':').next().and_then(|host| host.parse().ok());
    peer.and_then(host).or_else(|| {
        let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.'));
        let found = words.filter_map(|word| word.trim_matches('.').parse().ok());
        let found: BTreeSet<Ipv4Addr> = found.collect();
        // Of several, one may be the function's own, and it is not known which.
        found.first().copied().filter(|_| found.len() == 1)
    })
}

/// Whether an address is in a block such as `10.0.3.0/24`. `None` if that is no block of IPv4.
fn is_in(block: &str, address: Ipv4Addr) -> Option<bool> {
    let (base, bits) = block.split_once('/')?;
    let (base, bits) = (base.parse::<Ipv4Addr>().ok()?, bits.parse::<u32>().ok()?);
    let mask = u32::MAX.checked_shl(32u32.checked_sub(bits)?).unwrap_or(0);
    Some(u32::from(address) & mask == u32::from(base) & mask)
}

/// The port that a failed connection names: `HOST:PORT`, `port=443`, `port 5432`, or that of a URL's scheme.
fn port_of((text, peer): &Call<'_>) -> Option<u16> {
    let of_peer = peer.and_then(|peer| peer.rsplit_once(':')?.1.parse().ok());
    let after = |name: &str| {
        let rest = &text[log_lines::find(text, name)? + name.len()..];
        let rest = rest.trim_start_matches(['=', ' ', ':', '"']);
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    let of_url = || {
        let of = |scheme: &str, usual: u16| {
            let (_, rest) = text.split_once(scheme)?;
            let end = rest.find(['/', '?', ' ', '"', '\'', ')']).unwrap_or(rest.len());
            match rest[..end].rsplit_once(':') {
                Some((_, port)) => port.parse().ok(),
                None => Some(usual),
            }
        };
        of("https://", 443).or_else(|| of("http://", 80))
    };
    of_peer.or_else(|| after("port")).or_else(of_url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_that_which_the_message_names() {
        for (text, peer, expected) in [
            ("connect ETIMEDOUT 10.0.0.1:5432", Some("10.0.0.1:5432"), Some(5432)),
            ("HTTPSConnectionPool(host='api.example', port=443)", None, Some(443)),
            ("connection to server at \"10.0.3.4\", port 5432 failed", None, Some(5432)),
            (
                "Connect timeout on endpoint URL: \"https://s3.example/b\"",
                Some("s3.example"),
                Some(443),
            ),
            ("Connection timed out", None, None),
        ] {
            assert_eq!(port_of(&(text, peer)), expected, "{text}");
        }
    }

    #[test]
    fn a_port_is_a_word_and_an_address_is_the_peers() {
        for (text, port) in [
            ("transport error to db.example, port 5432", Some(5432)),
            ("GET https://api.example:8443/v1 timed out", Some(8443)),
            ("GET https://api.example/v1 timed out", Some(443)),
            ("POST http://api.example timed out", Some(80)),
            ("transport error", None),
        ] {
            assert_eq!(port_of(&(text, None)), port, "{text}");
        }
        let address = |text| address_of(&(text, None)).map(|found: Ipv4Addr| found.to_string());
        assert_eq!(address("dial tcp 10.0.3.4:5432: i/o timeout").as_deref(), Some("10.0.3.4"));
        assert_eq!(address("dial tcp 10.0.1.5:44321->10.0.3.4:5432: i/o timeout"), None);
    }

    #[test]
    fn a_group_that_lets_the_port_out_is_not_blamed() {
        let rule = |from, to, peer: &str| Rule {
            protocol: "tcp".to_owned(),
            peer: peer.to_owned(),
            from_port: Some(from),
            to_port: Some(to),
        };
        let groups = |egress| BTreeMap::from([("sg-1".to_owned(), GroupRules { egress })]);
        let calls = [("connect ETIMEDOUT api.example:443", Some("api.example:443"))];
        let open = of_ports(&groups(vec![rule(443, 443, "0.0.0.0/0")]), &calls).unwrap();
        assert!(open.fits.contains("let this out"), "{}", open.fits);
        assert_eq!(open.evidence[0].field, "security_groups.sg-1.egress[0].peer");
        let other = of_ports(&groups(vec![rule(80, 80, "0.0.0.0/0")]), &calls).unwrap();
        assert!(other.fits.contains("lets TCP 443 out"), "{}", other.fits);
        let calls_by_address = [("connect ETIMEDOUT 10.0.3.4:5432", Some("10.0.3.4:5432"))];
        let inside = of_ports(&groups(vec![rule(5432, 5432, "10.0.3.0/24")]), &calls_by_address);
        assert!(inside.unwrap().fits.contains("let this out"));
        let elsewhere = of_ports(&groups(vec![rule(5432, 5432, "10.0.9.0/24")]), &calls_by_address);
        let fits = elsewhere.unwrap().fits;
        assert!(fits.contains("lets TCP 5432 to 10.0.3.4 out"), "{fits}");
        // The members of a group are not known.
        let member = of_ports(&groups(vec![rule(5432, 5432, "sg-0db")]), &calls_by_address);
        assert!(member.is_none());
        // Whether the peer is among these addresses is not known.
        assert!(of_ports(&groups(vec![rule(443, 443, "10.0.9.0/24")]), &calls).is_none());
        assert!(of_ports(&groups(vec![]), &[("timed out", None)]).is_none());
    }
}
