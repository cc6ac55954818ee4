//! States as vendors spell them.
//!
//! Sources: the command references of Cisco IOS, IOS XR and NX-OS, Junos, Arista EOS and Nokia SR OS;
//! RFC 2328 and RFC 4271 for neighbor states, RFC 2863 for interfaces, RFC 5798 for VRRP.

use serde_json::Value;

/// What a state means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Good,
    Bad,
    /// Switched off by an operator.
    Off,
    /// A role, neither good nor bad.
    Role,
    Unknown,
}

const GOOD: &str = "up|established|estab|full|operational|oper|ok|okay|good|normal|online|running|forwarding|fwd|connected|ready|synchronized|synchronised|synced|sync|in sync|reachable|healthy|success|successful|passed|pass|complete|completed|bundled|bndl|collecting distributing|distributing|present|inservice|in service|alive|valid|installed|noerror|no error|resolved|standby hot|stable|converged|green|consistent|match|matched|peer ok|registered|locked|working|nominal|attached|formed|active|act|trunking|secure up|in sync|collecting|2 way drother|ha standby|powered up|trnk bndl";

const ROLES: &str = "dr|bdr|drother|p2p|point to point|broadcast|root|designated|desg|edge|full duplex|primary|secondary|permit|deny|none|n a|unspecified|lldp|cdp|ethernet|static|dynamic|internal|external|enabled|available|yes|true|configured|local|edge p2p|trunk|access";

/// Protocols whose sessions are in order in few states only, and those states.
const SESSIONS: &[&str] = &["bgp", "ospf", "isis", "ldp", "eigrp", "rip", "bfd"];
const SESSION_GOOD: &str =
    "up|established|estab|full|operational|oper|ok|okay|good|normal|healthy|online|alive";

/// States that are normal for redundancy protocols and spanning tree only.
const FHRP_ROLES: &str = "standby|backup|master|listen|active";
const STP_ROLES: &str = "blocking|blk|altn|alternate|discarding|backup|root|desg|designated";

/// States that are normal for a pair of supervisors, and those of a single one.
const HA_GOOD: &str =
    "sso|ha|rpr|rpr plus|nsf|duplex|standby|active with ha standby|cold standby|warm standby";
const HA_LOST: &str =
    "disabled|non redundant|nonredundant|simplex|none|not connected|powered off|shutdown";

const OFF: &str = "admin down|administratively down|adm down|admindown|shutdown|shut|admin shutdown|disabled|admin disabled|idle admin|adminstate down|oper admin down";

const BAD: &str = "down|idle|connect|opensent|openconfirm|open sent|open confirm|openrec|init|initializing|initialize|exstart|ex start|exch start|exchstart|lshut|act lshut|sus|secure shutdown|err|exchange|loading|attempt|nonexistent|non existent|lower layer down|lowerlayerdown|not present|notpresent|err disabled|errdisabled|err disable|errdisable|error disabled|error|failed|failure|fail|conflict|flapping|unreachable|degraded|missing|dead|retrying|severe|critical|major|minor|alarm|warning|notconnect|not connect|not connected|no link|linkdown|link down|oper down|operdown|nolink|lost|loss of signal|los|lof|lol|inconsistent|root inconsistent|loop inconsistent|type inconsistent|pvid inconsistent|broken|bkn|suspended|suspend|suspnd|individual|stand alone|standalone|hot standby missing|unsynchronized|unsynchronised|unsync|not synced|not synchronized|out of sync|servfail|nxdomain|refused|timeout|timed out|no response|expired|invalid|inaccessible|hidden|rejected|stale|mismatch|peer not ok|absent|faulty|fault|halted|crashed|off line|offline|blackhole|inactive|sfp absent|sfpabsent|xcvr absent|xcvrabsen|notconnec|link flap e|linkflape|psecure violation|port security violation|bpduguard|bpduguard error disabled|udld|dampened|rootguard|stuck|incomplete|unresolved|speak|learn|not operational|not ready|overloaded|overload|exhausted|full table|exceeded|noncompliant|not compliant|link failure|hardware failure|unknown peer|dormant|testing|lowerlayer down|red|no light|unlabelled|unlabeled|no label|false|not established|disconnected|unavailable|unstable|blocked|denied|violation|isolated|orphan|loop|looped|power loss|powerloss|powered dn|powered down|openconf|denied by policy|no power|no input";

