//! Questions that one fact decides: a share of what is used, a restart within some days, the root of a spanning tree.

use super::asks;
use super::durations::{date, seconds};
use super::facts::{Fine, Read};
use super::figures::UTILIZATION_PERCENT_MIN;
use super::interpret::words;
use super::vocabulary::SYMPTOMS;

/// An answer that is older than the newest one by more is stale, in seconds.
const STALE_S_MIN: f64 = 86_400.0;

/// Words of numbers up to a fortnight of days.
const NUMBERS: &[&str] = &[
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen",
];

/// Words of a restart.
const RESTARTS: &[&str] =
    &["reboot", "rebooted", "restart", "restarted", "reload", "reloaded", "crash", "crashed"];

/// Faults that somebody may look for without having one.
const FAULTS: &[&str] = &["wrong", "problems", "drops", "timeouts", "lost"];

/// Words with which somebody asks whether each neighbor is up.
const ALL: &[&str] = &["all", "every", "each", "both"];
const UP: &[&str] = &["up", "established", "full", "running", "working"];

/// A number that the sentence compares with, in percent, if it is not the rules' own.
fn percent(sentence: &str) -> Option<f64> {
    let said = words(&sentence.replace('%', " percent"));
    let at = said.iter().position(|word| word == "percent")?;
    let number: f64 = said.get(at.checked_sub(1)?)?.parse().ok()?;
    (number < UTILIZATION_PERCENT_MIN).then_some(number)
}

/// Why more is used than the sentence allows.
pub(super) fn above(sentence: &str, fine: &[&Fine]) -> Option<String> {
    let limit = percent(sentence)?;
    let numbers =
        fine.iter().filter(|fine| fine.attribute == "utilization").filter_map(|fine| fine.number);
    let number = numbers.into_iter().find(|number| *number >= limit)?;
    Some(format!("{number}% is used, not under {limit}%"))
}

/// The days, hours or weeks before now that a sentence asks about, in seconds.
fn period(sentence: &str) -> Option<f64> {
    let said = words(sentence);
    let at =
        said.iter().position(|word| ["week", "day", "hour", "month"].contains(&word.as_str()))?;
    let before = said.get(at.checked_sub(1)?)?;
    let number = match NUMBERS.iter().position(|name| name == before) {
        Some(at) => (at + 1).to_string(),
        None if ["this", "last", "past"].contains(&before.as_str()) => "1".to_owned(),
        None => before.clone(),
    };
    seconds(&format!("{number} {}", said[at]))
}

/// Why a device has restarted within the time that the sentence asks about.
pub(super) fn restarted(sentence: &str, fine: &[&Fine]) -> Option<String> {
    let said = words(sentence);
    let limit =
        period(sentence).filter(|_| said.iter().any(|word| RESTARTS.contains(&word.as_str())))?;
    let mut uptimes = fine
        .iter()
        .filter(|fine| fine.attribute == "uptime" && fine.subjects.contains(&"system"))
        .filter_map(|fine| fine.number);
    let uptime = uptimes.find(|uptime| *uptime < limit)?;
    Some(format!("it restarted {} hours ago", (uptime / 3_600.0).round()))
}

/// Whether the device is the root that the sentence asks for: why it is not. `None` if it asks something else, or the
/// answers do not say.
pub(super) fn root(
    sentence: &str,
    names: &[String],
    device: &str,
    reads: &[&Read],
) -> Option<Result<(), String>> {
    let said = words(sentence);
    let has = |word: &str| said.iter().any(|w| w == word);
    let small = sentence.to_lowercase();
    let is_named = device.split(", ").any(|name| {
        let short = name.split('.').next().unwrap_or(name).to_lowercase();
        // "Is core1 the root", and not "the root of core1".
        small.contains(&format!("{short} the root"))
            || small.contains(&format!("{short} root"))
            || small.contains(&format!("{short} still the root"))
    });
    if !has("root") || !is_named {
        return None;
    }
    let of_names = |read: &&Read, object: usize| {
        names.iter().all(|name| asks::has(&read.tokens[object], name))
    };
    let roots = reads.iter().flat_map(|read| read.roots.iter().map(move |root| (read, root)));
    let mut asked = roots.filter(|(read, root)| of_names(read, root.object)).peekable();
    asked.peek()?;
    match asked.find(|(_, root)| !root.is_own) {
        Some((_, root)) => Some(Err(format!("the root is {}, not {device}", root.address))),
        None => Some(Ok(())),
    }
}

