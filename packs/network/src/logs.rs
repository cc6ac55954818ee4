//! Judges lines of a log, and of what a device prints.

use serde_json::Value;

use super::findings::Reader;
use super::interpret::words;
use super::object::Object;
use super::tables;

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

/// States that an operator chose, the longer first, and counts of nothing.
const CHOSEN: &[&str] = &[
    "administratively down down",
    "administratively down",
    "admin down",
    "adm down",
    "down peers 0",
];

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

/// The severity in a line of Cisco's form, such as `%SYS-2-MALLOCFAIL`.
pub(super) fn severity_in(line: &str) -> Option<f64> {
    let mut parts = line.split_whitespace().filter(|word| word.contains('-')).flat_map(|word| {
        let parts: Vec<&str> = word.split('-').collect();
        parts.windows(3).map(|three| (three[0].to_owned(), three[1].to_owned())).collect::<Vec<_>>()
    });
    let is_facility = |name: &str| {
        let name = name.trim_start_matches('%');
        name.chars().any(|c| c.is_ascii_uppercase())
            && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    parts.find_map(|(facility, severity)| {
        let number = severity.parse::<u8>().ok().filter(|n| *n <= 7 && severity.len() == 1)?;
        is_facility(&facility).then(|| f64::from(number))
    })
}

/// Words of something bad that is over, of a test that went well, and those that say that it did not.
const OVER: &[&str] = &["cleared", "restored", "recovered", "resolved"];
const PASSED: &[&str] = &["passed", "succeeded", "successful", "successfully", "completed"];
const UNLESS: &[&str] =
    &["fail", "failed", "failure", "error", "lost", "down", "partly", "partially"];

/// Parts of lines about users, settings and good news, in lower case. Who logs out has lost nothing.
const ROUTINE: &[&str] = &[
    "session closed for user",
    "session opened for user",
    "logged out",
    "logged in",
    "logout",
    "idle timeout",
    "idle-timeout",
    "inactivity timeout",
    "exec timeout",
    "disconnected by user",
    "received disconnect from",
    "connection closed by",
    "closed by user",
    "configured from",
    "changed state to up",
    "dead peer detection enabled",
    "recovery enabled",
    "guard enabled",
    "detection is enabled",
    "reload cancelled",
    "reload canceled",
    "shutdown cancelled",
];

/// Whether a line tells of routine, or of something that is in order again.
fn is_routine(line: &str) -> bool {
    let small = line.to_lowercase();
    if ROUTINE.iter().any(|part| small.contains(part)) {
        return true;
    }
    let said = words(&small);
    let has = |list: &[&str]| {
        said.iter().enumerate().any(|(at, word)| {
            let before = &said[at.saturating_sub(REACH)..at];
            list.contains(&word.as_str())
                && !before.iter().any(|word| NEGATIONS.contains(&word.as_str()))
        })
    };
    has(OVER) && !has(&["again"]) || has(PASSED) && !has(UNLESS)
}

/// Whether a line is as severe as a warning, by its words or its severity.
pub(super) fn is_bad_or_severe(line: &str) -> bool {
    let is_mild = severity_in(line).is_none_or(|severity| severity > SEVERITY_MAX);
    is_bad(line) && !(is_mild && is_routine(line))
        || severity_in(line).is_some_and(|severity| severity <= SEVERITY_MAX)
}

/// Whether a line says that something is bad. "no failed items" and "errors: 0" do not.
pub(super) fn is_bad(line: &str) -> bool {
    let parts = line.split(|c: char| c.is_whitespace() || ":,;=()[]\"".contains(c));
    let plain: Vec<&str> = parts.filter(|word| !word.is_empty() && !is_address(word)).collect();
    let small = plain.join(" ").to_lowercase();
    let said = words(&CHOSEN.iter().fold(small, |line, state| line.replace(state, "")));
    said.iter().enumerate().any(|(at, word)| {
        let is_negated =
            said[at.saturating_sub(REACH)..at].iter().any(|w| NEGATIONS.contains(&w.as_str()))
                || said.get(at + 1).is_some_and(|next| next == "0" || next == "none");
        let list = if is_negated { GOOD } else { BAD };
        list.contains(&word.as_str())
    })
}

/// Whether a word is an interface or an address, such as `ge-0/0/0` or `10.0.0.2`: a zero in it negates nothing.
fn is_address(word: &str) -> bool {
    let word = word.trim_end_matches('.');
    word.contains(['/', '.'])
        && word.chars().any(|c| c.is_ascii_digit())
        && word.parse::<f64>().is_err()
        && !word.starts_with('%')
}

impl Reader {
    /// A line of a log as text.
    pub(super) fn log_line(&mut self, line: &str) {
        let line = line.trim();
        if is_bad_or_severe(line) {
            self.wrong(&["log"], format!("logged: {line}"));
        } else if tables::is_refusal(line) {
            self.unknown(format!("an answer in prose: \"{line}\""));
        } else if !line.is_empty() {
            self.fine(&["log"], "state", None, "");
        }
    }

    pub(super) fn log_entry(&mut self, object: &Object<'_>, message: &str) {
        let severity = object.get("severity").or_else(|| object.get("level"));
        let mnemonic = object.get("mnemonic").and_then(Value::as_str).unwrap_or("message");
        let is_bad = is_bad_or_severe(message) || is_bad_or_severe(mnemonic);
        if is_severe(severity) || is_bad {
            self.wrong(&["log"], format!("logged: {mnemonic}: {message}"));
        } else {
            self.fine(&["log"], "state", None, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_severity_is_read_in_a_line() {
        assert_eq!(severity_in("Jan 1 00:00:00: %SYS-2-MALLOCFAIL: Memory"), Some(2.0));
        assert_eq!(severity_in("%LINEPROTO-5-UPDOWN: Line protocol"), Some(5.0));
        assert_eq!(severity_in("RP/0/0: PKT_INFRA-LINK-3-UPDOWN : up"), Some(3.0));
        assert_eq!(severity_in("2026-1-2 ge-0-1 all well"), None);
    }

    #[test]
    fn what_is_over_or_routine_is_not_bad() {
        for line in [
            "%SYS-6-LOGOUT: user netops has exited tty 1, idle timeout expired",
            "sshd: Received disconnect from 10.0.0.9: disconnected by user",
            "Failover test completed successfully",
            "alarm cleared: fan failure",
            "Self-test passed, 0 failed",
        ] {
            assert!(!is_bad_or_severe(line), "{line}");
        }
        for line in [
            "Backup completed with one error",
            "link lost",
            "not restored: fan failure",
            "%SYS-2-MALLOCFAIL: memory test completed",
            "recovery failed",
            "OSPF adjacency down: dead timer expired",
        ] {
            assert!(is_bad_or_severe(line), "{line}");
        }
    }

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