/// Words that make any longer state bad.
const BAD_PARTS: &[&str] = &[
    "down",
    "failed",
    "fail",
    "failure",
    "error",
    "errdisabled",
    "errdisable",
    "err",
    "inconsistent",
    "mismatch",
    "unreachable",
    "dead",
    "lost",
    "expired",
    "timeout",
    "violation",
    "inactive",
    "broken",
    "notconnect",
    "critical",
    "degraded",
    "refused",
    "invalid",
    "conflict",
    "absent",
    "missing",
    "unsynchronized",
    "not",
    "no",
    "suspended",
    "exceeded",
];

/// Words with which a person reports a fault. That everything else is in order does not explain it.
pub(super) const SYMPTOMS: &[&str] = &[
    "why",
    "cannot",
    "can't",
    "unable",
    "complain",
    "complaint",
    "lost",
    "lose",
    "slow",
    "broken",
    "fail",
    "failing",
    "outage",
    "unreachable",
    "doesn't",
    "isn't",
    "won't",
    "dropping",
    "stopped",
    "longer",
    "wrong",
    "intermittent",
    "drops",
    "timeouts",
    "problems",
];

/// Marks of routing protocols in an answer, in lower case.
const MARKS: &[(&str, &[&str])] = &[
    ("bgp", &["bgp", "prefixreceived", "prefix_received", "pfxrcd", "remoteas", "remote_as"]),
    ("ospf", &["ospf", "dead time", "deadtime", "nbrstate", "drother"]),
    ("isis", &["isis", "is-is", "is_is", "snpa"]),
    ("ldp", &["ldp", "label space", "lsr"]),
];