/// What of these subjects an operator switched off.
pub(super) fn switched_off(
    reads: &[&Read],
    concerns: impl Fn(&[&'static str]) -> bool,
) -> Option<String> {
    let all: Vec<&str> = reads
        .iter()
        .flat_map(|read| &read.off)
        .filter(|(subjects, _)| concerns(subjects))
        .map(|(_, text)| text.as_str())
        .collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Whether somebody reports a fault, and does not only ask if there is one.
pub(super) fn reports_a_fault(said: &[String]) -> bool {
    let has = |list: &[&str]| said.iter().any(|word| list.contains(&word.as_str()));
    let is_search = has(&["any", "anything", "there"]) && !has(&["why"]);
    said.iter().any(|word| {
        SYMPTOMS.contains(&word.as_str()) && !(is_search && FAULTS.contains(&word.as_str()))
    })
}

/// Whether a question asks if each one is up, so that one that is switched off is not as asked.
pub(super) fn asks_all_up(question: &str) -> bool {
    let said = words(question);
    let has = |list: &[&str]| said.iter().any(|word| list.contains(&word.as_str()));
    has(ALL) && has(UP)
}

/// Doubts the answers that are far older than the newest one.
pub(super) fn stale(reads: &mut [Read]) {
    let newest = reads.iter().filter_map(|read| read.newest).fold(f64::MIN, f64::max);
    for read in reads.iter_mut() {
        let age = read.taken_at.as_deref().and_then(date).map(|taken| newest - taken);
        if let (Some(age), Some(taken)) = (age.filter(|age| *age > STALE_S_MIN), &read.taken_at) {
            let days = (age / STALE_S_MIN).floor();
            read.unknown
                .insert(0, format!("the answer is of {taken}, {days} days older than another one"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_within_the_asked_time_is_found() {
        let fine = |uptime: f64| Fine {
            subjects: vec!["system"],
            attribute: "uptime",
            number: Some(uptime),
            name: String::new(),
            object: 0,
        };
        let of =
            |question: &str, days: f64| restarted(question, &[&fine(days * 86_400.0)]).is_some();
        assert!(of("Did r1 reboot during the last seven days?", 3.0));
        assert!(!of("Did r1 reboot during the last seven days?", 22.0));
        assert!(of("Was r1 restarted this week?", 6.0));
        assert!(!of("Was r1 restarted in the last 2 days?", 3.0));
        assert!(!of("Are there errors of the last 7 days?", 3.0));
    }

    #[test]
    fn a_search_for_faults_reports_none() {
        let of = |text: &str| {
            let said: Vec<String> = text.split(' ').map(str::to_owned).collect();
            reports_a_fault(&said)
        };
        assert!(!of("is there anything wrong in the log"));
        assert!(!of("are there any problems with bgp"));
        assert!(of("why are there any drops"));
        assert!(of("bgp is slow"));
        assert!(of("what is wrong with bgp"));
    }

    #[test]
    fn the_root_that_is_asked_for_is_compared() {
        let read = |is_own: bool| Read {
            roots: vec![super::super::facts::Root {
                address: "00aa.bbcc.dd99".to_owned(),
                is_own,
                object: 0,
            }],
            tokens: vec![vec!["10".to_owned()]],
            ..Read::default()
        };
        let names = ["10".to_owned()];
        let of = |question: &str, is_own: bool| root(question, &names, "sw1", &[&read(is_own)]);
        assert_eq!(of("Is sw1 the root bridge of VLAN 10?", true), Some(Ok(())));
        assert!(of("Is sw1 the root bridge of VLAN 10?", false).unwrap().is_err());
        assert_eq!(of("Which bridge is the root of VLAN 10 for sw1?", false), None);
        assert_eq!(root("Is sw1 the root?", &["20".to_owned()], "sw1", &[&read(true)]), None);
    }

    #[test]
    fn an_answer_that_is_far_older_than_another_is_doubted() {
        let read = |taken_at: Option<&str>, newest: &str| Read {
            taken_at: taken_at.map(str::to_owned),
            newest: date(newest),
            ..Read::default()
        };
        let old = "2026-01-01T08:00:00Z";
        let mut reads = [read(Some(old), old), read(None, "2026-02-02T08:00:00Z")];
        stale(&mut reads);
        assert_eq!(reads[0].unknown.len(), 1);
        let mut reads = [read(Some(old), old), read(None, "2026-01-01T09:00:00Z")];
        stale(&mut reads);
        assert_eq!(reads[0].unknown, Vec::<String>::new());
    }
}
