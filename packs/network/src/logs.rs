//! Judges lines of a log, and of what a device prints.

use serde_json::Value;

use super::interpret::words;

/// Highest severity number that counts as a warning or worse.
///
/// Source: RFC 5424, section 6.2.1.
const SEVERITY_MAX: f64 = 4.0;

const SEVERE: &[&str] =
    &["emergency", "emerg", "alert", "critical", "crit", "error", "err", "warning", "warn"];

/// Words that make a line relevant at any severity.
const BAD: &[&str] = &[
    "down",
    "flap",
    "flapping",
    "mismatch",
    "exceeded",
    "expired",
    "conflict",
    "failed",
    "fail",
    "failure",
    "unreachable",
    "errdisable",
    "errdisabled",
    "err",
    "idle",
    "denied",
    "timeout",
    "lost",
    "crash",
    "reload",
    "inconsistent",
    "duplicate",
    "loop",
    "notconnect",
    "servfail",
    "nxdomain",
    "exstart",
    "suspended",
    "error",
    "rejected",
    "violation",
    "refused",
    "unsynchronized",
    "dead",
    "blocked",
    "degraded",
    "lose",
    "loss",
    "unable",
    "cannot",
    "panic",
    "crashed",
    "restarted",
    "rebooted",
    "terminated",
    "unexpectedly",
    "dumped",
    "disconnected",
    "withdrawn",
    "closed",
    "teardown",
    "overheat",
    "traceback",
    "discarded",
    "dropped",
    "suspend",
    "inactive",
    "invalid",
    "unstable",
    "fault",
    "faulty",
    "maxpfx",
    "oom",
];

/// Words that are bad after a negation.
const GOOD: &[&str] = &[
    "reachable",
    "responding",
    "respond",
    "response",
    "established",
    "up",
    "ok",
    "synchronized",
    "synchronised",
    "connected",
    "operational",
    "ready",
    "available",
    "light",
    "carrier",
    "route",
    "label",
    "received",
];

/// States that an operator chose.
const CHOSEN: &[&str] = &["administratively down", "admin down", "adm down"];

/// Words that turn the next few around.
const NEGATIONS: &[&str] = &["no", "not", "without", "never", "zero", "0", "none", "neither"];

/// How far a negation reaches, in words.
const REACH: usize = 2;

pub(super) fn is_severe(severity: Option<&Value>) -> bool {
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    severity.is_some_and(|value| {
        number(value).is_some_and(|number| number <= SEVERITY_MAX)
            || value.as_str().is_some_and(|text| SEVERE.contains(&text.to_lowercase().as_str()))
    })
}

/// Whether a line says that something is bad. "no failed items" and "errors: 0" do not.
pub(super) fn is_bad(line: &str) -> bool {
    let small = line.to_lowercase();
    let said = words(&CHOSEN.iter().fold(small, |line, state| line.replace(state, "")));
    said.iter().enumerate().any(|(at, word)| {
        let is_negated =
            said[at.saturating_sub(REACH)..at].iter().any(|w| NEGATIONS.contains(&w.as_str()))
                || said.get(at + 1).is_some_and(|next| next == "0" || next == "none");
        let list = if is_negated { GOOD } else { BAD };
        list.contains(&word.as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_words_are_read_in_context() {
        for line in [
            "neighbor 1 Down",
            "OSPF-5-ADJCHG: from FULL to DOWN",
            "Gi0/1 put in err-disable state",
            "10.0.0.2 is not reachable",
            "no route to the neighbor",
            "bgpd terminated unexpectedly",
        ] {
            assert!(is_bad(line), "{line}");
        }
        for line in [
            "audit: no failed items",
            "errors: 0",
            "user netops logged in",
            "not a failure",
            "Gi0/9 is administratively down",
        ] {
            assert!(!is_bad(line), "{line}");
        }
    }
}