/// The tool's subjects, but the protocol that the answer is about: a server may answer with another one's table
/// than was asked for.
pub(super) fn answered(tool: Vec<&'static str>, content: &Value) -> Vec<&'static str> {
    let Some((asked, own)) = MARKS.iter().find(|(name, _)| tool.contains(name)) else {
        return tool;
    };
    let text = content.to_string().to_lowercase();
    let has = |marks: &&[&str]| marks.iter().any(|mark| text.contains(mark));
    if has(own) {
        return tool;
    }
    let other = MARKS.iter().find(|(_, marks)| has(marks)).map(|(name, _)| *name);
    let named = tool
        .into_iter()
        .filter_map(|name| if name == *asked { other.or(Some(name)) } else { Some(name) });
    named.collect()
}

/// Characters that no state has.
const GARBLED: &[char] = &['\u{fffd}', '@', '$', '^', '~', '{', '}', '|', '\\', '<', '>', '`', '#'];

fn is_in(list: &str, word: &str) -> bool {
    list.split('|').any(|known| known == word)
}

/// A state in lower case, its words separated by one space, without a reason in parentheses.
pub(super) fn usual(state: &str) -> String {
    let state = state.split('(').next().filter(|s| !s.trim().is_empty()).unwrap_or(state);
    let mut said = String::new();
    let mut was_small = false;
    for c in state.chars() {
        if c.is_uppercase() && was_small {
            said.push(' ');
        }
        was_small = c.is_lowercase();
        said.extend(
            if c.is_alphanumeric() || c == '/' || c == ',' { c } else { ' ' }.to_lowercase(),
        );
    }
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The standing of a state of these subjects. A compound such as `up/down` or `FULL/DR` is as bad as
/// its worst part, and good only if the other parts are known.
pub(super) fn standing(state: &str, subjects: &[&str]) -> Standing {
    let said = of_words(state, subjects);
    // A state that was not read as the device printed it.
    let is_broken = state.trim_end_matches('?').contains('?');
    if is_broken || state.contains(GARBLED) || !state.is_ascii() && said == Standing::Bad {
        return Standing::Unknown;
    }
    // What the server itself doubts proves nothing.
    if said == Standing::Good && state.contains(['?', '!', '~']) { Standing::Unknown } else { said }
}

fn of_words(state: &str, subjects: &[&str]) -> Standing {
    let whole = usual(state);
    let inner = state.split_once('(').map(|(_, rest)| usual(rest.trim_end_matches(')')));
    if whole == "idle" && inner.as_deref() == Some("admin") {
        return Standing::Off;
    }
    // Two routers of which neither is designated stay in this state.
    if ["2way/drother", "2 way/drother", "twoway/drother", "two way/drother"]
        .contains(&whole.as_str())
    {
        return Standing::Role;
    }
    let parts: Vec<Standing> = whole
        .split(['/', ','])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| one(part, subjects))
        .collect();
    let has = |wanted: Standing| parts.contains(&wanted);
    let by_reason = inner.is_some_and(|reason| one(&reason, subjects) == Standing::Bad);
    if has(Standing::Off) {
        Standing::Off
    } else if has(Standing::Bad) || by_reason {
        Standing::Bad
    } else if has(Standing::Unknown) || parts.is_empty() {
        Standing::Unknown
    } else if has(Standing::Good) {
        Standing::Good
    } else {
        Standing::Role
    }
}

fn one(part: &str, subjects: &[&str]) -> Standing {
    let is_about = |subject: &str| subjects.contains(&subject);
    if is_about("fhrp") && is_in(FHRP_ROLES, part) {
        return Standing::Good;
    }
    if is_about("stp") && is_in(STP_ROLES, part) {
        return Standing::Role;
    }
    if is_in(GOOD, part)
        && !is_in(SESSION_GOOD, part)
        && !is_about("interface")
        && SESSIONS.iter().any(|session| is_about(session))
        && part != "active"
    {
        return Standing::Role;
    }
    if ["2way", "2 way", "two way", "twoway"].contains(&part) {
        return Standing::Unknown;
    }
    if is_about("bgp") && part == "active" {
        return Standing::Bad;
    }
    // The second supervisor is not there.
    if is_about("ha") && is_in(HA_LOST, part) {
        return Standing::Bad;
    }
    if is_about("ha") && is_in(HA_GOOD, part) {
        return Standing::Good;
    }
    let small = part.replace(' ', "");
    if is_in(OFF, part) {
        return Standing::Off;
    }
    if is_in(BAD, part) || is_in(BAD, &small) {
        return Standing::Bad;
    }
    if is_in(GOOD, part) {
        return Standing::Good;
    }
    if is_in(ROLES, part) {
        return Standing::Role;
    }
    if part.split(' ').any(|word| BAD_PARTS.contains(&word)) {
        return Standing::Bad;
    }
    Standing::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_vendors_spell_them() {
        use Standing::{Bad, Good, Off, Role, Unknown};
        for (state, subject, expected) in [
            ("errDisabled", "interface", Bad),
            ("err-disabled", "interface", Bad),
            ("ERR_DISABLED", "interface", Bad),
            ("down (psecure-violation)", "interface", Bad),
            ("notconnect", "interface", Bad),
            ("lowerLayerDown", "interface", Bad),
            ("up/down", "interface", Bad),
            ("up/up", "interface", Good),
            ("connected", "interface", Good),
            ("administratively down", "interface", Off),
            ("Idle (Admin)", "bgp", Off),
            ("Idle (PfxCt)", "bgp", Bad),
            ("Active", "bgp", Bad),
            ("Active", "fhrp", Good),
            ("Standby", "fhrp", Good),
            ("Init", "fhrp", Bad),
            ("Estab", "bgp", Good),
            ("OpenConfirm", "bgp", Bad),
            ("FULL/DR", "ospf", Good),
            ("EXSTART/BDR", "ospf", Bad),
            ("INIT/DROTHER", "ospf", Bad),
            ("2WAY", "ospf", Unknown),
            ("2WAY/DROTHER", "ospf", Role),
            ("enabled", "ospf", Role),
            ("running", "bgp", Role),
            ("act/lshut", "vlan", Bad),
            ("BKN*", "stp", Bad),
            ("Root-Inconsistent", "stp", Bad),
            ("FWD", "stp", Good),
            ("BLK", "stp", Role),
            ("suspended", "lag", Bad),
            ("unsynchronized", "ntp", Bad),
            ("SERVFAIL", "dns", Bad),
            ("NOERROR", "dns", Good),
            ("sfpAbsent", "interface", Bad),
            ("link not connected", "interface", Bad),
            ("caído", "interface", Unknown),
            ("blorp", "bgp", Unknown),
            ("Estab?", "bgp", Unknown),
            ("up!", "interface", Unknown),
            ("Down?", "bgp", Bad),
            ("d\u{fffd}wn no", "bgp", Unknown),
            ("no~light", "interface", Unknown),
            ("no?connect", "interface", Unknown),
            ("powerLoss", "environment", Bad),
            ("ha-standby", "ha", Good),
            ("DISABLED", "ha", Bad),
            ("Simplex", "ha", Bad),
            ("TWOWAY/DROTHER", "ospf", Role),
        ] {
            assert_eq!(standing(state, &[subject]), expected, "{state}");
        }
    }
}
